"""``xetl explain``: explain how a kernel was compiled, or what an error code means."""

from __future__ import annotations

import re
from pathlib import Path

import click

from xetl.errors import did_you_mean
from xetl.runtime.report import Explanation
from xetl.tools.kernel_files import PLACE, about_a_machine, asked
from xetl.tools.output import json_option, show, write_files

_CODE = re.compile(r"[xX]?\d+|[xX]\w{1,4}")
_PACKAGE = Path(__file__).parents[2]

_FOLDERS = (_PACKAGE / "error_pages", _PACKAGE.parent / "docs" / "errors")
"""The folders of error pages: in an installed package, and in the source tree."""


def codes() -> list[str]:
    """Return all codes that have a page, in order."""
    return sorted(path.stem for path in _folder().glob("X*.md"))


def page(code: str) -> str | None:
    """Return the text of the page of ``code``, or None if there is no such code."""
    return _folder().joinpath(f"{code}.md").read_text() if code in codes() else None


def headline(code: str) -> str:
    """Return the meaning of a code in one line."""
    return (page(code) or "").partition("\n")[0].partition(": ")[2]


def _folder() -> Path:
    return next((each for each in _FOLDERS if each.is_dir()), _FOLDERS[0])


@click.command()
@click.argument("what", required=False, metavar="[CODE | FILE:KERNEL]")
@click.argument("words", nargs=-1, metavar="[SIGNATURE] [NAME=VALUE]...")
@about_a_machine
@click.option("--html", type=Path, metavar="OUT", help="Write one HTML page instead.")
@click.option(
    "--roofline",
    is_flag=True,
    help="With --html: draw the limits of the machine, and the kernel's products below "
    "them. Limits of a CPU are measured; limits of a GPU are from its data sheet.",
)
@json_option
def command(
    what: str | None,
    words: tuple[str, ...],
    target: str | None,
    backend: str | None,
    html: Path | None,
    roofline: bool,
    as_json: bool,
) -> None:
    r"""Explain how each line of a kernel was compiled, or what an error CODE means.

    \b
    xetl explain gemm.py:gemm "bf16[M,K] bf16[K,N] f32[M,N]" --target avx512
    xetl explain gemm.py:gemm "bf16[M,K] bf16[K,N] f32[M,N]" --html gemm.html
    xetl explain X0201
    xetl explain

    Without arguments, it lists the codes. The page has the source beside the IR at each
    stage, with links between lines; gemm.html#l19 opens it at line 19.
    """
    if what is None:
        found = {each: headline(each) for each in codes()}
        show(found, (f"{code}  {text}" for code, text in found.items()), as_json)
    elif _CODE.fullmatch(what):
        _print_page(what, as_json)
    else:
        found = asked(what, words, target, backend)
        if found.is_text and html is not None:
            why = "there is no page about a kernel of a text: leave `--html` out"
            raise click.BadParameter(why, param_hint=PLACE)
        said: Explanation = found.kernel.explain(*found.arguments, **found.options)
        if html is not None:
            write_files({html: said.html(roofline=roofline)})
            click.echo(f"wrote {html}")
        else:
            click.echo(said.json() if as_json else str(said))


def _print_page(code: str, as_json: bool) -> None:
    wanted = code.upper() if code[:1] in "xX" else f"X{code}"
    text = page(wanted)
    if text is None:
        hint = did_you_mean(wanted, codes())
        why = f"no error has the code `{code}`; {hint or '`xetl explain` lists them'}"
        raise click.BadParameter(why, param_hint="CODE")
    facts = {"code": wanted, "headline": headline(wanted), "text": text}
    show(facts, [text.rstrip()], as_json)
