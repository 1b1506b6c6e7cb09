"""From kernels to a Python wheel: each compiled for every kind of processor.

The wheel needs NumPy, and neither xetl nor a compiler: a declared grid is a text that
needs neither the user's file nor xetl.  The format is PEP 427; a wheel made twice of
the same kernels has the same bytes.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from xetl import __version__
from xetl.backend import find_backend
from xetl.language.signature import ConstParam
from xetl.tools.kernel_files import Asked
from xetl.tools.shipping.compiled_files import export, facts_of

_TAG = "py3-none-manylinux_2_28_x86_64"
"""No file in it is linked; the code calls functions of glibc's libm and libmvec."""

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
    """Make the wheel.

    Args:
        package: the name by which it is installed and imported.
        kernels: facts about each kernel, JSON only, with its name as ``kernel``.
        files: code, and ``_runtime.py``, which launches it.
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
    whole = {
        f"{package}/__init__.py": _init(names, listed).encode(),
        f"{package}/kernels.json": _json({each["kernel"]: each for each in kernels}),
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
    """How a kernel is called, with the dtypes of its arguments."""
    named = [
        f"{each['name']}: {each.get('dtype', each['kind'])}"
        + (f"[{each['rank']}-D]" if each["kind"] == "array" else "")
        for each in facts["arguments"]
    ]
    grid = "" if facts["grid"] is not None else "[grid]"
    return f"{facts['kernel']}{grid}({', '.join(named)})"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _digest(data: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"sha256={found.decode().rstrip('=')}"


_KNOWN = frozenset({"cdiv", "min", "max", "abs", "int", "len", "sum", "range"})


def grid_text(kernel: Any) -> str | None:
    """Python for the grid that a kernel declares; None if it has none.

    A function counts as having none if it uses names besides its own arguments,
    constants of its file that are numbers, and a few functions of Python.
    """
    grid: Any = kernel.grid
    if grid is None or not callable(grid):
        return None if grid is None else repr(grid)
    written = _written(kernel.fn)
    if not isinstance(written, ast.Lambda):
        return None
    return _alone(written, kernel.fn.__globals__)


def checked_grid(text: str, names: Mapping[str, Any]) -> str:
    """A grid that a user gives, with numbers in place of names of the kernel's file.

    Raises:
        ValueError: it is no Python, or uses what a wheel does not have.
    """
    try:
        written = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"`{text}` is no Python: {error.msg}") from None
    if not isinstance(written, ast.Lambda):
        return ast.unparse(written)
    found = _alone(written, names)
    if found is None:
        known = ", ".join(sorted(_KNOWN))
        raise ValueError(f"`{text}` uses more than its argument, numbers, {known}")
    return found


def _alone(written: ast.Lambda, scope: Mapping[str, Any]) -> str | None:
    """The text of a function; None if it uses names that a wheel does not have."""
    own = {each.arg for each in written.args.args}
    for node in ast.walk(written):
        if isinstance(node, ast.Name) and node.id not in own | _KNOWN:
            if type(scope.get(node.id)) not in (int, float):
                return None
            # The text has no file of its own: numbers take the place of names.
            _Replace(node.id, ast.Constant(scope[node.id])).visit(written)
    return ast.unparse(written)


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name else node


def _written(function: Callable[..., Any]) -> ast.expr | None:
    """What stands behind ``grid=`` in the decorator."""
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # it is in no file
        return None
    return next(_keywords(tree), None)


def _keywords(tree: ast.Module) -> Iterator[ast.expr]:
    for function in tree.body:
        for each in getattr(function, "decorator_list", ()):
            for keyword in getattr(each, "keywords", ()):
                if keyword.arg == "grid":
                    yield keyword.value


_HOST = "host"
_PLAIN = (int, float, str, bool, type(None))


def wheel_files(
    kernels: Sequence[Asked], package: str, version: str, grid: str | None, output: Path
) -> dict[Path, bytes]:
    """Compile the kernels; nothing is written yet.

    Args:
        kernels: at least one; their names must differ.
        package: the name of the wheel's package.
        grid: Python for the grid of the first kernel; None: the declared one.
        output: the wheel, or a folder for it.

    Raises:
        UsageError: what was asked for cannot be put into a wheel.
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
    names = [_name(each) for each in kernels]
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


def _name(found: Asked) -> str:
    return getattr(found.kernel, "name", None) or found.kernel.__name__


def _compiled(
    found: Asked, grid: str | None, files: dict[str, bytes]
) -> dict[str, Any]:
    """The facts of a kernel; its code is added to ``files``."""
    name = _name(found)
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
        facts["plain_constants"] = {
            p.name: p.value
            for p in signature.params
            if isinstance(p, ConstParam) and isinstance(p.value, _PLAIN)
        }
        variants.append(dict(made.variant))
        files |= made.wheel_files
    declared = None if found.is_text else grid_text(found.kernel)
    shown = ("kernel", "source", "xetl", "function", "arguments", "plain_constants")
    kept = {key: facts[key] for key in shown}
    kept["source"] = Path(facts["source"]).name  # a wheel goes to other machines
    return {**kept, "grid": grid or declared, "variants": variants}


def _targets(found: Asked) -> list[str]:
    """The one that was asked for, else all that do not depend on this machine."""
    if found.target is not None:
        return [found.target]
    return [each for each in find_backend(found.backend).targets if each != _HOST]
