"""What is made of exp and log: expm1, log1p, log10, sinh, cosh and cbrt."""

from __future__ import annotations

from math import inf

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import LOG10_2_PARTS
from xetl_cpu.vector_math.exponentials import (
    exp,
    exp2,
    exp_minus_one,
    log,
    log2,
    log2_pair,
    log_special,
)
from xetl_cpu.vector_math.lanes import FORMATS, Lanes

_ALL_EXP = {"f32": 20.0, "f64": 40.0}
"""From here on exp(x) - 1 is exp(x), and exp(-x) nothing beside exp(x)."""


def expm1(lanes: Lanes, x: Value) -> Value:
    """Within 3 ulp."""
    limit = _ALL_EXP[lanes.format.name]
    near = exp_minus_one(lanes, lanes.clamp(x, -limit, limit))
    is_far = lanes.compare(">", x, limit)
    return lanes.copysign(lanes.select(is_far, exp(lanes, x), near), x)


def sinh(lanes: Lanes, x: Value) -> Value:
    """Within 6 ulp."""
    size, limit = lanes.absolute(x), _ALL_EXP[lanes.format.name]
    e = exp_minus_one(lanes, lanes.clamp(size, 0.0, limit))
    near = lanes.mul(lanes.add(e, lanes.div(e, lanes.add(e, 1.0))), 0.5)
    is_far = lanes.compare(">", size, limit)
    return lanes.copysign(lanes.select(is_far, _half_exp(lanes, size), near), x)


def cosh(lanes: Lanes, x: Value) -> Value:
    """Within 6 ulp."""
    half = _half_exp(lanes, lanes.absolute(x))
    return lanes.add(half, lanes.div(0.25, half))


def _half_exp(lanes: Lanes, x: Value) -> Value:
    """exp(x) / 2, also where exp(x) is infinite and that is not."""
    root = exp(lanes, lanes.mul(x, 0.5))
    return lanes.mul(lanes.mul(root, 0.5), root)


def log1p(lanes: Lanes, x: Value) -> Value:
    """Within 6 ulp: log(u) of u = 1 + x, which was rounded, times x / (u - 1).

    W. Kahan; see D. Goldberg, "What Every Computer Scientist Should Know About
    Floating-Point Arithmetic", theorem 4.
    """
    u = lanes.add(x, 1.0)
    found = lanes.mul(log(lanes, u), lanes.div(x, lanes.sub(u, 1.0)))
    is_itself = lanes.builder.or_(
        lanes.compare("==", u, 1.0), lanes.compare("==", x, inf)
    )
    return lanes.select(is_itself, x, found)


def log10(lanes: Lanes, x: Value) -> Value:
    """Within 2 ulp; exact for powers of ten."""
    high, low = LOG10_2_PARTS
    if lanes.format.bits == 32:
        wide = _wide(lanes)
        found = wide.mul(log2(wide, lanes.builder.fpext(x, wide.type)), high)
        return lanes.builder.fptrunc(found, lanes.type)
    total, rest = log2_pair(lanes, x)
    rest = lanes.fma(total, low, lanes.mul(rest, high))
    return log_special(lanes, x, lanes.fma(total, high, rest))


def cbrt(lanes: Lanes, x: Value) -> Value:
    """Within 1 ulp; exact for cubes: 2**(log2(x) / 3), and a step of Newton's."""
    size = lanes.absolute(x)
    # The residual of a tiny number would underflow.
    is_tiny = lanes.compare("<", size, 2.0**-900)
    if lanes.format.bits == 64:
        size = lanes.select(is_tiny, lanes.mul(size, 2.0**180), size)
    y = exp2(lanes, lanes.mul(log2(lanes, size), 1 / 3))
    if lanes.format.bits == 32:
        builder, wide = lanes.builder, _wide(lanes)
        y, wide_size = (builder.fpext(each, wide.type) for each in (y, size))
        y = builder.fptrunc(_nearer_root(wide, y, wide_size), lanes.type)
    else:
        y = _nearer_root(lanes, y, size)
        y = lanes.select(is_tiny, lanes.mul(y, 2.0**-60), y)
    is_itself = lanes.builder.or_(
        lanes.compare("==", size, 0.0), lanes.compare("==", size, inf)
    )
    return lanes.select(is_itself, x, lanes.copysign(y, x))


def _nearer_root(lanes: Lanes, y: Value, x: Value) -> Value:
    square = lanes.mul(y, y)
    rest = lanes.fma(y, y, lanes.mul(square, -1.0))
    residual = lanes.fma(square, y, lanes.mul(x, -1.0))
    residual = lanes.fma(rest, y, residual)
    return lanes.sub(y, lanes.div(residual, lanes.mul(square, 3.0)))


def _wide(lanes: Lanes) -> Lanes:
    return Lanes(lanes.builder, lanes.target, FORMATS["f64"], lanes.count)
