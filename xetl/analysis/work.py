"""How much a program does at most, where its text alone says so."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import gpu
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import TileMmaOp, TileSortOp

_FRAMES = (ModuleOp, gpu.ModuleOp, gpu.FuncOp)
_LONG = (TileMmaOp, TileSortOp)


def elements_each(module: ModuleOp) -> int | None:
    """Elements of all vectors that the operations of a program read and make.

    None: there are loops, conditions, calls, products or sorts.
    """
    count = 0
    for op in operations_in(module, Operation):
        if isinstance(op, _LONG) or (op.regions and not isinstance(op, _FRAMES)):
            return None
        types = [value.type for value in (*op.operands, *op.results)]
        count += sum(prod(each.get_shape()) for each in types if is_vector(each))
    return count
