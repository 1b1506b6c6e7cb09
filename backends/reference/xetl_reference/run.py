"""Run a module at once: what tests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xetl.errors import InternalError
from xetl_reference.interpreter import Grid, Interpreter
from xetl_reference.memory import view_of_array
from xetl_reference.table import register_op, table_with
from xetl_reference.values import Meaning, as_scalar, dtype_of

__all__ = ["register_op", "run_module"]


def run_module(
    module: ModuleOp,
    grid: Sequence[int],
    arrays: Sequence[Any],
    extra_ops: Mapping[str, Meaning] | None = None,
    *,
    kernel: str | None = None,
    subgroups: Grid | None = None,
) -> None:
    """Run a kernel of ``module``, at any stage whose operations are known.

    Args:
        module: with one kernel (``gpu.func`` or ``func.func``), or several and a name.
        grid: programs along x, y and z; what is left out is 1.
        arrays: NumPy arrays and numbers, one for each argument but the sizes of the
            grid that the CPU backend adds; stored arrays are written in place.
        extra_ops: meanings of operations of other dialects, see `register_op`.
        kernel: its name.
        subgroups: of a program along x, y and z, for kernels at subgroup level.
    """
    interpreter = Interpreter(module, kernel, table_with(extra_ops))
    types = interpreter.argument_types[: len(arrays)]
    arguments = [_argument(value, type_) for value, type_ in zip(arrays, types)]
    x, y, z = (*grid, 1, 1, 1)[:3]
    interpreter.run((x, y, z), arguments, subgroups)


def _argument(value: Any, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(type_, MemRefType):
        return as_scalar(value, dtype)
    if not isinstance(value, np.ndarray):
        raise InternalError(f"expected an array for {type_}, found {value!r}")
    return view_of_array(value, dtype)
