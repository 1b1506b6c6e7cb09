"""The files of a compiled kernel for programs without Python.

Some of the files let CMake and pkg-config find the kernel. The linker of the system's C
compiler makes a shared library of the object.

`export` makes an `xetl.findings.Export` of a kernel and a signature string. It needs no
device, and does not use the cache, whose code is for Python processes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from xetl import __version__
from xetl.backend import find_backend
from xetl.errors import LaunchError
from xetl.findings import Export
from xetl.language.signature import RuntimeParam, ScalarParam, Signature
from xetl.pipeline import lowered
from xetl.runtime.executables import choose_target, compiler
from xetl.tools.kernel_files import Asked


def export(
    asked: Asked, name: str, target: str | None
) -> tuple[Export, Signature, str]:
    """Compile a kernel into files.

    Args:
        name: the base of the names of the functions in the files.

    Returns:
        The files, the signature they were compiled for, the target.

    Raises:
        LaunchError: the backend makes no files, or the arguments are wrong.
        CompileError: the kernel is wrong.
    """
    found = find_backend(asked.backend)
    if not found.exports:
        problem = f"backend `{asked.backend}` makes no files that could be linked"
        help_ = "name a target of another one, such as --target avx2"
        raise LaunchError(problem, "X0844", help_)
    machine = choose_target(found, target)
    if asked.is_text:
        module, wanted = asked.kernel.for_any_arguments()
    else:
        wanted = asked.kernel.signature_of(asked.signature, asked.constants)
        module = compiler().build(asked.kernel.fn, wanted, found, machine)
    module = lowered(module, found, machine)
    return found.export(module, wanted, machine, name), wanted, machine


def shared_library(code: bytes, name: str, libraries: Sequence[str]) -> bytes:
    """Link an object to a shared library.

    Args:
        name: the name of the library's file, by which programs load it (its soname).
        libraries: the libraries it needs, without ``-l``.

    Raises:
        UsageError: there is no C compiler, or it fails.
    """
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        raise click.UsageError(
            "a shared library needs a linker, and there is no C compiler: install gcc "
            "or clang, or write an object: -o k.o"
        )
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder, "linked.so")
        Path(folder, "code.o").write_bytes(code)
        flags = [f"-Wl,-soname,{name}", *(f"-l{each}" for each in libraries)]
        command = [found, "-shared", "-o", str(into), f"{folder}/code.o", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise click.UsageError(f"`{found}` cannot link `{name}`: {last}")
        return into.read_bytes()


_CMAKE = """\
# {name}: a kernel compiled by xetl {version}. Set {name}_DIR to this folder, then
#     find_package({name} REQUIRED)
#     target_link_libraries(program PRIVATE {name}::{name})
# With OpenMP found before it uses its threads, else one.
if(NOT TARGET {name}::{name})
  add_library({name}::{name} INTERFACE IMPORTED)
  target_include_directories({name}::{name} INTERFACE "${{CMAKE_CURRENT_LIST_DIR}}")
  target_link_libraries(
    {name}::{name} INTERFACE "${{CMAKE_CURRENT_LIST_DIR}}/{file}" {libraries})
  foreach(language C CXX)
    if(TARGET OpenMP::OpenMP_${{language}})
      target_link_libraries({name}::{name} INTERFACE OpenMP::OpenMP_${{language}})
    endif()
  endforeach()
endif()
"""

_PKG_CONFIG = """\
# cc main.c $(PKG_CONFIG_PATH=. pkg-config --cflags --libs {name}) -fopenmp
Name: {name}
Description: a kernel compiled by xetl
Version: {version}
Cflags: -I${{pcfiledir}}
Libs: ${{pcfiledir}}/{file} {flags}
"""


def build_files(output: Path, name: str, libraries: Sequence[str]) -> dict[Path, bytes]:
    """Make the files for CMake and pkg-config in the folder of an object or library.

    ``libraries`` are those that it needs, without ``-l``.
    """
    flags = [f"-l{each}" for each in libraries]
    _note_replaced_file(output, name)
    if output.suffix == ".so":
        flags.append("-Wl,-rpath,${pcfiledir}")
    known = {
        "name": name,
        "version": __version__,
        "file": output.name,
        "libraries": " ".join(libraries),
        "flags": " ".join(flags),
    }
    return {
        output.with_name(f"{name}-config.cmake"): _CMAKE.format(**known).encode(),
        output.with_name(f"{name}.pc"): _PKG_CONFIG.format(**known).encode(),
    }


def _note_replaced_file(output: Path, name: str) -> None:
    """Print a note if the package in the folder was for another file until now."""
    package = output.with_name(f"{name}.pc")
    known = package.read_text("utf-8") if package.is_file() else ""
    found = re.search(r"^Libs: \$\{pcfiledir\}/(\S+)", known, re.MULTILINE)
    if found and Path(found[1]).stem != output.stem:
        said = f"note: `{package}` was for {found[1]} and is for {output.name} now"
        click.echo(f"{said}; --name gives each a package of its own", err=True)


_LIBRARY = ".so"
_OF_CPUS = (".o", _LIBRARY)


def compiled_files(found: Asked, output: Path, name: str) -> dict[Path, bytes]:
    """Compile a kernel, and return the contents of its files without writing them.

    Args:
        output: the file for the code; the suffix ``.so`` asks for a shared library.

    Raises:
        UsageError: ``output`` is a folder or has another suffix than such code, or the
            shared library cannot be linked.
    """
    made, signature, machine = export(found, name, found.target)
    facts = facts_of(found, signature, made, name, machine)
    if output.is_dir():
        why = f"`{output}` is a folder: write -o {output / name}{made.suffix}"
        raise click.BadParameter(why, param_hint="--output")
    output = output if output.suffix else output.with_suffix(made.suffix)
    fitting = _OF_CPUS if made.suffix in _OF_CPUS else (made.suffix,)
    if output.suffix not in fitting:
        what = f"what is compiled for `{machine}` is no `{output.suffix}` file"
        problem = f"{what}: write -o {output.with_suffix(made.suffix)}"
        raise click.BadParameter(problem, param_hint="--output")
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
    """Return the facts about the files for JSON: all that they rely on."""
    taken = signature.runtime.values()
    return {
        "kernel": name,
        "source": _source(found.kernel),
        "xetl": __version__,
        "backend": found.backend,
        "target": target,
        "arguments": [_argument(p, i in made.stored) for i, p in enumerate(taken)],
        "constants": {name: repr(v) for name, v in signature.constants.items()},
        **made.facts,
        "assumptions": list(made.assumptions),
    }


def _source(kernel: Any) -> str:
    code = getattr(getattr(kernel, "fn", None), "__code__", None)
    if code is None:
        return f"XeTile IR, kernel {kernel.qualified_name}"
    return f"{code.co_filename}:{code.co_firstlineno}"


def _argument(param: RuntimeParam, is_stored: bool) -> dict[str, Any]:
    if isinstance(param, ScalarParam):
        return {"name": param.name, "kind": param.kind}
    return {
        "name": param.name,
        "kind": "array",
        "dtype": param.dtype.name,
        "rank": param.rank,
        "dimension_of_stride_1": param.unit_dim,
        "needed": param.needed,
        "stored": is_stored,
    }
