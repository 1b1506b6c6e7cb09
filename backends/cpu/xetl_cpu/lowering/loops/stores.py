"""Stores of values to buffers and to memory, each with its own loops.

Before: ``xetile.store_tile %v, %out``
After:  ``for row { for column { store %v, %out } }``

Those of large matrices may bypass the caches (`streaming_stores.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from xdsl.ir import Operation, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import memref, scf, vector
from xetl.dialects.xetile import LoadGatherOp, LoadTileOp, StoreScatterOp, StoreTileOp
from xetl.imports import late
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.chunks import (
    WORD,
    Chunks,
    block_at,
    chunk_at,
    lies_inside,
    over_columns,
    put,
    store_lanes,
    whole_steps,
)
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_mask, no_loops
from xetl_cpu.lowering.loops.runs import ends_of_run, find_run, run_lanes, scatter_lanes
from xetl_cpu.lowering.loops.state import (
    Buffer,
    ScatterTile,
    State,
    TileAt,
    element_of,
    leaves,
)
from xetl_cpu.lowering.loops.streaming_stores import (
    common_alignment,
    prefetch_lines,
    stream_in,
    stream_strips,
    to_prefetch,
)
from xetl_cpu.lowering.loops.transposes import goes_down, reads_across, steps_of
from xetl_cpu.lowering.tiles import may_alias, tile_root
from xetl_cpu.microkernels.transposing import PART

_LEAST_BLOCK = 4
"""Rows and columns of a block that is transposed in registers, at least."""

_FEW = 8
"""Vectors of a row that is written without a loop, at most."""


def write(state: State, value: SSAValue, to: Buffer, op: Operation) -> None:
    """Compute a value into a buffer of its shape, in front of ``op``."""

    def body(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        at = chunk_at(ev).transposed() if to.is_column else chunk_at(ev)
        put(ev, ev.eval(value, at), to, at)
        return []

    def block(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        for at in block_at(ev):
            put(ev, ev.eval(value, at), to, at)
        return []

    rows, cols = to.shape
    state = state.for_columns(rows if to.is_column else cols)
    smallest = max(min(rows, cols), _LEAST_BLOCK)
    blocks = _for_blocks(state, value, smallest) if cols > 1 else None
    # Blocks are not written in order: none may extend into the rows below it.
    apart = strides_of(memref_type(to.memref)) or [None]
    places = rows, *apart[:-1]
    if blocks and not any(n is None or n % blocks.lanes for n in places):
        Chunks(blocks, op, (rows, cols), block, rows_at_once=blocks.lanes).emit()
        return
    extents = (1, rows) if to.is_column else (rows, cols)
    Chunks(state, op, extents, body).emit()


def extract(
    state: State, value: SSAValue, position: tuple[int, int], op: Operation
) -> SSAValue:
    """One element of a value as a scalar, in front of ``op``."""
    build = Builder.before(op)
    return Evaluator(state, no_loops(build)).eval(value, At(*position, COLUMNS, 1))


@record()
class _Row:
    """A store, its tile, and where the stored part of its rows starts and ends."""

    op: StoreTileOp
    to: TileAt
    first: Index
    end: Index


def store_tiles(state: State, ops: Sequence[StoreTileOp]) -> None:
    """Store elements inside the matrices, unless a product has stored them already.

    One loop does all stores, in front of the last one.
    """
    stores = list[tuple[StoreTileOp, TileAt]]()
    for op in ops:
        tile = state.tiles[op.tile]
        assert isinstance(tile, TileAt)
        if op not in state.stored:
            stores.append((op, tile))
    if stores and stores[0][1].shape == (1, 1):
        _store_one(state, *stores[0])
    elif stores:
        _store_rows(state, stores, ops[-1])


def _store_rows(
    state: State, stores: Sequence[tuple[StoreTileOp, TileAt]], place: Operation
) -> None:
    """Write the loops of stores; they follow the memory."""
    down = goes_down(state, stores[0][0].value, stores[0][1])
    start = Builder.before(place)
    targets = [(op, tile.transposed() if down else tile) for op, tile in stores]
    blocks = _blocks_of(state, *targets[0], down)
    places = [_ends(start, target) for _, target in targets]
    found = [_Row(*one, *there[1]) for one, there in zip(targets, places)]
    (row_from, row_to), shape = places[0][0], found[0].to.shape
    state = blocks or state.for_columns(shape[1])
    ends = [each.end for each in found]
    inner = reduce(start.maximum, ends)

    def body(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        return _write_at(ev, found, [chunk_at(ev)], down)

    for each in found:
        _tell(each.op, state, each.to)
    if blocks is None and not down and all(_is_copied(state, each) for each in found):
        over_columns(state, place, shape, body)
        return
    lies, inside = None, None
    if blocks is not None:
        whole = start.index(start.maximum(row_to, 0))
        row_from = whole_steps(start, whole, state.lanes)
        _store_blocks(state, found, place, (row_from, inner), down)
    elif not down:
        lies = common_alignment(state, start, _stored(found), in_blocks=False)
    if blocks is None and isinstance(place.parent_op(), scf.ForOp):
        inside = shape, [lies_inside(start, each.to) for each in found]
    nest = Chunks(
        state,
        place,
        (row_to, inner),
        body,
        reduce(start.minimum, ends),
        lead=0 if lies is None else lies.lead,
        whole=inside,
        halves=True,
        twice=not _is_overwritten(state, found),
    ).emit()
    if nest.outer_loop is not None and row_from != 0:
        nest.outer_loop.operands[0] = Builder.before(nest.outer_loop).index(row_from)
    if lies is not None and nest.before is not None and not _is_updated(found):
        stream_in(nest.before.loop, lies)


def _stored(found: Sequence[_Row]) -> list[tuple[StoreTileOp, TileAt]]:
    return [(each.op, each.to) for each in found]


def _store_blocks(
    state: State,
    found: Sequence[_Row],
    place: Operation,
    extents: tuple[Index, Index],
    down: bool,
) -> None:
    """Store blocks of rows that are transposed in registers."""
    start, lanes = Builder.before(place), state.lanes
    once = _is_updated(found) or _is_overwritten(state, found)
    lies = None
    if not once:
        lies = common_alignment(state, start, _stored(found), in_blocks=True)
    later = to_prefetch(start, lies, lanes)

    def block(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        places = block_at(ev)
        if ev.whole:
            prefetch_lines(ev.nest, [each.to for each in found], places, later)
        return _write_at(ev, found, places, down)

    nest = Chunks(state, place, extents, block, extents[1], rows_at_once=lanes).emit()
    if lies is not None and nest.before is not None:
        stream_strips(nest.before, lies, extents[1], lanes)


def _write_at(
    ev: Evaluator, found: Sequence[_Row], places: Sequence[At], down: bool
) -> list[SSAValue]:
    """Compute all values of a place before storing any."""
    one = len(found) == 1
    for at in places:
        there = at.transposed() if down else at
        values = [ev.eval(each.op.value, there) for each in found]
        for each, value in zip(found, values):
            end = each.end
            if ev.stop is not None:
                stop = ev.stop
                end = stop if one else ev.nest.places[1].minimum(end, stop)
            store_lanes(ev, value, each.to, at, end, each.first)
    return []


def _blocks_of(state: State, op: StoreTileOp, tile: TileAt, down: bool) -> State | None:
    """Return the state for rows stored together as transposed blocks, or None.

    ``down``: they are columns of the value.
    """
    if not (tile.non_negative and tile.matrix.is_contiguous()):
        return None
    return _for_blocks(state, op.value, min(tile.shape), down)


def _is_updated(found: Sequence[_Row]) -> bool:
    """Whether a stored array is also loaded: then its lines are in the caches."""
    block, arrays = found[0].op.parent, [tile_root(each.op.tile) for each in found]
    assert block is not None
    loads = (each for each in block.ops if isinstance(each, LoadTileOp))
    return any(tile_root(load.tile) in arrays for load in loads)


def _is_overwritten(state: State, found: Sequence[_Row]) -> bool:
    """Whether a stored value may be computed from the elements that it overwrites."""
    sources = [leaf.owner for x in found for leaf, _ in leaves(state, x.op.value)]
    loads = [each for each in sources if isinstance(each, LoadTileOp | LoadGatherOp)]
    roots = [tile_root(each.op.tile) for each in found]
    return any(may_alias(tile_root(load.tile), to) for load in loads for to in roots)


def _is_copied(state: State, row: _Row) -> bool:
    """Whether short rows are loaded with needless masks, from the end of a matrix."""
    to = row.to
    vectors, rest = divmod(to.shape[1], state.lanes)
    is_short = to.is_inside and rest == 0 and vectors <= _FEW
    if not (is_short and to.matrix.is_contiguous()):
        return False
    loads = [
        leaf.owner
        for leaf, _ in leaves(state, row.op.value)
        if isinstance(leaf.owner, LoadTileOp)
    ]
    if not state.target.has_masks and not all(_is_spread(each, to) for each in loads):
        return False
    tiles = [state.tiles[each.tile] for each in loads]
    return any(isinstance(t, TileAt) and not t.is_inside for t in tiles)


def _is_spread(load: LoadTileOp, to: TileAt) -> bool:
    """Whether one vector is made of several, of elements that AVX2 can mask."""
    rows_of = vector_type(load.result)
    is_wide = rows_of.get_shape()[1] > to.shape[1]
    return is_wide and byte_width(rows_of.element_type) >= WORD


def _ends(
    build: Builder, target: TileAt
) -> tuple[tuple[Index, Index], tuple[Index, Index]]:
    """Return the first and the end of the stored rows, and the same of columns."""
    if target.is_inside:
        return (0, target.shape[0]), (0, target.shape[1])
    (row_from, row_to), (col_from, col_to) = (
        _inside(build, size, offset, extent, target.non_negative)
        for size, offset, extent in (
            (target.matrix.rows, target.row, target.shape[0]),
            (target.matrix.cols, target.col, target.shape[1]),
        )
    )
    # A loop that does not start at the first row needs an SSA value as its end.
    outer: Index = row_to if target.non_negative else build.index(row_to)
    if target.shape[0] == 1 and target.non_negative:
        outer = 1
    # A single row outside of the matrix must not be written: it gets no columns.
    inner = col_to
    if isinstance(outer, int):
        inside = build.compare("sgt", row_to, 0)
        inner = build.select(inside, col_to, 0)
    return (row_from, outer), (col_from, inner)


def _store_one(state: State, op: StoreTileOp, tile: TileAt) -> None:
    """Store a single element if it is inside the matrix."""
    value = extract(state, op.value, (0, 0), op)
    build = Builder.before(op)
    row_inside, col_inside = (
        build.compare("ult", at, size)
        for at, size in ((tile.row, tile.matrix.rows), (tile.col, tile.matrix.cols))
    )
    inside = build.when(build.both(row_inside, col_inside))
    indices = [inside.index(tile.row), inside.index(tile.col)]
    inside.add(memref.StoreOp(value, tile.matrix.memref, indices))


def _for_blocks(
    state: State, value: SSAValue, smallest: int, down: bool = False
) -> State | None:
    """Return a state with vectors as long as blocks that are transposed in registers.

    Return None if the value is not transposed. ``smallest``: its rows or columns, which
    the blocks do not exceed. ``down``: its columns are stored as rows.
    """
    most = max(state.lanes, PART // byte_width(element_of(value)))
    lanes = min(most, 1 << smallest.bit_length() - 1)
    narrow = replace(state, lanes=lanes)
    is_transposed = lanes >= _LEAST_BLOCK and reads_across(narrow, value, down)
    return narrow if is_transposed else None


def _tell(op: StoreTileOp, state: State, tile: TileAt) -> None:
    lanes, matrix = state.lanes, tile.matrix
    how = "" if matrix.is_contiguous() else ", each element by itself"
    steps = steps_of(tile, (2, 3)) if how and state.target.has_masks else ()
    if steps:
        how += f" unless the stride is {' or '.join(map(str, steps))}"
    rest = "" if tile.non_negative else "; masked, for its offset may be negative"
    remark(op, "loop", f"computed and stored in vectors of {lanes}{how}{rest}")


def _inside(
    build: Builder, size: Index, offset: Index, extent: int, non_negative: bool
) -> tuple[Index, Index]:
    """Return the first and the end of a tile's indices inside the matrix."""
    upper = build.minimum(build.minus(size, offset), extent)
    if non_negative:
        return 0, upper
    return build.maximum(build.minus(0, offset), 0), upper


def store_scatter(state: State, op: StoreScatterOp) -> None:
    """Store each active lane at its own index."""
    tile = state.tiles[op.tile]
    assert isinstance(tile, ScatterTile)
    rows, cols = tile.shape
    known = find_run(tile.indices)
    limits = [] if known is None else ends_of_run(known).limits
    end: Index = Builder.before(op).minimum(limits[0], cols) if limits else cols

    def body(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        build, at = ev.nest.places[2], chunk_at(ev)
        run = run_lanes(ev, tile, op.mask, at)
        indices, mask = run or scatter_lanes(ev, tile, op.mask, at)
        value = ev.eval(op.value, at)
        if mask is None:
            build.add(vector.StoreOp(value, tile.memref, [indices]))
            return []
        tail = lane_mask(build, build.minus(cols, at.col), state.lanes)
        mask = build.both(mask, tail)
        if run is not None:
            build.add(vector.MaskedstoreOp(tile.memref, [indices], mask, value))
        else:
            zero = build.index(0)
            scatter = vector.ScatterOp(tile.memref, [zero], indices, mask, value)
            _strided_store(ev, tile, op.mask, at, scatter)
        return []

    Chunks(state, op, (rows, end), body).emit()


_strided_store = late("xetl_cpu.lowering.loops.strides", "strided_store")
