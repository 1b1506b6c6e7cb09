"""Which way a product is computed.  Source: docs/design/0005-xegpu.md; xetl.devices."""

from __future__ import annotations

from enum import Enum, auto

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, FloatTF32Type
from xdsl.ir import Attribute

from xetl.dialects.base import element_type
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.xetile import TileMmaOp


class ProductKind(Enum):
    """By whom a product is computed.

    MATRIX: the matrix unit, of 16 or 8 bits.  TF32: of f32 with fewer bits.  BF16X3:
    of f32 as three products of bf16.  LANES: each lane multiplies and adds.
    """

    MATRIX = auto()
    TF32 = auto()
    BF16X3 = auto()
    LANES = auto()


def kind_of(op: TileMmaOp) -> ProductKind:
    """How a product is computed: by its element types and its precision."""
    element, result = element_type(op.a.type), element_type(op.result.type)
    precision = None if op.precision is None else op.precision.data
    return kind_of_types(element, result, precision)


def kind_of_types(
    element: Attribute, result: Attribute, precision: str | None = None
) -> ProductKind:
    """How a product of some types is computed; A and B have one type."""
    if isinstance(element, Float16Type | BFloat16Type):
        narrow = isinstance(result, Float16Type | BFloat16Type | Float32Type)
        return ProductKind.MATRIX if narrow else ProductKind.LANES
    if (width := integer_width(element)) is not None:
        exact = width == 8 and integer_width(result) == 32
        return ProductKind.MATRIX if exact else ProductKind.LANES
    if isinstance(element, FloatTF32Type) and isinstance(result, Float32Type):
        return ProductKind.TF32
    if isinstance(element, Float32Type) and isinstance(result, Float32Type):
        return _PRECISIONS.get(precision or "ieee", ProductKind.LANES)
    return ProductKind.LANES


_PRECISIONS = {"tf32": ProductKind.TF32, "bf16x3": ProductKind.BF16X3}
