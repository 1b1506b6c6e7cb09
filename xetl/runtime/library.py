"""``xetl.load_mlir``: the kernels of a text by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Dialect

from xetl.backend import find_backend
from xetl.dialects.kernel_attributes import STAGE
from xetl.dialects.text import Function, functions_of, qualified_name, read_module
from xetl.dialects.upstream import gpu
from xetl.errors import IRError, MissingKernelError, a_kind, did_you_mean
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.text_kernel import TextKernel
from xetl.runtime.usm import DEVICE_BACKEND


class Library(Mapping[str, TextKernel]):
    """The kernels of a text by name; ``str()`` is the text in canonical form."""

    def __init__(self, text: str) -> None:
        """Parse and verify ``text``; an IRError if it is wrong."""
        self._module = read_module(text, _dialects(text))
        functions = functions_of(self._module)
        if _OF_DEVICES.search(text):
            for each in functions:
                each.attributes[STAGE] = StringAttr(f"{DEVICE_BACKEND}.xegpu")
        tables: _Tables = {}  # the functions of each block
        for each in functions:
            tables.setdefault(each.parent, []).append(each)
        self._kernels = {
            name: TextKernel(text, function, tables[function.parent])
            for name, function in _named(tables).items()
        }

    def __getitem__(self, name: str) -> TextKernel:
        """Return the kernel called ``name``, or ``module::name`` if several are.

        Raises:
            MissingKernelError: there is no such kernel.
        """
        kernels = self._kernels
        found = kernels.get(name)
        if found is None and "::" in str(name):
            short = kernels.get(str(name).rpartition("::")[2])
            if short is not None and short.qualified_name == name:
                return short
        if found is None:
            listed = ", ".join(f"`{each}`" for each in kernels) or "none"
            error = MissingKernelError(
                f"the text has no kernel called `{name}`",
                code="X0818",
                help=did_you_mean(str(name), kernels) or f"its kernels are {listed}",
            )
            raise at_caller(error) from None
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<xetl library of {', '.join(self._kernels)}>"

    def __str__(self) -> str:
        return str(self._module)


_OF_DEVICES = re.compile(r"!xegpu\.(tensor|mem)_desc\b|\bxegpu\.(load|store)\b")
"""Operations of XeGPU, except barriers and fences, which XeTile has as well."""


def _dialects(text: str) -> Sequence[Dialect]:
    """Return the dialects of the backend that printed the text, if one did."""
    if _OF_DEVICES.search(text):
        return find_backend(DEVICE_BACKEND).opt_dialects()
    found = re.search(rf'{re.escape(STAGE)} = "(\w+)\.', text)
    return () if found is None else find_backend(found[1]).opt_dialects()


_Tables = dict[Block | None, list[Function]]


def _named(tables: _Tables) -> dict[str, Function]:
    """Return the functions by the names that users call them.

    That is the name in the text. If several kernels have the same name, the name of the
    module is put in front. A kernel is preferred to a host function.
    """
    every = [function for table in tables.values() for function in table]
    named: dict[str, Function] = {}
    for function in every:
        name = function.sym_name.data
        rivals = [other for other in every if other.sym_name.data == name]
        kernels = [other for other in rivals if isinstance(other, gpu.FuncOp)]
        if len(kernels or rivals) == 1:
            named[name] = (kernels or rivals)[0]
        elif function in (kernels or rivals):
            named[qualified_name(function)] = function
    return named


@errors_at_caller
def load_mlir(text: str) -> Library:
    """Load the kernels of a module of XeTile IR, or of XeGPU at subgroup level.

    Args:
        text: ``gpu.module``, ``gpu.func`` or ``func.func``, or a module around them.

    Raises:
        IRError: the text is wrong; the error has the line and column.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"a text was expected, found {a_kind(text)}"
        raise IRError(problem, "X0701", "of a file: `Path(...).read_text()`")
    return Library(text)
