"""Reductions that share one loop over rows.

Why: the sum of a row's squares and the sum of its elements, for a variance, are two
loops that compute or load the same elements; in one loop both read them in registers.

Before: ``%a = tile_reduce <add>, %v [1] ; %b = tile_reduce <add>, f(%v) [1]``
After:  one loop, which carries the partial results of both

Later reductions of the same block join the first one if their sources can be computed
there: from loads, from values in buffers, and from values that the loop keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects import xetile
from xetl.dialects.base import is_vector
from xetl.worklist import Worklist
from xetl_cpu.lowering.loops.combine import Combine
from xetl_cpu.lowering.loops.state import (
    State,
    element_of,
    is_computed_where_read,
    leaves,
    shape_of,
)
from xetl_cpu.lowering.tiles import may_write


def joint_reductions(
    state: State,
    first: xetile.TileReduceOp,
    place: Operation,
    rows: int,
    kept: SSAValue | None,
) -> list[xetile.TileReduceOp]:
    """Return reductions behind ``place`` that the loop of ``first`` can do as well.

    Those of several rows at once have to fit registers. A reduction is left to the
    loop of one before it if that reads values that it needs, and this loop does not.

    Args:
        state: the state of the lowering.
        first: the reduction that has the loop.
        place: where the loop will be.
        rows: the rows that the loop does at once.
        kept: the value that this loop writes to a buffer.
    """
    found, combines = list[xetile.TileReduceOp](), [_combine(first)]
    here, later = _loads(state, first), set[SSAValue]()
    op: Operation | None = place
    while op is not None and not (op.regions or may_write(op)):
        if (
            isinstance(op, xetile.TileReduceOp)
            and op is not first
            and op.dims == (1,)
            and shape_of(op.source) == shape_of(first.source)
            and op.results[0] not in {**state.buffers, **state.homes}
        ):
            loads = _loads(state, op)
            if not _is_known(state, op.source, place, kept):
                later |= loads
            elif not loads - here & later:
                combines.append(_combine(op))
                if fitting(state, combines, rows) < rows:
                    break
                found.append(op)
                here |= loads
        op = op.next_op
    return found


def _loads(state: State, op: xetile.TileReduceOp) -> set[SSAValue]:
    """Return the values in memory that a reduction reads."""
    return {leaf for leaf, _ in leaves(state, op.source)}


def _combine(op: xetile.TileReduceOp) -> Combine:
    return Combine(op.kind.data, element_of(op.source))


def fitting(state: State, found: Sequence[Combine], ways: int) -> int:
    """Return fewer vectors at once, if several reductions would not fit registers."""
    width = max(byte_width(each.element) for each in found)
    registers = -(-state.lanes * width // state.target.vector_bytes)
    carried = registers * sum(len(each.begins()) for each in found)
    most = state.target.vector_registers * 3 // 4
    while len(found) > 1 and ways > 1 and ways * carried > most:
        ways //= 2
    return ways


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
