"""Reductions that share one loop over rows.

Why: the sum of a row's squares and the sum of its elements, for a variance, are two
loops that compute or load the same elements; in one loop both read them in registers.

Before: ``%a = tile_reduce <add>, %v [1] ; %b = tile_reduce <add>, f(%v) [1]``
After:  one loop, which carries the partial results of both

Later reductions of the same block join the first one if their sources can be computed
there: from loads, from values in buffers, and from values that the loop keeps.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import is_vector
from xetl.worklist import Worklist
from xetl_cpu.lowering.loops.state import State, is_computed_where_read, shape_of
from xetl_cpu.lowering.tiles import may_write


def joint_reductions(
    state: State, first: xetile.TileReduceOp, place: Operation, kept: SSAValue | None
) -> list[xetile.TileReduceOp]:
    """Return reductions behind ``place`` that the loop of ``first`` can do as well.

    ``kept``: the value that this loop writes to a buffer.
    """
    found = list[xetile.TileReduceOp]()
    op: Operation | None = place
    while op is not None and not (op.regions or may_write(op)):
        if (
            isinstance(op, xetile.TileReduceOp)
            and op is not first
            and op.dims == (1,)
            and shape_of(op.source) == shape_of(first.source)
            and op.results[0] not in {**state.buffers, **state.homes}
            and _is_known(state, op.source, place, kept)
        ):
            found.append(op)
        op = op.next_op
    return found


def _is_known(
    state: State, value: SSAValue, place: Operation, kept: SSAValue | None
) -> bool:
    """Whether the elements of a value can be computed at a place."""
    waiting = Worklist([value])
    for each in waiting:
        op = each.owner
        if each in state.buffers or each is kept:
            continue
        if not is_vector(each.type):
            if isinstance(op, Operation) and not _is_before(op, place):
                return False
        elif isinstance(op, xetile.LoadTileOp):
            if op.tile not in state.tiles:
                return False
        elif isinstance(op, Operation) and is_computed_where_read(op):
            if isinstance(op, xetile.LoadGatherOp):
                return False
            waiting += op.operands
        else:
            return False
    return True


def _is_before(op: Operation, place: Operation) -> bool:
    """Whether an operation has run before ``place``; outer blocks always have."""
    return op.parent is not place.parent or op.is_before_in_block(place)
