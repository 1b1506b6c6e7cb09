"""What one lane holds of a value: the type says it, nothing else does.

The table of docs/design/0005-xegpu.md, "Fragments".  A lane holds *pieces*: scalars, or
vectors of 2, 4, 8 elements, as SPIR-V wants them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatTF32Type,
    IndexType,
    IntegerType,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Attribute

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream.elementwise import bit_width

LANES = 16
"""Of a subgroup."""
PIECE = 8
"""Elements of a lane's vector: what one block message or one dpas takes."""


class Spread(Enum):
    """How the elements of a value lie on the lanes."""

    SAME = auto()
    """Every lane holds all."""
    COLUMNS = auto()
    """Lane l holds column l, row after row."""
    GROUPS = auto()
    """Lane l holds f columns, from f*l on, of a row as one integer (A of bytes)."""
    HALVES = auto()
    """Lane l holds column l % 8 of the rows l / 8 + 2i: tf32, A of a dpas."""
    PACKED = auto()
    """Lane l holds column l; rows that are neighbours share 32 bits: B of a dpas."""


@dataclass(frozen=True)
class Held:
    """What a lane holds of a value.

    Attributes:
        spread: which elements.
        element: the type of an element of a piece.
        lengths: of the pieces.
    """

    spread: Spread
    element: Attribute
    lengths: tuple[int, ...]

    @property
    def types(self) -> tuple[Attribute, ...]:
        """The types of the pieces."""
        return tuple(lane_vector(self.element, length) for length in self.lengths)


def is_number(type_: Attribute) -> bool:
    """Whether values of the type are numbers: no memory, no descriptors."""
    return isinstance(type_, IntegerType | IndexType | AnyFloat)


def lane_element(type_: Attribute) -> Attribute:
    """The type a lane keeps an element in: all but tf32 as they are."""
    return f32 if isinstance(type_, FloatTF32Type) else type_


def bits_of(element: Attribute) -> int:
    """Bits of an element, in a lane and in memory."""
    return bit_width(lane_element(element))


def lane_vector(element: Attribute, length: int) -> Attribute:
    """A piece: a vector, or the element if there is one."""
    return element if length == 1 else VectorType(element, [length])


def pieces(rows: int) -> tuple[int, ...]:
    """``rows`` elements cut into pieces of at most 8: greedily 8, 4, 2, 1."""
    found: list[int] = []
    while rows:
        length = min(PIECE, 1 << (rows.bit_length() - 1))
        found.append(length)
        rows -= length
    return tuple(found)


def held(type_: Attribute) -> Held | None:
    """What a lane holds of a value of this type; None: nobody knows."""
    if not is_vector(type_):
        return (
            Held(Spread.SAME, lane_element(type_), (1,)) if is_number(type_) else None
        )
    element, shape = lane_element(type_.element_type), type_.get_shape()
    match shape:
        case (length,):
            if length == LANES:
                return Held(Spread.COLUMNS, element, (1,))
            return Held(Spread.SAME, element, pieces(length))
        case (rows, 1):
            return Held(Spread.SAME, element, pieces(rows))
        case (rows, 16):
            return Held(Spread.COLUMNS, element, pieces(rows))
        case (rows, 8) if element == f32:
            return Held(Spread.HALVES, f32, pieces(max(1, rows // 2)))
        case _:
            return _in_groups(type_.element_type, shape)


def _in_groups(element: Attribute, shape: tuple[int, ...]) -> Held | None:
    bits = bits_of(element)
    match shape:
        case (rows, 32 | 64 as columns) if columns // LANES * bits <= 32:
            item = IntegerType(columns // LANES * bits)
            return Held(Spread.GROUPS, item, pieces(rows))
        case (rows, 16, factor) if factor * bits == 32:
            return Held(Spread.PACKED, i32, pieces(rows))
        case (count, rows, 16, factor) if factor * bits == 32:
            return Held(Spread.PACKED, i32, pieces(rows) * count)
        case (count, rows, 16):
            return Held(Spread.COLUMNS, lane_element(element), pieces(rows) * count)
        case _:
            return None
