"""The files of a compiled kernel for programs without Python, and what they rely on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from xetl import __version__
from xetl.export import Export
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.export import export
from xetl.tools.kernel_options import Asked
from xetl.tools.shipping.build_files import build_files
from xetl.tools.shipping.shared_library import shared_library

_LIBRARY = ".so"
_OF_CPUS = (".o", _LIBRARY)
_KNOWN = (*_OF_CPUS, ".spv", ".bin", ".whl", ".h", ".json")


def compiled_files(found: Asked, output: Path, name: str) -> dict[Path, bytes]:
    """Compile a kernel; nothing is written yet.

    Args:
        found: the kernel.
        output: where the code goes; ``.so`` asks for a shared library.
        name: of the function.

    Raises:
        UsageError: a shared library cannot be made.
    """
    made, signature, machine = export(
        found.kernel,
        found.signature,
        found.constants,
        name=name,
        backend=found.backend,
        target=found.target,
    )
    facts = facts_of(found, signature, made, name, machine)
    output = output if output.suffix else output.with_suffix(made.suffix)
    fitting = _OF_CPUS if made.suffix in _OF_CPUS else (made.suffix,)
    if output.suffix in _KNOWN and output.suffix not in fitting:
        what = f"what is compiled for `{machine}` is no `{output.suffix}` file"
        raise click.BadParameter(
            f"{what}: write -o {output.with_suffix(made.suffix)}", param_hint="--output"
        )
    files = {output: made.code}
    libraries: list[str] = facts.get("libraries", [])
    if output.suffix == _LIBRARY and made.suffix == ".o":
        files[output] = shared_library(made.code, output.name, libraries)
        facts["format"] = "ELF shared library"
    for ending, code in made.others.items():
        files[output.with_suffix(ending)] = code
    if made.header:
        files[output.with_suffix(".h")] = made.header.encode()
    files[output.with_suffix(".json")] = (json.dumps(facts, indent=1) + "\n").encode()
    if made.suffix == ".o":
        files |= build_files(output, name, libraries)
    return files


def facts_of(
    found: Asked, signature: Signature, made: Export, name: str, target: str
) -> dict[str, Any]:
    """Everything the files rely on."""
    params = signature.params
    taken = [p for p in params if not isinstance(p, ConstParam)]
    return {
        "kernel": name,
        "source": _source(found.kernel),
        "xetl": __version__,
        "backend": found.backend,
        "target": target,
        "arguments": [_argument(p, i in made.stored) for i, p in enumerate(taken)],
        "constants": {
            p.name: repr(p.value) for p in params if isinstance(p, ConstParam)
        },
        **made.facts,
        "assumptions": list(made.assumptions),
    }


def _source(kernel: Any) -> str:
    code = getattr(getattr(kernel, "fn", None), "__code__", None)
    if code is None:
        return f"XeTile IR, kernel {kernel.qualified_name}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _argument(param: ArrayParam | ScalarParam, is_stored: bool) -> dict[str, Any]:
    if isinstance(param, ScalarParam):
        return {"name": param.name, "kind": param.kind}
    return {
        "name": param.name,
        "kind": "array",
        "dtype": param.dtype.name,
        "rank": param.rank,
        "dimension_of_stride_1": param.unit_dim,
        "stored": is_stored,
    }
