"""The IR of loads, stores, prefetches, gathers, scatters and atomics."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import gpu, xegpu
from xetl.dialects.xetile import tile_type
from xetl.dialects.xetile.types import SHARED
from xetl.frontend import types
from xetl.frontend.arguments import Call, builds
from xetl.frontend.arrays import check_element
from xetl.frontend.build_vectors import combining_kind
from xetl.frontend.casts import broadcast, broadcast_shapes, constant, splat
from xetl.language.dtypes import DType, i1


def _padding(call: Call, dtype: DType) -> Attribute | None:
    """Return the padding as an attribute; None for 0, the default."""
    value = call.number("padding")
    if value == 0:
        return None
    if isinstance(value, float) and not dtype.is_float:
        problem = f"the padding of {dtype} must be an int"
        raise call.unfit("X0305", problem, "padding")
    wraps = not (dtype.is_float or dtype.is_bool)  # a bool is the truth of a number
    if wraps and not -1 << dtype.bits - 1 <= value < 1 << dtype.bits:
        problem = f"the padding {value} does not fit {dtype}"
        help_ = "load zeros and choose with xetile.where, in a wider dtype"
        raise call.error("X0305", problem, "padding", help=help_)
    return constant(value, dtype, types.element_type(dtype))


@builds("load_tile")
def _load_tile(call: Call) -> types.Vector:
    tile = call.tile("tile", scattered=False)
    op = xetile.LoadTileOp(tile.ssa, _padding(call, tile.dtype))
    for level, hint in zip(("l1_hint", "l3_hint"), _hints(call)):
        if hint is not None:
            op.properties[level] = xetile.CacheHintAttr(hint)
    return types.Vector(call.ctx.emit(op), tile.value_shape, tile.dtype, tile.origin)


_CACHES = {
    "": (None, None),
    ".ca": ("cached", "cached"),
    ".cg": ("uncached", "cached"),
    ".cs": ("streaming", "cached"),
    ".cv": ("uncached", "uncached"),
}
"""The hints for L1 and for the cache behind it. Source: Triton, ``cache_modifier``."""


def _hints(call: Call) -> tuple[str | None, str | None]:
    """Return the hints for L1 and for the cache behind it; None: device's default."""
    first, last = _CACHES[call.word("cache", _CACHES)]
    eviction = call.word("evict", ("", "evict_normal", "evict_first", "evict_last"))
    if eviction == "evict_first":
        return "streaming" if first in (None, "cached") else first, last or "cached"
    if eviction == "evict_last":
        return first or "cached", last or "cached"
    return first, last


@builds("store_tile")
def _store_tile(call: Call) -> None:
    tile = call.tile("tile", scattered=False)
    call.ctx.add(xetile.StoreTileOp(_fitting(call, tile).ssa, tile.ssa))


def _fitting(call: Call, tile: types.Tile, name: str = "value") -> types.Vector:
    """Return an argument as a vector of the tile's shape and dtype.

    A number is repeated; a vector must have this shape and dtype.
    """
    if types.is_scalar(call.value(name)):
        check_element(call.ctx, tile.dtype, call.args[name])
        return splat(call.ctx, call.value(name), tile.value_shape, tile.dtype)
    value = call.vector(name, blocked=True)
    origin = tile.origin.note() if tile.origin else None
    if value.shape != tile.value_shape:
        problem = (
            f"`{call.name}` cannot store {types.show_shape(value.shape)} to a tile of"
            f" {types.show_shape(tile.value_shape)}"
        )
        help_ = _how_to_fit(value.shape, tile.value_shape)
        raise call.unfit("X0208", problem, name, help_, notes=[origin])
    if value.dtype != tile.dtype:
        problem = f"`{call.name}` cannot store {value.dtype} to a tile of {tile.dtype}"
        help_ = f"convert the value: `.to(xetile.{tile.dtype})`"
        raise call.unfit("X0311", problem, name, help_, notes=[origin])
    return value


def _how_to_fit(shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """Return the help for a value and a tile of different shapes."""
    for index, whole in (("[:, None]", (*shape, 1)), ("[None, :]", (1, *shape))):
        if whole == wanted:
            return (
                f"add the dimension of 1 by `{index}`; sums and other reductions keep"
                " it with `keepdims=True`"
            )
    return "the shapes must be equal: reshape, or broadcast with xetile.tile_broadcast"


@builds("prefetch_tile")
def _prefetch_tile(call: Call) -> None:
    tile, locality = call.tile("tile", scattered=False), call.constant_int("locality")
    if not 0 <= locality <= 3:
        problem = f"`locality` is 0, 1, 2 or 3, not {locality}"
        raise call.error("X0205", problem, "locality")
    call.ctx.add(xetile.PrefetchTileOp(tile.ssa, locality=locality))


# One offset for each element --------------------------------------------------------


def _mask(call: Call, tile: types.Tile) -> types.Vector:
    """Return argument ``mask``, broadcast to the tile's shape; None means all."""
    if call.value("mask") is None:
        return splat(call.ctx, True, tile.shape, i1)
    mask = call.vector("mask")
    if not mask.dtype.is_bool:
        problem = f"a mask must be i1, not {mask.dtype}"
        help_ = "compare it, for example `v != 0`"
        raise call.error("X0304", problem, "mask", help=help_)
    if broadcast_shapes(mask.shape, tile.shape) != tile.shape:
        raise call.error(
            "X0208",
            f"the mask has shape {types.show_shape(mask.shape)}, the tile"
            f" {types.show_shape(tile.shape)}",
            "mask",
            help="a mask has one element for each of the tile's, or broadcasts to them:"
            " compare the indices",
        )
    return broadcast(call.ctx, mask, tile.shape)


@builds("load_gather")
def _load_gather(call: Call) -> types.Vector:
    tile = call.tile("tile", scattered=True)
    mask = _mask(call, tile)
    op = xetile.LoadGatherOp(tile.ssa, mask.ssa, padding=_padding(call, tile.dtype))
    return types.Vector(call.ctx.emit(op), tile.shape, tile.dtype, tile.origin)


@builds("store_scatter")
def _store_scatter(call: Call) -> None:
    tile = call.tile("tile", scattered=True)
    value, mask = _fitting(call, tile), _mask(call, tile)
    call.ctx.add(xetile.StoreScatterOp(value.ssa, mask.ssa, tile.ssa))


_ATOMIC = ("i32", "u32", "i64", "u64", "f32", "f64")


_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = {"group": "workgroup", "device": "gpu", "system": "system"}


def _ordered(call: Call, tile: types.Tile, update: Callable[[], SSAValue]) -> SSAValue:
    """Emit an atomic, and around it the fences that `sem` and `scope` ask for.

    In a workgroup-level kernel a barrier is beside the fences: accesses of all
    subgroups are ordered.
    """
    order, scope = call.word("sem", _ORDERS), call.word("scope", _SCOPES)
    is_shared = tile_type(tile.ssa).memory_space == SHARED
    spaces = ("global", "slm") if is_shared else ("global",)
    fences = [
        lambda space=space: xegpu.FenceOp(
            memory_kind=xegpu.MemorySpaceAttr(space),
            fence_scope=xegpu.FenceScopeAttr(_SCOPES[scope]),
        )
        for space in spaces
    ]
    meet = [gpu.BarrierOp] if call.ctx.level == "workgroup" else []
    if order in ("release", "acq_rel"):
        for make in (*meet, *fences):
            call.ctx.add(make())
    found = update()
    if order in ("acquire", "acq_rel"):
        for make in (*fences, *meet):
            call.ctx.add(make())
    return found


@builds("atomic_rmw_tile")
def _atomic_rmw_tile(call: Call) -> types.Vector:
    tile = call.tile("tile")
    value = _fitting(call, tile)
    kind = call.constant("kind", "a string")
    if not isinstance(kind, str):
        raise call.wrong_kind("kind", "a string")
    half = kind == "add" and tile.dtype.name in ("f16", "bf16")
    if tile.dtype.name not in _ATOMIC and not half:
        problem = f"there is no atomic `{kind}` of {tile.dtype}"
        help_ = f"atomics exist for {', '.join(_ATOMIC)}, and `add` for f16 and bf16"
        raise call.error("X0312", problem, "tile", help=help_)
    combining = "assign"
    if kind != "xchg":
        combining = combining_kind(call, tile.dtype, more=("xchg",))
    mask = None if call.value("mask") is None else _mask(call, tile).ssa
    op = xetile.AtomicRmwTileOp(value.ssa, tile.ssa, mask, kind=combining)
    old = _ordered(call, tile, lambda: call.ctx.emit(op))
    return types.Vector(old, tile.value_shape, tile.dtype)


@builds("atomic_cas")
def _atomic_cas(call: Call) -> types.Vector:
    tile = call.tile("tile")
    if tile.dtype.name not in _ATOMIC:
        problem = f"there is no atomic compare and swap of {tile.dtype}"
        help_ = f"it exists for {', '.join(_ATOMIC)}"
        raise call.error("X0312", problem, "tile", help=help_)
    expected = _fitting(call, tile, "expected")
    desired = _fitting(call, tile, "desired")
    op = xetile.AtomicRmwTileOp(desired.ssa, tile.ssa, expected.ssa, kind="assign")
    old = _ordered(call, tile, lambda: call.ctx.emit(op))
    return types.Vector(old, tile.value_shape, tile.dtype)
