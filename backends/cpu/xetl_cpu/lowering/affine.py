"""Index values that are never negative in a lowered kernel."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation

from xetl.analysis import affine
from xetl.dialects.base import Index
from xetl.dialects.upstream import func, scf
from xetl_cpu.dialect import FibersOp


def is_non_negative(value: Index) -> bool:
    """Whether the value is known to be 0 or more (False says nothing)."""
    return affine.is_non_negative(value, _is_size)


def _is_size(value: BlockArgument) -> bool:
    """Whether an argument is the number of a program, or a size of the grid."""
    parent = value.block.parent_op()
    if isinstance(parent, func.FuncOp):
        return any(_ends_programs(use.operation, value) for use in value.uses)
    return isinstance(parent, scf.ParallelOp | FibersOp)


def _ends_programs(op: Operation, value: BlockArgument) -> bool:
    """Whether this is the loop over programs, and it ends at ``value``."""
    return isinstance(op, scf.ParallelOp) and value in op.upper_bounds
