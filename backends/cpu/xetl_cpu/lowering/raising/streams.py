"""Operands of a product that are read from memory step by step."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from xetl.dialects.upstream import scf
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileTransposeOp,
    UpdateTileOffsetOp,
)
from xetl_cpu.lowering.affine import constant_of, is_defined_outside
from xetl_cpu.lowering.tiles import is_streamable, loads_zero_padded


@dataclass
class Operand:
    """A tile to start from (or a value), and whether its transpose is the operand."""

    tile: SSAValue
    transposed: bool


def stream_of(value: SSAValue, loop: scf.ForOp, k: int, k_dim: int) -> Operand | None:
    """The tile an operand is loaded from first, if it moves by ``k`` in each trip.

    ``k_dim``: the dimension of the operand that is summed over.
    """
    transposed = isinstance(value.owner, TileTransposeOp)
    if isinstance(value.owner, TileTransposeOp):
        value, k_dim = value.owner.source, 1 - k_dim
    load = value.owner
    if not isinstance(load, LoadTileOp) or not loads_zero_padded(load):
        return None
    if load.parent is not loop.body.block:
        return None
    tile = load.tile
    if isinstance(tile, BlockArgument):
        start = _carried_start(tile, loop, k, k_dim)
    else:
        start = _rebuilt_start(tile, loop, k, k_dim)
    if start is None or not is_streamable(start):
        return None
    return Operand(start, transposed)


def _carried_start(
    tile: BlockArgument, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile carried by the loop and moved by ``update_tile_offset``."""
    if tile.block is not loop.body.block or tile.index == 0:
        return None
    last = loop.body.block.last_op
    assert last is not None
    update = last.operands[tile.index - 1].owner
    if not isinstance(update, UpdateTileOffsetOp) or update.tile is not tile:
        return None
    steps = [constant_of(step) for step in update.mixed_offsets]
    if steps != ([k, 0] if k_dim == 0 else [0, k]):
        return None
    return loop.init_args[tile.index - 1]


def _rebuilt_start(
    tile: SSAValue, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile made anew in each iteration at the loop's counter."""
    init = tile.owner
    counter = loop.body.block.args[0]
    if not isinstance(init, InitTileOp) or constant_of(loop.step) != k:
        return None
    offsets = list(init.mixed_offsets)
    if len(offsets) != 2 or offsets[k_dim] is not counter:
        return None
    others: list[SSAValue | int] = [init.source, offsets[1 - k_dim]]
    others += [*init.mixed_sizes, *init.mixed_strides]
    if not all(is_defined_outside(other, loop) for other in others):
        return None
    offsets[k_dim] = loop.lower_bound
    start = InitTileOp(
        init.source,
        offsets,
        init.result.type,
        sizes=init.mixed_sizes,
        strides=init.mixed_strides,
        location=init.location,
    )
    parent = loop.parent_block()
    assert parent is not None
    parent.insert_op_before(start, loop)
    return start.result
