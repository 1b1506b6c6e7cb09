"""MLIR types as LLVM types."""

from __future__ import annotations

import struct
from typing import Any

import llvmlite.ir as ll
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

I1, I8, I16, I32, I64 = (ll.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64, HALF = ll.FloatType(), ll.DoubleType(), ll.HalfType()
PTR = ll.PointerType()


class BFloatType(ll.types.Type):
    """LLVM's ``bfloat``, which llvmlite.ir lacks."""

    null = "0.0"
    intrinsic_name = "bf16"

    def __str__(self) -> str:
        """The name in LLVM assembly."""
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        """All bfloat types are one type."""
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        """Equal types hash alike."""
        return hash(BFloatType)

    def format_constant(self, value: float) -> str:
        """A constant, as LLVM writes it: the 16 bits after ``0xR``."""
        bits = int.from_bytes(_f32_bytes(value), "little")
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)
        return f"0xR{0x7FC0 if value != value else rounded >> 16 & 0xFFFF:04X}"


def _f32_bytes(value: float) -> bytes:
    return struct.pack("<f", value)


BF16 = BFloatType()

_SCALARS: dict[type[Attribute], Any] = {
    Float32Type: F32,
    Float64Type: F64,
    Float16Type: HALF,
    BFloat16Type: BF16,
    IndexType: I64,
}


def scalar_type(type_: Attribute) -> Any:
    """The LLVM type of an element type; ``index`` is i64."""
    if isinstance(type_, IntegerType):
        return ll.IntType(type_.width.data)
    return _SCALARS[type(type_)]


def llvm_type(type_: Attribute) -> Any:
    """The LLVM type of a scalar or a rank-1 vector."""
    if isinstance(type_, VectorType):
        (length,) = type_.get_shape()
        return ll.VectorType(scalar_type(type_.element_type), length)
    return scalar_type(type_)


def memory_type(element: Attribute) -> Any:
    """What an element occupies in memory: an i1 is one byte, as NumPy's bool."""
    if isinstance(element, IntegerType) and element.width.data == 1:
        return I8
    return scalar_type(element)


def byte_width(element: Attribute) -> int:
    """Bytes an element occupies in memory."""
    type_ = memory_type(element)
    if isinstance(type_, ll.IntType):
        return type_.width // 8
    return {F32: 4, F64: 8, HALF: 2, BF16: 2}[type_]


def is_narrow_float(type_: Attribute) -> bool:
    """True for the types whose arithmetic is done in f32 and rounded once."""
    return isinstance(element_of(type_), Float16Type | BFloat16Type)


def element_of(type_: Attribute) -> Attribute:
    """The element type of a vector; a scalar type itself."""
    return type_.element_type if isinstance(type_, VectorType) else type_
