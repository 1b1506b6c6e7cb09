"""Stores that bypass the caches, if their matrix is larger than these.

A line is read before it is stored to, but not by a non-temporal store of the whole
line, which saves a third of the memory traffic of an elementwise kernel.  Such a store
must be aligned; data that fits a cache, or was loaded to be updated, should stay in the
cache.  The size is known only at run time.  Rows of wide tiles start with a masked
vector, so that all others are aligned; on AVX2 only if they bypass the caches.

Before: ``for column { store %v, %out }``
After:  ``if %large_and_aligned { for column { store nontemporal } } else { for ... }``

Blocks that are transposed in registers bypass the caches if each vector is a line: a
store of half a line takes four times as long as an ordinary one.  They are computed in
strips of two lines of all rows, so that few rows of the source are read at a time (8192
x 1024 in f32 on Sapphire Rapids: strips of 32, 64 and 128 columns take 3.9, 5.3 and 14
ms, ordinary stores 18).

Source: Intel 64 and IA-32 Optimization Reference Manual, 9.4.1.2, "Streaming Stores".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, constant_index, memref_type, vector_type
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import StoreTileOp
from xetl.ir.builder import Builder
from xetl.records import record
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.chunks import waits_for_memory
from xetl_cpu.lowering.loops.nest import At, Nest
from xetl_cpu.lowering.loops.state import State, TileAt, leaves, view_of
from xetl_cpu.machine import LINE

_LEAST_BYTES = 16
"""Bytes of the narrowest non-temporal store."""

_LINES = 2
"""Lines of a row in a strip; cores prefetch lines in pairs."""

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
    state: State,
    build: Builder,
    to: TileAt,
    most_kept: int | None = None,
    in_blocks: bool = False,
) -> Alignment | None:
    """Return the alignment of a tile that is stored; None if it does not matter.

    Args:
        most_kept: bytes of a matrix that stays in caches; None: the machine's default.
        in_blocks: rows are stored in transposed blocks. Their vectors must be lines,
            and only if they are stored past the caches are any columns before them.
    """
    base, rows = to.matrix.memref, to.matrix.rows
    width = byte_width(memref_type(base).element_type)
    vector_bytes = state.lanes * width
    least_bytes = LINE if in_blocks else _LEAST_BYTES
    if vector_bytes < least_bytes or not to.matrix.is_contiguous():
        return None
    _, (row_step, _) = view_of(base, build)
    step = build.times(row_step, width)
    extent = build.times(rows, step)
    # AVX-512 has masks for all types, AVX2 for vectors that fill registers.
    masks = state.target.has_masks
    has_lead = masks or vector_bytes >= state.target.vector_bytes
    is_wide = (in_blocks or to.shape[1] >= _WIDE) and to.non_negative and has_lead
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
        # Rows of a tile that has grown may be short.
        if to.shape[0] > 1 and not in_blocks:
            is_long = build.compare("sge", build.index(row_step), _WIDE)
            is_even = build.both(is_long, is_even)
        if not masks:  # those of AVX2 take as long as a dozen vectors
            is_even = build.both(is_large, is_even)
        lead = build.select(is_even, lead, 0)
    moved = build.index(build.plus(first, build.times(lead, width)))
    low = build.insert(arith.OriOp(moved, build.index(step)))
    odd = build.insert(arith.AndiOp(low, last_bits))
    streams = build.both(is_large, build.compare("eq", odd, 0))
    return Alignment(build.select(streams, lead, 0) if in_blocks else lead, streams)


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
    _store_past_caches(twin)
    loop.detach()
    regions = [Region(Block([each, scf.YieldOp()])) for each in (twin, loop)]
    build.add(scf.IfOp(streams, [], *regions))


def _store_past_caches(loop: scf.ForOp) -> None:
    """Make all stores of a loop non-temporal; nothing is fetched for them."""
    for op in [*loop.body.block.ops]:
        if isinstance(op, memref.PrefetchOp):
            Rewriter.erase_op(op)
        elif isinstance(op, vector.StoreOp):
            type_ = vector_type(op.value)
            whole = type_.get_shape()[0] * byte_width(type_.element_type)
            op.properties["nontemporal"] = IntegerAttr(1, i1)
            op.properties["alignment"] = IntegerAttr(whole, i64)


def stream_strips(nest: Nest, to: Alignment, end: Index, lanes: int) -> None:
    """Add loops over strips of blocks that store past the caches.

    The loop of ``nest`` then does only the first and the last block of a row, if rows
    begin between lines: these hold what is before and behind whole lines, and store
    some elements again.

    Before: ``for row block { for column { block }; masked columns }``
    After::

        if %streams { for strip { for row block { for column of strip { block } } } }
        for row block { for column, none or two if %streams { block }; masked columns }
    """
    loop, outer = nest.loop, nest.outer_loop
    # A tile may begin before its matrix: then masked blocks come first.
    is_first = constant_index(loop.lower_bound) == 0
    if outer is None or not (is_first and waits_for_memory(loop, lanes)):
        return
    place = [*outer.body.block.ops].index(loop)
    last, twin = scf.YieldOp(), outer.clone()
    build, width = Builder.before(outer), lanes * _LINES
    is_odd = build.compare("ne", build.index(to.lead), 0)
    missing = build.select(is_odd, build.minus(lanes, to.lead), 0)
    build.add(scf.IfOp(to.streams, [], Region(Block([last]))))
    strip = Builder.before(last).for_loop(to.lead, end, width)
    (first,) = strip.body.block.args
    part, *others = [*twin.body.block.ops][place:]
    assert isinstance(part, scf.ForOp)
    for op in reversed(others):
        Rewriter.erase_op(op)
    inside = Builder.before(part)
    whole = inside.minus(part.upper_bound, missing)
    part.operands[0] = first
    part.operands[1] = inside.index(inside.minimum(whole, inside.plus(first, width)))
    _store_past_caches(part)
    twin.body.block.add_op(scf.YieldOp())
    strip.body.block.add_ops([twin, scf.YieldOp()])
    _leave_ends(loop, to.streams, is_odd, lanes)


def _leave_ends(
    loop: scf.ForOp, streams: SSAValue, is_odd: SSAValue, lanes: int
) -> None:
    """If ``streams``, leave only the first and last trip, and these if ``is_odd``."""
    build, end = Builder.before(loop), loop.upper_bound
    none = build.select(streams, build.select(is_odd, 0, end), 0)
    to_last = build.maximum(build.minus(end, lanes), lanes)
    loop.operands[0] = build.index(none)
    loop.operands[2] = build.index(build.select(streams, to_last, lanes))


def to_prefetch(
    build: Builder, to: Alignment | None, lanes: int
) -> tuple[Index, Index]:
    """Return how many rows and columns behind a block lines are prefetched.

    These are the lines of the block after the next one in a row; or of the next one
    below, if whole lines bypass the caches, and loops do the ends of rows.
    """
    if to is None:
        return 0, _LINES * lanes
    down = build.select(to.streams, lanes, 0)
    return down, build.select(to.streams, 0, _LINES * lanes)


def prefetch_lines(
    nest: Nest,
    tiles: Sequence[TileAt],
    block: Sequence[At],
    later: tuple[Index, Index],
) -> None:
    """Prefetch lines of a block that will be written; ``later``: see `to_prefetch`.

    A core writes lines in order, so it waits for each that it does not have; it fetches
    many at a time. Transposes on Sapphire Rapids, ms without and with: 4001 x 4003 in
    f32 79 and 25, 1000 x 777 4.1 and 0.4.
    """
    build, (down, right) = nest.places[2], later
    for tile in tiles:
        col = nest.plus(nest.plus(block[0].col, tile.col), right)
        for at in block:
            row = nest.plus(nest.plus(at.row, tile.row), down)
            place = [build.index(row), build.index(col)]
            build.add(memref.PrefetchOp(tile.matrix.memref, place, True, 3, True))


def common_alignment(
    state: State,
    build: Builder,
    stores: Sequence[tuple[StoreTileOp, TileAt]],
    in_blocks: bool,
) -> Alignment | None:
    """Return the alignment that all rows of a loop have in common, or None.

    ``in_blocks``: see `alignment`.
    """
    machine, all_of = state.target.machine, list[Alignment | None]()
    for op, to in stores:
        most = machine.most_kept_apart if in_blocks else _most_kept(state, op.value)
        all_of.append(alignment(state, build, to, most, in_blocks))
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
