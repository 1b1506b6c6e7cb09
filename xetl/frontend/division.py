"""``//`` and ``%``, which floor and never trap; and powers.

An integer lane that divides by zero gives 0 (padded lanes hold 0). INT_MIN // -1 wraps
to INT_MIN. Hardware would trap on both, so divisors 0 and -1 are replaced first.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith, math
from xetl.frontend.arguments import Arg
from xetl.frontend.casts import convert, runtime, splat, to_float, to_int, wide_of
from xetl.frontend.context import Context
from xetl.frontend.operators import FLOORDIV, Binary
from xetl.frontend.types import Scalar, Shape, Value, Vector, is_constant, scalar_kind
from xetl.language.dtypes import DType, f32, f64, index, u64

LARGEST_PRODUCT = 16
"""The largest exponent of a float that becomes products; for integers all do."""


def power(ctx: Context, base: Arg, exponent: Arg) -> Vector | None:
    """Compile ``vector ** constant`` to products or a root; None if powf is needed."""
    value, n = base.value, exponent.value
    if not isinstance(value, Vector) or not is_constant(n) or value.dtype.is_bool:
        return None
    if n == 0.5:
        floats = value if value.dtype.is_float else convert(ctx, value, f32)
        return Vector(ctx.emit(math.SqrtOp(floats.ssa)), value.shape, floats.dtype)
    if not _is_product(n, value.dtype.is_float):
        return None
    if n == 0:
        return splat(ctx, 1, value.shape, value.dtype)
    multiply = arith.MulfOp if value.dtype.is_float else arith.MuliOp
    wide = _wide(ctx, value) if n > 2 else value
    product = _product(ctx, wide.ssa, n, multiply)
    return convert(ctx, Vector(product, wide.shape, wide.dtype), value.dtype)


def _wide(ctx: Context, value: Vector) -> Vector:
    """Convert narrow floats to f32, so that several steps round only once."""
    is_narrow = value.dtype.is_float and value.dtype.bits < f32.bits
    return convert(ctx, value, f32) if is_narrow else value


def power_of_scalars(ctx: Context, base: Value, exponent: Value) -> Scalar:
    """Compile ``base ** exponent`` for two numbers, at least one of them run-time."""
    kind = scalar_kind(base)
    if _is_product(exponent, kind == "float"):
        if not exponent:
            return runtime(ctx, 1.0 if kind == "float" else 1)
        if kind == "float":
            product = _product(ctx, to_float(ctx, base), exponent, arith.MulfOp)
            return Scalar(product, "float")
        product = _product(ctx, to_int(ctx, base), exponent, arith.MuliOp)
        return Scalar(product, "int")
    result = math.PowfOp(to_float(ctx, base), to_float(ctx, exponent))
    return Scalar(ctx.emit(result), "float")


def _is_product(exponent: Value, is_float: bool) -> TypeGuard[int]:
    if not isinstance(exponent, int) or exponent < 0:
        return False
    return exponent <= LARGEST_PRODUCT or not is_float


def _product(
    ctx: Context,
    base: SSAValue,
    n: int,
    multiply: type[arith.FloatBinaryOp] | type[arith.IntegerBinaryOp],
) -> SSAValue:
    """Compute ``base`` to the power ``n`` by repeated squaring."""
    result: SSAValue | None = None
    while True:
        if n & 1:
            product = multiply(result, base) if result is not None else None
            result = base if product is None else ctx.emit(product)
        n >>= 1
        if not n:
            assert result is not None
            return result
        base = ctx.emit(multiply(base, base))


class _Numbers:
    """Emits constants of one dtype and shape; the shape () means scalars."""

    def __init__(self, ctx: Context, shape: Shape, dtype: DType) -> None:
        self.ctx, self.shape, self.dtype = ctx, shape, dtype

    def constant(self, value: float) -> SSAValue:
        """Return a constant with ``value`` in every lane."""
        if self.shape:
            return splat(self.ctx, value, self.shape, self.dtype).ssa
        number = float(value) if self.dtype.is_float else int(value)
        return runtime(self.ctx, number).ssa

    def equals(self, value: SSAValue, number: float) -> SSAValue:
        """Return the mask of the lanes of ``value`` that equal ``number``."""
        other = self.constant(number)
        if self.dtype.is_float:
            return self.ctx.emit(arith.CmpfOp("oeq", value, other))
        return self.ctx.emit(arith.CmpiOp("eq", value, other))


def divide(
    ctx: Context, op: Binary, left: Vector, right: Vector, divisor: Value
) -> Vector:
    """Compile ``left op right`` for vectors of one shape and dtype.

    ``divisor`` is the value of ``right`` if it is constant, else False.
    """
    one, other = _wide(ctx, left), _wide(ctx, right)
    numbers = _Numbers(ctx, left.shape, one.dtype)
    result = _divide(ctx, op, one.ssa, other.ssa, numbers, divisor)
    ctx.divided.add(result)
    return convert(ctx, Vector(result, left.shape, one.dtype), left.dtype)


def divide_scalars(ctx: Context, op: Binary, left: Value, right: Value) -> Scalar:
    """Compile ``left op right`` for two numbers, at least one of them run-time."""
    constant = right if not isinstance(right, Scalar) else False
    if "float" in (scalar_kind(left), scalar_kind(right)):
        one, other = to_float(ctx, left), to_float(ctx, right)
        numbers = _Numbers(ctx, (), f64)
        result = _divide(ctx, op, one, other, numbers, constant)
        return Scalar(result, "float", wide_of("float", left, right))
    wide = wide_of("int", left, right)
    numbers = _Numbers(ctx, (), u64 if wide == u64 else index)
    one, other = to_int(ctx, left), to_int(ctx, right)
    return Scalar(_divide(ctx, op, one, other, numbers, constant), "int", wide)


def _divide(
    ctx: Context,
    op: Binary,
    left: SSAValue,
    right: SSAValue,
    numbers: _Numbers,
    divisor: Value,
) -> SSAValue:
    if numbers.dtype.is_float:
        return _divide_floats(ctx, op, left, right, numbers)
    # A constant divisor other than 0 and -1 needs no guard.
    if int(divisor or 0) not in (0, -1):
        return _divide_safely(ctx, op, left, right, numbers)
    zero, one = numbers.constant(0), numbers.constant(1)
    by_zero = numbers.equals(right, 0)
    guarded = ctx.emit(arith.SelectOp(by_zero, one, right))
    if numbers.dtype.kind == "u":
        result = _divide_safely(ctx, op, left, guarded, numbers)
        return ctx.emit(arith.SelectOp(by_zero, zero, result))
    by_minus_one = numbers.equals(right, -1)
    guarded = ctx.emit(arith.SelectOp(by_minus_one, one, guarded))
    result = _divide_safely(ctx, op, left, guarded, numbers)
    # Division by -1: the quotient is -left (wrapping); the remainder is 0, as by 1.
    if op is FLOORDIV:
        negated = ctx.emit(arith.SubiOp(zero, left))
        result = ctx.emit(arith.SelectOp(by_minus_one, negated, result))
    return ctx.emit(arith.SelectOp(by_zero, zero, result))


def _divide_safely(
    ctx: Context, op: Binary, left: SSAValue, right: SSAValue, numbers: _Numbers
) -> SSAValue:
    if numbers.dtype.kind == "u":
        unsigned = arith.DivuiOp if op is FLOORDIV else arith.RemuiOp
        return ctx.emit(unsigned(left, right))
    quotient = ctx.emit(arith.FloordivsiOp(left, right))
    if op is FLOORDIV:
        return quotient
    return ctx.emit(arith.SubiOp(left, ctx.emit(arith.MuliOp(quotient, right))))


def _divide_floats(
    ctx: Context, op: Binary, left: SSAValue, right: SSAValue, numbers: _Numbers
) -> SSAValue:
    """Divide floats as CPython and NumPy do: the exact remainder first."""
    zero = numbers.constant(0)
    rest = ctx.emit(arith.RemfOp(left, right))
    other_sign = ctx.emit(
        arith.XoriOp(
            ctx.emit(arith.CmpfOp("olt", rest, zero)),
            ctx.emit(arith.CmpfOp("olt", right, zero)),
        )
    )
    inexact = ctx.emit(arith.CmpfOp("one", rest, zero))
    shift = ctx.emit(arith.AndiOp(other_sign, inexact))
    if op is not FLOORDIV:
        shifted = ctx.emit(arith.AddfOp(rest, right))
        return ctx.emit(arith.SelectOp(shift, shifted, rest))
    # Divide before the shift: after it, an infinite divisor would give NaN.
    whole = ctx.emit(arith.DivfOp(ctx.emit(arith.SubfOp(left, rest)), right))
    rounded = ctx.emit(math.RoundevenOp(whole))
    one = ctx.emit(arith.SelectOp(shift, numbers.constant(1), zero))
    quotient = ctx.emit(arith.SubfOp(rounded, one))
    plain = ctx.emit(arith.DivfOp(left, right))
    return ctx.emit(arith.SelectOp(numbers.equals(right, 0), plain, quotient))
