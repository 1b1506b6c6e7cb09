"""Reductions along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, inf, nan
from operator import add, mul, pos, sub

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index, integer_width, is_vector, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import ON_INTEGERS, identity_of, operation_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.chunks import chunk_at, over_chunks, put
from xetl_cpu.lowering.loops.evaluator import Evaluator, constant_op
from xetl_cpu.lowering.loops.nest import COLUMNS, At, Nest, lane_mask
from xetl_cpu.lowering.loops.state import (
    UNROLL,
    Buffer,
    State,
    TileAt,
    element_of,
    leaves,
    shape_of,
)
from xetl_cpu.lowering.loops.stores import alignment, write

_LONG = 16
"""Vectors of a row that outweigh the reduction across the lanes at its end."""

_DEEPEST = 8
"""Operations between a load and a sum, through which its padding is followed."""

_ON_PADDING: dict[type[Operation], Callable[..., float]] = {
    **dict.fromkeys((arith.MulfOp, arith.MuliOp), mul),
    **dict.fromkeys((arith.AddfOp, arith.AddiOp), add),
    **dict.fromkeys((arith.SubfOp, arith.SubiOp), sub),
    **dict.fromkeys((arith.ExtfOp, arith.ExtsiOp), pos),
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
    """A value that means a buffer: the partial result of a reduction to one element."""
    element = element_of(op.source)
    zero = Builder.before(op).insert(constant_op(element, 0, 1))
    value = vector.BroadcastOp(zero, VectorType(element, list(partial.shape)))
    state.buffers[value.result] = partial
    return value.result


def _as_row(state: State, op: xetile.TileReduceOp, column: SSAValue) -> SSAValue:
    """A column's elements as a row."""
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
    elif dim == 1:
        reduce_rows(state, op, source, to, op)
    elif cols == 1:
        reduce_rows(state, op, _as_row(state, op, source), to, op)
    else:
        _reduce_columns(state, op, source, to, is_begun=home is not None)
    return to


def accumulated(have: SSAValue, value: SSAValue) -> SSAValue | None:
    """What is reduced down columns, if ``value`` is that combined with ``have``.

    And if nobody else reads these: then the columns may be added to ``have`` itself.
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
    """Each row: vectors of partial results, then across the lanes.

    ``keep``: the source, or what is computed of each of its elements, and a buffer that
    gets it on the way. ``place``: where the code goes.
    """
    rows, cols = shape_of(source)
    state = state.for_columns(cols)
    lanes = state.lanes
    combine = Combine(op.kind.data, element_of(source))
    at_once, ways = _at_once(state, op, source, keeps=keep is not None)
    is_ragged = cols % lanes != 0
    identity, *begins = [
        Builder.before(place).insert(constant_op(combine.element, each, lanes))
        for each in (combine.identity(), *combine.begins())
    ]

    def body(ev: Evaluator, carried: Sequence[SSAValue]) -> list[SSAValue]:
        build, partial = ev.nest.places[2], list(carried)
        for number in range(len(carried) // len(begins)):
            nth, row_of_trip = divmod(number, at_once)
            row = ev.nest.plus(ev.nest.outer, row_of_trip)
            col = ev.nest.plus(ev.nest.inner, nth * lanes)
            at = At(row, col, COLUMNS, lanes)
            value = ev.eval(source, at)
            if keep is not None:
                kept, buffer = keep
                put(ev, ev.eval(kept, at), buffer, at)
            value = combine.widen(build, value)
            if ev.stop is not None or (is_ragged and not ev.whole):
                end = cols if ev.stop is None else ev.stop
                mask = lane_mask(build, build.minus(end, col), lanes)
                value = build.insert(arith.SelectOp(mask, value, identity))
            first = nth * len(begins) * at_once + row_of_trip
            mine = slice(first, first + len(begins) * at_once, at_once)
            partial[mine] = combine.onto(build, partial[mine], value)
        return partial

    limit = cols if cols % (lanes * ways) else None
    ends = keep is None and _ends_with_loads(state, source, combine.identity())
    inits = [each for each in begins for _ in range(at_once)] * ways

    def finish(nest: Nest) -> None:
        build, count = nest.after(), len(begins) * at_once
        groups = [nest.results[n : n + count] for n in range(0, len(inits), count)]
        each_row = [group[row::at_once] for group in groups for row in range(at_once)]
        found = [combine.found(build, have) for have in each_row]
        of_rows = _finish_row if at_once == 1 else _finish_rows
        of_rows(build, nest.outer, combine, found, to)

    lead = _to_alignment(state, source, place) if ends and at_once == 1 else 0
    how = limit, inits, at_once, ends, lead
    over_chunks(state, place, (rows, cols), body, *how, finish=finish, each=len(begins))


def _to_alignment(state: State, value: SSAValue, place: Operation) -> Index:
    """Columns in front of the first vector of what is loaded that is aligned.

    Others cross two lines each: of NumPy's arrays L2 gives 90 GB/s, so it gives 158
    (Granite Rapids, 64 x 1024 in f32, loops in C).
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
    """How many rows, and how many vectors of each, a trip of the loop takes.

    One of each where elements of long rows are kept: they take many operations, whose
    constants would not stay in 16 registers beside those of four rows.
    """
    cols = shape_of(source)[1]
    if keeps and cols >= _LONG * state.lanes and state.target.vector_registers < 32:
        return 1, 1
    rows = _rows_at_once(state, op, source)
    return rows, state.vectors_per_trip(cols) if rows == 1 else 1


def _rows_at_once(state: State, op: xetile.TileReduceOp, source: SSAValue) -> int:
    """Some, whose lanes are then reduced together, unless the same rows go on.

    What spreads the results along rows may be fused to the loop over them, one by one.
    Long rows that come from memory are read one after the other: a third faster.
    """
    rows, cols = shape_of(source)
    if cols == state.lanes and integer_width(element_of(op.source)) != 1:
        # Short rows are cheap to read again: nothing is lost if loops are not fused.
        return gcd(rows, 2 * UNROLL)
    if rows % UNROLL or integer_width(element_of(op.source)) == 1:
        return 1
    reads = any(
        isinstance(leaf.owner, xetile.LoadTileOp) for leaf, _ in leaves(state, source)
    )
    if reads and cols > _LONG * state.lanes:
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
    """Whether elements are ``identity`` where all loads behind them are outside."""
    return _of_padding(state, value) == identity


def _of_padding(state: State, value: SSAValue, depth: int = 0) -> float | None:
    """What is computed of the paddings of all loads; None: more than these decide."""
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
    fold = _ON_PADDING.get(type(op))
    if fold is None:
        return None
    known = [_of_padding(state, each, depth + 1) for each in op.operands]
    numbers = [each for each in known if each is not None]
    return fold(*numbers) if len(numbers) == len(known) else None


def _finish_row(
    build: Builder, row: Index, combine: Combine, partial: list[SSAValue], to: Buffer
) -> None:
    """Behind the inner loop: fold the partial vectors, then the lanes."""
    total = combine.all(build, partial)
    while combine.kind in _CHOICES and vector_type(total).get_shape()[0] > 1:
        # LLVM would go lane by lane: it keeps the order, for NaNs that signal.
        total = _halved(build, combine, (total,), 1)
    scalar = build.insert(vector.ReductionOp(total, kind=combine.kind))
    scalar = combine.narrow_back(build, scalar)
    build.add(memref.StoreOp(scalar, to.memref, [build.index(row)]))


def _finish_rows(
    build: Builder, row: Index, combine: Combine, partial: list[SSAValue], to: Buffer
) -> None:
    """The same for some rows, whose number is a power of two.

    Two vectors become one with half as many lanes of each row, so that a step is one
    operation for all rows; those with one lane of each are put beside one another.
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
    """The two halves of each group of lanes combined, in the order of the groups."""
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
    """Some rows at a time into a row of partial results, which stays in L1.

    ``is_begun``: it holds some, which the rows are combined with.
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

    at_once = UNROLL if rows % UNROLL == 0 else 1

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
        over_chunks(state, op, (1, cols), fill)
    ends = _ends_with_loads(state, source, combine.identity())
    over_chunks(state, op, (rows, cols), add, rows_at_once=at_once, ends=ends)
    if partial is not to:
        over_chunks(state, op, (1, cols), finish)


def _row(buffer: Buffer, ev: Evaluator) -> At:
    """The current chunk of a row of results."""
    col = 0 if buffer.is_column else ev.nest.inner
    return At(0, col, COLUMNS, ev.state.lanes)


def _get(ev: Evaluator, buffer: Buffer, element: Attribute, at: At) -> SSAValue:
    build = ev.nest.places[2]
    indices = [at.row] if buffer.is_column else [at.row, at.col]
    values = [build.index(index) for index in indices]
    return build.insert(
        vector.LoadOp(buffer.memref, values, VectorType(element, [at.lanes]))
    )


_CHOICES = {"minnumf": "olt", "maxnumf": "ogt"}
"""When the left one is taken, by kind; a NaN never is."""

_OTHERS = {"minnumf": "ogt", "maxnumf": "olt"}
"""When the left one is worse."""


class Combine:
    """The operation of a reduction and its identity; narrow floats go through f32."""

    def __init__(self, kind: str, element: Attribute) -> None:
        narrow = isinstance(element, Float16Type | BFloat16Type)
        self.narrow = element if narrow else None
        self.element: Attribute = f32 if narrow else element
        if integer_width(element) == 1:
            kind = ON_INTEGERS[kind].on_bits
        self.kind = kind

    def widen(self, build: Builder, value: SSAValue) -> SSAValue:
        """The value as it is accumulated."""
        if self.narrow is None:
            return value
        type_ = value.type
        to = VectorType(f32, type_.get_shape()) if is_vector(type_) else f32
        return build.insert(arith.ExtfOp(value, to))

    def narrow_back(self, build: Builder, value: SSAValue) -> SSAValue:
        """The accumulated value rounded once to the type of the result."""
        if self.narrow is None:
            return value
        type_ = value.type
        to: Attribute = self.narrow
        if is_vector(type_):
            to = VectorType(to, type_.get_shape())
        return build.insert(arith.TruncfOp(value, to))

    def apply(self, build: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
        """Left combined with right."""
        if self.narrow is None or self.kind not in _CHOICES:
            return build.insert(operation_of(self.kind, self.element)(left, right))
        # LLVM would make `minnum` of f16 of what was widened, and has no code for it.
        takes_left = build.insert(arith.CmpfOp(_CHOICES[self.kind], left, right))
        no_right = build.insert(arith.CmpfOp("uno", right, right))
        either = build.insert(arith.OriOp(takes_left, no_right))
        return build.insert(arith.SelectOp(either, left, right))

    def begins(self) -> tuple[float, ...]:
        """What rows begin with: numbers that `onto` combines with each element.

        Where NaNs are ignored, these are the best number and the worst. A number that
        is compared with another one, never with NaN, is chosen by one instruction, and
        nothing is found if in the end the best is behind the worst.
        """
        if self.kind not in _CHOICES:
            return (self.identity(),)
        return (-inf, inf) if self.kind == "maxnumf" else (inf, -inf)

    def onto(
        self, build: Builder, have: Sequence[SSAValue], value: SSAValue
    ) -> list[SSAValue]:
        """What there is, combined with a value that may be NaN."""
        if self.kind not in _CHOICES:
            return [self.apply(build, have[0], value)]
        tests = _CHOICES[self.kind], _OTHERS[self.kind]
        takes = [build.insert(arith.CmpfOp(t, value, h)) for t, h in zip(tests, have)]
        return [
            build.insert(arith.SelectOp(take, value, each))
            for take, each in zip(takes, have)
        ]

    def found(self, build: Builder, have: Sequence[SSAValue]) -> SSAValue:
        """What all came to."""
        best, *others = have
        for worst in others:
            is_nothing = build.insert(arith.CmpfOp(_OTHERS[self.kind], best, worst))
            nothing = build.constant(nan, best.type)
            best = build.insert(arith.SelectOp(is_nothing, nothing, best))
        return best

    def all(self, build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        """All of them combined, in pairs."""
        waiting = list(values)
        while len(waiting) > 1:
            left, right, *rest = waiting
            waiting = [*rest, self.apply(build, left, right)]
        return waiting[0]

    def identity(self) -> float:
        """The value that changes nothing."""
        return identity_of(self.kind, self.element)
