"""Rules that move elements: slices, and interleaved rows or elements.

Before: ``%r = vector.interleave %a, %b``, read from column %c on
After:  the same columns from %c / 2 on of %a and of %b, and a shuffle
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from xdsl.ir import SSAValue

from xetl.dialects.base import Index, element_type, row_type
from xetl.dialects.upstream import arith, vector
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.evaluator import RULES, Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At
from xetl_cpu.lowering.loops.state import shape_of
from xetl_cpu.lowering.strided_rows import each_nth


def _interleave(ev: Evaluator, op: vector.InterleaveOp, at: At) -> SSAValue:
    """Shuffle half as many elements of both sides, or select from a single column."""
    build, lanes, multiple = ev.place(at), at.lanes, ev.multiple_of(at.col)
    half = _place(ev, at.col, ("half",), lambda b, col: b.divided(col, 2))
    if lanes == 1 or at.axis != COLUMNS:
        sides = [ev.eval(side, at.moved(at.row, half)) for side in op.operands]
        turn = ev.nest.at(at.col)
        is_first = turn.compare("eq", turn.remainder(at.col, 2), 0)
        return build.insert(arith.SelectOp(is_first, *sides))
    if multiple is None or multiple % 2:
        return _one_by_one(ev, op.result, at)
    ev.is_aligned = True
    if isinstance(half, SSAValue):
        ev.multiples[half] = multiple // 2
    there = At(at.row, half, COLUMNS, lanes // 2)
    sides = [_columns(ev, side, there, 0, (2, 1)) for side in op.operands]
    if lanes == 2:
        return build.insert(_from_elements(sides))
    order = [n // 2 + n % 2 * lanes // 2 for n in range(lanes)]
    return build.insert(vector.ShuffleOp(*sides, mask=order))


def _rows_in_turn(ev: Evaluator, op: vector.ShuffleOp, at: At) -> SSAValue:
    """Select rows from two sides in turn, by the parity of the row."""
    if at.axis != COLUMNS and at.lanes > 1:
        return _one_by_one(ev, op.result, at)
    half = _place(ev, at.row, ("half",), lambda b, row: b.divided(row, 2))
    sides = [ev.eval(v, At(half, at.col, at.axis, at.lanes)) for v in (op.v1, op.v2)]
    turn = ev.nest.at(at.row)
    is_first = turn.compare("eq", turn.remainder(at.row, 2), 0)
    return ev.place(at).insert(arith.SelectOp(is_first, *sides))


def in_turn(rows: int) -> tuple[int, ...]:
    """Return the mask of a shuffle that takes rows of both sides in turn."""
    return tuple(n // 2 + n % 2 * rows for n in range(2 * rows))


def _slice(ev: Evaluator, op: vector.ExtractStridedSliceOp, at: At) -> SSAValue:
    """Load all elements between the first and the last, and take every n-th."""
    (top, left), (down, step) = (0, *op.offsets)[-2:], (1, *op.strides)[-2:]
    lanes, build = at.lanes, ev.place(at)

    def place(index: Index, step: int, first: int) -> Index:
        key = "part", step, first
        return _place(ev, index, key, lambda b, n: b.plus(b.times(n, step), first))

    row = place(at.row, down, top)
    if lanes == 1 or (at.axis != COLUMNS and down == 1):
        return ev.eval(op.source, at.moved(row, place(at.col, step, left)))
    if at.axis != COLUMNS:
        return _one_by_one(ev, op.result, at)
    base, parts = left - left % step, list[SSAValue]()
    last = base + (shape_of(op.source)[1] - 1 - base) // lanes * lanes
    multiple = ev.multiple_of(at.col)
    for first in range(base, base + step * lanes, lanes):
        col = place(at.col, step, first)
        if shape_of(op.result)[1] % lanes and first > base:
            # Nothing may be read past the end, not even to be ignored.
            col = _place(ev, col, ("last", last), lambda b, n: b.minimum(n, last))
        elif multiple is not None and isinstance(col, SSAValue):
            ev.multiples[col] = gcd(multiple * step, first)
        there = At(row, col, COLUMNS, lanes)
        parts.append(_columns(ev, op.source, there, base, (1, step)))
    return each_nth(build, parts, lanes, left % step)


def _place(
    ev: Evaluator,
    index: Index,
    key: tuple[object, ...],
    make: Callable[[Builder, Index], Index],
) -> Index:
    """Compute a row or column from one of the nest, once for each key."""
    known = (*key, id(index))
    if known in ev.memo:
        return ev.memo[known]
    found = ev.nest.computed(make, index)
    if isinstance(found, SSAValue):
        ev.memo[known] = found
    return found


def _columns(
    ev: Evaluator, value: SSAValue, at: At, base: int, ratio: tuple[int, int]
) -> SSAValue:
    """Evaluate elements of a source, whose column ``base`` is the result's column 0.

    ``ratio``: columns of the result to columns of the source. Limits and starts of
    loads are recorded in columns of the result.
    """
    limits, starts = ev.limits, ev.starts
    ev.limits, ev.starts = {}, {}
    found = ev.eval(value, at)
    row, first, (times, by) = ev.nest.at(at.row), ev.nest.places[0], ratio
    for key, limit in ev.limits.items():
        room = row.times(row.minus(limit, base), times)
        if by > 1:  # divided as a number without sign
            room = row.divided(row.maximum(room, 0), by)
        limits["moved", base, ratio, key] = room
    for key, start in ev.starts.items():
        before = first.times(first.maximum(first.minus(start, base), 0), times)
        starts["moved", base, ratio, key] = first.ceil_divided(before, by)
    ev.limits, ev.starts = limits, starts
    return found


def _one_by_one(ev: Evaluator, value: SSAValue, at: At) -> SSAValue:
    """Load lanes one by one if sources are apart; past the end, repeat the last."""
    dim = 1 if at.axis == COLUMNS else 0
    start, most, found = (
        (at.row, at.col)[dim],
        shape_of(value)[dim] - 1,
        list[SSAValue](),
    )

    def lane(n: int) -> Index:
        key = "lane", n, most
        return _place(ev, start, key, lambda b, i: b.minimum(b.plus(i, n), most))

    for each in map(lane, range(at.lanes)):
        row, col = (at.row, each) if dim else (each, at.col)
        found.append(ev.eval(value, At(row, col, COLUMNS, 1)))
    return ev.place(at).insert(_from_elements(found))


def _from_elements(elements: Sequence[SSAValue]) -> vector.FromElementsOp:
    type_ = row_type(element_type(elements[0].type), len(elements))
    return vector.FromElementsOp(elements, type_)


RULES[vector.InterleaveOp] = _interleave
RULES[vector.ShuffleOp] = _rows_in_turn
RULES[vector.ExtractStridedSliceOp] = _slice
