"""``llvmlite.ir``, and the conversion of MLIR types to LLVM types.

llvmlite has no type annotations; ``typings/`` declares them.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as ll
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from xetl.dialects.base import element_type, integer_width, is_vector

Block = ll.Block
Builder = ll.IRBuilder
Function = ll.Function
Module = ll.Module
Type = ll.Type
Value = ll.Value

I1, I8, I16, I32, I64 = (ll.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64, HALF = ll.FloatType(), ll.DoubleType(), ll.HalfType()
PTR, VOID = ll.PointerType(), ll.VoidType()


class _BFloatType(ll.HalfType):
    """The type ``bfloat``, which llvmlite.ir lacks. There are no constants of it."""

    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


# llvmlite keeps one instance of each floating type.
_BFloatType._create_instance()  # pyright: ignore[reportPrivateUsage]
BF16: Type = _BFloatType()

_SCALARS: dict[type[Attribute], Type] = {
    builtin.Float32Type: F32,
    builtin.FloatTF32Type: F32,
    builtin.Float64Type: F64,
    builtin.Float16Type: HALF,
    # As bits: LLVM calls a library to take a bfloat out of a vector on AVX2.
    builtin.BFloat16Type: I16,
    builtin.IndexType: I64,
}


_FLOAT_BYTES: dict[Type, int] = {F32: 4, F64: 8, HALF: 2}


def declare(module: Module, name: str, result: Type, params: Sequence[Type]) -> Value:
    """Get or create the declaration of a function."""
    known = module.globals.get(name)
    if known is not None:
        return known
    return ll.Function(module, ll.FunctionType(result, list(params)), name)


def append_blocks(b: ll.IRBuilder, name: str, *parts: str) -> list[ll.Block]:
    """Append blocks with the names ``name.part``."""
    return [b.append_basic_block(f"{name}.{part}") for part in parts]


def scalar_type(type_: Attribute) -> Type:
    """The LLVM type of an element type; ``index`` is i64."""
    width = integer_width(type_)
    return ll.IntType(width) if width else _SCALARS[type(type_)]


def llvm_type(type_: Attribute) -> Type:
    """The LLVM type of a scalar or a rank-1 vector."""
    if is_vector(type_):
        (length,) = type_.get_shape()
        return ll.VectorType(scalar_type(type_.element_type), length)
    return scalar_type(type_)


def memory_type(element: Attribute) -> Type:
    """Return the LLVM type of an element in memory; an i1 is a byte, as in NumPy."""
    return I8 if integer_width(element) == 1 else scalar_type(element)


def byte_width(element: Attribute) -> int:
    """Bytes an element occupies in memory."""
    type_ = memory_type(element)
    if isinstance(type_, ll.IntType):
        return type_.width // 8
    return _FLOAT_BYTES[type_]


def is_narrow_float(type_: Attribute) -> bool:
    """Whether arithmetic of a type is done in f32 and rounded once (f16, bf16)."""
    return isinstance(element_type(type_), builtin.Float16Type | builtin.BFloat16Type)


def is_bfloat(type_: Attribute) -> bool:
    """Whether a type is bf16 or a vector of it; its LLVM type is i16."""
    return isinstance(element_type(type_), builtin.BFloat16Type)


def element_of(type_: Type) -> Type:
    """Return the element type of a vector; return any other type unchanged."""
    return getattr(type_, "element", type_)


def like(type_: Type, element: Type) -> Type:
    """Return the type with another element type."""
    if isinstance(type_, ll.VectorType):
        return ll.VectorType(element, type_.count)
    return element


class _Splat(ll.Constant):
    """A vector with one constant in every lane; its text has the constant once."""

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


def repeated(type_: Type, number: object) -> Value:
    """Return a constant, in every lane if it is a vector; it may be `ll.Undefined`."""
    is_vector = isinstance(type_, ll.VectorType)
    return (_Splat if is_vector else ll.Constant)(type_, number)
