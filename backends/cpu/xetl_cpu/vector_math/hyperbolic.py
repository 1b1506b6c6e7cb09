"""Functions of exp and log: expm1, log1p, log10, sinh, cosh and cbrt."""

from __future__ import annotations

from math import inf

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math import exponentials
from xetl_cpu.vector_math.coefficients import LOG10_2_PARTS, LOG10_E_PARTS
from xetl_cpu.vector_math.lanes import Lanes

_ALL_EXP = {"f32": 20.0, "f64": 40.0}
"""From here on, exp(x) - 1 equals exp(x), and exp(-x) is negligible beside exp(x)."""


def expm1(lanes: Lanes, x: Value) -> Value:
    """Compute exp(x) - 1 within 3 ulp."""
    limit = _ALL_EXP[lanes.format.name]
    near = exponentials.exp_minus_one(lanes, lanes.clamp(x, -limit, limit))
    is_far = lanes.compare(">", x, limit)
    return lanes.copysign(lanes.select(is_far, exponentials.exp(lanes, x), near), x)


def sinh(lanes: Lanes, x: Value) -> Value:
    """Compute the hyperbolic sine within 6 ulp."""
    size, limit = lanes.absolute(x), _ALL_EXP[lanes.format.name]
    e = exponentials.exp_minus_one(lanes, lanes.clamp(size, 0.0, limit))
    near = lanes.mul(lanes.add(e, lanes.div(e, lanes.add(e, 1.0))), 0.5)
    is_far = lanes.compare(">", size, limit)
    return lanes.copysign(lanes.select(is_far, _half_exp(lanes, size), near), x)


def cosh(lanes: Lanes, x: Value) -> Value:
    """Compute the hyperbolic cosine within 6 ulp."""
    half = _half_exp(lanes, lanes.absolute(x))
    return lanes.add(half, lanes.div(0.25, half))


def _half_exp(lanes: Lanes, x: Value) -> Value:
    """Compute exp(x) / 2, also if exp(x) overflows and the half does not."""
    root = exponentials.exp(lanes, lanes.mul(x, 0.5))
    return lanes.mul(lanes.mul(root, 0.5), root)


def log1p(lanes: Lanes, x: Value) -> Value:
    """Compute log(1 + x) within 6 ulp: log(u) x / (u - 1), with u = 1 + x rounded.

    W. Kahan; see D. Goldberg, "What Every Computer Scientist Should Know About
    Floating-Point Arithmetic", theorem 4.
    """
    u = lanes.add(x, 1.0)
    found = lanes.mul(exponentials.log(lanes, u), lanes.div(x, lanes.sub(u, 1.0)))
    is_itself = lanes.builder.or_(
        lanes.compare("==", u, 1.0), lanes.compare("==", x, inf)
    )
    return lanes.select(is_itself, x, found)


def log10(lanes: Lanes, x: Value) -> Value:
    """Compute the logarithm within 2 ulp; it is exact for powers of ten."""
    name = lanes.format.name
    exponent, m = exponentials.split(lanes, x)
    first, by, tail = exponentials.log_terms(lanes, m)
    high, low = LOG10_E_PARTS[name]
    rest = lanes.fma(first, low, lanes.mul(lanes.mul(by, tail), high))
    found = lanes.fma(first, high, rest)
    high, low = LOG10_2_PARTS[name]
    found = lanes.fma(exponent, high, lanes.fma(exponent, low, found))
    return exponentials.log_special(lanes, x, found)


_TINY = {"f32": (-60, 90), "f64": (-900, 180)}
"""Exponents of 2: below the first the residual of a root underflows; the second scales
it so that it does not."""

_ROOT_SERIES = (1 / 3, 2 / 9, 14 / 81)
"""(1 - r)**(-1/3) is 1 plus r times this polynomial, plus 35/243 r**4."""


def cbrt(lanes: Lanes, x: Value) -> Value:
    """Compute the cube root within 1 ulp; it is exact for cubes."""
    size = lanes.absolute(x)
    least, more = _TINY[lanes.format.name]
    is_tiny = lanes.compare("<", size, 2.0**least)
    size = lanes.select(is_tiny, lanes.mul(size, 2.0**more), size)
    inverse = _near_inverse_root(lanes, size)
    for _ in range(2):  # 0.04 off, then 2e-5, then nothing but what is rounded
        rest = lanes.mul(lanes.mul(lanes.mul(size, inverse), inverse), inverse)
        rest = lanes.sub(1.0, rest)
        inverse = lanes.fma(
            inverse, lanes.mul(rest, lanes.polynomial(rest, _ROOT_SERIES)), inverse
        )
    y = lanes.mul(lanes.mul(size, inverse), inverse)
    square = lanes.mul(y, y)
    below = lanes.fma(y, y, lanes.mul(square, -1.0))
    residual = lanes.fma(square, y, lanes.mul(size, -1.0))
    residual = lanes.fma(below, y, residual)
    step = lanes.mul(lanes.mul(inverse, inverse), -1 / 3)
    y = lanes.fma(residual, step, y)
    y = lanes.select(is_tiny, lanes.mul(y, 2.0 ** (-more // 3)), y)
    is_itself = lanes.builder.or_(
        lanes.compare("==", size, 0.0), lanes.compare("==", size, inf)
    )
    return lanes.select(is_itself, x, lanes.copysign(y, x))


def _near_inverse_root(lanes: Lanes, x: Value) -> Value:
    """Compute x**(-1/3) within 4 %: minus a third of the bits of x, about its log2.

    A third is 1/4 + 1/16 + 1/64 ...
    """
    builder, third = lanes.builder, lanes.bits(x)
    third = builder.lshr(third, lanes.integer(2))
    for shift in (2, 4, 8):
        third = builder.add(third, builder.lshr(third, lanes.integer(shift)))
    form = lanes.format
    one = int(4 / 3 * (form.bias - 0.05) * 2**form.fraction)
    return lanes.from_bits(builder.sub(lanes.integer(one), third))
