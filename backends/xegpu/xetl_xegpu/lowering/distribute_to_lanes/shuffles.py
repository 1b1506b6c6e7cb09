"""Extracts, inserts, slices and transposes; lanes exchange elements by shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import IndexType, i16, i32, i64
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, ints_of, shape_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.ir.builder import Builder
from xetl_xegpu import simt
from xetl_xegpu.simt.block_ops import PIECE

from .memrefs import as_i32
from .pieces import (
    collected,
    cut,
    elements_of,
    every_other,
    filled,
    interleaved,
    length_of,
    recast,
    recut,
    spliced,
)
from .state import LANES, Distribution, Halves, Lanes

_HALF = LANES // 2


def _in_words(lanes: Lanes, piece: SSAValue) -> SSAValue:
    """Bitcast elements of 8 or 16 bits to words of 32 bits: fewer values are moved."""
    bits = bit_width(element_type(piece.type))
    whole = bits in (8, 16) and length_of(piece) * bits >= 32
    return recast(lanes, piece, i32) if whole else piece


def shuffled(lanes: Lanes, piece: SSAValue, lane: SSAValue) -> SSAValue:
    """Return a piece of the lane with the id ``lane`` (i32)."""
    moved = lanes.insert(simt.ShuffleOp(_in_words(lanes, piece), lane))
    return recast(lanes, moved, element_type(piece.type))


def lane_of(lanes: Lanes, piece: SSAValue, lane: int | SSAValue) -> SSAValue:
    """Broadcast the piece of one lane to all lanes."""
    if isinstance(lane, int):
        number = lanes.constant(lane, i32)
    else:
        number = as_i32(lanes, lanes.one(lane))
    return shuffled(lanes, piece, number)


def chosen(
    lanes: Lanes, condition: SSAValue, left: SSAValue, right: SSAValue
) -> SSAValue:
    """Return ``left`` in lanes where the condition (i1) is true, else ``right``."""
    element = element_type(left.type)
    left, right = _in_words(lanes, left), _in_words(lanes, right)
    wide = filled(lanes, condition, length_of(left))
    return recast(lanes, lanes.insert(arith.SelectOp(wide, left, right)), element)


def source_of_lanes(lanes: Lanes, pieces: Sequence[SSAValue]) -> SSAValue | None:
    """Return what has the l-th element of some pieces in lane l, if it exists already.

    It exists if shuffles have made the elements of it. Lane l of the sums of eight rows
    has those of row l modulo 8.
    """
    elements = [each for piece in pieces for each in _parts_of(piece)]
    found: set[SSAValue] = set()
    for number, element in enumerate(elements):
        moved = element.owner
        if not isinstance(moved, simt.ShuffleOp) or length_of(element) > 1:
            return None
        origin = moved.value.owner
        count = PIECE if isinstance(origin, simt.ReduceRowsOp) else LANES
        if moved.lane != lanes.constant(number % count, i32):
            return None
        found.add(moved.value)
    return found.pop() if len(found) == 1 else None


def _parts_of(piece: SSAValue) -> Sequence[SSAValue]:
    owner = piece.owner
    return owner.elements if isinstance(owner, vector.FromElementsOp) else [piece]


def lanes_in_turn(lanes: Lanes, elements: Sequence[SSAValue]) -> SSAValue:
    """Return in lane l the l-th of 16 elements, which every lane holds."""
    found = source_of_lanes(lanes, elements)
    if found is not None:
        return found
    left = list(elements)
    bit = 1
    while len(left) > 1:
        is_odd = lanes.is_lane_bit(bit)
        left = [chosen(lanes, is_odd, b, a) for a, b in zip(left[::2], left[1::2])]
        bit *= 2
    return left[0]


def _looked_up(lanes: Lanes, numbers: Sequence[int], bits: int) -> SSAValue:
    """Return in lane l the l-th of 16 small numbers, as i32, from a constant table.

    Args:
        bits: the bits of each number; all 16 are packed into one constant.
    """
    table = sum(number << bits * at for at, number in enumerate(numbers))
    word = i64 if bits * LANES == 64 else i32
    signed = table - (1 << 64) if table >= 1 << 63 else table

    def look_up(head: Builder) -> SSAValue:
        shift = head.insert(arith.MuliOp(lanes.lane, head.constant(bits, i32)))
        if word == i64:
            shift = head.insert(arith.ExtuiOp(shift, i64))
        down = head.insert(arith.ShruiOp(head.constant(signed, word), shift))
        if word == i64:
            down = head.insert(arith.TrunciOp(down, i32))
        mask = head.constant((1 << bits) - 1, i32)
        return head.insert(arith.AndiOp(down, mask))

    return lanes.of_lane((table, bits), look_up)


def spread_over_lanes(
    lanes: Lanes, left: SSAValue, right: SSAValue, order: Sequence[int]
) -> SSAValue:
    """Return in lane l the element ``order[l]`` of two concatenated values of 16."""
    where = _looked_up(lanes, [number % LANES for number in order], 4)
    is_right = [number >= LANES for number in order]
    found = {  # a constant is the same in all lanes and needs no shuffle
        side: value
        if isinstance(value.owner, arith.ConstantOp)
        else shuffled(lanes, value, where)
        for side, value in ((False, left), (True, right))
        if side in is_right
    }
    if len(found) == 1:
        return next(iter(found.values()))
    bit = _looked_up(lanes, [int(side) for side in is_right], 1)
    from_right = lanes.insert(arith.CmpiOp("ne", bit, lanes.constant(0, i32)))
    return chosen(lanes, from_right, found[True], found[False])


def transposed(lanes: Lanes, pieces: Sequence[SSAValue]) -> list[SSAValue]:
    """Transpose a 16x16 value.

    There are four rounds. In the round of bit b, the rows r and r + b are paired, and
    the lanes l and l ^ b exchange the elements across the diagonal.
    """
    rows = elements_of(lanes, pieces)
    bit = _HALF
    while bit:
        is_set = lanes.is_lane_bit(bit)
        partner = lanes.insert(arith.XoriOp(lanes.lane, lanes.constant(bit, i32)))
        low = [row for row in range(LANES) if not row & bit]
        above = collected(lanes, [rows[row] for row in low])
        below = collected(lanes, [rows[row + bit] for row in low])
        # Each lane keeps one of the two elements and sends the other one.
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
    """Return A for tf32: lane l holds column ``first`` + l % 8 of the rows l/8 + 2i."""
    within = lanes.insert(arith.AndiOp(lanes.lane, lanes.constant(_HALF - 1, i32)))
    where = lanes.insert(arith.AddiOp(within, lanes.constant(first, i32)))
    if len(rows) == 1:
        return shuffled(lanes, rows[0], where)
    even, odd = (collected(lanes, rows[start::2]) for start in (0, 1))
    is_upper = lanes.is_lane_bit(_HALF)
    return chosen(
        lanes, is_upper, shuffled(lanes, odd, where), shuffled(lanes, even, where)
    )


def grouped(lanes: Lanes, old: SSAValue, new: SSAValue, first: int) -> SSAValue:
    """Return A of bytes: lane l takes columns 2l and 2l + 1, if ``new`` has them.

    ``new`` is a fragment of 16 columns from column ``first`` on, 0 or 16. The other
    lanes keep their elements of ``old``.
    """
    double = lanes.insert(arith.ShliOp(lanes.lane, lanes.constant(1, i32)))
    after = lanes.insert(arith.AddiOp(double, lanes.constant(1, i32)))
    low, high = shuffled(lanes, new, double), shuffled(lanes, new, after)
    pair = _beside(lanes, low, high)
    is_upper = lanes.is_lane_bit(_HALF)
    if first:
        return chosen(lanes, is_upper, pair, old)
    return chosen(lanes, is_upper, old, pair)


def _beside(lanes: Lanes, low: SSAValue, high: SSAValue) -> SSAValue:
    """Return bytes of two pieces as the halves of i16, in pairs if there are pairs.

    [measured] ocloc 26.27, pvc, a GEMM of i8 with A transposed: 726 instructions a
    step, byte by byte 1,170.
    """
    if length_of(low) % 4:
        return recast(lanes, interleaved(lanes, low, high), i16)
    left, right = recast(lanes, low, i16), recast(lanes, high, i16)
    eight, lower, upper = (lanes.constant(n, left.type) for n in (8, 0xFF, -0x100))

    def joined(one: Operation, other: Operation) -> SSAValue:
        return lanes.insert(arith.OriOp(lanes.insert(one), lanes.insert(other)))

    even = joined(arith.AndiOp(left, lower), arith.ShliOp(right, eight))
    odd = joined(arith.ShruiOp(left, eight), arith.AndiOp(right, upper))
    return interleaved(lanes, even, odd)


_Pieces = Sequence[SSAValue] | None
"""The pieces of the result of an operation. None: no lane can hold its part."""

_BY_ROWS = (Distribution.SAME, Distribution.COLUMNS)
"""The distributions in which each element of a piece is a row."""


def extract(lanes: Lanes, op: vector.ExtractOp) -> _Pieces:
    """Extract a row, a block, or one element, which is broadcast to all lanes."""
    shape, position = shape_of(op.source.type), list(op.position)
    pieces, layout = lanes.pieces(op.source), lanes.layout(op.source)
    blocked = len(shape) == (4 if layout.spread is Distribution.PACKED else 3)
    if blocked and isinstance(position[0], int):
        each = len(pieces) // shape[0]
        pieces = pieces[position[0] * each :][:each]
        position, shape = position[1:], shape[1:]
    if position and layout.spread not in _BY_ROWS:
        return None
    if len(shape) == 2 and position and isinstance(position[0], int):
        pieces = (cut(lanes, pieces, position[0], 1),)
        position, shape = position[1:], shape[1:]
    if position == [0] and shape == (1,):
        position = []
    if not position:
        return pieces
    if len(position) > 1 or len(shape) > 1:
        return None
    if shape_of(op.source.type)[-1] == LANES:
        return [lane_of(lanes, pieces[0], position[0])]
    at = position[0]
    return [cut(lanes, pieces, at, 1)] if isinstance(at, int) else None


def insert(lanes: Lanes, op: vector.InsertOp) -> _Pieces:
    """Replace a row of the destination."""
    row, *rest = op.position
    dest = lanes.layout(op.dest)
    is_row = shape_of(op.dest.type)[1:] == shape_of(op.value.type)
    is_element = rest == [0] and dest.spread is Distribution.SAME
    if not isinstance(row, int) or not (is_row or is_element):
        return None
    if dest.spread not in _BY_ROWS:
        return None
    return spliced(lanes, lanes.pieces(op.dest), row, lanes.pieces(op.value))


def extract_slice(lanes: Lanes, op: vector.ExtractStridedSliceOp) -> _Pieces:
    """Extract whole rows, one column (broadcast), or half of the columns for tf32."""
    row, at, *_ = (*op.offsets, 0, 0)
    halves = lanes.halves.get(op.source)
    if halves is not None:
        return _half_loaded(lanes, op, replace(halves, first=halves.first + row), at)
    source, result = lanes.layout(op.source), lanes.layout(op.result)
    pieces = lanes.pieces(op.source)
    rows = shape_of(op.result.type)[0]
    if len(shape_of(op.source.type)) > 3:
        return None
    wide, narrow = shape_of(op.source.type)[1:], shape_of(op.result.type)[1:]
    if wide == narrow and (source.spread is Distribution.PACKED or len(wide) == 1):
        if source.spread is Distribution.HALVES:
            row //= 2  # two rows of 8 are one element of each lane
        return recut(lanes, pieces, result.lengths, row)
    if source.spread is not Distribution.COLUMNS or len(wide) != 1:
        return None
    taken = recut(lanes, pieces, source.lengths)
    if narrow == (1,):
        kept = recut(lanes, taken, result.lengths, row)
        return [lane_of(lanes, piece, at) for piece in kept]
    if result.spread is not Distribution.HALVES:
        return None
    return [halved(lanes, elements_of(lanes, taken)[row : row + rows], at)]


def is_read_in_halves(value: SSAValue) -> bool:
    """Whether all users extract whole fragments of A for tf32."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, vector.ExtractStridedSliceOp)
        and (
            shape_of(user.result.type) == (PIECE, _HALF)
            or is_read_in_halves(user.result)
        )
        for user in users
    )


def _half_loaded(
    lanes: Lanes, op: vector.ExtractStridedSliceOp, halves: Halves, at: int
) -> Sequence[SSAValue]:
    """Extract rows, or a half of 8 rows, of a matrix that was loaded in halves."""
    if shape_of(op.result.type) != (PIECE, _HALF):
        lanes.halves[op.result] = halves
        return ()
    # Two rows of 8 are one element of each lane.
    start = (halves.first + (halves.rows if at else 0)) // 2
    return [cut(lanes, halves.pieces, start, PIECE // 2)]


def insert_slice(lanes: Lanes, op: vector.InsertStridedSliceOp) -> _Pieces:
    """Insert whole rows, or half of the columns of A of bytes."""
    dest, source = lanes.layout(op.dest), lanes.layout(op.value)
    row, at = (*op.offsets, 0)[:2]
    old, new = lanes.pieces(op.dest), lanes.pieces(op.value)
    if shape_of(op.dest.type)[1:] == shape_of(op.value.type)[1:]:
        return spliced(lanes, old, row, new)
    spreads = (dest.spread, source.spread)
    is_half = spreads == (Distribution.GROUPS, Distribution.COLUMNS)
    if not is_half or [*map(length_of, old)] != [*map(length_of, new)]:
        return None
    return [grouped(lanes, o, n, at) for o, n in zip(old, new)]


def broadcast(lanes: Lanes, op: vector.BroadcastOp) -> _Pieces:
    """Lower a broadcast, without cost: rows repeat in a lane; lanes share a column."""
    source, result = lanes.layout(op.source), lanes.layout(op.result)
    if result.spread not in _BY_ROWS or source.spread not in _BY_ROWS:
        return None
    pieces = lanes.pieces(op.source)
    if source.lengths == (1,):
        return [filled(lanes, pieces[0], length) for length in result.lengths]
    return pieces if source.lengths == result.lengths else None


def shape_cast(lanes: Lanes, op: vector.ShapeCastOp | vector.TransposeOp) -> _Pieces:
    """Lower a shape cast; it costs nothing if every element stays in its lane."""
    source, result = lanes.layout(op.source), lanes.layout(op.result)
    pieces = lanes.pieces(op.source)
    shapes = (shape_of(op.source.type), shape_of(op.result.type))
    if source.spread is Distribution.COLUMNS and result.spread is Distribution.SAME:
        if source.lengths != (1,):
            return None
        everything = [lane_of(lanes, pieces[0], lane) for lane in range(LANES)]
        return recut(lanes, everything, result.lengths)
    if source.spread is Distribution.SAME and result.spread is Distribution.COLUMNS:
        if result.lengths != (1,):
            return None
        return [lanes_in_turn(lanes, elements_of(lanes, pieces))]
    if _stays_in_its_lane(*shapes) and source.element == result.element:
        return recut(lanes, pieces, result.lengths)
    return None


def _stays_in_its_lane(source: tuple[int, ...], result: tuple[int, ...]) -> bool:
    """Whether rows stay rows: sizes of 1 may change, rows or columns be grouped."""
    left, right = ([n for n in shape if n != 1] for shape in (source, result))
    if left == right or (
        left[-1:] == right[-1:] == [LANES] and prod(left) == prod(right)
    ):
        return True
    short, long = sorted((left, right), key=len)
    grouped_columns = len(long) == 3 and long[1] == LANES
    return grouped_columns and short == [long[0], long[1] * long[2]]


def from_elements(lanes: Lanes, op: vector.FromElementsOp) -> _Pieces:
    """Give lane l the l-th element, or every lane all elements."""
    layout = lanes.layout(op.result)
    elements = [lanes.one(element) for element in op.elements]
    if layout.spread is Distribution.COLUMNS and layout.lengths == (1,):
        return [lanes_in_turn(lanes, elements)]
    is_same = layout.spread is Distribution.SAME
    return recut(lanes, elements, layout.lengths) if is_same else None


def shuffle(lanes: Lanes, op: vector.ShuffleOp) -> _Pieces:
    """Select for each lane one element of two values of 16."""
    spread = {lanes.layout(value).spread for value in op.operands}
    if spread != {Distribution.COLUMNS} or shape_of(op.result.type) != (LANES,):
        return None
    left, right = (lanes.one(value) for value in op.operands)
    return [spread_over_lanes(lanes, left, right, ints_of(op.mask))]


def bitcast(lanes: Lanes, op: vector.BitcastOp) -> _Pieces:
    """Lower a bitcast whose bits all stay in their lanes."""
    source, result = lanes.layout(op.source), lanes.layout(op.result)
    is_same = Distribution.SAME in (source.spread, result.spread)
    if is_same or source.lengths != result.lengths:
        return None
    return [recast(lanes, p, result.element) for p in lanes.pieces(op.source)]


def step(lanes: Lanes, op: vector.StepOp) -> _Pieces:
    """Return the number of the lane; a short vector is in every lane as a whole."""
    layout = lanes.layout(op.result)
    if layout.spread is Distribution.COLUMNS:
        return [lanes.lane_index]
    numbers = [lanes.constant(i, IndexType()) for i in range(sum(layout.lengths))]
    return recut(lanes, numbers, layout.lengths)


def transpose(lanes: Lanes, op: vector.TransposeOp) -> _Pieces:
    """Transpose 16x16 across lanes; pairs of rows, one row or column within a lane."""
    shape, source = shape_of(op.source.type), lanes.layout(op.source).spread
    if op.dims == tuple(range(len(shape))):
        return lanes.pieces(op.source)
    if shape == (LANES, LANES) and source is Distribution.COLUMNS:
        return transposed(lanes, lanes.pieces(op.source))
    if op.dims == (0, 2, 1) and source is Distribution.PACKED:
        result = lanes.layout(op.result)
        items = [recast(lanes, p, result.element) for p in lanes.pieces(op.source)]
        readers = [use.operation for use in op.result.uses]
        is_cast = all(isinstance(each, vector.ShapeCastOp) for each in readers)
        if is_cast and bit_width(result.element) == 8:
            return items  # cut once, for the result of the cast
        return recut(lanes, items, result.lengths)
    if op.dims == (2, 0, 1) and source is Distribution.PACKED:
        result = lanes.layout(op.result)
        items = [recast(lanes, p, i16) for p in lanes.pieces(op.source)]
        parts = [every_other(lanes, each, first) for first in (0, 1) for each in items]
        return [recast(lanes, p, result.element) for p in parts]
    return shape_cast(lanes, op) if len(shape) == 2 and 1 in shape else None
