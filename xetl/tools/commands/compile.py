"""``xetl compile``: a kernel as object, library, SPIR-V or Python wheel; no device."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from xetl import __version__
from xetl.export import Export
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.tools.kernel_options import Asked, about_a_kernel, asked
from xetl.tools.output import write_files


@click.command()
@about_a_kernel
@click.option(
    "-o",
    "--output",
    type=Path,
    required=True,
    help="The file for the code; header and JSON are put beside it.",
)
@click.option("--name", help="Of the function; by default the kernel's.")
def command(
    place: str,
    words: tuple[str, ...],
    target: str | None,
    backend: str | None,
    output: Path,
    name: str | None,
) -> None:
    r"""Compile a kernel into files, for programs without Python.

    \b
    xetl compile gemm.py:gemm "f32[M,K] f32[K,N] f32[M,N]" --target avx2 -o gemm.o
    cc -O2 -fopenmp main.c gemm.o -lm          # main.c includes gemm.h

    For CPUs: a relocatable object, a header with a function that takes the kernel's
    arguments, and JSON that says all they rely on. For GPUs: SPIR-V and JSON.
    """
    found = asked(place, words, target, backend)
    called = name or _own_name(found.kernel)
    if not re.fullmatch(r"[A-Za-z_]\w*", called, re.ASCII):
        why = f"`{called}` is no name in C; give another with --name"
        raise click.BadParameter(why, param_hint="--name")
    runtime: Any = importlib.import_module("xetl.runtime.export")
    export, signature, machine = runtime.export(
        found.kernel,
        found.signature,
        found.constants,
        name=called,
        backend=found.backend,
        target=found.target,
    )
    facts = _facts(found, signature, export, called, machine)
    files = _files(output, export, facts)
    write_files(files)
    for path in files:
        click.echo(f"wrote {path}")


def _own_name(kernel: Any) -> str:
    return getattr(kernel, "name", None) or kernel.__name__


def _files(output: Path, export: Export, facts: Mapping[str, Any]) -> dict[Path, bytes]:
    """What is written where."""
    output = output if output.suffix else output.with_suffix(export.suffix)
    text = json.dumps(facts, indent=1) + "\n"
    found = {output: export.code}
    for ending, code in export.others.items():
        found[output.with_suffix(ending)] = code
    if export.header:
        found[output.with_suffix(".h")] = export.header.encode()
    return {**found, output.with_suffix(".json"): text.encode()}


def _facts(
    found: Asked, signature: Signature, export: Export, name: str, target: str
) -> dict[str, Any]:
    """Everything the files rely on."""
    params = signature.params
    return {
        "kernel": name,
        "source": _source(found.kernel),
        "xetl": __version__,
        "backend": found.backend,
        "target": target,
        "arguments": [_argument(p) for p in params if not isinstance(p, ConstParam)],
        "constants": {
            p.name: repr(p.value) for p in params if isinstance(p, ConstParam)
        },
        **export.facts,
        "assumptions": list(export.assumptions),
    }


def _source(kernel: Any) -> str:
    code = getattr(getattr(kernel, "fn", None), "__code__", None)
    if code is None:
        return f"XeTile IR, kernel {kernel.qualified_name}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _argument(param: ArrayParam | ScalarParam) -> dict[str, Any]:
    if isinstance(param, ScalarParam):
        return {"name": param.name, "kind": param.kind}
    return {
        "name": param.name,
        "kind": "array",
        "dtype": param.dtype.name,
        "rank": param.rank,
        "dimension_of_stride_1": param.unit_dim,
    }
