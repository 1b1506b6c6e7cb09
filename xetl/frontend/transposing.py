"""``v.T`` and ``tile_transpose``."""

from __future__ import annotations

from xetl.dialects import xetile
from xetl.errors import TileShapeError
from xetl.frontend.context import Context
from xetl.frontend.types import Vector, show_shape


def transpose_vector(ctx: Context, value: Vector) -> Vector:
    """The vector with its axes swapped; a rank-1 vector is its own transpose."""
    if len(value.shape) > 2:
        raise ctx.error(
            TileShapeError,
            "X0210",
            f"`.T` swaps the axes of a matrix, not of {show_shape(value.shape)}",
            help="unpack it first: xetile.tile_unpack(v)",
        )
    if len(value.shape) == 1:
        return value
    result = ctx.emit(xetile.TileTransposeOp(value.ssa))
    return Vector(result, value.shape[::-1], value.dtype, value.origin)
