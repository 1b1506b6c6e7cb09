"""Functions that split and join the pieces of a lane, without shuffles across lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu import simt

from .state import Lanes


def length_of(piece: SSAValue) -> int:
    """How many elements a piece has."""
    return shape_of(piece.type)[0] if shape_of(piece.type) else 1


def element_at(lanes: Lanes, piece: SSAValue, index: int) -> SSAValue:
    """Return one element of a piece."""
    if not isinstance(piece.type, VectorType):
        return piece
    if isinstance(piece.owner, vector.FromElementsOp):
        return piece.owner.elements[index]
    return lanes.insert(vector.ExtractOp(piece, [index]))


def elements_of(lanes: Lanes, parts: Sequence[SSAValue]) -> list[SSAValue]:
    """Return all elements of some pieces as scalars."""
    return [element_at(lanes, p, i) for p in parts for i in range(length_of(p))]


def collected(lanes: Lanes, elements: Sequence[SSAValue]) -> SSAValue:
    """Return a piece of these elements."""
    if len(elements) == 1:
        return elements[0]
    type_ = simt.lanes_type(elements[0].type, len(elements))
    return lanes.insert(vector.FromElementsOp(elements, type_))


def filled(lanes: Lanes, element: SSAValue, length: int) -> SSAValue:
    """Broadcast an element to a piece."""
    if length == 1:
        return element
    type_ = simt.lanes_type(element.type, length)
    return lanes.insert(vector.BroadcastOp(element, type_))


def part(lanes: Lanes, piece: SSAValue, start: int, length: int) -> SSAValue:
    """Return ``length`` elements of a piece from ``start`` on."""
    if length == length_of(piece):
        return piece
    if length == 1:
        return element_at(lanes, piece, start)
    order = list(range(start, start + length))
    return lanes.insert(vector.ShuffleOp(piece, piece, order))


def joined(lanes: Lanes, parts: Sequence[SSAValue]) -> SSAValue:
    """Concatenate pieces of one length."""
    left = list(parts)
    if length_of(left[0]) == 1:
        return collected(lanes, left)
    while len(left) > 1:
        order = list(range(2 * length_of(left[0])))
        left = [
            lanes.insert(vector.ShuffleOp(a, b, order))
            for a, b in zip(left[::2], left[1::2])
        ]
    return left[0]


def interleaved(lanes: Lanes, left: SSAValue, right: SSAValue) -> SSAValue:
    """Interleave the elements of two pieces."""
    length = length_of(left)
    if length == 1:
        return collected(lanes, [left, right])
    order = [index + side for index in range(length) for side in (0, length)]
    return lanes.insert(vector.ShuffleOp(left, right, order))


def every_other(lanes: Lanes, piece: SSAValue, first: int) -> SSAValue:
    """Return every second element of a piece, from ``first`` on."""
    order = list(range(first, length_of(piece), 2))
    if len(order) == 1:
        return element_at(lanes, piece, first)
    return lanes.insert(vector.ShuffleOp(piece, piece, order))


def recut(
    lanes: Lanes, parts: Sequence[SSAValue], lengths: Sequence[int], start: int = 0
) -> list[SSAValue]:
    """Return the elements from ``start`` on in pieces of other lengths."""
    if [length_of(piece) for piece in parts] == list(lengths):
        return list(parts)
    found: list[SSAValue] = []
    for length in lengths:
        found.append(cut(lanes, parts, start, length))
        start += length
    return found


def cut(lanes: Lanes, parts: Sequence[SSAValue], start: int, length: int) -> SSAValue:
    """Return a piece of ``length`` elements from ``start`` on, across all pieces."""
    left = list(parts)
    while start >= length_of(left[0]):
        start -= length_of(left.pop(0))
    if start + length <= length_of(left[0]):
        return part(lanes, left[0], start, length)
    return collected(lanes, elements_of(lanes, left)[start : start + length])


def spliced(
    lanes: Lanes, parts: Sequence[SSAValue], start: int, new: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return the pieces with the elements from ``start`` on replaced by ``new``."""
    count = sum(map(length_of, new))
    found: list[SSAValue] = []
    for piece in parts:
        length = length_of(piece)
        if start <= 0 and length <= start + count:
            found.append(cut(lanes, new, -start, length))
        else:
            some = elements_of(lanes, new) if -count < start < length else []
            for at, element in enumerate(some, start):
                if 0 <= at < length:
                    piece = lanes.insert(vector.InsertOp(element, piece, [at]))
            found.append(piece)
        start -= length
    return found


def recast(lanes: Lanes, piece: SSAValue, element: Attribute) -> SSAValue:
    """Bitcast a piece to another element type; the number of elements may change."""
    before = piece.owner
    if isinstance(before, arith.BitcastOp | vector.BitcastOp):
        # Fold two bitcasts that cancel out, as of integers that were just loaded.
        (source,) = before.operands
        if element_type(source.type) == element:
            return source
    have = element_type(piece.type)
    if have == element:
        return piece
    length, rest = divmod(bit_width(have) * length_of(piece), bit_width(element))
    assert not rest
    type_ = simt.lanes_type(element, length)
    if length == length_of(piece):
        return lanes.insert(arith.BitcastOp(piece, type_))
    if length_of(piece) > 1 and length > 1:
        return lanes.insert(vector.BitcastOp(piece, type_))
    if length == 1:
        return _glued(lanes, piece, element)
    return collected(lanes, _split(lanes, piece, element, length))


def _glued(lanes: Lanes, piece: SSAValue, element: Attribute) -> SSAValue:
    """Bitcast a piece to a single element: SPIR-V has no vectors of one element."""
    bits = bit_width(element_type(piece.type))
    whole = IntegerType(bits * length_of(piece))
    found = lanes.constant(0, whole)
    for index, each in enumerate(elements_of(lanes, [piece])):
        number = recast(lanes, each, IntegerType(bits))
        wide = lanes.insert(arith.ExtuiOp(number, whole))
        shift = lanes.constant(bits * index, whole)
        placed = lanes.insert(arith.ShliOp(wide, shift))
        found = lanes.insert(arith.OriOp(found, placed))
    return recast(lanes, found, element)


def _split(
    lanes: Lanes, scalar: SSAValue, element: Attribute, count: int
) -> list[SSAValue]:
    """Bitcast one element to several."""
    bits = bit_width(element)
    whole = IntegerType(bits * count)
    word = recast(lanes, scalar, whole)
    found: list[SSAValue] = []
    for index in range(count):
        shift = lanes.constant(bits * index, whole)
        down = lanes.insert(arith.ShruiOp(word, shift))
        low = lanes.insert(arith.TrunciOp(down, IntegerType(bits)))
        found.append(recast(lanes, low, element))
    return found
