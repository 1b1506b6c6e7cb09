"""Run a kernel of a module on NumPy arrays, at any stage, with the interpreter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xetl.analysis.memory import stored_arguments
from xetl.errors import InternalError
from xetl.language.dtypes import DType
from xetl_reference.checks import Guard, Run
from xetl_reference.executable import place_of, watch
from xetl_reference.interpreter import TABLE, Grid, Interpreter, subgroups_of
from xetl_reference.memory import Memory, View, argument_view
from xetl_reference.values import Meaning, as_scalar, dtype_of


def run_module(
    module: ModuleOp,
    grid: Sequence[int],
    arrays: Sequence[Any],
    extra_ops: Mapping[str, Meaning] | None = None,
    *,
    kernel: str | None = None,
    subgroups: Grid | None = None,
    checks: Collection[str] = (),
) -> None:
    """Run a kernel of ``module``, at any stage whose operations are known.

    Args:
        module: with one kernel (``gpu.func`` or ``func.func``), or several and a name.
        grid: programs along x, y and z; what is left out is 1.
        arrays: NumPy arrays and numbers, one for each argument but the sizes of the
            grid that the CPU backend adds; stored arrays are written in place.
        extra_ops: meanings of operations of other dialects.
        kernel: its name.
        subgroups: of a program along x, y and z, for kernels at subgroup level.
        checks: which of ``oob``, ``uninit`` and ``race`` (checks.py) are on.

    Raises:
        CheckError: a check found something; what was stored before it stays.
    """
    table = replace(TABLE, meanings={**TABLE.meanings, **(extra_ops or {})})
    guard = Guard(checks)
    if checks:
        table = table.guarded(guard)
    interpreter = Interpreter(module, kernel, table)
    types = interpreter.argument_types[: len(arrays)]
    arguments = [_argument(value, type_) for value, type_ in zip(arrays, types)]
    _join(arguments)
    run = None
    if checks:
        several = (subgroups or subgroups_of(interpreter.function)) != (1, 1, 1)
        run = Run(guard, several)
        stored = [arguments[i].memory for i in stored_arguments(interpreter.function)]
        watch(run, interpreter.function, arguments, stored)
    x, y, z = (*grid, 1, 1, 1)[:3]
    interpreter.run((x, y, z), arguments, subgroups, run)


def _join(arguments: list[Any]) -> None:
    """Let an array that is given twice be one memory, so that checks see it as one."""
    known: dict[tuple[int, int], Memory] = {}
    for i, view in enumerate(arguments):
        if isinstance(view, View):
            memory = known.setdefault(place_of(view.memory), view.memory)
            arguments[i] = view._replace(memory=memory)


def _argument(value: Any, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(type_, MemRefType):
        return as_scalar(value, dtype)
    if not isinstance(value, np.ndarray):
        raise InternalError(f"expected an array for {type_}, found {value!r}")
    return view_of_array(value, dtype)


def view_of_array(array: Any, dtype: DType) -> View:
    """A NumPy array as an argument; ``dtype`` is what the IR calls its elements."""
    if any(stride % dtype.itemsize for stride in array.strides):
        raise InternalError("strides must be whole elements")
    address, readonly = array.__array_interface__["data"]
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    return argument_view(address, dtype, array.shape, strides, readonly)
