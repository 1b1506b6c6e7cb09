"""Products whose micro-kernel stores the result from registers to the user's tile."""

from __future__ import annotations

from xetl.dialects.xetile import StoreTileOp, TileType
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, element_name
from xetl_cpu.lowering.loops.materialization import snapshot_loads_before
from xetl_cpu.lowering.loops.state import State, TileAt
from xetl_cpu.lowering.tiles import may_alias, tile_root, way_to_store
from xetl_cpu.microkernels.blocking import Blocking

_ROUNDED = ("f16", "bf16")


def take_store(state: State, op: BrgemmTileOp, blocking: Blocking) -> TileAt | None:
    """Return the tile that the micro-kernel can store the result to, or None.

    The store is then marked as done, and is not lowered again.
    """
    store = _store_behind(op)
    if store is None or not _is_converted(store, op, blocking, state):
        return None
    tile = state.tiles[store.tile]
    if not isinstance(tile, TileAt) or not tile.non_negative:
        return None
    if not tile.matrix.is_contiguous() or _is_read(op, store):
        return None
    snapshot_loads_before(state, store, at=op)
    state.stored.add(store)
    remark(op, "store", "the result is stored from registers")
    return tile


def _store_behind(op: BrgemmTileOp) -> StoreTileOp | None:
    """Return the only reader, if it is right behind the product or a cast of it."""
    way = way_to_store(op)
    if way is None or op.rows is None or op.cols is None:
        return None
    before, store = way
    followed = zip(before, [*before[1:], store])
    return store if all(one.next_op is other for one, other in followed) else None


def _is_converted(
    store: StoreTileOp, op: BrgemmTileOp, blocking: Blocking, state: State
) -> bool:
    """Whether the micro-kernel can convert to the type that is stored."""
    source, to = map(element_name, (op.result, store.value))
    if source != blocking.arithmetic.accumulator:
        return False
    if to == "bf16" and not state.target.has_bf16_dot:
        return False
    return to == source or (source == "f32" and to in _ROUNDED)


def _is_read(op: BrgemmTileOp, store: StoreTileOp) -> bool:
    """Whether the product may still read elements that it has already stored."""
    to = tile_root(store.tile)
    return any(
        isinstance(value.type, TileType) and may_alias(tile_root(value), to)
        for value in (op.a, op.b)
    )
