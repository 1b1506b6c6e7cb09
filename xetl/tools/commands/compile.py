"""``xetl compile``: write a kernel as object, library, SPIR-V or Python wheel."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import suppress
from keyword import iskeyword
from pathlib import Path

import click

from xetl.tools.kernel_files import Asked, about_a_kernel, asked
from xetl.tools.output import json_option, show, write_files
from xetl.tools.shipping.compiled_files import compiled_files
from xetl.tools.shipping.wheel_files import wheel_files


@click.command()
@about_a_kernel
@click.option(
    "-o",
    "--output",
    type=Path,
    help="The file for the code; others are put beside it. For a wheel, a folder.",
)
@click.option(
    "--name", help="The name of the function or wheel; by default the kernel's."
)
@click.option("--wheel", "is_wheel", is_flag=True, help="Make a Python wheel instead.")
@click.option(
    "--also",
    multiple=True,
    metavar="'FILE:KERNEL SIGNATURE ...'",
    help="For a wheel: one more kernel, in quotes, with quotes around its signature.",
)
@click.option(
    "--grid", help="For a wheel: the grid, in Python, such as `lambda m: ...`."
)
@click.option(
    "--version", default="0.1.0", show_default=True, help="For a wheel: its version."
)
@json_option
def command(
    found: Asked,
    output: Path | None,
    name: str | None,
    is_wheel: bool,
    also: tuple[str, ...],
    grid: str | None,
    version: str,
    as_json: bool,
) -> None:
    r"""Compile a kernel into files, for programs without a compiler or without Python.

    \b
    xetl compile gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" --target avx2 -o gemm.o
    cc -O2 -fopenmp main.c gemm.o -lm          # main.c includes gemm.h

    For CPUs (avx2, avx512, avx512_bf16, amx) it writes a relocatable object, or a
    shared library if the file ends in .so; a header with a function that takes the
    kernel's arguments; JSON with the facts these rely on; files for CMake and
    pkg-config. For GPUs (pvc, bmg) it writes SPIR-V, a header and JSON. Neither a
    device nor a processor of that kind is needed.

    \b
    xetl compile gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" --wheel -o dist
    pip install dist/gemm-0.1.0-*.whl
    python -c "import gemm; gemm.gemm(A, B, C)"

    A wheel needs only NumPy. Without --target it has code for each kind of CPU, and
    runs the best code that the processor supports.
    """
    called = name or found.name
    if not re.fullmatch(r"[A-Za-z_]\w*", called, re.ASCII):
        why = f"`{called}` is no name in C; give another with --name"
        raise click.BadParameter(why, param_hint="--name")
    if is_wheel:
        if iskeyword(called):
            why = f"`{called}` is a word of Python: it could not be imported"
            raise click.BadParameter(why, param_hint="--name")
        if called in {*sys.stdlib_module_names, "numpy"}:
            why = f"the wheel would hide Python's or NumPy's `{called}`, which it needs"
            raise click.BadParameter(f"{why}: give another", param_hint="--name")
        kernels = [found, *(_read(each, found) for each in also)]
        files = wheel_files(kernels, called, version, grid, output or Path())
        if output and output.suffix != ".whl" and not output.exists():
            with suppress(OSError):  # `write_files` reports the missing folder
                output.mkdir()
    elif also or grid:
        raise click.UsageError("`--also` and `--grid` are for wheels: add --wheel")
    elif output is None:
        why = f"say where the code goes: -o {called}.o, or --wheel for Python"
        raise click.UsageError(why)
    else:
        files = compiled_files(found, output, called)
    write_files(files)
    wrote = list(map(str, files))
    show({"wrote": wrote}, (f"wrote {path}" for path in wrote), as_json)


def _read(words: str, first: Asked) -> Asked:
    """Find a kernel that `--also` names, for the same machine as the first."""
    try:
        place, *rest = shlex.split(words)
    except ValueError as error:  # an open quote, or no word
        why = f"`{words}` is not FILE:KERNEL SIGNATURE: {error}"
        raise click.BadParameter(why, param_hint="--also") from None
    return asked(place, tuple(rest), first.target, first.backend)
