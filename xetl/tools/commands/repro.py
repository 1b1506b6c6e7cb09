"""``xetl repro``: write one file that shows an error of the compiler, for an issue.

The file has the text of the kernel's file and of the imported files in its folder, and
a call of the compiler with the same signature, constants, target and settings.
"""

from __future__ import annotations

import ast
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import xetl
from xetl.settings import config, variables
from xetl.tools.kernel_files import Asked, about_a_place, asked, find_file, split_words
from xetl.tools.output import json_option, show, write_files

_LEFT_OUT = ("XETL_CACHE", "XETL_CACHE_DIR", "XETL_TUNED_DIR", "XETL_OCLOC")
"""Settings about paths of this machine, which the file leaves out."""
_SECONDS = 300


@dataclass(frozen=True)
class Failure:
    """An error of the compiler: its first line, and the whole text."""

    headline: str
    text: str


def failure_of(found: Asked) -> Failure | None:
    """Compile a kernel; return the failure, or None if it compiles."""
    try:
        if found.is_text:
            found.kernel.ir("llvm", **found.options)
        else:
            found.kernel.warmup(found.signature, **found.options)
    except Exception as error:  # an unexpected error needs a report most
        text = str(error) or type(error).__name__
        if not text.startswith("error["):
            text = f"{type(error).__name__}: {text}"
        return Failure(text.partition("\n")[0], text)
    return None


def program(
    found: Asked, file: Path, name: str, constants: Sequence[str], why: Failure
) -> str:
    """Return the text of the file; ``constants`` are words ``NAME=VALUE``."""
    source = file.read_text("utf-8")
    kept = {k: v for k, v in variables().items() if k not in _LEFT_OUT}
    settings = {"XETL_CACHE": "0", **kept}
    lines = [*_head(why), "import os", "", f"os.environ.update({settings!r})", ""]
    call = f"target={found.target!r}, backend={found.backend!r}"
    if found.is_text:
        body = f"TEXT = {_quoted(source)}\n"
        end = (
            f"xetl.load_mlir(TEXT)[{found.kernel.qualified_name!r}].ir('llvm', {call})"
        )
        return "\n".join([*lines, "import xetl", "", body, end, ""])
    beside = _beside(source, file)
    given = dict(each.split("=", 1) for each in constants)
    return "\n".join([
        *lines,
        *([_LOADER.format(modules=_texts(beside))] if beside else []),
        f"SOURCE = {_quoted(_without_main(source))}",
        _RUN.format(
            file=file.name,
            name=name,
            signature=found.signature,
            constants=given,
            call=call,
        ),
    ])  # fmt: skip


def reproduces(path: Path, why: Failure) -> bool:
    """Whether the file fails in a new process with the same error."""
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode != 0 and why.headline in done.stderr


def _head(why: Failure) -> list[str]:
    said = [f"# {line}".rstrip() for line in why.text.splitlines()]
    versions = f"xetl {xetl.__version__}, Python {platform.python_version()}"
    return [
        "# Shows this error of xetl; run it with Python, attach it to an issue.",
        f"# {versions}, {platform.platform(terse=True)}",
        *said,
        "",
    ]


def _quoted(text: str) -> str:
    """Return a text as a Python literal, with line breaks if that is possible."""
    if "\\" in text or "'''" in text or text.endswith("'"):
        return repr(text)
    return f"'''\\\n{text}'''"


def _texts(modules: Mapping[str, str]) -> str:
    listed = [f"    {name!r}: {_quoted(text)}," for name, text in modules.items()]
    return "\n".join(["{", *listed, "}"])


def _without_main(source: str) -> str:
    """Blank out ``if __name__ == ...``; the other lines keep their numbers."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(lines) + "\n"


def _beside(source: str, file: Path) -> dict[str, str]:
    """Return the texts of the user's modules that the file may need, by name."""
    folder = file.resolve().parent
    wanted = [name for name in sys.modules if _is_beside(sys.modules[name], folder)]
    # `kernel_files` has imported the file itself under another name.
    own = [n for n in wanted if Path(sys.modules[n].__file__ or "") == file.resolve()]
    nodes = ast.walk(ast.parse(source))
    imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)
    names = sorted(set(wanted) - set(own)) if imports else []
    return {n: Path(sys.modules[n].__file__ or "").read_text("utf-8") for n in names}


def _is_beside(module: ModuleType, folder: Path) -> bool:
    file: Any = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    path = Path(file)
    inside = path.resolve().is_relative_to(folder)
    top = module.__name__.partition(".")[0]
    is_known = top.startswith(("xetl", "__main__")) or top in sys.stdlib_module_names
    return inside and not is_known and "site-packages" not in path.parts


_LOADER = """\
import importlib.abc
import importlib.util
import linecache
import sys

MODULES = {modules}


class Kept(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            packages = any(each.startswith(name + ".") for each in MODULES)
            return importlib.util.spec_from_loader(name, self, is_package=packages)

    def get_source(self, name):
        return MODULES[name]

    def get_code(self, name):
        text, file = MODULES[name], f"<{{name}}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        return compile(text, file, "exec")


sys.meta_path.insert(0, Kept())
"""

_RUN = """\

import linecache

FILE = {file!r}
linecache.cache[FILE] = (len(SOURCE), None, SOURCE.splitlines(True), FILE)
names = {{"__name__": "reproduced", "__file__": FILE}}
exec(compile(SOURCE, FILE, "exec"), names)

from xetl import xetile

scope = {{**vars(xetile), "xetile": xetile, **names}}
constants = {{name: eval(text, scope) for name, text in {constants!r}.items()}}
names[{name!r}].warmup({signature!r}, {call}, **constants)
"""


@click.command()
@about_a_place
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

    The file contains the text of FILE and of the imported modules in its folder, the
    signature, the constants and the settings. It is run once; the last line of output
    says whether it fails as the kernel did. Read it before you send it: it contains
    your source.
    """
    found = asked(place, words, target, backend)
    before = config.assigned
    try:
        config.cache = False
        why = failure_of(found)
    finally:
        config.assigned = before
    if why is None:
        raise click.UsageError(
            f"`{found.name}` compiles without an error for "
            f"`{found.target or found.backend}`: there is nothing to reproduce"
        )
    file = find_file(place)
    own = "" if found.is_text else found.name
    name = place.rpartition(":")[2] if own and ":" in place else own
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
