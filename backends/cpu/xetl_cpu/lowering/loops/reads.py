"""What is read from memory to compute a value, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.kinds_of_types import is_vector
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.state import ScatterTile, State


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
        keeps = same_place and is_elementwise(op)
        parts = [(operand, keeps) for operand in op.operands]
        if isinstance(op, xetile.LoadGatherOp):
            yield each, False
            tile = state.tiles[op.tile]
            assert isinstance(tile, ScatterTile)
            parts.append((tile.indices, same_place))
        parts = [part for part in parts if part not in seen]
        seen.update(parts)
        waiting += parts


def is_elementwise(op: Operation) -> bool:
    """True when element (i, j) of the result needs only elements (i, j)."""
    return op.name.startswith(("arith.", "math.", "vector.fma")) or isinstance(
        op, xetile.TileConvLayoutOp | xetile.LoadGatherOp
    )


def tell_passes(state: State) -> None:
    """Remark on each load how many loops go over what it reads."""
    for load, loops in state.reads.items():
        times = "once" if loops == 1 else f"{loops} times, by as many loops"
        remark(load, "passes", f"read from memory {times}")
