"""Elements a few places apart: vectors are loaded and shuffled, or shuffled and stored.

Such are one color of pixels, ``X[3 * arange(n) + c]``, or the real parts of complex
numbers.

Before: ``gather X[%first], X[%first + 3], ...``
After:  ``if (all are in X) { three loads, two shuffles } else { gather }``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import TileBroadcastOp
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_numbers, splat
from xetl_cpu.lowering.loops.runs import is_flat, parts_of, scatter_lanes, splat_of
from xetl_cpu.lowering.loops.state import Matrix, ScatterTile, shape_of

if TYPE_CHECKING:
    from xetl_cpu.lowering.loops.evaluate import Evaluator

_MOST_VECTORS = 4
"""[measured] With more, shuffles take as long as gathers."""


def strided_load(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At, padding: SSAValue
) -> SSAValue | None:
    """The lanes ``at`` of a gather; None: they are not known to be a few places apart.

    Whether numbers wrap around, and what counts, is looked at when the code runs.
    """
    step, lanes, run = _few(tile), at.lanes, parts_of(tile.indices)
    if not step or at.axis != COLUMNS or tile.size is None:
        return None
    build, end = ev.place(at), ev.nest.plus(at.col, lanes - 1)
    ends = [At(at.row, column, COLUMNS, 1) for column in (at.col, end)]
    first, last = (_as_index(build, ev.eval(run.numbers, each)) for each in ends)
    conditions = [each for each in (run.inside, mask) if each and not splat_of(each)]
    fits = build.both(
        build.compare("sge", first, 0),
        build.compare("sle", build.plus(first, step * lanes), tile.size),
        build.compare("eq", build.minus(last, first), step * (lanes - 1)),
    )
    indices, inside = scatter_lanes(ev, tile, mask, at)
    wide = vector_type(padding)
    there, elsewhere = Block(), Block()
    loads = Builder.at_end(there)
    places = [loads.index(loads.plus(first, n * lanes)) for n in range(step)]
    parts = [loads.insert(vector.LoadOp(tile.memref, [n], wide)) for n in places]
    found = _each_nth(loads, parts, lanes)
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


def row_of_any_stride(
    ev: Evaluator, matrix: Matrix, row: Index, limit: Index, gather: vector.GatherOp
) -> Operation:
    """What does the same as ``gather``, faster if the row repeats one element.

    Such are the gradient of a sum and other arrays that NumPy or torch broadcast.

    Args:
        ev: of the nest.
        matrix: what is read; the stride of its columns is known when the code runs.
        row: of the matrix.
        limit: how many elements of it there are; 0 where it is outside.
        gather: some of its lanes, not inserted yet.
    """
    first, key = ev.nest.places[0], ("stride", id(matrix.memref))
    if key not in ev.memo:
        metadata = first.add(memref.ExtractStridedMetadataOp(matrix.memref))
        ev.memo[key] = first.compare("eq", metadata.strides[-1], 0)
    outside = ev.nest.at(row)
    is_one = outside.both(ev.memo[key], outside.compare("sgt", limit, 0))
    there, elsewhere = Block(), Block([gather, scf.YieldOp(gather.result)])
    build = Builder.at_end(there)
    one = memref.LoadOp(matrix.memref, [build.index(row), build.index(0)])
    same = splat(build, build.insert(one), vector_type(gather.result).get_shape()[0])
    found = build.insert(arith.SelectOp(gather.mask, same, gather.pass_thru))
    build.add(scf.YieldOp(found))
    branches = Region(there), Region(elsewhere)
    return scf.IfOp(is_one, [gather.result.type], *branches)


def strided_store(
    ev: Evaluator, tile: ScatterTile, at: At, scatter: vector.ScatterOp
) -> Operation:
    """What does the same as ``scatter``, faster if lanes are a few places apart.

    Elements between them are masked off: other programs may write them now.
    """
    step, lanes = _few(tile), at.lanes
    if not step or not ev.state.target.has_masks:  # those of AVX2 are slow on AMD
        return scatter
    build = ev.place(at)
    ends = [vector.ExtractOp(scatter.index_vec, [n]) for n in (0, lanes - 1)]
    first, last = map(build.insert, ends)
    fits = build.both(
        build.insert(vector.ReductionOp(scatter.mask, kind="and")),
        build.compare("eq", build.minus(last, first), step * (lanes - 1)),
    )
    there, elsewhere = Block(), Block([scatter, scf.YieldOp()])
    stores = Builder.at_end(there)
    numbers, zero = lane_numbers(stores, lanes), splat(stores, stores.index(0), lanes)
    steps = splat(stores, stores.index(step), lanes)
    for start in range(0, step * lanes, lanes):
        order = [n // step for n in range(start, start + lanes)]
        two = scatter.value, scatter.value
        spread = stores.insert(vector.ShuffleOp(*two, mask=order))
        places = arith.AddiOp(numbers, splat(stores, stores.index(start), lanes))
        rest = stores.insert(arith.RemuiOp(stores.insert(places), steps))
        mask = stores.insert(arith.CmpiOp("eq", rest, zero))
        place = stores.index(stores.plus(first, start))
        stores.add(vector.MaskedstoreOp(tile.memref, [place], mask, spread))
    stores.add(scf.YieldOp())
    return scf.IfOp(fits, [], Region(there), Region(elsewhere))


def _few(tile: ScatterTile) -> int:
    """How many places apart neighbours of a row are in memory; 0: not a few."""
    step = step_of(parts_of(tile.indices).numbers)
    is_dense = strides_of(memref_type(tile.memref)) == [1]
    return step if is_dense and 1 < step <= _MOST_VECTORS else 0


def _is_range(condition: SSAValue) -> bool:
    """Whether what holds for two lanes of a row holds for all between them."""
    op = condition.owner
    if isinstance(op, arith.AndiOp):
        return all(map(_is_range, op.operands))
    if isinstance(op, TileBroadcastOp) and shape_of(op.operands[0])[0] == 1:
        return is_flat(condition) or _is_range(op.operands[0])
    if isinstance(op, arith.CmpiOp) and op.predicate_name == "ult":
        is_wide = vector_type(op.lhs).element_type == IndexType()
        return is_wide and bool(step_of(op.lhs)) and is_flat(op.rhs)
    return is_flat(condition)


def step_of(value: SSAValue) -> int:
    """From one index of a row to the next, unless a number wraps; 0: nobody knows."""
    step = 1
    while not isinstance(op := value.owner, vector.StepOp):
        if isinstance(op, arith.AddiOp | arith.MuliOp):
            value, other = op.lhs, op.rhs
            if is_flat(value):
                value, other = other, value
            if not is_flat(other) or is_flat(value):
                return 0
            step *= int(splat_of(other) or 0) if op.name == "arith.muli" else 1
        elif isinstance(op, arith.IndexCastOp):
            value = op.operands[0]
        elif isinstance(op, vector.ShapeCastOp | TileBroadcastOp):
            (source,) = op.operands
            if shape_of(source)[1] != shape_of(value)[1]:
                return 0
            value = source
        else:
            return 0
    return step


def _each_nth(build: Builder, parts: list[SSAValue], lanes: int) -> SSAValue:
    """Every element of ``parts`` whose number is a multiple of how many they are."""
    step, found = len(parts), parts[0]
    for number, part in enumerate(parts[1:], 1):
        order = [-1] * lanes  # of the two: later parts bring the rest
        for lane in range(lanes):
            source, place = divmod(lane * step, lanes)
            if source == number:
                order[lane] = lanes + place
            elif source < number:
                order[lane] = place if number == 1 else lane
        found = build.insert(vector.ShuffleOp(found, part, mask=order))
    return found


def _as_index(build: Builder, value: SSAValue) -> Index:
    if value.type == IndexType():
        return value
    return build.insert(arith.IndexCastOp(value, IndexType()))
