"""What evaluating a value would read: loads of memory, buffers, and from where."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.xetile import LoadGatherOp, LoadTileOp, TileConvLayoutOp
from xetl_cpu.lowering.loops.state import Buffer, ScatterTile, State


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
        if isinstance(op, LoadTileOp):
            yield each, same_place
            continue
        keeps = same_place and _is_elementwise(op)
        parts = [(operand, keeps) for operand in op.operands]
        if isinstance(op, LoadGatherOp):
            yield each, False
            tile = state.tiles[op.tile]
            assert isinstance(tile, ScatterTile)
            parts.append((tile.indices, same_place))
        parts = [part for part in parts if part not in seen]
        seen.update(parts)
        waiting += parts


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
