"""Compute a value once, into scratch memory of its own."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.upstream import arith
from xetl.dialects.xetile import TileReduceOp
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.reductions import reduce_rows
from xetl_cpu.lowering.loops.sinks import element_of, write
from xetl_cpu.lowering.loops.state import Buffer, State, shape_of


def materialize(state: State, value: SSAValue, op: Operation) -> Buffer:
    """Compute a value in front of ``op`` into a buffer.

    A sum over its rows that is wanted too is taken in the same loop: what is in a
    register need not be read again. A value of an outer block is not remembered: what
    follows a branch or a loop without trips would read what was never written.
    """
    found = state.buffers.get(value)
    if found is not None:
        return found
    buffer = state.allocate(shape_of(value), element_of(value))
    owner = value.owner
    if isinstance(owner, Operation) and owner.parent is not op.parent:
        write(state, value, buffer, op)
        return buffer
    reduction = _row_reduction(value)
    if reduction is None:
        write(state, value, buffer, op)
    else:
        _reduce_and_keep(state, reduction, (value, buffer), op)
    state.buffers[value] = buffer
    return buffer


def materialize_cast(state: State, value: SSAValue, op: Operation) -> bool:
    """Compute a cast of a value and the reduction of its rows in front of ``op``.

    Only if nothing else reads the value (in attention, sums of probabilities and the
    next product do): then it never stands in memory in its own, wider type.
    """
    reduction, cast = _row_reduction(value), _cast(value)
    if reduction is None or cast is None or len(list(value.uses)) != 2:
        return False
    result = cast.results[0]
    buffer = state.allocate(shape_of(result), element_of(result))
    _reduce_and_keep(state, reduction, (result, buffer), op)
    state.buffers[result] = buffer
    return True


def _reduce_and_keep(
    state: State, reduction: TileReduceOp, keep: tuple[SSAValue, Buffer], op: Operation
) -> None:
    """Reduce rows into a buffer of its own, and keep elements on the way."""
    result = reduction.results[0]
    to = state.allocate((shape_of(reduction.source)[0], 1), element_of(result))
    reduce_rows(state, reduction, reduction.source, to, op, keep=keep)
    state.buffers[result] = to


def _cast(value: SSAValue) -> Operation | None:
    """A cast of the value to a narrower type, in the same block, for a product."""
    owner = value.owner
    for use in value.uses:
        cast = use.operation
        if not isinstance(cast, arith.TruncfOp) or not isinstance(owner, Operation):
            continue
        readers = [other.operation for other in cast.results[0].uses]
        if cast.parent is owner.parent and all(
            isinstance(reader, BrgemmTileOp) and reader.parent is owner.parent
            for reader in readers
        ):
            return cast
    return None


def _row_reduction(value: SSAValue) -> TileReduceOp | None:
    """A reduction of the value's rows in the same block, if there is one."""
    owner = value.owner
    if shape_of(value)[1] == 1 or not isinstance(owner, Operation):
        return None
    for use in value.uses:
        reader = use.operation
        if (
            isinstance(reader, TileReduceOp)
            and reader.dims == (1,)
            and reader.parent is owner.parent
        ):
            return reader
    return None
