"""The element types that shared memory takes, and the way there and back.

Source: docs/xetile.md, section 8: shared memory is read in units of 32 or 64 bits, and
bits or numbers of unknown width have no place in it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IndexType,
    VectorType,
    i8,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import element_type, vector_type
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.upstream import arith
from xetl.transforms.subgroups.team import Subgroups


def stored_type(element: Attribute) -> Attribute:
    """What stands in memory for elements of a type."""
    if isinstance(element, IndexType):
        return i64
    width = integer_width(element)
    return i8 if width is not None and width < i8.bitwidth else element


def stored_bytes(element: Attribute) -> int:
    """How many bytes one element takes."""
    type_ = stored_type(element)
    assert isinstance(type_, FixedBitwidthType)
    return type_.bitwidth // 8


def to_stored(team: Subgroups, value: SSAValue) -> SSAValue:
    """A vector as it is stored."""
    element = element_type(value.type)
    stored = stored_type(element)
    if stored == element:
        return value
    type_ = VectorType(stored, vector_type(value).get_shape())
    widen = arith.IndexCastOp if isinstance(element, IndexType) else arith.ExtuiOp
    return team.insert(widen(value, type_))


def from_stored(team: Subgroups, value: SSAValue, element: Attribute) -> SSAValue:
    """A vector of ``element`` from the way it is stored."""
    if element_type(value.type) == element:
        return value
    type_ = VectorType(element, vector_type(value).get_shape())
    narrow = arith.IndexCastOp if isinstance(element, IndexType) else arith.TrunciOp
    return team.insert(narrow(value, type_))
