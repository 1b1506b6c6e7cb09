"""Compute a value once, into scratch memory of its own."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.xetile import TileReduceOp
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
        shape = (buffer.shape[0], 1)
        result = state.allocate(shape, element_of(reduction.results[0]))
        reduce_rows(state, reduction, value, result, op, keep=buffer)
        state.buffers[reduction.results[0]] = result
    state.buffers[value] = buffer
    return buffer


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
