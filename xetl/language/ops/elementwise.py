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

__all__ = [
    "abs",
    "ceil",
    "clamp",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "inf",
    "log",
    "log2",
    "maximum",
    "minimum",
    "nan",
    "pi",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "where",
]

V = TypeVar("V", "Vector", int, float)

inf = math.inf
nan = math.nan
pi = math.pi


@operation
def exp(x: V) -> V:
    """E to the power ``x``."""
    ...


@operation
def exp2(x: V) -> V:
    """2 to the power ``x``."""
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
def abs(x: V) -> V:
    """Absolute value; the dtype stays."""
    ...


@operation
def minimum(a: Operand, b: Operand) -> Vector:
    """The smaller of each pair; NaN if either is.  Broadcasts as NumPy."""
    ...


@operation
def maximum(a: Operand, b: Operand) -> Vector:
    """The larger of each pair; NaN if either is.  Broadcasts as NumPy."""
    ...


@composite
def clamp(x: Operand, lo: Operand, hi: Operand) -> Vector:
    """``x``, but at least ``lo`` and at most ``hi``, which wins; NaN stays."""
    return minimum(maximum(x, lo), hi)


@operation
def fma(a: Operand, b: Operand, c: Operand) -> Vector:
    """``a * b + c``, rounded once for f32 and f64.  Broadcasts as NumPy."""
    ...


@operation
def where(cond: Vector | bool, a: Operand, b: Operand) -> Vector:
    """``a`` where ``cond`` holds, else ``b``.  Broadcasts as NumPy.

    Args:
        cond: i1 vector or a condition.
        a: with ``b`` promoted as by ``+``; two float constants give f32, two int
            constants i32.
        b: as ``a``.
    """
    ...
