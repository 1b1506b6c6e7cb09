"""``**``: products for small constant exponents, else ``math.powf``."""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith, math
from xetl.frontend.arguments import Arg
from xetl.frontend.casts import convert, splat, to_float, to_int
from xetl.frontend.context import Context
from xetl.frontend.types import Scalar, Value, Vector, is_constant, scalar_kind
from xetl.language.dtypes import f32

LARGEST_PRODUCT = 16
"""The largest exponent that is multiplied out."""


def power(ctx: Context, base: Arg, exponent: Arg) -> Vector | None:
    """``vector ** constant`` by products or a root; None if it needs powf."""
    value, n = base.value, exponent.value
    if not isinstance(value, Vector) or not is_constant(n) or value.dtype.is_bool:
        return None
    if n == 0.5:
        floats = value if value.dtype.is_float else convert(ctx, value, f32)
        return Vector(ctx.emit(math.SqrtOp(floats.ssa)), value.shape, floats.dtype)
    if not isinstance(n, int) or not 0 <= n <= LARGEST_PRODUCT:
        return None
    if n == 0:
        return splat(ctx, 1, value.shape, value.dtype)
    multiply = arith.MulfOp if value.dtype.is_float else arith.MuliOp
    return Vector(_product(ctx, value.ssa, n, multiply), value.shape, value.dtype)


def power_of_scalars(ctx: Context, base: Value, exponent: Value) -> Scalar:
    """``base ** exponent`` of two numbers, one of the run."""
    kind = scalar_kind(base)
    if isinstance(exponent, int) and 0 < exponent <= LARGEST_PRODUCT:
        if kind == "float":
            product = _product(ctx, to_float(ctx, base), exponent, arith.MulfOp)
            return Scalar(product, "float")
        product = _product(ctx, to_int(ctx, base), exponent, arith.MuliOp)
        return Scalar(product, "int")
    result = math.PowfOp(to_float(ctx, base), to_float(ctx, exponent))
    return Scalar(ctx.emit(result), "float")


def _product(
    ctx: Context,
    base: SSAValue,
    n: int,
    multiply: type[arith.MulfOp] | type[arith.MuliOp],
) -> SSAValue:
    """``base`` multiplied ``n`` times, by squaring."""
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
