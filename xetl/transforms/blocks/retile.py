"""Tiles get their blocks; an access whose blocks are others gets a tile of its own."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.devices import Block
from xetl.dialects.xetile import (
    InitTileOp,
    TileType,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl.transforms.blocks.tiles import TilePlan

_Copies = dict[tuple[SSAValue, Block | None], SSAValue]


def give_each_access_its_tile(plan: TilePlan) -> None:
    """Copy the description where an access has other blocks than the tile."""
    copies: _Copies = {}
    for op, block in plan.of_access.items():
        for index, value in enumerate(op.operands):
            if isinstance(value.type, TileType) and plan.of_tile[value] != block:
                op.operands[index] = _copy(value, block, copies)


def _copy(tile: SSAValue, block: Block | None, copies: _Copies) -> SSAValue:
    """The same tile in other blocks; only what no loop carries is copied."""
    known = copies.get((tile, block))
    if known is not None:
        return known
    op = tile.owner
    assert isinstance(op, InitTileOp | UpdateTileOffsetOp)
    new = op.clone()
    new.location = op.location
    if isinstance(new, UpdateTileOffsetOp) and isinstance(op, UpdateTileOffsetOp):
        new.operands[0] = _copy(op.tile, block, copies)
    Rewriter.insert_op(new, InsertPoint.after(op))
    copies[tile, block] = _retype(new.result, block)
    return copies[tile, block]


def retype_tiles(plan: TilePlan) -> None:
    """Give each tile its blocks."""
    for tile, block in plan.of_tile.items():
        _retype(tile, block)


def _retype(tile: SSAValue, block: Block | None) -> SSAValue:
    old = tile_type(tile)
    encoding = old.encoding.replace(wg_map=old.wg_map, inner_blocks=block or ())
    new = TileType(old.shape, old.element_type, encoding)
    return tile if new == old else Rewriter.replace_value_with_new_type(tile, new)
