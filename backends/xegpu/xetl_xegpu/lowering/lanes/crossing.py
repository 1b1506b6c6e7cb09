"""What one lane has for others: shuffles, and selects by the number of the lane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, i16, i32, i64
from xdsl.ir import SSAValue

from xetl.dialects.base import element_type
from xetl.dialects.upstream import arith
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu import simt
from xetl_xegpu.lowering.lanes.held import LANES
from xetl_xegpu.lowering.lanes.memory import as_i32
from xetl_xegpu.lowering.lanes.state import Lanes
from xetl_xegpu.lowering.lanes.vectors import (
    collected,
    elements_of,
    filled,
    interleaved,
    length_of,
    recast,
)

_HALF = LANES // 2


def _in_words(lanes: Lanes, piece: SSAValue) -> SSAValue:
    """Short elements, several in each i32: so fewer things move."""
    bits = bit_width(element_type(piece.type))
    whole = bits in (8, 16) and length_of(piece) * bits >= 32
    return recast(lanes, piece, i32) if whole else piece


def shuffled(lanes: Lanes, piece: SSAValue, lane: SSAValue) -> SSAValue:
    """A piece as the lane of number ``lane`` (i32) has it."""
    moved = lanes.emit(simt.ShuffleOp(_in_words(lanes, piece), lane))
    return recast(lanes, moved, element_type(piece.type))


def lane_of(lanes: Lanes, piece: SSAValue, lane: int | SSAValue) -> SSAValue:
    """What one lane has, for all of them."""
    if isinstance(lane, int):
        number = lanes.constant(lane, i32)
    else:
        number = as_i32(lanes, lanes.one(lane))
    return shuffled(lanes, piece, number)


def column(lanes: Lanes, piece: SSAValue, number: int) -> SSAValue:
    """A column of a fragment, in every lane."""
    return shuffled(lanes, piece, lanes.constant(number, i32))


def chosen(
    lanes: Lanes, condition: SSAValue, left: SSAValue, right: SSAValue
) -> SSAValue:
    """``left`` in lanes of which the condition (i1) holds."""
    element = element_type(left.type)
    left, right = _in_words(lanes, left), _in_words(lanes, right)
    wide = filled(lanes, condition, length_of(left))
    return recast(lanes, lanes.emit(arith.SelectOp(wide, left, right)), element)


def lanes_in_turn(lanes: Lanes, elements: Sequence[SSAValue]) -> SSAValue:
    """Lane l takes the l-th of 16 elements, which every lane has."""
    left = list(elements)
    bit = 1
    while len(left) > 1:
        is_odd = lanes.is_lane_bit(bit)
        left = [chosen(lanes, is_odd, b, a) for a, b in zip(left[::2], left[1::2])]
        bit *= 2
    return left[0]


def _looked_up(lanes: Lanes, numbers: Sequence[int], bits: int) -> SSAValue:
    """The l-th of 16 small numbers, i32: they stand side by side in one constant."""
    table = sum(number << bits * at for at, number in enumerate(numbers))
    word = IntegerType(bits * LANES)
    shift = lanes.emit(arith.MuliOp(lanes.lane, lanes.constant(bits, i32)))
    if word == i64:
        shift = lanes.emit(arith.ExtuiOp(shift, i64))
    else:
        word = i32
    signed = table - (1 << 64) if table >= 1 << 63 else table
    down = lanes.emit(arith.ShruiOp(lanes.constant(signed, word), shift))
    if word == i64:
        down = lanes.emit(arith.TrunciOp(down, i32))
    return lanes.emit(arith.AndiOp(down, lanes.constant((1 << bits) - 1, i32)))


def spread_over_lanes(
    lanes: Lanes, left: SSAValue, right: SSAValue, order: Sequence[int]
) -> SSAValue:
    """Lane l takes element ``order[l]`` of two values of 16, one behind the other."""
    where = _looked_up(lanes, [number % LANES for number in order], 4)
    is_right = [number >= LANES for number in order]
    found = {
        side: shuffled(lanes, value, where)
        for side, value in ((False, left), (True, right))
        if side in is_right
    }
    if len(found) == 1:
        return next(iter(found.values()))
    bit = _looked_up(lanes, [int(side) for side in is_right], 1)
    from_right = lanes.emit(arith.CmpiOp("ne", bit, lanes.constant(0, i32)))
    return chosen(lanes, from_right, found[True], found[False])


def transposed(lanes: Lanes, pieces: Sequence[SSAValue]) -> list[SSAValue]:
    """A 16 x 16 value with rows and columns swapped.

    Four rounds: in that of bit b the rows r and r + b meet, and the lanes l and l ^ b
    exchange what lies across the diagonal.
    """
    rows = elements_of(lanes, pieces)
    bit = _HALF
    while bit:
        is_set = lanes.is_lane_bit(bit)
        partner = lanes.emit(arith.XoriOp(lanes.lane, lanes.constant(bit, i32)))
        low = [row for row in range(LANES) if not row & bit]
        above = collected(lanes, [rows[row] for row in low])
        below = collected(lanes, [rows[row + bit] for row in low])
        # Of the two a lane keeps one and gives the other one away.
        given = chosen(lanes, is_set, above, below)
        taken = shuffled(lanes, given, partner)
        new_upper = chosen(lanes, is_set, taken, above)
        new_lower = chosen(lanes, is_set, below, taken)
        for row, upper, lower in zip(
            low, elements_of(lanes, [new_upper]), elements_of(lanes, [new_lower])
        ):
            rows[row], rows[row + bit] = upper, lower
        bit //= 2
    return [collected(lanes, rows[:_HALF]), collected(lanes, rows[_HALF:])]


def halved(lanes: Lanes, rows: Sequence[SSAValue], first: int) -> SSAValue:
    """A of tf32: lane l takes of row l/8 + 2i the column ``first`` + l % 8."""
    within = lanes.emit(arith.AndiOp(lanes.lane, lanes.constant(_HALF - 1, i32)))
    where = lanes.emit(arith.AddiOp(within, lanes.constant(first, i32)))
    if len(rows) == 1:
        return shuffled(lanes, rows[0], where)
    even, odd = (collected(lanes, rows[start::2]) for start in (0, 1))
    is_upper = lanes.is_lane_bit(_HALF)
    return chosen(
        lanes, is_upper, shuffled(lanes, odd, where), shuffled(lanes, even, where)
    )


def grouped(lanes: Lanes, old: SSAValue, new: SSAValue, first: int) -> SSAValue:
    """A of bytes: lane l takes columns 2l and 2l + 1 of ``new``, if it has them.

    ``new`` is a fragment of 16 columns that stands at column ``first``, 0 or 16; other
    lanes keep what they have.
    """
    double = lanes.emit(arith.ShliOp(lanes.lane, lanes.constant(1, i32)))
    after = lanes.emit(arith.AddiOp(double, lanes.constant(1, i32)))
    low, high = shuffled(lanes, new, double), shuffled(lanes, new, after)
    pair = recast(lanes, interleaved(lanes, low, high), i16)
    is_upper = lanes.is_lane_bit(_HALF)
    if first:
        return chosen(lanes, is_upper, pair, old)
    return chosen(lanes, is_upper, old, pair)
