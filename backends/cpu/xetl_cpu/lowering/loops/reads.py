"""What evaluating a value would read: loads of memory, buffers, and from where."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.xetile import LoadGatherOp, LoadTileOp, TileConvLayoutOp
from xetl_cpu.lowering.loops.state import Buffer, ScatterTile, State


def leaves(
    state: State, value: SSAValue, same_place: bool = True
) -> Iterator[tuple[SSAValue, bool]]:
    """Values read to compute ``value``: loads and values in buffers.

    With each: whether its element (i, j) is read only for element (i, j).
    """
    if not is_vector(value.type):
        return
    op = value.owner
    if value in state.buffers or not isinstance(op, Operation):
        yield value, same_place
        return
    if isinstance(op, LoadTileOp):
        yield value, same_place
        return
    if isinstance(op, LoadGatherOp):
        yield value, False
        tile = state.tiles[op.tile]
        assert isinstance(tile, ScatterTile)
        yield from leaves(state, tile.indices, same_place)
    keeps = same_place and _is_elementwise(op)
    for operand in op.operands:
        yield from leaves(state, operand, keeps)


def _is_elementwise(op: Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "vector.fma")) or isinstance(
        op, TileConvLayoutOp | LoadGatherOp
    )


def reads_elsewhere(
    state: State, value: SSAValue, own: Buffer, targets: list[Buffer]
) -> bool:
    """True if writing ``value`` to ``own`` element by element could go wrong.

    That is: it reads another buffer that is being assigned, or its own at other
    elements than the one it writes.
    """
    for leaf, same_place in leaves(state, value):
        buffer = state.buffers.get(leaf)
        if buffer is None:
            continue
        for target in targets:
            if buffer.memref is target.memref and (target is not own or not same_place):
                return True
    return False
