"""``xetl repro``: one file that shows an error of the compiler, to be attached."""

from __future__ import annotations

from pathlib import Path

import click

from xetl.settings import config
from xetl.tools.kernel_files import about_a_kernel, asked, find_file, split_words
from xetl.tools.output import json_option, show, write_files
from xetl.tools.reproduce import failure_of, program, reproduces


@click.command()
@about_a_kernel
@click.option(
    "-o",
    "--output",
    type=Path,
    default=Path("repro.py"),
    show_default=True,
    help="The file to write.",
)
@json_option
def command(
    place: str,
    words: tuple[str, ...],
    target: str | None,
    backend: str | None,
    output: Path,
    as_json: bool,
) -> None:
    r"""Write one Python file that fails to compile as this kernel does.

    \b
    xetl repro gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" --target pvc BM=48 -o repro.py

    It has the text of FILE, of modules beside it that are imported, the signature, the
    constants and the settings. It is run once: the last line says whether it fails as
    the kernel did. Look at it before you send it: it has your source.
    """
    found = asked(place, words, target, backend)
    before = config.assigned
    try:
        config.cache = False
        why = failure_of(found)
    finally:
        config.assigned = before
    if why is None:
        name = getattr(found.kernel, "__name__", None) or found.kernel.name
        raise click.UsageError(
            f"`{name}` compiles without an error for "
            f"`{found.target or found.backend}`: there is nothing to reproduce"
        )
    file = find_file(place)
    name = "" if found.is_text else _name_in_file(place, found.kernel.__name__)
    write_files({output: program(found, file, name, split_words(words)[1], why)})
    is_same = reproduces(output, why)
    lines = [f"wrote {output}"]
    if is_same:
        lines.append(f"it fails as the kernel does: {why.headline}")
    facts = {"wrote": str(output), "error": why.headline, "reproduces": is_same}
    show(facts, lines, as_json)
    if not is_same:
        raise click.UsageError(
            f"`{output}` does not fail as the kernel does: {why.headline}; what it "
            "depends on besides its file must be added by hand"
        )


def _name_in_file(place: str, own: str) -> str:
    return place.rpartition(":")[2] if ":" in place else own
