"""Rows, in chunks of a vector's lanes: with masks only where a matrix may end.

Rows of one or two vectors have loops of their own, for tiles that are inside of their
matrices.

Before: a function that writes the code of one chunk
After:  ``for row { for column chunk { code } ; if %rest { code with masks } }``,
or of short rows ``if %inside { for row { code } } else { the same as above }``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, memref_type
from xetl.dialects.upstream import arith, scf, vector
from xetl.ir.builder import Builder
from xetl.transforms.cse import merge_equal
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, Nest, open_nest
from xetl_cpu.lowering.loops.state import Buffer, Shape, State, TileAt

_MOST_OPERATIONS = 32
"""In a loop that waits for memory; with more of them it computes."""

WORD = 4
"""Bytes of the least elements that AVX2 loads with a mask."""

_FAR = 1 << 40
"""Columns: more than any row of a tile has."""

Whole = tuple[Shape, list[SSAValue]]
"""The shape of a tile, and what holds if all of it is inside its matrix."""

Body = Callable[[Evaluator, Sequence[SSAValue]], list[SSAValue]]
"""Writes the code of one chunk; takes and returns what the inner loop carries."""


def over_chunks(
    state: State,
    op: Operation,
    extents: tuple[Index, Index],
    body: Body,
    limit: Index | None = None,
    inits: Sequence[SSAValue] = (),
    rows_at_once: int = 1,
    ends: bool = False,
    lead: Index = 0,
    whole: Whole | None = None,
    finish: Callable[[Nest], None] | None = None,
    each: int = 1,
    halves: bool = False,
    twice: bool = False,
) -> Nest:
    """Run ``body`` for all rows and chunks of columns, in front of ``op``.

    Where every access is inside its matrix the inner loop runs without masks; a
    second loop with masks does the rest of the row, one chunk a trip. ``limit``: how
    far the body itself may go without masks. ``inits``: what the inner loop carries,
    ``each`` values for each chunk of a trip, those of the first chunks of all rows
    first.
    ``rows_at_once``: how many rows a trip of the outer loop does. ``ends``: nothing is
    to be done where the body's only load is outside of its matrix. ``lead``: columns
    that are done with a mask first, if the loop does little else than move data. So
    are those where tiles start before their matrix, if the loop carries nothing. Where
    it does, the body ends at the evaluator's ``stop``.
    ``whole``: the tile that is stored. ``finish``: called behind inner loops, for each
    nest. ``halves``: the body takes vectors of fewer lanes, too. ``twice``: it may do a
    chunk again. Returns the nest of the last inner loop, both loops ended.
    """
    outer, inner = extents
    if whole is None and isinstance(outer, int) and isinstance(inner, int):
        whole = (outer, inner), []

    def any_rows() -> Nest:
        how = limit, inits, rows_at_once, ends, lead, each, halves, twice
        nest = _over_chunks(state, op, extents, body, *how)
        if finish is not None:
            finish(nest)
        return nest

    one_by_one = len(inits) in (0, rows_at_once * each)
    if whole is None or not (one_by_one and _is_short(whole[0], state, rows_at_once)):
        return any_rows()
    shape, tests = whole
    nest = open_nest(op, *shape, state.lanes, inits, rows_at_once)
    ev = Evaluator(state, nest, whole=True, inside={})
    nest.end_inner(body(ev, nest.carried))
    if finish is not None:
        finish(nest)
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
    nest = any_rows()
    elsewhere = _cut(test, op)
    Builder.before(op).add(scf.IfOp(is_inside, [], there, elsewhere))
    return nest


def over_columns(state: State, op: Operation, shape: Shape, body: Body) -> None:
    """Rows of a few vectors, without a loop: their masks are made of one number."""
    rows, cols = shape
    loop = Builder.before(op).for_loop(0, rows, 1)
    row = loop.body.block.args[0]
    start, build = Builder.before(loop), Builder.at_end(loop.body.block)
    for first in range(0, cols, state.lanes):
        column = start.index(first)
        levels = {row: 1, column: 2}
        nest = Nest(row, column, loop, None, (start, build, build), levels)
        ev = Evaluator(state, nest)
        body(ev, ())
        if first == 0:
            state.reads.update(ev.loads.keys())
    build.add(scf.YieldOp())


def _cut(after: Operation, before: Operation) -> Region:
    """The operations between two, moved into a region."""
    found, each = list[Operation](), after.next_op
    while each is not before:
        assert each is not None
        found.append(each)
        each = each.next_op
    for each in found:
        each.detach()
    return Region(Block([*found, scf.YieldOp()]))


def _is_short(shape: Shape, state: State, rows_at_once: int) -> bool:
    """Whether tests for each row would cost as much as what is done with it."""
    rows, cols = shape
    return rows >= rows_at_once and cols in (state.lanes, 2 * state.lanes)


def lies_inside(build: Builder, tile: TileAt) -> SSAValue:
    """Whether all of a tile is inside its matrix."""
    if tile.is_inside:
        return build.constant(1, i1)
    ends = (tile.row, tile.matrix.rows), (tile.col, tile.matrix.cols)
    tests = list[SSAValue]()
    for (start, size), extent in zip(ends, tile.shape):
        tests.append(build.compare("sle", build.plus(start, extent), size))
        if not tile.non_negative:
            tests.append(build.compare("sge", start, 0))
    return build.both(*tests)


def _over_chunks(
    state: State,
    op: Operation,
    extents: tuple[Index, Index],
    body: Body,
    limit: Index | None,
    inits: Sequence[SSAValue],
    rows_at_once: int,
    ends: bool,
    lead: Index,
    each: int,
    halves: bool,
    twice: bool,
) -> Nest:
    """Loops for rows of any length, of tiles that may be outside."""
    carried = len(inits[: rows_at_once * each])
    step = state.lanes * (len(inits) // carried if carried else 1)
    outer, inner = extents
    nest = open_nest(op, outer, inner, step, inits, rows_at_once)
    ev = Evaluator(state, nest, whole=True)
    if limit is not None:
        ev.limits["body"] = limit
    nest.end_inner(body(ev, nest.carried))
    state.reads.update(ev.loads.keys())
    if ev.starts:
        build = nest.places[0]
        first = reduce(build.maximum, ev.starts.values())
        if inits:  # all trips are masked, or none
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
        _mask_the_lead(ev, lead, body, carried)
    if ev.limits:
        how = inner, step, ends, halves, twice and not ev.is_aligned
        nest = _mask_the_rest(ev, how, body, carried)
    nest.end_outer()
    return nest


def _mask_the_lead(ev: Evaluator, lead: SSAValue, body: Body, carried: int) -> None:
    """Let the first loop begin at ``lead``; another one does what is before it."""
    nest = ev.nest.lead(lead, ev.state.lanes, carried)
    before = Evaluator(ev.state, nest, stop=nest.loop.upper_bound, shifted=ev.shifted)
    nest.end_inner(body(before, nest.carried))


def _mask_the_rest(
    ev: Evaluator, how: tuple[Index, int, bool, bool, bool], body: Body, carried: int
) -> Nest:
    """Cut the first loop where a limit ends it; go on with masks from there.

    Without masks for all types, where a loop only moves, the last vector of a row that
    has a whole one ends with the row: some elements are done twice. ([measured] Zen 3:
    `silu` of rows that need no rest takes 8 % longer, for LLVM spills constants.)

    Functions of what goes on to a fixed width are functions of paddings behind all that
    is loaded: a third loop has no loads, and its chunks are equal but for where they
    go. LLVM computes one in front of it.
    """
    inner, step, ends, may_halve, may_repeat = how
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
        if may_repeat:
            where = build = _repeat(ev, where, (full, inner), body)
        if may_halve and _is_narrow(ev):
            halves = _halve(build, lanes, cut, build.index(end_of_whole))
            lanes, _, cut = halves[-1]
    loads = [limit for key, limit in ev.limits.items() if key != "body"]
    width = inner if isinstance(inner, int) and not ends and _pads(ev) else 0
    end = inner
    if loads and (ends or width):
        end = build.minimum(inner, build.maximum(cut, reduce(build.maximum, loads)))
    by, padded = lanes if width % step else step, cut
    if width:
        past = build.plus(build.minus(end, cut), by - 1)
        padded = build.index(build.plus(cut, whole_steps(build, past, by)))
        end = build.minimum(padded, width)
    for number, start, to in halves:
        part = nest.rest(start, to, number, 0, where)
        half = replace(ev.state, lanes=number)
        part.end_inner(body(Evaluator(half, part, whole=True, shifted=ev.shifted), ()))
    rest = nest.rest(cut, end, lanes, carried, where)
    masked = Evaluator(replace(ev.state, lanes=lanes), rest, shifted=ev.shifted)
    rest.end_inner(body(masked, rest.carried))
    if width:
        rest = rest.rest(padded, width, by, carried * by // lanes, where)
        behind = Evaluator(ev.state, rest, outside=ev.ended, shifted=ev.shifted)
        rest.end_inner(body(behind, rest.carried))
        merge_equal(rest.loop.body.block)
    return rest


def _repeat(
    ev: Evaluator, build: Builder, ends: tuple[Index, Index], body: Body
) -> Builder:
    """Do the last vector of a row that is inside; the place for other rests."""
    full, end = ends
    nest, lanes = ev.nest, ev.state.lanes
    length = build.minus(end, nest.loop.lower_bound)
    is_long = build.compare("sge", length, lanes)
    repeats = build.both(is_long, build.compare("sge", full, length))
    there, elsewhere = scf.YieldOp(), scf.YieldOp()
    regions = [Region(Block([each])) for each in (there, elsewhere)]
    build.add(scf.IfOp(repeats, [], *regions))
    build = Builder.before(there)
    part = nest.rest(build.minus(end, lanes), end, lanes, 0, build)
    part.end_inner(body(Evaluator(ev.state, part, whole=True, shifted=True), ()))
    return Builder.before(elsewhere)


def _halve(
    build: Builder, lanes: int, start: SSAValue, end: SSAValue
) -> list[tuple[int, SSAValue, SSAValue]]:
    """Lanes of vectors half as long, a quarter and so on, and what they go over."""
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
    """Whether functions of what is loaded are computed, and so of its padding."""
    return bool(ev.ended) and _has_functions(ev.nest.loop)


def whole_steps(build: Builder, number: Index, step: int) -> Index:
    """The largest multiple of ``step`` that is not more."""
    trips = build.insert(arith.DivuiOp(build.index(number), build.index(step)))
    return build.times(trips, step)


def chunk_at(ev: Evaluator) -> At:
    """The chunk of the current trip."""
    return At(ev.nest.outer, ev.nest.inner, COLUMNS, ev.state.lanes)


def block_at(ev: Evaluator) -> list[At]:
    """The chunks of the current trip in each row of a block of ``lanes`` rows."""
    nest, lanes = ev.nest, ev.state.lanes
    where = nest.outer, nest.inner
    return [
        At(nest.plus(nest.outer, n), nest.inner, COLUMNS, lanes, where, n)
        for n in range(lanes)
    ]


def put(ev: Evaluator, value: SSAValue, to: Buffer, at: At) -> None:
    """Store a whole vector to a buffer, whose rows are padded for that."""
    build = ev.nest.places[2]
    indices = [at.row] if to.is_column else [at.row, at.col]
    build.add(vector.StoreOp(value, to.memref, [build.index(i) for i in indices]))


def waits_for_memory(loop: scf.ForOp) -> bool:
    """Whether a loop does too little for its loads and stores to be hidden."""
    return len(loop.body.block.ops) <= _MOST_OPERATIONS


def _only_moves(loop: scf.ForOp) -> bool:
    """Whether it waits for memory and computes no functions, which would be code."""
    return waits_for_memory(loop) and not _has_functions(loop)


def _has_functions(loop: scf.ForOp) -> bool:
    return any(op.name.startswith("math.") for op in loop.body.block.ops)
