"""Vectors in blocks: ``tile_pack``, ``tile_unpack`` and ``inner_blocks``."""

from __future__ import annotations

from xetl.dialects import xetile
from xetl.errors import TileShapeError
from xetl.frontend.arguments import Call
from xetl.frontend.context import builds
from xetl.frontend.types import Shape, Vector, describe, packed, show_shape


def inner_blocks(call: Call, shape: Shape) -> Shape:
    """Argument ``inner_blocks`` for something of ``shape``.

    Raises:
        TileShapeError: the blocks do not divide it.
    """
    blocks = tuple(call.int_list("inner_blocks"))
    if len(shape) != 2 or len(blocks) != 2 or min(blocks) <= 0:
        raise call.error(
            TileShapeError,
            "X0204",
            f"`inner_blocks` of `{call.name}` must be two positive extents, of a"
            " matrix",
            "inner_blocks",
            label=f"is {list(blocks)} for {show_shape(shape)}",
        )
    if any(extent % block for extent, block in zip(shape, blocks, strict=True)):
        raise call.error(
            TileShapeError,
            "X0204",
            f"blocks of {show_shape(blocks)} do not divide {show_shape(shape)}",
            "inner_blocks",
        )
    return blocks


@builds("tile_pack")
def _tile_pack(call: Call) -> Vector:
    value = call.vector("v")
    blocks = inner_blocks(call, value.shape)
    op = xetile.TilePackOp(value.ssa, blocks)
    return Vector(call.ctx.emit(op), packed(value.shape, blocks), value.dtype)


@builds("tile_unpack")
def _tile_unpack(call: Call) -> Vector:
    value = call.vector("v", blocked=True)
    if len(value.shape) != 4:
        raise call.error(
            TileShapeError,
            "X0210",
            f"`tile_unpack` takes a blocked vector, not {describe(value)}",
            "v",
            help="xetile.tile_pack(v, [rows, columns]) makes one",
        )
    rows, columns, *blocks = value.shape
    op = xetile.TileUnpackOp(value.ssa, blocks)
    shape = (rows * blocks[0], columns * blocks[1])
    return Vector(call.ctx.emit(op), shape, value.dtype)
