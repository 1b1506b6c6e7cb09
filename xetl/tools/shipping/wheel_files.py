"""Python wheels of kernels, each compiled for every kind of processor.

A wheel needs NumPy, but neither xetl nor a compiler. A declared grid goes into it as
Python text that needs neither xetl nor the user's file. The format is PEP 427. Two
wheels of the same kernels have the same bytes.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import inspect
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from xetl import __version__
from xetl.backend import find_backend
from xetl.tools.kernel_files import Asked
from xetl.tools.shipping.compiled_files import export, facts_of

_TAG = "py3-none-manylinux_2_28_x86_64"
"""The wheel has objects that are not linked; they call glibc's libm and libmvec."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)

_METADATA = """\
Metadata-Version: 2.1
Name: {package}
Version: {version}
Summary: Kernels compiled by xetl {xetl}: {names}
Requires-Python: >=3.10
Requires-Dist: numpy

{listed}
"""

_WHEEL = f"""\
Wheel-Version: 1.0
Generator: xetl ({__version__})
Root-Is-Purelib: false
Tag: {_TAG}
"""


def wheel(
    package: str,
    version: str,
    kernels: Sequence[Mapping[str, Any]],
    files: Mapping[str, bytes],
) -> bytes:
    """Return the bytes of a wheel.

    Args:
        kernels: facts about each kernel, with its name as ``kernel``; only values that
            JSON has.
        files: the code, and ``_runtime.py``, which launches it.
    """
    names = [each["kernel"] for each in kernels]
    info = f"{package}-{version}.dist-info"
    listed = "\n".join(f"* {_call(each)}" for each in kernels)
    about = {
        "package": package,
        "version": version,
        "xetl": __version__,
        "names": ", ".join(names),
        "listed": listed,
    }
    facts = {each["kernel"]: each for each in kernels}
    whole = {
        f"{package}/__init__.py": _init(names, listed).encode(),
        f"{package}/kernels.json": f"{json.dumps(facts, indent=1)}\n".encode(),
        **{f"{package}/{name}": content for name, content in files.items()},
        f"{info}/METADATA": _METADATA.format(**about).encode(),
        f"{info}/WHEEL": _WHEEL.encode(),
    }
    record = [f"{name},{_digest(data)},{len(data)}" for name, data in whole.items()]
    record.append(f"{info}/RECORD,,")
    whole[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in whole.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def _init(names: Sequence[str], listed: str) -> str:
    lines = [f"{name} = load({name!r})" for name in names]
    return "\n".join([
        f'"""Kernels compiled by xetl {__version__}.\n\n{listed}\n"""',
        "",
        "from ._runtime import load",
        "",
        f"__all__ = {list(names)!r}",
        "",
        *lines,
        "",
    ])  # fmt: skip


def _call(facts: Mapping[str, Any]) -> str:
    """Return the call of a kernel as text, with the dtypes of its arguments."""
    named = [
        f"{each['name']}: {each.get('dtype', each['kind'])}"
        + (f"[{each['rank']}-D]" if each["kind"] == "array" else "")
        for each in facts["arguments"]
    ]
    grid = "" if facts["grid"] is not None else "[grid]"
    return f"{facts['kernel']}{grid}({', '.join(named)})"


def _digest(data: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"sha256={found.decode().rstrip('=')}"


_KNOWN = frozenset({"cdiv", "min", "max", "abs", "int", "len", "sum", "range"})


def grid_text(kernel: Any) -> str | None:
    """Return the grid that a kernel declares as Python text; None if it has none.

    Also return None for a function that a wheel cannot hold: one that uses more names
    than its arguments, numbers that its file defines and a few functions of Python.
    """
    grid: Any = kernel.grid
    if grid is None or not callable(grid):
        return None if grid is None else repr(grid)
    written = _grid_expression(kernel.fn)
    if not isinstance(written, ast.Lambda):
        return None
    return _self_contained(written, kernel.fn.__globals__)


def checked_grid(text: str, names: Mapping[str, Any]) -> str:
    """Return a grid that a user gives, with names of the kernel's file as numbers.

    Raises:
        ValueError: it is no Python, or uses names that a wheel does not have.
    """
    try:
        written = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"`{text}` is no Python: {error.msg}") from None
    if not isinstance(written, ast.Lambda):
        return ast.unparse(written)
    found = _self_contained(written, names)
    if found is None:
        known = ", ".join(sorted(_KNOWN))
        raise ValueError(f"`{text}` uses more than its argument, numbers, {known}")
    return found


def _self_contained(written: ast.Lambda, scope: Mapping[str, Any]) -> str | None:
    """Return the text of a lambda; None if it uses names that a wheel does not have."""
    arguments = {each.arg for each in written.args.args}
    for node in ast.walk(written):
        if isinstance(node, ast.Name) and node.id not in arguments | _KNOWN:
            if type(scope.get(node.id)) not in (int, float):
                return None
            # The wheel has no such name: put the number in its place.
            _Replace(node.id, ast.Constant(scope[node.id])).visit(written)
    return ast.unparse(written)


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name else node


def _grid_expression(function: Callable[..., Any]) -> ast.expr | None:
    """Return the expression of ``grid=`` in the decorator of a kernel, or None."""
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # the function has no source file
        return None
    functions = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    calls = (d for f in functions for d in f.decorator_list if isinstance(d, ast.Call))
    keywords = (keyword for call in calls for keyword in call.keywords)
    return next((each.value for each in keywords if each.arg == "grid"), None)


_PLAIN = (int, float, str, bool, type(None))


def wheel_files(
    kernels: Sequence[Asked], package: str, version: str, grid: str | None, output: Path
) -> dict[Path, bytes]:
    """Compile kernels, and return the contents of a wheel without writing it.

    Args:
        kernels: at least one; their names must differ.
        grid: the grid of the first kernel as Python text; None: the declared one.
        output: the file of the wheel, or a folder for it.

    Raises:
        UsageError: the version or the grid is wrong, or a wheel cannot hold a kernel.
    """
    if not re.fullmatch(r"\d+(\.\w+)*", version, re.ASCII):
        raise click.BadParameter(f"`{version}` is no version", param_hint="--version")
    if grid is not None:
        first = kernels[0]
        known: Mapping[str, Any] = {} if first.is_text else first.kernel.fn.__globals__
        try:
            grid = checked_grid(grid, known)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--grid") from None
    names = [each.name for each in kernels]
    if len(set(names)) < len(names):
        raise click.UsageError("two kernels of a wheel have the same name: rename one")
    files: dict[str, bytes] = {}
    facts = [
        _compiled(each, grid if index == 0 else None, files)
        for index, each in enumerate(kernels)
    ]
    if output.suffix != ".whl":
        output = output / f"{package}-{version}-{_TAG}.whl"
    return {output: wheel(package, version, facts, files)}


def _compiled(
    found: Asked, grid: str | None, files: dict[str, bytes]
) -> dict[str, Any]:
    """Compile a kernel; return its facts, and add its code to ``files``."""
    name = found.name
    facts: dict[str, Any] = {}
    variants: list[Any] = []
    for target in _targets(found):
        made, signature, machine = export(found, name, target)
        if not made.variant:
            why = f"no wheel can hold the code of backend `{found.backend}`"
            if made.suffix == ".spv":
                raise click.UsageError(
                    f"{why}, whose drivers are loaded by dpctl: put the package xetl "
                    f"there, or write files for your own loader: -o {name}.spv"
                )
            raise click.UsageError(
                f"{why} as it is set up: name a CPU, such as --target avx2, and unset "
                "XETL_XSMM"
            )
        facts = facts_of(found, signature, made, name, machine)
        constants = signature.constants.items()
        plain = {name: v for name, v in constants if isinstance(v, _PLAIN)}
        facts["plain_constants"] = plain
        variants.append(dict(made.variant))
        files |= made.wheel_files
    declared = None if found.is_text else grid_text(found.kernel)
    shown = ("kernel", "source", "xetl", "function", "arguments", "plain_constants")
    kept = {key: facts[key] for key in shown}
    kept["source"] = Path(facts["source"]).name  # a wheel goes to other machines
    return {**kept, "grid": grid or declared, "variants": variants}


def _targets(found: Asked) -> list[str]:
    """Return the target the user asked for, or else all but ``host``."""
    if found.target is not None:
        return [found.target]
    return [each for each in find_backend(found.backend).targets if each != "host"]
