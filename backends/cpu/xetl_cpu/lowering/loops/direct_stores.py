"""Products whose micro-kernel stores the result from registers to the user's tile.

On AMX tiles the micro-kernel also computes what stands between product and store (a
bias, an activation), beside the products of the next strip. A region of the operation
holds that code, for one vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, row_type, vector_type
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import StoreTileOp, TileType
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, element_name
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.materialization import snapshot_loads_before
from xetl_cpu.lowering.loops.nest import COLUMNS, At, no_loops
from xetl_cpu.lowering.loops.state import State, TileAt
from xetl_cpu.lowering.tiles import may_alias, tile_root, way_to_store
from xetl_cpu.microkernels.blocking import Blocking

_ROUNDED = ("f16", "bf16")
_UNCHANGED = (BrgemmTileOp, arith.TruncfOp)


@record(frozen=True)
class Taken:
    """A store that a micro-kernel does.

    Attributes:
        tile: the user's tile.
        epilogue: makes the region that computes the stored elements of a vector of
            sums; an empty one: they are only converted.
    """

    tile: TileAt
    epilogue: Callable[[], Region] = Region

    def moved(self, build: Builder, down: Index, right: Index) -> Taken:
        """Return the store of a part of the tile."""
        row, col = build.plus(self.tile.row, down), build.plus(self.tile.col, right)
        return replace(self, tile=replace(self.tile, row=row, col=col))


def take_store(state: State, op: BrgemmTileOp, blocking: Blocking) -> Taken | None:
    """Return the store of the result that the micro-kernel can do, or None.

    The store is then marked as done, and is not lowered again.
    """
    way = _way_behind(op, blocking)
    if way is None:
        return None
    computed, store = way
    is_fused = len(computed) > 2 or type(computed[-1]) not in _UNCHANGED
    if not is_fused and not _is_converted(store, op, blocking, state):
        return None
    tile = state.tiles[store.tile]
    if not isinstance(tile, TileAt) or not tile.non_negative:
        return None
    if not tile.matrix.is_contiguous() or _is_read(op, store):
        return None
    snapshot_loads_before(state, store, at=op)
    state.stored.add(store)
    text = "computed further, and " if is_fused else ""
    remark(op, "store", f"the result is {text}stored from registers")
    if not is_fused:
        return Taken(tile)
    return Taken(tile, partial(_epilogue, state, op, blocking, (tile, store)))


def _epilogue(
    state: State,
    op: BrgemmTileOp,
    blocking: Blocking,
    to: tuple[TileAt, StoreTileOp],
) -> Region:
    """Return the code that computes the stored elements of a vector of sums."""
    (tile, store), lanes = to, blocking.lanes
    sums, index = row_type(vector_type(op.result).element_type, lanes), IndexType()
    block = Block(arg_types=[sums, index, index])
    build = Builder.at_end(block, op.location)
    total, *place = block.args
    row, col = (
        build.index(build.minus(at, start))
        for at, start in zip(place, (tile.row, tile.col))
    )
    nest = no_loops(build, row, col)
    ev, at = Evaluator(replace(state, lanes=lanes), nest), At(row, col, COLUMNS, lanes)
    ev.memo[id(op.result), at.key()] = total
    build.add(scf.YieldOp(ev.eval(store.value, at)))
    _prefetch_next_strip(block, blocking.mr)
    return Region(block)


def _prefetch_next_strip(block: Block, rows: int) -> None:
    """Prefetch the row of the next strip wherever the row of a matrix is loaded.

    Hardware does not prefetch rows that are far apart, and a load from L3 would hold up
    the products behind it. ``rows``: of a strip.
    """
    moving: set[SSAValue] = {block.args[1]}
    for op in block.ops:
        if not isinstance(op, vector.LoadOp | vector.MaskedloadOp):
            if moving.intersection(op.operands):
                moving.update(op.results)
        elif len(op.indices) > 1 and op.indices[-2] in moving:
            build = Builder.before(op)
            *outer, row, column = op.indices
            at = [*outer, build.index(build.plus(row, rows)), column]
            build.add(memref.PrefetchOp(op.base, at, False, 3, True))


def _way_behind(
    op: BrgemmTileOp, blocking: Blocking
) -> tuple[list[Operation], StoreTileOp] | None:
    """Return `way_to_store`, if its operations follow each other."""
    way = way_to_store(op, on_tiles=blocking.uses_tiles)
    if way is None or op.rows is None or op.cols is None:
        return None
    before, store = way
    followed = zip(before, [*before[1:], store])
    return way if all(one.next_op is other for one, other in followed) else None


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
