"""What loads, stores, prefetches, gathers, scatters and atomics become."""

from __future__ import annotations

from xdsl.ir import Attribute

from xetl.dialects import xetile
from xetl.errors import TileShapeError, TileTypeError
from xetl.frontend.arguments import Call, wrong_kind
from xetl.frontend.arrays import check_element
from xetl.frontend.build_reductions import combining_kind
from xetl.frontend.casts import broadcast, broadcast_shapes, constant, splat
from xetl.frontend.context import builds
from xetl.frontend.types import (
    Tile,
    Vector,
    describe,
    element_type,
    is_scalar,
    show_shape,
)
from xetl.language.dtypes import DType, i1


def _padding(call: Call, dtype: DType) -> Attribute | None:
    """The padding as an attribute; None for 0, which is the default."""
    value = call.number("padding")
    if value == 0:
        return None
    if isinstance(value, float) and not dtype.is_float:
        raise call.error(
            TileTypeError,
            "X0305",
            f"the padding of {dtype} must be an int",
            "padding",
            label=f"is {describe(value)}",
        )
    return constant(value, dtype, element_type(dtype))


@builds("load_tile")
def _load_tile(call: Call) -> Vector:
    tile = call.tile("tile", scattered=False)
    op = xetile.LoadTileOp(tile.ssa, _padding(call, tile.dtype))
    return Vector(call.ctx.emit(op), tile.value_shape, tile.dtype, tile.origin)


@builds("store_tile")
def _store_tile(call: Call) -> None:
    tile = call.tile("tile", scattered=False)
    value = _fitting(call, tile)
    call.ctx.add(xetile.StoreTileOp(value.ssa, tile.ssa))


def _fitting(call: Call, tile: Tile) -> Vector:
    """Argument ``value``: of the tile's shape and dtype, or a number that fills it."""
    if is_scalar(call.value("value")):
        check_element(call.ctx, tile.dtype, call.args["value"])
        return splat(call.ctx, call.value("value"), tile.value_shape, tile.dtype)
    value = call.vector("value", blocked=True)
    origin = tile.origin.note() if tile.origin else None
    if value.shape != tile.value_shape:
        raise call.error(
            TileShapeError,
            "X0208",
            f"`{call.name}` cannot store {show_shape(value.shape)} to a tile of"
            f" {show_shape(tile.value_shape)}",
            "value",
            label=f"is {describe(value)}",
            notes=[origin],
            help="the shapes must be equal: reshape, or broadcast with"
            " xetile.tile_broadcast",
        )
    if value.dtype != tile.dtype:
        raise call.error(
            TileTypeError,
            "X0311",
            f"`{call.name}` cannot store {value.dtype} to a tile of {tile.dtype}",
            "value",
            label=f"is {describe(value)}",
            notes=[origin],
            help=f"convert the value: `.to(xetile.{tile.dtype})`",
        )
    return value


@builds("prefetch_tile")
def _prefetch_tile(call: Call) -> None:
    tile, locality = call.tile("tile", scattered=False), call.constant_int("locality")
    if not 0 <= locality <= 3:
        raise call.error(
            TileShapeError,
            "X0205",
            f"`locality` is 0, 1, 2 or 3, not {locality}",
            "locality",
        )
    call.ctx.add(xetile.PrefetchTileOp(tile.ssa, locality=locality))


# One offset for each element --------------------------------------------------------


def _mask(call: Call, tile: Tile) -> Vector:
    """Argument ``mask`` in the tile's shape; None means all."""
    if call.value("mask") is None:
        return splat(call.ctx, True, tile.shape, i1)
    mask = call.vector("mask")
    if not mask.dtype.is_bool:
        raise call.error(
            TileTypeError,
            "X0304",
            f"a mask must be i1, not {mask.dtype}",
            "mask",
            help="compare it, for example `v != 0`",
        )
    if broadcast_shapes(mask.shape, tile.shape) != tile.shape:
        raise call.error(
            TileShapeError,
            "X0208",
            f"the mask has shape {show_shape(mask.shape)}, the tile"
            f" {show_shape(tile.shape)}",
            "mask",
            help="a mask has one element for each of the tile's, or broadcasts to them:"
            " compare the indices",
        )
    return broadcast(call.ctx, mask, tile.shape)


@builds("load_gather")
def _load_gather(call: Call) -> Vector:
    tile = call.tile("tile", scattered=True)
    mask = _mask(call, tile)
    op = xetile.LoadGatherOp(tile.ssa, mask.ssa, padding=_padding(call, tile.dtype))
    return Vector(call.ctx.emit(op), tile.shape, tile.dtype, tile.origin)


@builds("store_scatter")
def _store_scatter(call: Call) -> None:
    tile = call.tile("tile", scattered=True)
    value, mask = _fitting(call, tile), _mask(call, tile)
    call.ctx.add(xetile.StoreScatterOp(value.ssa, mask.ssa, tile.ssa))


_ATOMIC = ("i32", "u32", "i64", "u64", "f32", "f64")


@builds("atomic_rmw_tile")
def _atomic_rmw_tile(call: Call) -> Vector:
    tile = call.tile("tile")
    value = _fitting(call, tile)
    kind = call.constant("kind", "a string")
    if not isinstance(kind, str):
        raise wrong_kind(
            call.ctx, "`kind` of `atomic_rmw_tile`", "a string", call.args["kind"]
        )
    half = kind == "add" and tile.dtype.name in ("f16", "bf16")
    if tile.dtype.name not in _ATOMIC and not half:
        raise call.error(
            TileTypeError,
            "X0312",
            f"there is no atomic `{kind}` of {tile.dtype}",
            "tile",
            help=f"atomics exist for {', '.join(_ATOMIC)}, and `add` for f16 and bf16",
        )
    combining = "assign" if kind == "xchg" else combining_kind(call, tile.dtype)
    mask = None if call.value("mask") is None else _mask(call, tile).ssa
    op = xetile.AtomicRmwTileOp(value.ssa, tile.ssa, mask, kind=combining)
    return Vector(call.ctx.emit(op), tile.value_shape, tile.dtype)
