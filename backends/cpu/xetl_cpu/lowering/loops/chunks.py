"""Loops over rows in chunks of a vector's lanes; masks only where a matrix may end.

Rows of one or two vectors have a separate loop, for tiles that are inside of their
matrices.

Before: a function that writes the code of one chunk
After:  ``for row { for column chunk { code } ; if %rest { code with masks } }``,
or of short rows ``if %inside { for row { code } } else { the same as above }``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.upstream import arith, scf, vector
from xetl.imports import late
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.cse import merge_equal
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import (
    COLUMNS,
    At,
    Nest,
    lane_mask,
    lane_numbers,
    open_nest,
)
from xetl_cpu.lowering.loops.state import UNROLL, Buffer, Shape, State, TileAt

_store_of_any_stride = late("xetl_cpu.lowering.loops.strides", "store_of_any_stride")

_MOST_OPERATIONS = 32
"""Operations of a loop that waits for memory, at most; longer loops compute."""

WORD = 4
"""Bytes of the smallest elements that AVX2 can load with a mask."""

_FAR = 1 << 40
"""More columns than any row of a tile has."""

Whole = tuple[Shape, list[SSAValue]]
"""The shape of a tile, and conditions that hold if all of it is inside its matrix."""

Body = Callable[[Evaluator, Sequence[SSAValue]], list[SSAValue]]
"""Writes the code of one chunk; takes and returns the inner loop's carried values."""


@record()
class Chunks:
    """Loops over all rows and chunks of columns, in front of ``op``.

    As long as every access is inside its matrix, the inner loop runs without masks. A
    second loop with masks does the rest of the row, one chunk per iteration. If tiles
    start before their matrix, and the loop carries nothing, a masked loop does the
    first columns. If the loop carries values, the body ends at the evaluator's
    ``stop``.

    Attributes:
        extents: rows and columns.
        body: writes the code of a chunk.
        limit: the columns that the body itself can do without masks.
        inits: initial values of the inner loop, ``each`` for each chunk of an iteration
            (those of the first chunks of all rows come first).
        rows_at_once: how many rows an iteration of the outer loop does.
        ends: the body has no effect where its only load is outside of its matrix.
        lead: columns that are done with a mask first, if the loop does little else than
            move data.
        whole: the tile that is stored.
        finish: called behind inner loops, for each nest.
        halves: the body takes vectors of fewer lanes, too.
        twice: the body may do a chunk again.
    """

    state: State
    op: Operation
    extents: tuple[Index, Index]
    body: Body
    limit: Index | None = None
    inits: Sequence[SSAValue] = ()
    rows_at_once: int = 1
    ends: bool = False
    lead: Index = 0
    whole: Whole | None = None
    finish: Callable[[Nest], None] = lambda _: None
    each: int = 1
    halves: bool = False
    twice: bool = False

    def emit(self) -> Nest:
        """Write both loops, and return the nest of the last inner loop."""
        state, op, whole = self.state, self.op, self.whole
        outer, inner = self.extents
        if whole is None and isinstance(outer, int) and isinstance(inner, int):
            whole = (outer, inner), list[SSAValue]()
        one_by_one = len(self.inits) in (0, self.rows_at_once * self.each)
        if whole is None or not (one_by_one and self._is_short(whole[0])):
            return self._any_rows()
        shape, tests = whole
        nest = open_nest(op, *shape, state.lanes, self.inits, self.rows_at_once)
        ev = Evaluator(state, nest, whole=True, inside={})
        nest.end_inner(self.body(ev, nest.carried))
        self.finish(nest)
        nest.end_outer()
        assert ev.inside is not None
        build = Builder.before(nest.outer_loop or nest.loop)
        tests = [*tests, *(lies_inside(build, tile) for tile in ev.inside.values())]
        if not tests:
            state.reads.update(ev.loads.keys())
            return nest
        is_inside = build.both(*tests)
        test = is_inside.owner
        assert isinstance(test, Operation)
        there = _cut(test, op)
        nest = self._any_rows()
        elsewhere = _cut(test, op)
        Builder.before(op).add(scf.IfOp(is_inside, [], there, elsewhere))
        return nest

    def _is_short(self, shape: Shape) -> bool:
        """Whether tests for each row would cost as much as the work on the row."""
        (rows, cols), lanes = shape, self.state.lanes
        is_whole = cols % lanes == 0 and cols <= UNROLL * lanes
        return rows >= self.rows_at_once and is_whole

    @property
    def _carried(self) -> int:
        """The number of values carried by loops of one chunk per iteration."""
        return len(self.inits[: self.rows_at_once * self.each])

    def _any_rows(self) -> Nest:
        """Write loops for rows of any length, for tiles that may be outside."""
        state, lead = self.state, self.lead
        step = state.lanes * (len(self.inits) // self._carried if self._carried else 1)
        nest = open_nest(self.op, *self.extents, step, self.inits, self.rows_at_once)
        ev = Evaluator(state, nest, whole=True)
        if self.limit is not None:
            ev.limits["body"] = self.limit
        nest.end_inner(self.body(ev, nest.carried))
        state.reads.update(ev.loads.keys())
        if ev.starts:
            build = nest.places[0]
            first = reduce(build.maximum, ev.starts.values())
            if self.inits:  # all trips are masked, or none
                far = build.select(build.compare("eq", first, 0), _FAR, 0)
                ev.limits["body"] = build.minimum(ev.limits.get("body", far), far)
                lead = 0
            else:
                lead = whole_steps(build, build.plus(first, step - 1), step)
        elif ev.is_aligned or not (ev.limits and _only_moves(nest.loop)):
            lead = 0
        else:
            ev.shifted = isinstance(lead, SSAValue)
        if isinstance(lead, SSAValue):
            self._mask_the_lead(ev, lead)
        if ev.limits:
            nest = self._mask_the_rest(ev, step)
        nest.end_outer()
        self.finish(nest)
        return nest

    def _mask_the_lead(self, ev: Evaluator, lead: SSAValue) -> None:
        """Start the first loop at ``lead``; another loop does the columns before it."""
        nest = ev.nest.lead(lead, ev.state.lanes, self._carried)
        stop = nest.loop.upper_bound
        before = Evaluator(ev.state, nest, stop=stop, shifted=ev.shifted)
        nest.end_inner(self.body(before, nest.carried))

    def _mask_the_rest(self, ev: Evaluator, step: int) -> Nest:
        """End the first loop where a limit ends it; go on with masks from there.

        If masks do not exist for all types, and a loop only moves data, the last vector
        of a row with at least one whole vector ends with the row: some elements are
        done twice. ([measured] Zen 3: `silu` of rows that need no rest takes 8 %
        longer, because LLVM spills constants.)

        Rows of fixed width may compute functions of padding behind all loaded elements.
        A third loop has no loads for these columns, and its chunks differ only in where
        they are stored. LLVM computes one chunk before that loop.
        """
        inner, carried, body = self.extents[1], self._carried, self.body
        nest, lanes = ev.nest, ev.state.lanes
        build = Builder.before(nest.loop)
        full = inner
        for limit in ev.limits.values():
            full = build.minimum(full, limit)
        lead = nest.loop.lower_bound
        full = build.maximum(build.minus(full, lead), 0)
        cut = build.index(build.plus(whole_steps(build, full, step), lead))
        nest.loop.operands[1] = cut
        halves = list[tuple[int, SSAValue, SSAValue]]()
        end_of_whole, where = build.plus(full, lead), None
        if not (carried or ev.state.target.has_masks) and _only_moves(nest.loop):
            where = build = nest.after().when(build.compare("slt", cut, inner))
            if self.twice and not ev.is_aligned:
                where = build = self._repeat(ev, where, full)
            if self.halves and _is_narrow(ev):
                halves = _halve(build, lanes, cut, build.index(end_of_whole))
                lanes, _, cut = halves[-1]
        loads = [limit for key, limit in ev.limits.items() if key != "body"]
        width = inner if isinstance(inner, int) and not self.ends and _pads(ev) else 0
        end = inner
        if loads and (self.ends or width):
            end = build.minimum(inner, build.maximum(cut, reduce(build.maximum, loads)))
        by, padded = lanes if width % step else step, cut
        if width:
            past = build.plus(build.minus(end, cut), by - 1)
            padded = build.index(build.plus(cut, whole_steps(build, past, by)))
            end = build.minimum(padded, width)
        for number, start, to in halves:
            part = nest.rest(start, to, number, 0, where)
            half = replace(ev.state, lanes=number)
            part.end_inner(
                body(Evaluator(half, part, whole=True, shifted=ev.shifted), ())
            )
        rest = nest.rest(cut, end, lanes, carried, where)
        masked = Evaluator(replace(ev.state, lanes=lanes), rest, shifted=ev.shifted)
        rest.end_inner(body(masked, rest.carried))
        if width:
            rest = rest.rest(padded, width, by, carried * by // lanes, where)
            behind = Evaluator(ev.state, rest, outside=ev.ended, shifted=ev.shifted)
            rest.end_inner(body(behind, rest.carried))
            merge_equal(rest.loop.body.block)
        return rest

    def _repeat(self, ev: Evaluator, build: Builder, full: Index) -> Builder:
        """Do the last whole vector of a row; return the place for other rests."""
        nest, lanes, end = ev.nest, ev.state.lanes, self.extents[1]
        length = build.minus(end, nest.loop.lower_bound)
        is_long = build.compare("sge", length, lanes)
        repeats = build.both(is_long, build.compare("sge", full, length))
        there, elsewhere = scf.YieldOp(), scf.YieldOp()
        regions = [Region(Block([each])) for each in (there, elsewhere)]
        build.add(scf.IfOp(repeats, [], *regions))
        build = Builder.before(there)
        part = nest.rest(build.minus(end, lanes), end, lanes, 0, build)
        again = Evaluator(ev.state, part, whole=True, shifted=True)
        part.end_inner(self.body(again, ()))
        return Builder.before(elsewhere)


def over_columns(state: State, op: Operation, shape: Shape, body: Body) -> None:
    """Write rows of a few vectors without a column loop; their masks share a limit."""
    rows, cols = shape
    loop = Builder.before(op).for_loop(0, rows, 1)
    row = loop.body.block.args[0]
    start, build = Builder.before(loop), Builder.at_end(loop.body.block)
    for first in range(0, cols, state.lanes):
        column = start.index(first)
        nest = Nest(row, column, loop, None, (start, build, build), {row: 1})
        ev = Evaluator(state, nest)
        body(ev, ())
        if first == 0:
            state.reads.update(ev.loads.keys())
    build.add(scf.YieldOp())


def _cut(after: Operation, before: Operation) -> Region:
    """Move the operations between two others into a region."""
    found, each = list[Operation](), after.next_op
    while each is not before:
        assert each is not None
        found.append(each)
        each = each.next_op
    for each in found:
        each.detach()
    return Region(Block([*found, scf.YieldOp()]))


def lies_inside(build: Builder, tile: TileAt) -> SSAValue:
    """Return whether all of a tile is inside its matrix."""
    if tile.is_inside:
        return build.constant(1, i1)
    ends = (tile.row, tile.matrix.rows), (tile.col, tile.matrix.cols)
    tests = list[SSAValue]()
    for (start, size), extent in zip(ends, tile.shape):
        tests.append(build.compare("sle", build.plus(start, extent), size))
        if not tile.non_negative:
            tests.append(build.compare("sge", start, 0))
    return build.both(*tests)


def _halve(
    build: Builder, lanes: int, start: SSAValue, end: SSAValue
) -> list[tuple[int, SSAValue, SSAValue]]:
    """Return lanes of half vectors, quarters and so on, and the columns of each."""
    found = list[tuple[int, SSAValue, SSAValue]]()
    while lanes > 2:
        lanes //= 2
        whole = whole_steps(build, build.minus(end, start), lanes)
        found.append((lanes, start, build.index(build.plus(start, whole))))
        start = found[-1][2]
    return found


def _is_narrow(ev: Evaluator) -> bool:
    """Whether it moves elements that AVX2 has no masks for."""
    widths = [
        byte_width(memref_type(op.base).element_type)
        for op in ev.nest.loop.body.block.ops
        if isinstance(op, vector.LoadOp | vector.StoreOp)
    ]
    return min(widths, default=WORD) < WORD and ev.state.lanes > 2


def _pads(ev: Evaluator) -> bool:
    """Whether functions of loaded values are computed, and so functions of padding."""
    return bool(ev.ended) and _has_functions(ev.nest.loop)


def whole_steps(build: Builder, number: Index, step: int) -> Index:
    """Return the largest multiple of ``step`` up to ``number``."""
    trips = build.insert(arith.DivuiOp(build.index(number), build.index(step)))
    return build.times(trips, step)


def chunk_at(ev: Evaluator) -> At:
    """Return the chunk of the current iteration."""
    return At(ev.nest.outer, ev.nest.inner, COLUMNS, ev.state.lanes)


def block_at(ev: Evaluator) -> list[At]:
    """Return the chunks of the current iteration in a block of ``lanes`` rows."""
    nest, lanes = ev.nest, ev.state.lanes
    where = nest.outer, nest.inner
    return [
        At(nest.plus(nest.outer, n), nest.inner, COLUMNS, lanes, where, n)
        for n in range(lanes)
    ]


def put(ev: Evaluator, value: SSAValue, to: Buffer, at: At) -> None:
    """Store a whole vector to a buffer; rows of buffers are padded for this."""
    build = ev.nest.places[2]
    indices = [at.row] if to.is_column else [at.row, at.col]
    build.add(vector.StoreOp(value, to.memref, [build.index(i) for i in indices]))


def store_lanes(
    ev: Evaluator, value: SSAValue, tile: TileAt, at: At, end: Index, first: Index
) -> None:
    """Store elements of a tile, from its column ``first`` up to ``end``."""
    nest, build = ev.nest, ev.nest.places[2]
    row, col = nest.plus(at.row, tile.row), nest.plus(at.col, tile.col)
    indices = [build.index(row), build.index(col)]
    is_inside = tile.non_negative or ev.inside is not None
    all_lanes = ev.whole and is_inside and tile.matrix.is_contiguous()
    if all_lanes or ev.is_within(tile, at):
        build.add(vector.StoreOp(value, tile.matrix.memref, indices))
        return
    mask = lane_mask(build, build.minus(end, at.col), at.lanes)
    if not (isinstance(first, int) and first == 0):
        early = lane_mask(build, build.minus(first, at.col), at.lanes)
        keep = build.insert(
            arith.XoriOp(early, ev.constant(IntegerType(1), 1, at.lanes))
        )
        mask = build.both(mask, keep)
    _store_masked(ev, value, tile, indices, mask)


def store_inside(ev: Evaluator, value: SSAValue, tile: TileAt, at: At) -> None:
    """Store the elements of a tile that are inside of its matrix."""
    nest, build = ev.nest, ev.nest.places[2]
    row, col = nest.plus(at.row, tile.row), nest.plus(at.col, tile.col)
    indices = [build.index(row), build.index(col)]
    if ev.is_unmasked(tile, at, row):
        build.add(vector.StoreOp(value, tile.matrix.memref, indices))
    else:
        _store_masked(ev, value, tile, indices, ev.lanes_inside(tile, at, row))


def _store_masked(
    ev: Evaluator,
    value: SSAValue,
    tile: TileAt,
    indices: Sequence[SSAValue],
    mask: SSAValue,
) -> None:
    build = ev.nest.places[2]
    if tile.matrix.is_contiguous():
        build.add(vector.MaskedstoreOp(tile.matrix.memref, indices, mask, value))
        return
    numbers = lane_numbers(build, vector_type(value).get_shape()[0])
    scatter = vector.ScatterOp(tile.matrix.memref, indices, numbers, mask, value)
    _store_of_any_stride(ev, tile, scatter)


def waits_for_memory(loop: scf.ForOp, rows: int = 1) -> bool:
    """Whether a loop does too little to hide its loads and stores, of some rows."""
    return len(loop.body.block.ops) <= _MOST_OPERATIONS * rows


def _only_moves(loop: scf.ForOp) -> bool:
    """Whether it waits for memory and computes no functions (they need much code)."""
    return waits_for_memory(loop) and not _has_functions(loop)


def _has_functions(loop: scf.ForOp) -> bool:
    return any(op.name.startswith("math.") for op in loop.body.block.ops)
