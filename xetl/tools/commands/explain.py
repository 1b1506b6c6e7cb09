"""``xetl explain``: what became of a kernel, or what an error code means."""

from __future__ import annotations

from pathlib import Path

import click

from xetl.errors import did_you_mean

_PACKAGE = Path(__file__).parents[2]

_FOLDERS = (_PACKAGE / "error_pages", _PACKAGE.parent / "docs" / "errors")
"""Where setup.py puts them, and where they are written."""


def codes() -> list[str]:
    """All codes that have a page, in order."""
    return sorted(path.stem for path in _folder().glob("X*.md"))


def page(code: str) -> str | None:
    """The text of the page of ``code``, or None if there is no such code."""
    return _folder().joinpath(f"{code}.md").read_text() if code in codes() else None


def headline(code: str) -> str:
    """What a code means, in a line."""
    text = page(code) or ""
    return text.partition("\n")[0].partition(": ")[2]


def _folder() -> Path:
    return next((each for each in _FOLDERS if each.is_dir()), _FOLDERS[0])


@click.command()
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Print the page of an error CODE, such as X0201; without one, list them all."""
    if code is None:
        for each in codes():
            click.echo(f"{each}  {headline(each)}")
        return
    wanted = code.upper() if code[:1] in "xX" else f"X{code}"
    text = page(wanted)
    if text is None:
        hint = did_you_mean(wanted, codes())
        raise click.BadParameter(
            f"no error has the code `{code}`; {hint or '`xetl explain` lists them'}",
            param_hint="CODE",
        )
    click.echo(text.rstrip())
