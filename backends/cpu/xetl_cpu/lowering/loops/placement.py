"""Where values live: in registers of the loops that read them, or in a buffer.

A value is computed where it is read, together with what it is made of, so it never
leaves registers. One that several loops read is computed in each of them again, which
costs its operations for each vector of it; or once, into a buffer, which costs a store
and a load for each reader. The first is done below `EXPENSIVE` operations. What a
nested region reads stands in a buffer, and so does a column that rows are combined
with: it is computed down its rows, in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.kinds_of_types import is_dense, is_vector
from xetl.dialects.upstream import arith, vector
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.state import ScatterTile, State, shape_of

_COST = {"arith.divf": 4, "math.sqrt": 5, "math.rsqrt": 8}
EXPENSIVE = 8
"""Above this many simple operations a value with two readers is computed once."""

_FREE = (vector.BroadcastOp, vector.StepOp)
_VIEWS = (
    vector.ShapeCastOp,
    xetile.TileBroadcastOp,
    xetile.TileConvLayoutOp,
    xetile.TileTransposeOp,
)


def cost(state: State, value: SSAValue) -> int:
    """Simple vector operations it takes to compute one vector of the value."""
    op = value.owner
    if value in state.buffers or not isinstance(op, Operation):
        return 1
    if isinstance(op, (arith.ConstantOp, *_FREE)):
        return 0
    if isinstance(op, xetile.LoadTileOp):
        return 2
    if isinstance(op, xetile.LoadGatherOp):
        return EXPENSIVE
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
    if isinstance(op, vector.ShapeCastOp | xetile.TileConvLayoutOp):
        old, new = shape_of(op.operands[0]), shape_of(op.results[0])
        return old == new and is_free(op.operands[0])
    return isinstance(op, _FREE)


@record(frozen=True)
class Placement:
    """Where a value lives.

    Attributes:
        in_buffer: whether it is computed once, into a buffer.
        why: in words, for who asks; "" where there is no choice.
    """

    in_buffer: bool
    why: str = ""


def place(state: State, value: SSAValue) -> Placement:
    """Decide where the value is defined; all its readers are known there."""
    op = value.owner
    assert isinstance(op, Operation)
    if is_free(value) or op.parent in state.unrolled:
        return Placement(in_buffer=False)
    readers = [use.operation for use in value.uses]
    if any(reader.parent is not op.parent for reader in readers):
        return Placement(True, "computed once, for a nested block reads it")
    if _is_computed_column(value) and any(
        isinstance(r, xetile.TileBroadcastOp) for r in readers
    ):
        return Placement(True, "computed once, down its rows")
    if len(readers) < 2:
        return Placement(in_buffer=False)
    times, own = len(readers), cost(state, value)
    price = f"{times} readers, {own} operations a vector"
    if own >= EXPENSIVE:
        return Placement(True, f"{price}: computed once")
    return Placement(False, f"{price}: computed by each, in registers")


def _is_computed_column(value: SSAValue) -> bool:
    """A column is computed down its rows, not one element for each row."""
    rows, cols = shape_of(value)
    op = value.owner
    assert isinstance(op, Operation)
    return cols == 1 and rows > 1 and op.name.startswith(("arith.", "math."))


def leaves(state: State, value: SSAValue) -> Iterator[tuple[SSAValue, bool]]:
    """Values read to compute ``value``: loads and values in buffers.

    With each: whether its element (i, j) is read only for element (i, j); twice if both
    is the case.
    """
    waiting = [(value, True)]
    seen = set(waiting)
    while waiting:
        each, same_place = waiting.pop()
        op = each.owner
        if not is_vector(each.type):
            continue
        if each in state.buffers or not isinstance(op, Operation):
            yield each, same_place
            continue
        if isinstance(op, xetile.LoadTileOp):
            yield each, same_place
            continue
        keeps = same_place and _is_elementwise(op)
        parts = [(operand, keeps) for operand in op.operands]
        if isinstance(op, xetile.LoadGatherOp):
            yield each, False
            tile = state.tiles[op.tile]
            assert isinstance(tile, ScatterTile)
            parts.append((tile.indices, same_place))
        parts = [part for part in parts if part not in seen]
        seen.update(parts)
        waiting += parts


def _is_elementwise(op: Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "vector.fma")) or isinstance(
        op, xetile.TileConvLayoutOp | xetile.LoadGatherOp
    )


def tell_passes(state: State) -> None:
    """Remark on each load how many loops go over what it reads."""
    for load, loops in state.reads.items():
        times = "once" if loops == 1 else f"{loops} times, by as many loops"
        remark(load, "passes", f"read from memory {times}")
