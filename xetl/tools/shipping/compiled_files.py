"""The files of a compiled kernel for programs without Python, and what they rely on.

Among them are those by which CMake and pkg-config find the kernel, and the object as a
shared library, made by the linker of the system's C compiler.

`export` goes from a kernel and a signature in words to an `xetl.findings.Export`; it
needs no device.  Nothing is taken from the cache or put there: what is kept is code for
this process.
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
from xetl.language.signature import ConstParam, RuntimeParam, ScalarParam, Signature
from xetl.pipeline import lowered
from xetl.runtime.executables import choose_target, compiler
from xetl.tools.kernel_files import Asked


def export(
    asked: Asked, name: str, target: str | None
) -> tuple[Export, Signature, str]:
    """Compile a kernel into files.

    Args:
        name: what the functions in the files are called after.
        target: the machine; None: the one launches use.

    Returns:
        The files, what they were compiled for, the target.

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


_COMPILERS = ("cc", "gcc", "clang")


def shared_library(code: bytes, name: str, libraries: Sequence[str]) -> bytes:
    """Link an object.

    Args:
        name: of the library's file, which is what programs ask for.

    Raises:
        UsageError: there is no C compiler, or it refuses.
    """
    found = next(filter(None, map(shutil.which, _COMPILERS)), None)
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
    """Make both, to be put beside ``output``, an object or a shared library.

    Args:
        name: of the kernel, and of the package that is found.
    """
    flags = [f"-l{each}" for each in libraries]
    _tell_of_another(output, name)
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


def _tell_of_another(output: Path, name: str) -> None:
    """Say that the package in the folder was of another file than it is now."""
    package = output.with_name(f"{name}.pc")
    known = package.read_text("utf-8") if package.is_file() else ""
    found = re.search(r"^Libs: \$\{pcfiledir\}/(\S+)", known, re.MULTILINE)
    if found and Path(found[1]).stem != output.stem:
        said = f"note: `{package}` was for {found[1]} and is for {output.name} now"
        click.echo(f"{said}; --name gives each a package of its own", err=True)


_LIBRARY = ".so"
_OF_CPUS = (".o", _LIBRARY)


def compiled_files(found: Asked, output: Path, name: str) -> dict[Path, bytes]:
    """Compile a kernel; nothing is written yet.

    Args:
        output: where the code goes; ``.so`` asks for a shared library.

    Raises:
        UsageError: ``output`` is a folder or ends otherwise than such code, or a shared
            library cannot be made.
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
