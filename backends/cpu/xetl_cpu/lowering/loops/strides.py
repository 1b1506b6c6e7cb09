"""Strided elements: vectors are loaded and shuffled, or shuffled and stored.

Examples are one color of pixels, ``X[3 * arange(n) + c]``, or the real parts of complex
numbers. A reversed row is one load and one shuffle.

Before: ``for column chunk { gather X[%first], X[%first + 3], ... }``
After:  ``for column chunk in X { three loads, two shuffles } ; the rest of the row:
for column chunk { if (all are in X) { the same } else { gather } }``
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import TileBroadcastOp
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_numbers, splat
from xetl_cpu.lowering.loops.runs import (
    is_flat,
    may_have_limit,
    parts_of,
    scatter_lanes,
    splat_of,
)
from xetl_cpu.lowering.loops.state import (
    MOST_APART,
    Matrix,
    ScatterTile,
    TileAt,
    reinterpret,
    shape_of,
    view_of,
)
from xetl_cpu.lowering.loops.transposes import steps_of
from xetl_cpu.lowering.strided_rows import backwards, strided_row


def strided_load(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At, padding: SSAValue
) -> SSAValue | None:
    """Return the lanes ``at`` of a gather; None if no small stride is known.

    Whether numbers wrap around, and which lanes are active, is tested at run time.
    """
    (step, offset), lanes, wide = _few(tile), at.lanes, vector_type(padding)
    if not step or at.axis != COLUMNS or tile.size is None:
        return None
    if may_have_limit(ev, at):
        build = ev.place(at)
        base, limit, conditions = _up_to_limit(ev, tile, mask, at)
        ev.limits[limit] = limit
        found = strided_row(build, tile.memref, [base], wide, step, offset)
        for each, where in conditions:
            counts = ev.eval(each, where)
            found = build.insert(arith.SelectOp(counts, found, padding))
        return found
    run = parts_of(tile.indices)
    build, end = ev.place(at), ev.nest.plus(at.col, lanes - 1)
    ends = [At(at.row, column, COLUMNS, 1) for column in (at.col, end)]
    first, last = (_as_index(build, ev.eval(run.numbers, each)) for each in ends)
    conditions = [each for each in (run.inside, mask) if each and not splat_of(each)]
    least, past = (last, build.plus(first, 1))
    if step > 0:
        least, past = first, build.plus(first, step * lanes)
    fits = build.both(
        build.compare("sge", least, 0),
        build.compare("sle", past, tile.size),
        build.compare("eq", build.minus(last, first), step * (lanes - 1)),
    )
    indices, inside = scatter_lanes(ev, tile, mask, at)
    there, elsewhere = Block(), Block()
    loads = Builder.at_end(there)
    found = strided_row(loads, tile.memref, [first], wide, step, 0)
    for each in conditions:
        select = arith.SelectOp(ev.eval(each, at), found, padding)
        if _is_range(each):
            all_count = build.both(*(ev.eval(each, end) for end in ends))
            whole = Region(Block([scf.YieldOp(found)]))
            rest = Region(Block([select, scf.YieldOp(select.result)]))
            found = loads.insert(scf.IfOp(all_count, [wide], whole, rest))
        else:
            found = loads.insert(select)
    zero = Builder.at_end(elsewhere).index(0)
    gather = vector.GatherOp(tile.memref, [zero], indices, inside, padding)
    loads.add(scf.YieldOp(found))
    elsewhere.add_ops([gather, scf.YieldOp(gather.result)])
    return build.insert(scf.IfOp(fits, [wide], Region(there), Region(elsewhere)))


def _up_to_limit(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[Index, Index, list[tuple[SSAValue, At]]]:
    """Return where lanes ``at`` are in memory, if the loop ends at a limit.

    Return the first place of the lanes, the first column with a lane that is outside
    the array, wraps around or is inactive, and other conditions for active lanes.
    """
    row, (numbers, inside) = ev.nest.at(at.row), parts_of(tile.indices)
    (step, offset), last = _few(tile), tile.shape[1] - 1
    first, end = (
        _as_index(row, ev.eval(numbers, At(at.row, column, COLUMNS, 1)))
        for column in (0, last)
    )
    base = row.minus(first, offset)
    size = tile.size or 0
    is_right = row.both(
        row.compare("ult", base, size),
        row.compare("eq", row.minus(end, first), step * last),
    )
    room = row.divided(row.minus(size, base), step) if step > 0 else row.plus(base, 1)
    limit = row.select(is_right, room, 0)
    others = list[tuple[SSAValue, At]]()
    waiting = [(each, at) for each in (inside, mask) if each and not splat_of(each)]
    while waiting:
        value, where = waiting.pop()
        op, start = value.owner, At(where.row, 0, COLUMNS, 1)
        is_kept = value in ev.state.buffers
        if is_flat(value):
            limit = row.select(ev.eval(value, start), limit, 0)
        elif isinstance(op, arith.AndiOp) and not is_kept:
            waiting += [(each, where) for each in op.operands]
        elif isinstance(op, TileBroadcastOp) and shape_of(op.operands[0])[0] == 1:
            waiting.append((op.operands[0], where.moved(0, where.col)))
        elif isinstance(op, arith.CmpiOp) and _is_range(value) and not is_kept:
            least, bound = (ev.eval(each, start) for each in op.operands)
            count, apart = row.plus(least, 1), step_of(op.lhs)[0]
            if apart > 0:
                count = row.ceil_divided(row.minus(bound, least), apart)
            starts = row.compare("ult", least, bound)
            limit = row.minimum(limit, row.select(starts, count, 0))
        else:
            others.append((value, where))
    build = ev.place(at)
    return build.plus(base, build.times(at.col, step)), limit, others


def row_of_any_stride(
    ev: Evaluator, tile: TileAt, row: Index, limit: Index, gather: vector.GatherOp
) -> Operation:
    """Return code like ``gather`` that is faster if the row repeats one element.

    Such rows are the gradient of a sum and other arrays that NumPy or torch broadcast.
    The code is also faster for every second element, X[:, ::2] or real parts, for
    reversed rows, and for one color of pixels, X[:, 0] of an array of three columns.

    Args:
        ev: the evaluator of the nest.
        tile: a tile of a matrix; the stride of its columns is known at run time.
        row: the row of the matrix.
        limit: how many elements of the row exist; 0 if the row is outside.
        gather: a gather of some lanes, not inserted yet.
    """
    matrix, outside = tile.matrix, ev.nest.at(row)
    (lanes,) = vector_type(gather.result).get_shape()
    step = _step_at_run(ev, matrix)
    repeats = ev.nest.places[0].compare("eq", step, 0)
    is_one = outside.both(repeats, outside.compare("sgt", limit, 0))
    there, elsewhere = Block(), Block()
    build, rest = Builder.at_end(there), Builder.at_end(elsewhere)
    one = memref.LoadOp(matrix.memref, [build.index(row), build.index(0)])
    same = splat(build, build.insert(one), lanes)
    found = build.insert(arith.SelectOp(gather.mask, same, gather.pass_thru))
    build.add(scf.YieldOp(found))
    steps = [step for step in steps_of(tile, (-1, 2, 3)) if step <= lanes]
    other = _as_vectors(rest, ev, matrix, gather, steps) if steps else gather
    rest.add(scf.YieldOp(rest.insert(other)))
    return scf.IfOp(is_one, [gather.result.type], Region(there), Region(elsewhere))


def _as_vectors(
    build: Builder,
    ev: Evaluator,
    matrix: Matrix,
    gather: vector.GatherOp,
    steps: Sequence[int],
) -> Operation:
    """Return loads and shuffles, for the case of no masks and one of some strides."""
    wide = vector_type(gather.result)
    found: Operation = gather
    all_count = build.insert(vector.ReductionOp(gather.mask, kind="and"))
    for step in steps:
        fits = build.both(_is_step(ev, matrix, step), all_count)
        there, elsewhere = Block(), Block([found, scf.YieldOp(found.results[0])])
        loads, (row, col) = Builder.at_end(there), gather.indices
        place = row, loads.times(col, step)
        shuffled = strided_row(loads, _dense_view(ev, matrix), place, wide, step)
        loads.add(scf.YieldOp(shuffled))
        found = scf.IfOp(fits, [wide], Region(there), Region(elsewhere))
    return found


def _step_at_run(ev: Evaluator, matrix: Matrix) -> SSAValue:
    """Return the distance from one element of a row to the next."""
    key = "stride", id(matrix.memref)
    if key not in ev.memo:
        first = ev.nest.places[0]
        metadata = first.add(memref.ExtractStridedMetadataOp(matrix.memref))
        ev.memo[key] = metadata.strides[-1]
    return ev.memo[key]


def _is_step(ev: Evaluator, matrix: Matrix, step: int) -> SSAValue:
    return ev.nest.places[0].compare("eq", _step_at_run(ev, matrix), step)


def _dense_view(ev: Evaluator, matrix: Matrix) -> SSAValue:
    """Return the memory of a matrix with a small stride as a contiguous view."""
    key = "dense", id(matrix.memref)
    if key not in ev.memo:
        first = ev.nest.places[0]
        offset, (row_step, _) = view_of(matrix.memref, first)
        sizes = matrix.rows, first.times(matrix.cols, MOST_APART)
        ev.memo[key] = reinterpret(first, matrix.memref, offset, sizes, (row_step, 1))
    return ev.memo[key]


def store_of_any_stride(ev: Evaluator, tile: TileAt, scatter: vector.ScatterOp) -> None:
    """Do what ``scatter`` does, faster if the stride of rows is small."""
    matrix, build = tile.matrix, ev.nest.places[2]
    found: Operation = scatter
    # Targets without masks as in `strided_store`.
    for step in steps_of(tile, (2, 3)) if ev.state.target.has_masks else ():
        there, elsewhere = Block(), Block([found, scf.YieldOp()])
        stores, (row, col) = Builder.at_end(there), scatter.indices
        view, first = _dense_view(ev, matrix), stores.times(col, step)
        _store_every_nth(stores, scatter, (view, row), first, step, 0)
        stores.add(scf.YieldOp())
        fits = _is_step(ev, matrix, step)
        found = scf.IfOp(fits, [], Region(there), Region(elsewhere))
    build.add(found)


def strided_store(
    ev: Evaluator,
    tile: ScatterTile,
    given: SSAValue | None,
    at: At,
    scatter: vector.ScatterOp,
) -> None:
    """Do what ``scatter`` does, faster if lanes are a few places apart.

    Elements between the lanes are masked off: other programs may be writing them.
    """
    (step, offset), lanes, build = _few(tile), at.lanes, ev.place(at)
    if not step or not ev.state.target.has_masks:  # those of AVX2 are slow on AMD
        build.add(scatter)
        return
    if tile.size is not None and may_have_limit(ev, at):
        base, limit, others = _up_to_limit(ev, tile, given, at)
        if not others:
            ev.limits[limit] = limit
            _store_every_nth(build, scatter, (scatter.base,), base, step, offset)
            return
    ends = [vector.ExtractOp(scatter.index_vec, [n]) for n in (0, lanes - 1)]
    first, last = map(build.insert, ends)
    fits = build.both(
        build.insert(vector.ReductionOp(scatter.mask, kind="and")),
        build.compare("eq", build.minus(last, first), step * (lanes - 1)),
    )
    there, elsewhere = Block(), Block([scatter, scf.YieldOp()])
    stores = Builder.at_end(there)
    _store_every_nth(stores, scatter, (scatter.base,), first, step, 0)
    stores.add(scf.YieldOp())
    build.add(scf.IfOp(fits, [], Region(there), Region(elsewhere)))


def _store_every_nth(
    build: Builder,
    scatter: vector.ScatterOp,
    to: tuple[SSAValue, *tuple[SSAValue, ...]],
    first: Index,
    step: int,
    offset: int,
) -> None:
    """Store lanes ``step`` apart; the first is ``offset`` places behind ``first``.

    ``to`` is a memref, with the row if it has rows.
    """
    base, *row = to
    (lanes,) = vector_type(scatter.value).get_shape()
    if step < 0:
        last = build.index(build.minus(first, lanes - 1))
        build.add(vector.StoreOp(backwards(build, scatter.value), base, [*row, last]))
        return
    numbers, rest = lane_numbers(build, lanes), splat(build, build.index(offset), lanes)
    steps = splat(build, build.index(step), lanes)
    for start in range(0, step * lanes, lanes):
        order = [n // step for n in range(start, start + lanes)]
        two = scatter.value, scatter.value
        spread = build.insert(vector.ShuffleOp(*two, mask=order))
        places = arith.AddiOp(numbers, splat(build, build.index(start), lanes))
        left = build.insert(arith.RemuiOp(build.insert(places), steps))
        mask = build.insert(arith.CmpiOp("eq", left, rest))
        if row:  # some lanes may not count
            counts = vector.ShuffleOp(scatter.mask, scatter.mask, mask=order)
            mask = build.both(mask, build.insert(counts))
        place = build.index(build.plus(first, start))
        build.add(vector.MaskedstoreOp(base, [*row, place], mask, spread))


def _few(tile: ScatterTile) -> tuple[int, int]:
    """Return how many places apart elements of a row are in memory; 0: not a few.

    The second number is their expected offset from a multiple of that.
    """
    step, offset = step_of(parts_of(tile.indices).numbers)
    is_dense = strides_of(memref_type(tile.memref)) == [1]
    few = is_dense and (1 < step <= MOST_APART or step == -1)
    return (step, offset % step) if few else (0, 0)


def _is_range(condition: SSAValue) -> bool:
    """Whether a condition that holds for two lanes holds for all lanes between them."""
    op = condition.owner
    if isinstance(op, arith.AndiOp):
        return all(map(_is_range, op.operands))
    if isinstance(op, TileBroadcastOp) and shape_of(op.operands[0])[0] == 1:
        return is_flat(condition) or _is_range(op.operands[0])
    if isinstance(op, arith.CmpiOp) and op.predicate_name == "ult":
        is_wide = vector_type(op.lhs).element_type == IndexType()
        step, _ = step_of(op.lhs)
        return is_wide and (step > 0 or step == -1) and is_flat(op.rhs)
    return is_flat(condition)


def step_of(value: SSAValue) -> tuple[int, int]:
    """Return the step from one index of a row to the next if none wraps; 0: unknown.

    The second number is the sum of constants that are added to the indices.
    """
    step, offset = 1, 0
    while not isinstance(op := value.owner, vector.StepOp):
        if isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
            value, other = op.lhs, op.rhs
            is_other = is_flat(value)
            if is_other:
                value, other = other, value
            if not is_flat(other) or is_flat(value):
                return 0, 0
            number = int(splat_of(other) or 0)
            if op.name == "arith.subi":
                offset += step * (number if is_other else -number)
                step = -step if is_other else step
            elif op.name == "arith.addi":
                offset += step * number
            else:
                step *= number
        elif isinstance(op, arith.IndexCastOp):
            value = op.operands[0]
        elif isinstance(op, vector.ShapeCastOp | TileBroadcastOp):
            (source,) = op.operands
            if shape_of(source)[1] != shape_of(value)[1]:
                return 0, 0
            value = source
        else:
            return 0, 0
    return step, offset


def _as_index(build: Builder, value: SSAValue) -> Index:
    if value.type == IndexType():
        return value
    return build.insert(arith.IndexCastOp(value, IndexType()))
