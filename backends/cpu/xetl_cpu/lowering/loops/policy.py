"""Which values are computed once into a buffer, which again wherever they are read."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.kinds_of_types import is_dense, is_vector
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import (
    LoadGatherOp,
    LoadTileOp,
    TileBroadcastOp,
    TileConvLayoutOp,
    TileTransposeOp,
)
from xetl_cpu.lowering.loops.state import State, shape_of

_COST = {"arith.divf": 4, "math.sqrt": 5, "math.rsqrt": 8}
_EXPENSIVE = 8
"""Above this many simple operations a value with two readers is computed once."""

_FREE = (vector.BroadcastOp, vector.StepOp)
_VIEWS = (vector.ShapeCastOp, TileBroadcastOp, TileConvLayoutOp, TileTransposeOp)


def cost(state: State, value: SSAValue) -> int:
    """Simple vector operations it takes to compute one vector of the value."""
    op = value.owner
    if value in state.buffers or not isinstance(op, Operation):
        return 1
    if isinstance(op, (arith.ConstantOp, *_FREE)):
        return 0
    if isinstance(op, LoadTileOp):
        return 2
    if isinstance(op, LoadGatherOp):
        return _EXPENSIVE
    own = _COST.get(op.name, 10 if op.name.startswith("math.") else 1)
    own = 0 if isinstance(op, _VIEWS) else own
    return own + sum(cost(state, v) for v in op.operands if is_vector(v.type))


def is_free(value: SSAValue) -> bool:
    """True for values that cost nothing to compute again, even in a loop."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return is_dense(op.value) and op.value.is_splat()
    if isinstance(op, arith.IndexCastOp):
        return is_free(op.operands[0])
    if isinstance(op, vector.ShapeCastOp | TileConvLayoutOp):
        old, new = shape_of(op.operands[0]), shape_of(op.results[0])
        return old == new and is_free(op.operands[0])
    return isinstance(op, _FREE)


def wants_buffer(state: State, value: SSAValue) -> bool:
    """Decide where the value is defined; all its readers are known there."""
    op = value.owner
    assert isinstance(op, Operation)
    if is_free(value):
        return False
    readers = [use.operation for use in value.uses]
    if any(reader.parent is not op.parent for reader in readers):
        return True
    if _is_computed_column(value) and any(
        isinstance(r, TileBroadcastOp) for r in readers
    ):
        return True
    return len(readers) > 1 and cost(state, value) >= _EXPENSIVE


def is_coordinate_swap(op: vector.ShapeCastOp) -> bool:
    """True for a reshape between 1xN and Nx1, or to the same shape."""
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return old == new or (old == (new[1], new[0]) and 1 in old)


def _is_computed_column(value: SSAValue) -> bool:
    """A column is computed down its rows, not one element for each row."""
    rows, cols = shape_of(value)
    op = value.owner
    assert isinstance(op, Operation)
    return cols == 1 and rows > 1 and op.name.startswith(("arith.", "math."))
