"""Reductions along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import gcd, nan
from operator import add, mul, pos, sub

from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index, integer_width, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import operation_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.chunks import Chunks, chunk_at, put
from xetl_cpu.lowering.loops.combine import CHOICES, Combine
from xetl_cpu.lowering.loops.evaluator import Evaluator, constant_op
from xetl_cpu.lowering.loops.joint_reductions import fitting, joint_reductions
from xetl_cpu.lowering.loops.nest import COLUMNS, At, Nest, lane_mask
from xetl_cpu.lowering.loops.runs import bounds_of
from xetl_cpu.lowering.loops.state import (
    MOST_APART,
    UNROLL,
    Buffer,
    State,
    TileAt,
    element_of,
    has_functions,
    is_narrow,
    leaves,
    shape_of,
)
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.loops.streaming_stores import alignment

_LONG = 16
"""Vectors of a row that outweigh the reduction across lanes at the row's end."""

_DEEPEST = 8
"""Operations between a load and a sum, at most, to follow the load's padding."""


def _zero_extended(value: float) -> float:
    """Return the value; of a negative one, which has other bits then, NaN."""
    return value if value >= 0 else nan


_ON_PADDING: dict[type[Operation], Callable[..., float]] = {
    **dict.fromkeys((arith.MulfOp, arith.MuliOp), mul),
    **dict.fromkeys((arith.AddfOp, arith.AddiOp), add),
    **dict.fromkeys((arith.SubfOp, arith.SubiOp), sub),
    **dict.fromkeys((arith.ExtfOp, arith.ExtsiOp), pos),
    arith.ExtuiOp: _zero_extended,
}


def reduce_tile(state: State, op: xetile.TileReduceOp) -> None:
    """Reduce one or both dimensions into a buffer."""
    result = op.results[0]
    if result in state.buffers:
        return  # done while its source was computed
    source, dims = op.source, op.dims
    if dims == (0, 1):
        # Long rows first: their partial results stay in registers.
        dims = (1, 0) if shape_of(source)[1] >= _LONG * state.lanes else dims
        first = _reduce(state, op, source, dims[0])
        source = _stand_in(state, op, first)
    state.buffers[result] = _reduce(state, op, source, dims[-1])


def _stand_in(state: State, op: xetile.TileReduceOp, partial: Buffer) -> SSAValue:
    """Return a value for a buffer: the partial result of a reduction."""
    element = element_of(op.source)
    zero = Builder.before(op).insert(constant_op(element, 0, 1))
    value = vector.BroadcastOp(zero, VectorType(element, list(partial.shape)))
    state.buffers[value.result] = partial
    return value.result


def _as_row(state: State, op: xetile.TileReduceOp, column: SSAValue) -> SSAValue:
    """Return a column's elements as a row."""
    shape = [1, shape_of(column)[0]]
    row = vector.ShapeCastOp(column, VectorType(element_of(column), shape))
    Builder.before(op).add(row)
    state.dead.append(row)
    return row.result


def _reduce(
    state: State, op: xetile.TileReduceOp, source: SSAValue, dim: int
) -> Buffer:
    rows, cols = shape_of(source)
    if shape_of(source)[dim] == 1 and source in state.buffers:
        return state.buffers[source]
    remark(op, "loop", f"a pass over {rows} x {cols} elements")
    shape = (rows, 1) if dim == 1 else (1, cols)
    home = state.homes.get(op.results[0])
    to = home or state.allocate(shape, element_of(op.results[0]))
    if shape_of(source)[dim] == 1:
        write(state, source, to, op)
    elif dim == 1 and _goes_down(state, source):
        _reduce_columns(state, op, _turned(state, op, source), to, is_begun=False)
    elif dim == 1:
        reduce_rows(state, op, source, to, op)
    elif cols == 1:
        reduce_rows(state, op, _as_row(state, op, source), to, op)
    else:
        _reduce_columns(state, op, source, to, is_begun=home is not None)
    return to


def _goes_down(state: State, source: SSAValue) -> bool:
    """Whether a row would leave most lanes empty, and all can be read down columns."""
    return is_narrow(shape_of(source), state.lanes) and all(
        isinstance(each.owner, xetile.LoadTileOp) or shape_of(each)[1] == 1
        for each, _ in leaves(state, source)
    )


def _turned(state: State, op: xetile.TileReduceOp, source: SSAValue) -> SSAValue:
    """Return the transposed source."""
    turned = xetile.TileTransposeOp(source)
    Builder.before(op).add(turned)
    state.dead.append(turned)
    return turned.results[0]


def accumulated(have: SSAValue, value: SSAValue) -> SSAValue | None:
    """Return the reduction of columns that ``value`` combines with ``have``, or None.

    Both must have no other readers: then the columns may be added to ``have`` in place.
    """
    op = value.owner
    if not isinstance(op, Operation) or len(op.operands) != 2:
        return None
    others = [each for each in op.operands if each is not have]
    if len(others) != 1 or not isinstance(others[0].owner, xetile.TileReduceOp):
        return None
    reduction = others[0].owner
    combine = Combine(reduction.kind.data, element_of(others[0]))
    fits = (
        reduction.dims == (0,)
        and reduction.parent is op.parent
        and min(shape_of(reduction.source)) > 1
        and combine.narrow is None
        and type(op) is operation_of(combine.kind, combine.element)
        and all(len(list(each.uses)) == 1 for each in (have, value, others[0]))
    )
    return others[0] if fits else None


def reduce_rows(
    state: State,
    op: xetile.TileReduceOp,
    source: SSAValue,
    to: Buffer,
    place: Operation,
    keep: tuple[SSAValue, Buffer] | None = None,
) -> None:
    """Reduce each row: first to vectors of partial results, then across the lanes.

    ``keep``: the source, or a value of each of its elements, and a buffer that gets it
    in the same loop. ``place``: where the code is inserted.
    """
    rows, cols = shape_of(source)
    state = state.for_columns(cols)
    lanes = state.lanes
    kept, buffer = keep or (None, None)
    at_once, ways = _at_once(state, op, source, keeps=keep is not None)
    found = [_reduction(op, source, to, place, lanes)]
    if source is op.source:
        found += _others(state, op, place, at_once, kept)
        ways = fitting(state, [each.combine for each in found], ways)
    starts = [each for reduction in found for each in reduction.begins]
    is_ragged = cols % lanes != 0

    def body(ev: Evaluator, carried: Sequence[SSAValue]) -> list[SSAValue]:
        build, sums = ev.nest.places[2], list(carried)
        for number in range(len(carried) // len(starts)):
            nth, row_of_trip = divmod(number, at_once)
            row = ev.nest.plus(ev.nest.outer, row_of_trip)
            col = ev.nest.plus(ev.nest.inner, nth * lanes)
            at = At(row, col, COLUMNS, lanes)
            first = nth * len(starts) * at_once + row_of_trip
            # Behind a lead, vectors do not end at the end of the tile.
            crosses = (is_ragged or ev.shifted) and not ev.whole
            for each in found:
                value = ev.eval(each.source, at)
                if kept is not None and buffer is not None and each is found[0]:
                    put(ev, ev.eval(kept, at), buffer, at)
                value = each.combine.widen(build, value)
                if ev.stop is not None or crosses:
                    end = cols if ev.stop is None else ev.stop
                    mask = lane_mask(build, build.minus(end, col), lanes)
                    value = build.insert(arith.SelectOp(mask, value, each.identity))
                mine = slice(first, first + len(each.begins) * at_once, at_once)
                sums[mine] = each.combine.onto(build, sums[mine], value)
                first += len(each.begins) * at_once
        return sums

    limit = cols if cols % (lanes * ways) else None
    ends = keep is None and all(
        _ends_with_loads(state, each.source, each.combine.identity()) for each in found
    )
    inits = [each for each in starts for _ in range(at_once)] * ways
    lead = _to_alignment(state, source, place) if ends and at_once == 1 else 0
    how = limit, inits, at_once, ends, lead
    finish = partial(_finish, found, ways, at_once)
    each = len(starts)
    Chunks(state, place, (rows, cols), body, *how, finish=finish, each=each).emit()


@record()
class _Reduction:
    """A reduction in a loop: its source, its initial values, its result's buffer."""

    source: SSAValue
    to: Buffer
    combine: Combine
    identity: SSAValue
    begins: list[SSAValue]


def _reduction(
    op: xetile.TileReduceOp, source: SSAValue, to: Buffer, place: Operation, lanes: int
) -> _Reduction:
    build, combine = Builder.before(place), Combine(op.kind.data, element_of(source))
    identity, *begins = [
        build.insert(constant_op(combine.element, each, lanes))
        for each in (combine.identity(), *combine.begins())
    ]
    return _Reduction(source, to, combine, identity, begins)


def _others(
    state: State,
    op: xetile.TileReduceOp,
    place: Operation,
    rows: int,
    kept: SSAValue | None,
) -> list[_Reduction]:
    """Return the reductions that the loop of ``op``, of ``rows`` rows, does as well."""
    found = list[_Reduction]()
    for other in joint_reductions(state, op, place, rows, kept):
        remark(other, "loop", "in the pass of another reduction")
        to = state.allocate((shape_of(op.source)[0], 1), element_of(other.source))
        state.buffers[other.results[0]] = to
        found.append(_reduction(other, other.source, to, place, state.lanes))
    return found


def _finish(found: Sequence[_Reduction], ways: int, at_once: int, nest: Nest) -> None:
    """Combine the partial results of each reduction behind the inner loop."""
    build, first = nest.after(), 0
    count = at_once * sum(len(each.begins) for each in found)
    for each in found:
        end = first + len(each.begins) * at_once
        groups = [nest.results[n * count :][first:end] for n in range(ways)]
        partial = [
            each.combine.found(build, group[row::at_once])
            for group in groups
            for row in range(at_once)
        ]
        of_rows = _finish_row if at_once == 1 else _finish_rows
        of_rows(build, nest.outer, each.combine, partial, each.to)
        first = end


def _to_alignment(state: State, value: SSAValue, place: Operation) -> Index:
    """Return how many columns are before the first aligned vector of loaded rows.

    Unaligned vectors cross two lines each: from NumPy's arrays L2 reads 90 GB/s,
    aligned 158 (Granite Rapids, 64 x 1024 in f32, loops in C).
    """
    for leaf, _ in leaves(state, value):
        if isinstance(leaf.owner, xetile.LoadTileOp):
            tile = state.tiles[leaf.owner.tile]
            if isinstance(tile, TileAt):
                lies = alignment(state, Builder.before(place), tile)
                return 0 if lies is None else lies.lead
    return 0


def _at_once(
    state: State, op: xetile.TileReduceOp, source: SSAValue, *, keeps: bool
) -> tuple[int, int]:
    """Return how many rows, and how many vectors of each, an iteration does.

    Return 1, 1 if functions of long rows are kept: they take many operations, whose
    constants would not fit 16 registers beside those of four rows.
    """
    cols = shape_of(source)[1]
    is_long = keeps and cols >= _LONG * state.lanes
    if is_long and state.target.vector_registers < 32 and has_functions(state, source):
        return 1, 1
    rows = _rows_at_once(state, op, source)
    return rows, state.vectors_per_trip(cols) if rows == 1 else 1


def _rows_at_once(state: State, op: xetile.TileReduceOp, source: SSAValue) -> int:
    """Return how many rows are reduced together across lanes; 1 if loops may be fused.

    An operation that broadcasts the results along rows may be fused with the loop over
    rows, one by one. Long rows in memory are read one after the other (a third faster
    on Zen 5), unless the machine prefers several streams.
    """
    rows, cols = shape_of(source)
    if cols == state.lanes and integer_width(element_of(op.source)) != 1:
        # Short rows are cheap to read again: without fusion nothing is lost.
        return gcd(rows, 2 * UNROLL)
    if rows % UNROLL or integer_width(element_of(op.source)) == 1:
        return 1
    reads = any(
        isinstance(leaf.owner, xetile.LoadTileOp) for leaf, _ in leaves(state, source)
    )
    is_one = reads and state.target.machine.streams < UNROLL
    if is_one and cols > _LONG * state.lanes:
        return 1
    waiting = list(op.results)
    while waiting:
        for use in waiting.pop().uses:
            if isinstance(use.operation, xetile.TileBroadcastOp):
                return 1
            if isinstance(use.operation, vector.ShapeCastOp | xetile.TileConvLayoutOp):
                waiting += use.operation.results
    return UNROLL


def _ends_with_loads(state: State, value: SSAValue, identity: float) -> bool:
    """Whether elements equal ``identity`` where all their loads are outside."""
    return _of_padding(state, value) == identity


def _of_padding(state: State, value: SSAValue, depth: int = 0) -> float | None:
    """Return the value computed from the padding of all loads; None if not constant."""
    op = value.owner
    if value in state.buffers or not isinstance(op, Operation) or depth > _DEEPEST:
        return None
    if isinstance(op, xetile.LoadTileOp):
        return 0 if op.padding is None else splat_value(op.padding)
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value)
    if isinstance(op, xetile.TileBroadcastOp):
        is_row = tuple(op.dims) == (0,)
        return _of_padding(state, op.source, depth + 1) if is_row else None
    if isinstance(op, arith.SelectOp):
        is_end = any(bounds_of(state, op))
        return _of_padding(state, op.false_value, depth + 1) if is_end else None
    fold = _ON_PADDING.get(type(op))
    if fold is None:
        return None
    known = [_of_padding(state, each, depth + 1) for each in op.operands]
    numbers = [each for each in known if each is not None]
    return fold(*numbers) if len(numbers) == len(known) else None


def _finish_row(
    build: Builder, row: Index, combine: Combine, partial: list[SSAValue], to: Buffer
) -> None:
    """Reduce one row behind the inner loop: partial vectors first, then the lanes."""
    total = combine.all(build, partial)
    while combine.kind in CHOICES and vector_type(total).get_shape()[0] > 1:
        # LLVM would go lane by lane, to keep the order for signalling NaNs.
        total = _halved(build, combine, (total,), 1)
    scalar = build.insert(vector.ReductionOp(total, kind=combine.kind))
    scalar = combine.narrow_back(build, scalar)
    build.add(memref.StoreOp(scalar, to.memref, [build.index(row)]))


def _finish_rows(
    build: Builder, row: Index, combine: Combine, partial: list[SSAValue], to: Buffer
) -> None:
    """Reduce several rows behind the inner loop; their number is a power of two.

    Two vectors become one with half as many lanes of each row, so a step is one
    operation for all rows. Vectors with one lane of each row are concatenated.
    """
    groups = 1
    while len(partial) > 1:
        lanes = vector_type(partial[0]).get_shape()[0]
        partial = [
            _halved(build, combine, (a, b), groups)
            if lanes > groups
            else build.insert(vector.ShuffleOp(a, b, mask=list(range(2 * lanes))))
            for a, b in zip(partial[::2], partial[1::2])
        ]
        groups *= 2
    (total,) = partial
    while vector_type(total).get_shape()[0] > groups:
        total = _halved(build, combine, (total,), groups)
    total = combine.narrow_back(build, total)
    build.add(vector.StoreOp(total, to.memref, [build.index(row)]))


def _halved(
    build: Builder, combine: Combine, vectors: Sequence[SSAValue], groups: int
) -> SSAValue:
    """Combine the two halves of each group of lanes; keep the order of groups."""
    lanes = vector_type(vectors[0]).get_shape()[0]
    half = lanes // groups // 2
    starts = range(0, lanes * len(vectors), 2 * half)
    first = [start + n for start in starts for n in range(half)]
    pair = vectors[0], vectors[-1]
    parts = [
        build.insert(vector.ShuffleOp(*pair, mask=[lane + by for lane in first]))
        for by in (0, half)
    ]
    return combine.apply(build, *parts)


def _reduce_columns(
    state: State,
    op: xetile.TileReduceOp,
    source: SSAValue,
    to: Buffer,
    is_begun: bool,
) -> None:
    """Reduce several rows at a time into a row of partial results, which stays in L1.

    ``is_begun``: the row already holds results, which are combined with the rows.
    """
    rows, cols = shape_of(source)
    state = state.for_columns(cols)
    combine = Combine(op.kind.data, element_of(source))
    # A column of one element has room for a whole vector, as any buffer.
    partial = to if combine.narrow is None else state.allocate((1, cols), f32)

    def fill(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = ev.constant(combine.element, combine.identity(), state.lanes)
        put(ev, value, partial, _row(partial, ev))
        return []

    at_once = rows if rows <= MOST_APART else UNROLL if rows % UNROLL == 0 else 1

    def add(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        build, at = ev.nest.places[2], _row(partial, ev)
        values = [_get(ev, partial, combine.element, at)]
        for row in range(at_once):
            chunk = chunk_at(ev)
            chunk = chunk.moved(ev.nest.plus(ev.nest.outer, row), chunk.col)
            values.append(combine.widen(build, ev.eval(source, chunk)))
        put(ev, combine.all(build, values), partial, at)
        return []

    def finish(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = _get(ev, partial, combine.element, _row(partial, ev))
        put(ev, combine.narrow_back(ev.nest.places[2], value), to, _row(to, ev))
        return []

    if not is_begun:
        Chunks(state, op, (1, cols), fill).emit()
    ends = _ends_with_loads(state, source, combine.identity())
    Chunks(state, op, (rows, cols), add, rows_at_once=at_once, ends=ends).emit()
    if partial is not to:
        Chunks(state, op, (1, cols), finish).emit()


def _row(buffer: Buffer, ev: Evaluator) -> At:
    """Return the current chunk of a row of results."""
    first = ev.nest.inner
    place = (first, 0) if buffer.is_column else (0, first)
    return At(*place, COLUMNS, ev.state.lanes)


def _get(ev: Evaluator, buffer: Buffer, element: Attribute, at: At) -> SSAValue:
    build = ev.nest.places[2]
    indices = [at.row] if buffer.is_column else [at.row, at.col]
    values = [build.index(index) for index in indices]
    return build.insert(
        vector.LoadOp(buffer.memref, values, VectorType(element, [at.lanes]))
    )
