"""``-``, ``~`` and ``abs``."""

from __future__ import annotations

from xetl.dialects.upstream import arith, math
from xetl.errors import TileTypeError
from xetl.frontend.casts import index_constant, runtime, splat
from xetl.frontend.context import Context
from xetl.frontend.types import Scalar, Value, Vector, describe, is_number


def minus(ctx: Context, value: Value) -> Value:
    """``-value`` of a number or vector."""
    if is_number(value):
        return -value
    if isinstance(value, Scalar):
        if value.kind == "float":
            return Scalar(ctx.emit(arith.NegfOp(value.ssa)), "float")
        _refuse_mask(ctx, "-", value, value.kind == "bool")
        zero = index_constant(ctx, 0)
        return Scalar(ctx.emit(arith.SubiOp(zero, value.ssa)), "int")
    assert isinstance(value, Vector)
    _refuse_mask(ctx, "-", value, value.dtype.is_bool)
    if value.dtype.is_float:
        negated = ctx.emit(arith.NegfOp(value.ssa))
    else:
        zero = splat(ctx, 0, value.shape, value.dtype).ssa
        negated = ctx.emit(arith.SubiOp(zero, value.ssa))
    return Vector(negated, value.shape, value.dtype)


def invert(ctx: Context, value: Value) -> Value:
    """``~value`` of an integer or mask: all bits flipped."""
    if is_number(value) and not isinstance(value, float):
        return ~int(value)
    if isinstance(value, Scalar) and value.kind != "float":
        ones = runtime(ctx, True if value.kind == "bool" else -1)
        return Scalar(ctx.emit(arith.XoriOp(value.ssa, ones.ssa)), value.kind)
    if isinstance(value, Vector) and not value.dtype.is_float:
        flip = 1 if value.dtype.is_bool else -1
        ones = splat(ctx, flip, value.shape, value.dtype).ssa
        flipped = ctx.emit(arith.XoriOp(value.ssa, ones))
        return Vector(flipped, value.shape, value.dtype)
    raise ctx.error(
        TileTypeError,
        "X0304",
        f"`~` is not defined on {describe(value)}",
        help="it takes integers and masks",
    )


def absolute(ctx: Context, value: Value) -> Value:
    """``abs(value)`` of a number or vector; the dtype stays."""
    if is_number(value):
        return abs(value)
    if isinstance(value, Scalar):
        return _absolute_scalar(ctx, value)
    assert isinstance(value, Vector)
    _refuse_mask(ctx, "abs", value, value.dtype.is_bool)
    if value.dtype.kind == "u":
        return value
    op = math.AbsfOp if value.dtype.is_float else math.AbsiOp
    return Vector(ctx.emit(op(value.ssa)), value.shape, value.dtype)


def _absolute_scalar(ctx: Context, value: Scalar) -> Scalar:
    _refuse_mask(ctx, "abs", value, value.kind == "bool")
    if value.kind == "float":
        return Scalar(ctx.emit(math.AbsfOp(value.ssa)), "float")
    negated = ctx.emit(arith.SubiOp(index_constant(ctx, 0), value.ssa))
    return Scalar(ctx.emit(arith.MaxsiOp(value.ssa, negated)), "int")


def _refuse_mask(ctx: Context, symbol: str, value: Value, is_mask: bool) -> None:
    if is_mask:
        raise ctx.error(
            TileTypeError,
            "X0304",
            f"`{symbol}` is not defined on {describe(value)}",
            help="convert the mask first: `.to(xetile.i32)`",
        )
