"""Elementwise mathematics, on vectors and scalars.

Integers give f32 (scalars f64); f16 and bf16 compute in f32 and round once.  The
results are within 16 ulp (sqrt within 2, exp within 4).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from xetl.language.operation import composite, operation

if TYPE_CHECKING:
    from xetl.language.values import Operand, Vector

__all__: list[str] = ["exp", "exp2", "expm1", "log", "log1p", "log2", "log10"]
__all__ += ["cbrt", "erf", "hypot", "rsqrt", "sigmoid", "sqrt"]
__all__ += ["acos", "asin", "atan", "atan2", "cos", "cosh", "sin", "sinh", "tan"]
__all__ += ["tanh"]
__all__ += ["abs", "ceil", "clamp", "copysign", "floor", "fma", "fmod", "maximum"]
__all__ += ["minimum", "round", "trunc", "where"]
__all__ += ["clz", "ctz", "popcount", "umulhi"]
__all__ += ["inf", "isinf", "isnan", "nan", "pi"]

V = TypeVar("V", "Vector", int, float)

inf = math.inf
nan = math.nan
pi = math.pi


@operation
def exp(x: V) -> V:
    """E to the power ``x``."""
    ...


@operation
def exp2(x: V, approximate: bool = False, nonpositive: bool = False) -> V:
    """2 to the power ``x``.

    With ``approximate``, f32 results may have a relative error of 1e-4, which does no
    harm if they are rounded to bf16. For integers they are exact all the same.
    ``nonpositive`` promises that ``x`` is 0 or less, or NaN (rounding errors up to 64
    do no harm): AVX2 then needs a quarter less time.
    """
    ...


@operation
def log(x: V) -> V:
    """Natural logarithm."""
    ...


@operation
def log2(x: V) -> V:
    """Logarithm to base 2."""
    ...


@operation
def sqrt(x: V) -> V:
    """Square root."""
    ...


@operation
def rsqrt(x: V) -> V:
    """One over the square root."""
    ...


@operation
def sin(x: V) -> V:
    """Sine of radians."""
    ...


@operation
def cos(x: V) -> V:
    """Cosine of radians."""
    ...


@operation
def tanh(x: V) -> V:
    """Hyperbolic tangent."""
    ...


@operation
def erf(x: V) -> V:
    """Error function."""
    ...


@operation
def sigmoid(x: V) -> V:
    """``1 / (1 + exp(-x))``."""
    ...


@operation
def floor(x: V) -> V:
    """Largest whole number not above ``x``."""
    ...


@operation
def ceil(x: V) -> V:
    """Smallest whole number not below ``x``."""
    ...


@operation
def round(x: V) -> V:
    """Nearest whole number, halves to even."""
    ...


@operation
def trunc(x: V) -> V:
    """``x`` without its fraction."""
    ...


@operation
def log1p(x: V) -> V:
    """Natural logarithm of ``1 + x``, exact near 0."""
    ...


@operation
def expm1(x: V) -> V:
    """``exp(x) - 1``, exact near 0."""
    ...


@operation
def log10(x: V) -> V:
    """Logarithm to base 10."""
    ...


@operation
def cbrt(x: V) -> V:
    """Cube root, also of negative numbers."""
    ...


@operation
def tan(x: V) -> V:
    """Tangent of radians."""
    ...


@operation
def asin(x: V) -> V:
    """Angle in radians whose sine is ``x``; NaN outside -1 .. 1."""
    ...


@operation
def acos(x: V) -> V:
    """Angle in radians whose cosine is ``x``; NaN outside -1 .. 1."""
    ...


@operation
def atan(x: V) -> V:
    """Angle in radians whose tangent is ``x``."""
    ...


@operation
def sinh(x: V) -> V:
    """Hyperbolic sine."""
    ...


@operation
def cosh(x: V) -> V:
    """Hyperbolic cosine."""
    ...


@operation
def atan2(y: Operand, x: Operand) -> Vector:
    """Angle of the point (x, y) in radians, -pi .. pi.  Broadcasts as NumPy."""
    ...


@operation
def copysign(x: Operand, y: Operand) -> Vector:
    """The magnitude of ``x`` with the sign of ``y``.  Broadcasts as NumPy."""
    ...


@operation
def fmod(x: Operand, y: Operand) -> Vector:
    """The remainder of ``x / y`` with the sign of ``x``, exact, as C's fmod."""
    ...


@operation
def hypot(x: Operand, y: Operand) -> Vector:
    """The root of ``x * x + y * y`` without overflow.  Broadcasts as NumPy."""
    ...


@operation
def popcount(x: Vector | int) -> Vector:
    """The number of one bits of each integer, i32."""
    ...


@operation
def clz(x: Vector | int) -> Vector:
    """The number of zero bits above the highest one of each integer, i32."""
    ...


@operation
def ctz(x: Vector | int) -> Vector:
    """The number of zero bits below the lowest one of each integer, i32."""
    ...


@operation
def umulhi(x: Operand, y: Operand) -> Vector:
    """The upper half of the product of integers, which count as unsigned."""
    ...


@composite
def isnan(x: V) -> V:
    """Whether each number is NaN: a mask, or of one number a bool."""
    # Of one number it is a bool, which is no `V`.
    return x != x  # pyright: ignore[reportReturnType]


@composite
def isinf(x: V) -> V:
    """Whether each number is infinite: as for `isnan`; False for integers."""
    # As for `isnan`.
    return abs(x) == inf  # pyright: ignore[reportReturnType]


@operation
def abs(x: V) -> V:
    """The absolute value, of the same dtype."""
    ...


@operation
def minimum(a: Operand, b: Operand, propagate_nan: bool = True) -> Vector:
    """The smaller of each pair; NaN if one of them is NaN.  Broadcasts as NumPy.

    Without ``propagate_nan``, NaN only if both are NaN: a third of the work on GPUs.
    """
    ...


@operation
def maximum(a: Operand, b: Operand, propagate_nan: bool = True) -> Vector:
    """The larger of each pair; NaN if one of them is NaN.  Broadcasts as NumPy.

    Without ``propagate_nan``, NaN only if both are NaN: a third of the work on GPUs.
    """
    ...


@composite
def clamp(x: Operand, lo: Operand, hi: Operand) -> Vector:
    """Limit ``x`` to ``lo`` .. ``hi``; ``hi`` wins if ``lo`` is larger; NaN stays."""
    return minimum(maximum(x, lo), hi)


@operation
def fma(a: Operand, b: Operand, c: Operand) -> Vector:
    """``a * b + c``, rounded once for f32 and f64.  Broadcasts as NumPy."""
    ...


@operation
def where(cond: Vector | bool, a: Operand, b: Operand) -> Vector:
    """``a`` where ``cond`` holds, else ``b``.  Broadcasts as NumPy.

    Args:
        cond: a vector of i1, or a condition.
        a: promoted with ``b`` as by ``+``. Two float constants give f32, two int
            constants give i32.
        b: as ``a``.
    """
    ...
