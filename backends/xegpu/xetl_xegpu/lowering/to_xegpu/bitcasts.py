"""`vector.bitcast`: the same bits as elements of another width, row by row.

Wide elements are shifted apart, narrow ones shifted together; the first one is lowest.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu.lowering.fragments import matrix_shape
from xetl_xegpu.lowering.to_xegpu.moves import Origin, rearranged
from xetl_xegpu.lowering.to_xegpu.values import Pieces, vector_of
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def _bitcast(c: Converter, op: vector.BitcastOp) -> None:
    source, type_ = c.pieces(op.source), vector_type(op.result)
    old, new = bit_width(source.element), bit_width(type_.element_type)
    bits = _as_type(c, source, IntegerType(old))
    rows, columns = matrix_shape(type_.get_shape())
    if old > new:
        bits = _apart(c, bits, rows, columns, new)
    elif old < new:
        bits = _together(c, bits, rows, columns, new)
    c.give_parts(op.result, _as_type(c, bits, type_.element_type).parts)


def _as_type(c: Converter, value: Pieces, element: Attribute) -> Pieces:
    """The same bits as elements of another type of the same width."""
    if value.element == element:
        return value
    parts = [
        c.emit.value(arith.BitcastOp(part, _like(part, element)))
        for part in value.parts
    ]
    return Pieces(value.shape, element, parts)


def _like(part: SSAValue, element: Attribute) -> Attribute:
    return vector_of(element, *vector_type(part).get_shape())


def _apart(c: Converter, value: Pieces, rows: int, columns: int, width: int) -> Pieces:
    """Each element as several, by shifts of it."""
    element, count = IntegerType(width), bit_width(value.element) // width
    narrow: list[Pieces] = []
    for place in range(count):
        parts: list[SSAValue] = []
        for part in value.parts:
            by = c.emit.constant(place * width, part.type)
            shifted = c.emit.value(arith.ShruiOp(part, by)) if place else part
            cut = arith.TrunciOp(shifted, _like(part, element))
            parts.append(c.emit.value(cut))
        narrow.append(Pieces(value.shape, element, parts))

    def where(row: int, column: int) -> Origin:
        return Origin(narrow[column % count], row, column // count)

    parts = rearranged(c, rows, columns, element, where)
    return Pieces((rows, columns), element, parts)


def _together(
    c: Converter, value: Pieces, rows: int, columns: int, width: int
) -> Pieces:
    """Several elements as one, each shifted to its place."""
    old = bit_width(value.element)
    element, count = IntegerType(width), width // old
    found: list[SSAValue] = []
    for place in range(count):

        def where(row: int, column: int, place: int = place) -> Origin:
            return Origin(value, row, column * count + place)

        parts = rearranged(c, rows, columns, value.element, where)
        for number, part in enumerate(parts):
            wide = c.emit.value(arith.ExtuiOp(part, _like(part, element)))
            if place == 0:
                found.append(wide)
                continue
            by = c.emit.constant(place * old, wide.type)
            shifted = c.emit.value(arith.ShliOp(wide, by))
            found[number] = c.emit.value(arith.OriOp(found[number], shifted))
    return Pieces((rows, columns), element, found)


RULES: dict[type[Operation], Rule] = {vector.BitcastOp: _bitcast}
