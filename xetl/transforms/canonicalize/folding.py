"""Fold operations with known operands to a constant or to another value.

A fold creates no operation and changes none. It returns for the result an attribute (a
constant of the result's type), an existing value, or None if nothing can be folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.analysis.affine import counts_below
from xetl.analysis.control_flow import is_known_below
from xetl.analysis.ranges import Ranges
from xetl.dialects import base
from xetl.dialects.literals import make_splat, splat_value, with_type, wrap
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, index, memref, vector
from xetl.dialects.xetile import TileTransposeOp

Folded: TypeAlias = Attribute | SSAValue | None
Fold: TypeAlias = Callable[[Any], Folded]


def constant_of(value: SSAValue) -> int | float | None:
    """Return the number of a constant, or of all its elements; None for others."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp | index.ConstantOp | index.BoolConstantOp):
        return splat_value(owner.value)
    return None


def integer_of(value: SSAValue) -> int | None:
    """Do the same as ``constant_of``, for integers only."""
    number = constant_of(value)
    return number if isinstance(number, int) else None


def width_of(type_: Attribute) -> int:
    """Return the number of bits of an integer type; index has 64."""
    return base.integer_width(base.element_type(type_)) or 64


def unsigned(value: int, bits: int) -> int:
    """Return ``value`` read as an unsigned number."""
    return value & ((1 << bits) - 1)


def signed(value: int, bits: int) -> int:
    """Return ``value`` read as a signed number: true (1 of type i1) is -1."""
    value = unsigned(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


Arithmetic: TypeAlias = Callable[[int, int, int], int | None]


def _quotient(a: int, b: int) -> int:
    """Return the quotient rounded towards zero, as in C and MLIR."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _signed(compute: Callable[[int, int], int]) -> Arithmetic:
    return lambda a, b, bits: compute(signed(a, bits), signed(b, bits))


def _unsigned(compute: Callable[[int, int], int]) -> Arithmetic:
    return lambda a, b, bits: compute(unsigned(a, bits), unsigned(b, bits))


def _division(make: Arithmetic) -> Arithmetic:
    # A division by zero is undefined, and so is the smallest integer divided by -1
    # (an overflow): such a division stays in the program.
    def compute(a: int, b: int, bits: int) -> int | None:
        if b == 0 or (signed(b, bits) == -1 and signed(a, bits) == -1 << (bits - 1)):
            return None
        return make(a, b, bits)

    return compute


def _shift(make: Callable[[int, int, int], int]) -> Arithmetic:
    def compute(a: int, b: int, bits: int) -> int | None:
        return make(a, b, bits) if 0 <= b < bits else None

    return compute


ADD = _signed(lambda a, b: a + b)
SUB = _signed(lambda a, b: a - b)
MUL = _signed(lambda a, b: a * b)
AND = _unsigned(lambda a, b: a & b)
OR = _unsigned(lambda a, b: a | b)
XOR = _unsigned(lambda a, b: a ^ b)
MAXS, MINS = _signed(max), _signed(min)
MAXU, MINU = _unsigned(max), _unsigned(min)
DIVS = _division(_signed(_quotient))
DIVU = _division(_unsigned(lambda a, b: a // b))
REMS = _division(_signed(lambda a, b: a - b * _quotient(a, b)))
REMU = _division(_unsigned(lambda a, b: a % b))
CEILS = _division(_signed(lambda a, b: -(-a // b)))
CEILU = _division(_unsigned(lambda a, b: -(-a // b)))
FLOORS = _division(_signed(lambda a, b: a // b))
SHL = _shift(lambda a, b, bits: a << b)
SHRS = _shift(lambda a, b, bits: signed(a, bits) >> b)
SHRU = _shift(lambda a, b, bits: unsigned(a, bits) >> b)

_ROWS: tuple[tuple[Arithmetic, int | None, type[Operation], type[Operation]], ...] = (
    (ADD, 0, arith.AddiOp, index.AddOp),
    (SUB, 0, arith.SubiOp, index.SubOp),
    (MUL, 1, arith.MuliOp, index.MulOp),
    (DIVS, 1, arith.DivsiOp, index.DivsOp),
    (DIVU, 1, arith.DivuiOp, index.DivuOp),
    (REMS, None, arith.RemsiOp, index.RemsOp),
    (REMU, None, arith.RemuiOp, index.RemuOp),
    (CEILS, 1, arith.CeildivsiOp, index.CeildivsOp),
    (CEILU, 1, arith.CeildivuiOp, index.CeildivuOp),
    (FLOORS, 1, arith.FloordivsiOp, index.FloordivsOp),
    (AND, -1, arith.AndiOp, index.AndOp),
    (OR, 0, arith.OriOp, index.OrOp),
    (XOR, 0, arith.XoriOp, index.XorOp),
    (MAXS, None, arith.MaxsiOp, index.MaxsOp),
    (MINS, None, arith.MinsiOp, index.MinsOp),
    (MAXU, 0, arith.MaxuiOp, index.MaxuOp),
    (MINU, None, arith.MinuiOp, index.MinuOp),
    (SHL, 0, arith.ShliOp, index.ShlOp),
    (SHRS, 0, arith.ShrsiOp, index.ShrsOp),
    (SHRU, 0, arith.ShruiOp, index.ShruOp),
)
"""The function, its neutral right operand (or None), and the two operations."""

BINARY: dict[type[Operation], tuple[Arithmetic, int | None]] = {
    op: (compute, neutral) for compute, neutral, *ops in _ROWS for op in ops
}
AS_ARITH: dict[type[Operation], Callable[..., Operation]] = {
    of_index: of_arith for _, _, of_arith, of_index in _ROWS
}
"""The operation of `arith` that does the same as one of `index`."""
COMMUTATIVE = {ADD, MUL, AND, OR, XOR, MAXU}
ZERO_WITH_ITSELF = {SUB, XOR}
SAME_WITH_ITSELF = {AND, OR, MAXS, MINS, MAXU, MINU}


def fold_binary(op: Operation) -> Folded:
    """Fold integers: two constants, the same value twice, or one neutral or zero."""
    compute, neutral = BINARY[type(op)]
    lhs, rhs = op.operands
    type_ = op.results[0].type
    bits = width_of(type_)
    left, right = integer_of(lhs), integer_of(rhs)
    if left is not None and right is not None:
        value = compute(left, right, bits)
        return None if value is None else make_splat(wrap(value, bits), type_)
    if lhs is rhs:
        if compute in ZERO_WITH_ITSELF:
            return make_splat(0, type_)
        if compute in SAME_WITH_ITSELF:
            return lhs
    return _fold_with_one(compute, neutral, (lhs, rhs), (left, right), type_)


def _fold_with_one(
    compute: Arithmetic,
    neutral: int | None,
    operands: tuple[SSAValue, SSAValue],
    known: tuple[int | None, int | None],
    type_: Attribute,
) -> Folded:
    bits = width_of(type_)
    (lhs, rhs), (left, right) = operands, known
    if neutral is not None:
        same = unsigned(neutral, bits)
        if right is not None and unsigned(right, bits) == same:
            return lhs
        if compute in COMMUTATIVE and left is not None and unsigned(left, bits) == same:
            return rhs
    if compute in (MUL, AND) and 0 in (left, right):
        return make_splat(0, type_)
    return None


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


_MOST_SUBGROUPS = 1 << 31
"""A bound: this pass does not know how many subgroups a workgroup has."""


def _is_inside(op: arith.CmpiOp | index.CmpOp) -> bool:
    """Whether the range of an index lies from 0 to below the constant right side."""
    end, is_index = base.constant_index(op.rhs), isinstance(op.lhs.type, IndexType)
    range_ = (
        Ranges(_MOST_SUBGROUPS).of(op.lhs) if end is not None and is_index else None
    )
    return range_ is not None and range_.low >= 0 and range_.high < (end or 0)


def fold_compare(op: arith.CmpiOp | index.CmpOp) -> Folded:
    """Fold comparisons of constants, of equal values, and if ranges prove ``ult``."""
    name = op.predicate_name
    compare = COMPARISONS[name[-2:]]
    if op.lhs is op.rhs:
        return make_splat(int(compare(0, 0)), op.result.type)
    sides = op.lhs, op.rhs
    if name == "ult" and (
        is_known_below(*sides, op) or counts_below(*sides) or _is_inside(op)
    ):
        return make_splat(1, op.result.type)
    left, right = integer_of(op.lhs), integer_of(op.rhs)
    if left is None or right is None:
        return None
    read = unsigned if name[0] == "u" else signed
    bits = width_of(op.lhs.type)
    value = compare(read(left, bits), read(right, bits))
    return make_splat(int(value), op.result.type)


def fold_select(op: arith.SelectOp) -> Folded:
    """Fold a select with a constant condition or with two equal values."""
    if op.true_value is op.false_value:
        return op.true_value
    known = integer_of(op.condition)
    if known is None:
        return None
    return op.true_value if known else op.false_value


def fold_integer_cast(op: Operation) -> Folded:
    """Fold casts of constant integers, and casts back to the original type."""
    source, type_ = op.operands[0], op.results[0].type
    if source.type == type_:
        return source
    known = integer_of(source)
    if known is not None:
        bits = width_of(source.type)
        zero = isinstance(op, arith.ExtuiOp | arith.IndexCastuiOp | index.CastuOp)
        value = unsigned(known, bits) if zero else signed(known, bits)
        return make_splat(wrap(value, width_of(type_)), type_)
    before = source.owner
    # index has 64 bits. A cast to a type at least as wide and back loses no bits.
    if (
        isinstance(before, Operation)
        and type(before) is type(op)
        and isinstance(op, arith.IndexCastOp | arith.IndexCastuiOp)
        and before.operands[0].type == type_
        and width_of(source.type) >= width_of(type_)
    ):
        return before.operands[0]
    return None


def fold_float_cast(op: Operation) -> Folded:
    """Fold casts back, and casts of constants: one rounding, to a finite result."""
    source = op.operands[0].owner
    if isinstance(op, arith.TruncfOp) and isinstance(source, arith.ExtfOp):
        return narrower(op.operands[0], op.results[0].type)
    number, type_ = constant_of(op.operands[0]), op.results[0].type
    rounded = _rounded(number, type_)
    return None if rounded is None else make_splat(rounded, type_)


def _rounded(number: float | None, type_: Attribute) -> float | None:
    element = base.element_type(type_)
    if not isinstance(number, float) or not isinstance(element, AnyFloat):
        return None
    try:
        return element.unpack(element.pack((number,)), 1)[0]
    except (OverflowError, NotImplementedError):
        return None


def narrower(value: SSAValue, type_: Attribute) -> Folded:
    """Return a float in a narrower type. Return None if that could lose bits."""
    owner, number = value.owner, constant_of(value)
    if isinstance(owner, arith.ExtfOp) and owner.operands[0].type == type_:
        return owner.operands[0]
    if number is None or _rounded(number, type_) != number:
        return None
    return make_splat(number, type_)


def fold_to_float(op: Operation) -> Folded:
    """Fold casts of constant integers to floats if f64 has the exact number."""
    known, type_ = integer_of(op.operands[0]), op.results[0].type
    if known is None:
        return None
    bits = width_of(op.operands[0].type)
    read = unsigned if isinstance(op, arith.UitofpOp) else signed
    value = read(known, bits)
    rounded = _rounded(float(value), type_) if abs(value) <= 1 << 53 else None
    return None if rounded is None else make_splat(rounded, type_)


ARITHMETIC_FOLDS: dict[type[Operation], Fold] = {
    **dict.fromkeys(BINARY, fold_binary),
    arith.CmpiOp: fold_compare,
    index.CmpOp: fold_compare,
    arith.SelectOp: fold_select,
    **dict.fromkeys((arith.IndexCastOp, arith.IndexCastuiOp), fold_integer_cast),
    **dict.fromkeys((arith.ExtsiOp, arith.ExtuiOp, arith.TrunciOp), fold_integer_cast),
    **dict.fromkeys((index.CastsOp, index.CastuOp), fold_integer_cast),
    arith.ExtfOp: fold_float_cast,
    arith.TruncfOp: fold_float_cast,
    arith.SitofpOp: fold_to_float,
    arith.UitofpOp: fold_to_float,
}


# Shapes -------------------------------------------------------------------------------


def fold_same_type(op: Operation) -> Folded:
    """Fold a cast to the type that its operand already has."""
    source = op.operands[0]
    return source if source.type == op.results[0].type else None


def fold_shape_cast(op: Operation) -> Folded:
    """Fold a cast to the same shape, a cast back, and a cast of a constant."""
    source, type_ = op.operands[0], op.results[0].type
    if source.type == type_:
        return source
    owner = source.owner
    if isinstance(owner, vector.ShapeCastOp) and owner.source.type == type_:
        return owner.source
    if isinstance(owner, arith.ConstantOp) and base.is_vector(type_):
        value = owner.value
        if base.is_dense(value):
            return with_type(value, type_)
    return None


def fold_extract(op: Operation) -> Folded:
    """Fold the extract from a constant with equal elements or a broadcast scalar."""
    source, type_ = op.operands[0], op.results[0].type
    owner = source.owner
    if isinstance(owner, vector.BroadcastOp) and owner.source.type == type_:
        return None if isinstance(type_, VectorType) else owner.source
    if isinstance(owner, arith.ConstantOp):
        number = splat_value(owner.value)
        return None if number is None else make_splat(number, type_)
    return None


def fold_transpose(op: TileTransposeOp) -> Folded:
    """Fold the transpose of a transpose, if no map would be lost."""
    inner = op.source.owner
    if isinstance(inner, TileTransposeOp) and not (op.attributes or inner.attributes):
        return inner.source
    return None


def fold_dim(op: memref.DimOp) -> Folded:
    """Fold the extent of a dimension that is static in the type."""
    dim = constant_of(op.index)
    shape = base.memref_type(op.source).get_shape()
    if not isinstance(dim, int) or not 0 <= dim < len(shape):
        return None
    extent = shape[dim]
    return None if extent == DYNAMIC_INDEX else IntegerAttr(extent, IndexType())


def static_metadata(
    op: memref.ExtractStridedMetadataOp,
) -> list[tuple[SSAValue, Attribute]]:
    """Return the used results whose sizes and strides are static, with their number."""
    type_ = base.memref_type(op.source)
    strides = strides_of(type_) or [None] * type_.get_num_dims()
    known = [None if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
    pairs = zip((*op.sizes, *op.strides), (*known, *strides))
    return [
        (value, IntegerAttr(number, IndexType()))
        for value, number in pairs
        if number is not None and value.uses
    ]


SHAPE_FOLDS: dict[type[Operation], Fold] = {
    vector.ShapeCastOp: fold_shape_cast,
    vector.BroadcastOp: fold_same_type,
    vector.BitcastOp: fold_same_type,
    arith.BitcastOp: fold_same_type,
    vector.ExtractOp: fold_extract,
    memref.CastOp: fold_same_type,
    memref.DimOp: fold_dim,
    TileTransposeOp: fold_transpose,
}
