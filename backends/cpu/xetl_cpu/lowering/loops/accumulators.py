"""Accumulators of products: scratch, with initial values if a product adds to them."""

from __future__ import annotations

from xetl_cpu.dialect import BrgemmTileOp, element_attribute
from xetl_cpu.lowering.loops.plain_products import zeros
from xetl_cpu.lowering.loops.state import Buffer, State
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.microkernels.blocking import Blocking


def accumulator(state: State, op: BrgemmTileOp) -> Buffer:
    """Return scratch for the result, in the shape that the micro-kernel needs."""
    blocking, (m, n, _) = op.blocking(), op.shape()
    shape = [blocking.rows_padded, blocking.ldc]
    element = element_attribute(blocking.arithmetic.accumulator)
    return Buffer(state.scratch_memref(shape, element), (m, n))


def starts_itself(op: BrgemmTileOp, blocking: Blocking) -> bool:
    """Whether the first chunk of k overwrites the accumulators."""
    return op.acc is None and not (blocking.is_called or blocking.is_skinny)


def initial(state: State, op: BrgemmTileOp) -> Buffer:
    """Return the buffer with the initial accumulator in it."""
    if op.acc is not None:
        carried = state.buffers.get(op.acc)
        if carried is not None and op.acc in state.in_place:
            return carried
        home = state.homes.get(op.acc)
        if home is not None and carried is None:
            write(state, op.acc, home, op)
            return home
    result = accumulator(state, op)
    source = op.acc if op.acc is not None else zeros(state, op)
    write(state, source, result, op)
    return result
