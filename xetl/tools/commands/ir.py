"""``xetl ir``: print the IR of a kernel at a stage or after a pass."""

from __future__ import annotations

from pathlib import Path

import click

from xetl.tools.kernel_files import Asked, about_a_kernel
from xetl.tools.output import json_option, show, write_files


@click.command()
@about_a_kernel
@click.option(
    "--stage",
    default="xetile",
    show_default=True,
    help="A stage (xetile, loops, llvm, asm, spirv, ...) or the name of a pass.",
)
@click.option("-o", "--output", type=Path, help="The file for the IR.")
@json_option
def command(found: Asked, stage: str, output: Path | None, as_json: bool) -> None:
    r"""Print the IR of a kernel at a stage or after a pass.

    \b
    xetl ir gemm.py:gemm "bf16[M,K] bf16[K,N] f32[M,N]" --stage asm --target avx512
    xetl ir gemm.py:gemm "f32[M,K] f32[K,N]^T f32[M,N]" BM=128 EPILOGUE=gelu
    xetl ir module.mlir:kernel --stage xetile-blocked

    SIGNATURE has the form of `kernel.warmup`: f32[M,K] is row-major, f32[M,K]^T is
    column-major; i64 and f32 alone are numbers. VALUE is Python with names of FILE.
    """
    text = found.kernel.ir(stage, *found.arguments, **found.options)
    if output is not None:
        write_files({output: text + "\n"})
    if output is None or as_json:
        facts = {"backend": found.backend, "target": found.target, "stage": stage}
        where = None if output is None else str(output)
        show({**facts, "output": where, "text": text}, [text], as_json)
