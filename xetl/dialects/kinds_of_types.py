"""Tests of xDSL's generic types that type checkers can follow.

``isinstance(x, VectorType)`` leaves the parameters unknown; these say what they are.
"""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

Vector: TypeAlias = VectorType[Attribute]
MemRef: TypeAlias = MemRefType[Attribute]
AnyInteger: TypeAlias = IntegerAttr[IntegerType | IndexType]
Dense: TypeAlias = DenseIntOrFPElementsAttr[IntegerType | IndexType | AnyFloat]


def is_vector(found: object) -> TypeIs[Vector]:
    """Whether this is a vector type."""
    return isinstance(found, VectorType)


def is_memref(found: object) -> TypeIs[MemRef]:
    """Whether this is a memref type of known rank."""
    return isinstance(found, MemRefType)


def is_integer_attr(found: object) -> TypeIs[AnyInteger]:
    """Whether this is an integer or index constant."""
    return isinstance(found, IntegerAttr)


def is_dense(found: object) -> TypeIs[Dense]:
    """Whether this is a dense constant."""
    return isinstance(found, DenseIntOrFPElementsAttr)


def is_array(found: object) -> TypeIs[ArrayAttr[Attribute]]:
    """Whether this is an array attribute."""
    return isinstance(found, ArrayAttr)


def integer_width(found: object) -> int | None:
    """Bits of an integer type; None for anything else, index too."""
    return found.bitwidth if isinstance(found, IntegerType) else None
