"""Stores of values to buffers and to memory, each with its own loops.

Some stores bypass the caches, if their matrix is larger than these: a line is read
before it is stored to, but not by a non-temporal store of the whole line, which saves a
third of the memory traffic of an elementwise kernel.  Such a store must be aligned;
data that fits a cache, or was loaded to be updated, should stay in the cache.  The size
is known only at run time.  Rows of wide tiles start with a masked vector, so that all
others are aligned; on AVX2 only if they bypass the caches.

Before: ``for column { store %v, %out }``
After:  ``if %large_and_aligned { for column { store nontemporal } } else { for ... }``

Source: Intel 64 and IA-32 Optimization Reference Manual, 9.4.1.2, "Streaming Stores".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, constant_index, memref_type, vector_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import LoadGatherOp, LoadTileOp, StoreScatterOp, StoreTileOp
from xetl.imports import late
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.chunks import (
    WORD,
    Chunks,
    Whole,
    block_at,
    chunk_at,
    lies_inside,
    over_columns,
    put,
    store_lanes,
    waits_for_memory,
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
    view_of,
)
from xetl_cpu.lowering.loops.transposes import goes_down, reads_across, steps_of
from xetl_cpu.lowering.tiles import may_alias, tile_root
from xetl_cpu.microkernels.transposing import PART

_LEAST_BYTES = 16
"""Bytes of the narrowest non-temporal store."""

_LEAST_BLOCK = 4
"""Rows and columns of a block that is transposed in registers, at least."""

_FEW = 8
"""Vectors of a row that is written without a loop, at most."""

_WIDE = 512
"""Columns of a tile whose rows start with a masked vector: that costs a twentieth."""


@record(frozen=True)
class Alignment:
    """The alignment of a tile's rows in memory.

    Attributes:
        lead: columns before the first aligned vector, 0 if no vector is aligned.
        streams: whether vectors from there on may be stored past the caches.
    """

    lead: Index
    streams: SSAValue


def alignment(
    state: State, build: Builder, to: TileAt, most_kept: int | None = None
) -> Alignment | None:
    """Return the alignment of a tile that is stored; None if it does not matter.

    ``most_kept``: bytes of a matrix that stays in caches; None: the machine's default.
    """
    base, rows = to.matrix.memref, to.matrix.rows
    width = byte_width(memref_type(base).element_type)
    vector_bytes = state.lanes * width
    if vector_bytes < _LEAST_BYTES or not to.matrix.is_contiguous():
        return None
    _, (row_step, _) = view_of(base, build)
    step = build.times(row_step, width)
    extent = build.times(rows, step)
    # AVX-512 has masks for all types, AVX2 for vectors that fill registers.
    masks = state.target.has_masks
    has_lead = masks or vector_bytes >= state.target.vector_bytes
    is_wide = to.shape[1] >= _WIDE and to.non_negative and has_lead
    least = most_kept or state.target.machine.most_kept
    if isinstance(extent, int) and extent < least and not (is_wide and masks):
        return None
    start = build.insert(memref.ExtractAlignedPointerAsIndexOp(base))
    first = build.index(build.plus(start, build.times(to.col, width)))
    last_bits = build.index(vector_bytes - 1)
    is_large = build.compare("sge", build.index(extent), least)
    lead: Index = 0
    if is_wide:
        past = build.insert(arith.AndiOp(first, last_bits))
        missing = build.minus(vector_bytes, past)
        bytes_ = build.insert(arith.AndiOp(build.index(missing), last_bits))
        lead = build.insert(arith.DivuiOp(bytes_, build.index(width)))
        odd = build.insert(arith.AndiOp(build.index(step), last_bits))
        is_even = build.compare("eq", odd, 0)
        if to.shape[0] > 1:  # rows of a tile that has grown may be short
            is_long = build.compare("sge", build.index(row_step), _WIDE)
            is_even = build.both(is_long, is_even)
        if not masks:  # those of AVX2 take as long as a dozen vectors
            is_even = build.both(is_large, is_even)
        lead = build.select(is_even, lead, 0)
    moved = build.index(build.plus(first, build.times(lead, width)))
    low = build.insert(arith.OriOp(moved, build.index(step)))
    odd = build.insert(arith.AndiOp(low, last_bits))
    is_aligned = build.compare("eq", odd, 0)
    return Alignment(lead, build.both(is_large, is_aligned))


def stream_in(loop: scf.ForOp, to: Alignment) -> None:
    """Add a copy of the loop that stores past the caches, and select it at run time."""
    following = loop.next_op
    if following is None or not waits_for_memory(loop):
        return
    twin = loop.clone()
    build, streams = Builder.before(following), to.streams
    first = loop.lower_bound
    if to.lead not in (first, constant_index(first)):
        streams = build.both(streams, build.compare("eq", first, to.lead))
    for op in twin.body.block.ops:
        if isinstance(op, vector.StoreOp):
            type_ = vector_type(op.value)
            whole = type_.get_shape()[0] * byte_width(type_.element_type)
            op.properties["nontemporal"] = IntegerAttr(1, i1)
            op.properties["alignment"] = IntegerAttr(whole, i64)
    loop.detach()
    regions = [Region(Block([each, scf.YieldOp()])) for each in (twin, loop)]
    build.add(scf.IfOp(streams, [], *regions))


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
    blocks = None if down else _blocks_of(state, *stores[0])
    start = Builder.before(place)
    targets = [(op, tile.transposed() if down else tile) for op, tile in stores]
    places = [_ends(start, target) for _, target in targets]
    found = [_Row(*one, *there[1]) for one, there in zip(targets, places)]
    (row_from, row_to), shape = places[0][0], found[0].to.shape
    state = blocks or state.for_columns(shape[1])
    ends = [each.end for each in found]
    inner = reduce(start.maximum, ends)

    def body(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        return _write_at(ev, found, [chunk_at(ev)], down)

    def block(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        return _write_at(ev, found, block_at(ev), down)

    for each in found:
        _tell(each.op, state, each.to)
    if blocks is None and not down and all(_is_copied(state, each) for each in found):
        over_columns(state, place, shape, body)
        return
    lies = None if down or blocks else _alignment_of(state, start, found)
    inside: Whole | None = None
    if blocks is not None:
        lanes = state.lanes
        whole = start.index(start.maximum(row_to, 0))
        row_from = whole_steps(start, whole, lanes)
        extents = row_from, inner
        Chunks(state, place, extents, block, inner, rows_at_once=lanes).emit()
    elif isinstance(place.parent_op(), scf.ForOp):
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


def _blocks_of(state: State, op: StoreTileOp, tile: TileAt) -> State | None:
    """Return the state for rows stored together as transposed blocks, or None."""
    if not (tile.non_negative and tile.matrix.is_contiguous()):
        return None
    return _for_blocks(state, op.value, min(tile.shape))


def _alignment_of(
    state: State, build: Builder, found: Sequence[_Row]
) -> Alignment | None:
    """Return the alignment that all rows of a loop have in common, or None."""
    all_of = [
        alignment(state, build, x.to, _most_kept(state, x.op.value)) for x in found
    ]
    one, *others = [each for each in all_of if each is not None] or [None]
    if one is None or len(others) + 1 < len(all_of):
        return None
    for each in filter(None, others):
        alike = build.compare("eq", build.index(one.lead), build.index(each.lead))
        one = Alignment(one.lead, build.both(one.streams, each.streams, alike))
    return one


def _most_kept(state: State, value: SSAValue) -> int | None:
    """Return the size of L2 for values computed of a product on tiles, else None.

    In L2, lines to be overwritten compete with the stream of B; the micro-kernel stores
    in the same way (8192 x 1024 x 1024 in bf16 with a bias: 13.0 ms, and 11.8).
    """
    for leaf, _ in leaves(state, value):
        op = leaf.owner
        if isinstance(op, BrgemmTileOp) and op.blocking().uses_tiles:
            return state.target.machine.l2.size
    return None


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


def _for_blocks(state: State, value: SSAValue, smallest: int) -> State | None:
    """Return a state with vectors as long as blocks that are transposed in registers.

    Return None if the value is not transposed. ``smallest``: its rows or columns, which
    the blocks do not exceed.
    """
    most = max(state.lanes, PART // byte_width(element_of(value)))
    lanes = min(most, 1 << smallest.bit_length() - 1)
    narrow = replace(state, lanes=lanes)
    is_transposed = lanes >= _LEAST_BLOCK and reads_across(narrow, value)
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
