"""Conversions: scalars to vectors, shapes, dtypes; ``-``, ``~`` and ``abs``."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from xetl.dialects import xetile
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, math, vector
from xetl.frontend.context import Context
from xetl.frontend.types import (
    F64,
    I1,
    I64,
    INDEX,
    Extent,
    Scalar,
    Shape,
    Value,
    Vector,
    describe,
    element_type,
    is_number,
    matrix_shape,
    scalar_kind,
    show_shape,
    vector_type,
)
from xetl.language.dtypes import DType, f32, f64, i1, i64, u64


def transpose_vector(ctx: Context, value: Vector) -> Vector:
    """Swap the axes of a vector; a rank-1 vector is its own transpose."""
    if len(value.shape) > 2:
        problem = f"`.T` swaps the axes of a matrix, not of {show_shape(value.shape)}"
        raise ctx.error("X0210", problem, help="unpack it first: xetile.tile_unpack(v)")
    if len(value.shape) == 1:
        return value
    result = ctx.emit(xetile.TileTransposeOp(value.ssa))
    return Vector(result, value.shape[::-1], value.dtype, value.origin)


# Scalars ----------------------------------------------------------------------------


def index_constant(ctx: Context, value: int) -> SSAValue:
    """Emit a constant of type index."""
    return ctx.emit(arith.ConstantOp.index(whole(value)))


def whole(value: Value, wraps: bool = True) -> int:
    """Convert a compile-time number to a signed integer of 64 bits.

    Args:
        value: the number; floats are truncated.
        wraps: whether a number that only u64 holds becomes the signed one of the same
            bits; sizes must not wrap.

    Raises:
        OverflowError: it does not fit; the front end adds the place (X0317).
    """
    if value != value:
        raise OverflowError("nan is no integer")
    number, most = int(value), 1 << 63
    low, end = (-most, 2 * most) if wraps else (1 - most, most)
    if not low <= number < end:
        bits = number.bit_length()
        problem = f"an integer of {bits} bits, where a number of the run has 64"
        raise OverflowError(problem)
    return number - 2 * most if number >= most else number


def runtime(ctx: Context, value: Value) -> Scalar:
    """Convert a compile-time or run-time number to a run-time scalar."""
    if isinstance(value, Scalar):
        return value
    kind = scalar_kind(value)
    if kind == "int":
        return Scalar(index_constant(ctx, value), kind)
    if kind == "bool":
        return Scalar(ctx.emit(arith.ConstantOp(IntegerAttr(int(value), I1), I1)), kind)
    return Scalar(ctx.emit(arith.ConstantOp(FloatAttr(value, F64), F64)), kind)


def to_float(ctx: Context, value: Value) -> SSAValue:
    """Convert a compile-time or run-time number to f64."""
    if not isinstance(value, Scalar):
        return runtime(ctx, float(value)).ssa
    if value.kind == "float":
        return value.ssa
    as_int = ctx.emit(arith.IndexCastOp(to_int(ctx, value), I64))
    convert = arith.UitofpOp if value.wide == u64 else arith.SitofpOp
    return ctx.emit(convert(as_int, F64))


def wide_of(kind: str, *values: Value) -> DType | None:
    """Return the dtype of 64 bits of a number that is computed from elements of it.

    As in C, signed and unsigned numbers give an unsigned one.
    """
    found = {each.wide for each in values if isinstance(each, Scalar)}
    known = (f64,) if kind == "float" else (u64, i64)
    return next((dtype for dtype in known if dtype in found), None)


def to_int(ctx: Context, value: Value) -> SSAValue:
    """Convert a compile-time or run-time number to index; floats are truncated."""
    if not isinstance(value, Scalar):
        return index_constant(ctx, whole(value))
    if value.kind == "int":
        return value.ssa
    if value.kind == "bool":
        return ctx.emit(arith.IndexCastuiOp(value.ssa, INDEX))
    return ctx.emit(arith.IndexCastOp(ctx.emit(arith.FptosiOp(value.ssa, I64)), INDEX))


def extent_value(ctx: Context, extent: Extent) -> SSAValue:
    """Convert a size or stride to a value of type index."""
    return index_constant(ctx, extent) if isinstance(extent, int) else extent


def to_element(ctx: Context, value: Value, dtype: DType) -> SSAValue:
    """Convert a compile-time or run-time number to an element of ``dtype``."""
    target = element_type(dtype)
    if not isinstance(value, Scalar):
        return ctx.emit(arith.ConstantOp(constant(value, dtype, target), target))
    if dtype.is_float:
        wide = to_float(ctx, value)
        return wide if target == F64 else ctx.emit(arith.TruncfOp(wide, target))
    if dtype.is_bool:
        return truth_of_scalar(ctx, value)
    whole = to_int(ctx, value)
    return whole if target == INDEX else ctx.emit(arith.IndexCastOp(whole, target))


def rounded(value: Value, dtype: DType) -> Value:
    """Round or wrap a compile-time number to a value of ``dtype``."""
    if dtype.is_bool:
        return bool(value)
    if dtype.is_float:
        with np.errstate(over="ignore"):
            # `float` first: types of ml_dtypes take no int of more than 64 bits.
            return float(dtype.numpy.type(float(value)))
    bits = 64 if dtype.name == "index" else dtype.bits
    low = whole(value) & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def constant(value: Value, dtype: DType, type_: Attribute) -> Attribute:
    """Return the attribute of a number; ``type_`` is a scalar or vector of ``dtype``.

    Integers wrap, and floats that are too large become infinite.
    """
    is_integer = not (dtype.is_bool or dtype.is_float)
    # NumPy rounds first, because packing a float that is too large fails.
    return make_splat(whole(value) if is_integer else rounded(value, dtype), type_)


def from_element(ctx: Context, element: SSAValue, dtype: DType) -> Scalar:
    """Convert an element of a vector or array to a scalar: f64, index or i1."""
    if dtype.is_bool:
        return Scalar(element, "bool")
    if dtype.is_float:
        wide = element if dtype == f64 else ctx.emit(arith.ExtfOp(element, F64))
        return Scalar(wide, "float", dtype if dtype == f64 else None)
    if element.type == INDEX:
        return Scalar(element, "int")
    cast = arith.IndexCastuiOp if dtype.kind == "u" else arith.IndexCastOp
    wide = dtype if dtype.bits == i64.bits else None
    return Scalar(ctx.emit(cast(element, INDEX)), "int", wide)


def truth_of_scalar(ctx: Context, value: Scalar) -> SSAValue:
    """Compute whether a run-time number is not zero, as i1."""
    if value.kind == "bool":
        return value.ssa
    if value.kind == "int":
        return ctx.emit(arith.CmpiOp("ne", value.ssa, index_constant(ctx, 0)))
    zero = runtime(ctx, 0.0).ssa
    return ctx.emit(arith.CmpfOp("une", value.ssa, zero))


# Vectors ----------------------------------------------------------------------------


def splat(ctx: Context, value: Value, shape: Shape, dtype: DType) -> Vector:
    """Return a vector filled with a number; if that is constant, so is the vector."""
    ctx.check_elements(shape)
    target = vector_type(shape, dtype)
    if isinstance(value, Scalar):
        element = to_element(ctx, value, dtype)
        return Vector(ctx.emit(vector.BroadcastOp(element, target)), shape, dtype)
    attribute = constant(value, dtype, target)
    return Vector(ctx.emit(arith.ConstantOp(attribute, target)), shape, dtype)


def shape_cast(ctx: Context, value: Vector, shape: Shape) -> Vector:
    """Return the elements in another shape; a cast of a cast becomes one."""
    target = vector_type(shape, value.dtype)
    source = value.ssa
    if source.type == target:
        return Vector(source, shape, value.dtype, value.origin)
    if isinstance(source.owner, vector.ShapeCastOp):
        source = source.owner.operands[0]
    if source.type != target:
        source = ctx.emit(vector.ShapeCastOp(source, target))
    return Vector(source, shape, value.dtype, value.origin)


def broadcast_shapes(left: Shape, right: Shape) -> Shape | None:
    """Broadcast two shapes as NumPy does; return None if that is impossible."""
    rank = max(len(left), len(right))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (left, right)]
    result: list[int] = []
    for one, other in zip(*padded, strict=True):
        if one != other and 1 not in (one, other):
            return None
        result.append(other if one == 1 else one)
    return tuple(result)


def broadcast(ctx: Context, value: Vector, shape: Shape) -> Vector:
    """Repeat ``value`` along dims of extent 1; the shapes must broadcast."""
    source, wanted = matrix_shape(value.shape), matrix_shape(shape)
    dims = [dim for dim in range(2) if source[dim] != wanted[dim]]
    if not dims:
        return Vector(value.ssa, shape, value.dtype, value.origin)
    target = vector_type(shape, value.dtype)
    op = xetile.TileBroadcastOp(value.ssa, target, broadcast_dims=dims)
    return Vector(ctx.emit(op), shape, value.dtype, value.origin)


def extract(ctx: Context, value: Vector) -> Scalar:
    """Return the only element of a vector as a scalar."""
    position = [0] * len(matrix_shape(value.shape))
    element = ctx.emit(vector.ExtractOp(value.ssa, position))
    return from_element(ctx, element, value.dtype)


def convert(ctx: Context, value: Vector, dtype: DType) -> Vector:
    """Convert the elements of ``value``, as ``v.to(dtype)`` does."""
    target = vector_type(value.shape, dtype)
    ssa = value.ssa
    if value.dtype == dtype or (ssa.type == target and not dtype.is_bool):
        return Vector(ssa, value.shape, dtype, value.origin)
    return Vector(_convert(ctx, value, dtype), value.shape, dtype, value.origin)


def _convert(ctx: Context, value: Vector, dtype: DType) -> SSAValue:
    target, source = vector_type(value.shape, dtype), value.dtype
    if dtype.is_bool:
        zero = splat(ctx, 0, value.shape, source).ssa
        if source.is_float:
            return ctx.emit(arith.CmpfOp("une", value.ssa, zero))
        return ctx.emit(arith.CmpiOp("ne", value.ssa, zero))
    if source.is_float and dtype.is_float:
        if value.dtype.bits == dtype.bits:  # through f32, which holds all of both
            wide = ctx.emit(arith.ExtfOp(value.ssa, vector_type(value.shape, f32)))
            return ctx.emit(arith.TruncfOp(wide, target))
        cast = arith.ExtfOp if value.dtype.bits < dtype.bits else arith.TruncfOp
        return ctx.emit(cast(value.ssa, target))
    if "index" in (source.name, dtype.name):
        return _convert_index(ctx, value, dtype)
    if dtype.is_float:
        to_float = arith.SitofpOp if source.kind == "i" else arith.UitofpOp
        return ctx.emit(to_float(value.ssa, target))
    if source.is_float:
        to_int = arith.FptosiOp if dtype.kind == "i" else arith.FptouiOp
        return ctx.emit(to_int(value.ssa, target))
    if dtype.bits < source.bits:
        return ctx.emit(arith.TrunciOp(value.ssa, target))
    widen = arith.ExtsiOp if source.kind == "i" else arith.ExtuiOp
    return ctx.emit(widen(value.ssa, target))


def _convert_index(ctx: Context, value: Vector, dtype: DType) -> SSAValue:
    target = vector_type(value.shape, dtype)
    if dtype.is_integer and not value.dtype.is_float:
        unsigned = value.dtype.kind == "u" or value.dtype == i1
        cast = arith.IndexCastuiOp if unsigned else arith.IndexCastOp
        return ctx.emit(cast(value.ssa, target))
    # Index and floats are converted through i64.
    return convert(ctx, convert(ctx, value, i64), dtype).ssa


def minus(ctx: Context, value: Value) -> Value:
    """Compile ``-value`` of a number or vector."""
    if is_number(value):
        return -value
    assert isinstance(value, Scalar | Vector)
    _refuse_mask(ctx, "-", value)
    if _kind(value) == "float":
        return _like(value, ctx.emit(arith.NegfOp(value.ssa)))
    zero = _full_like(ctx, 0, value)
    return _like(value, ctx.emit(arith.SubiOp(zero, value.ssa)))


def invert(ctx: Context, value: Value) -> Value:
    """Compile ``~value`` of an integer or mask: flip all bits."""
    if is_number(value) and not isinstance(value, float):
        return ~int(value)
    if isinstance(value, Scalar | Vector) and _kind(value) != "float":
        ones = _full_like(ctx, True if _kind(value) == "bool" else -1, value)
        return _like(value, ctx.emit(arith.XoriOp(value.ssa, ones)))
    problem = f"`~` is not defined on {describe(value)}"
    raise ctx.error("X0304", problem, help="it takes integers and masks")


def absolute(ctx: Context, value: Value) -> Value:
    """Compile ``abs(value)`` of a number or vector; the dtype does not change."""
    if is_number(value):
        return abs(value)
    assert isinstance(value, Scalar | Vector)
    _refuse_mask(ctx, "abs", value)
    if _kind(value) == "float":
        return _like(value, ctx.emit(math.AbsfOp(value.ssa)))
    if isinstance(value, Scalar):
        negated = ctx.emit(arith.SubiOp(index_constant(ctx, 0), value.ssa))
        return Scalar(ctx.emit(arith.MaxsiOp(value.ssa, negated)), "int")
    if value.dtype.kind == "u":
        return value
    return _like(value, ctx.emit(math.AbsiOp(value.ssa)))


def _kind(value: Scalar | Vector) -> str:
    if isinstance(value, Scalar):
        return value.kind
    return "bool" if value.dtype.is_bool else "float" if value.dtype.is_float else "int"


def _like(value: Scalar | Vector, ssa: SSAValue) -> Scalar | Vector:
    if isinstance(value, Scalar):
        return Scalar(ssa, value.kind, value.wide)
    return Vector(ssa, value.shape, value.dtype)


def _full_like(ctx: Context, number: int, value: Scalar | Vector) -> SSAValue:
    if isinstance(value, Scalar):
        return runtime(ctx, number).ssa
    return splat(ctx, number, value.shape, value.dtype).ssa


def _refuse_mask(ctx: Context, symbol: str, value: Scalar | Vector) -> None:
    if _kind(value) == "bool":
        problem = f"`{symbol}` is not defined on {describe(value)}"
        help_ = "convert the mask first: `.to(xetile.i32)`"
        raise ctx.error("X0304", problem, help=help_)
