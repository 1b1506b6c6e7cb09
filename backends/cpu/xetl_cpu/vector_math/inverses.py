"""atan, atan2, asin and acos: identities, and odd polynomials near 0."""

from __future__ import annotations

from math import inf, nan, pi

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import ASIN, ATAN, HALF_PI_PARTS
from xetl_cpu.vector_math.lanes import Lanes

_TAN_OF_EIGHTH = 0.41421356237309503


def atan(lanes: Lanes, x: Value) -> Value:
    """Compute the inverse tangent within 3 ulp."""
    size = lanes.absolute(x)
    is_large = lanes.compare(">", size, 1.0)
    less, more = lanes.select(is_large, 1.0, size), lanes.select(is_large, size, 1.0)
    quotient = lanes.div(less, more)
    return lanes.copysign(_turned(lanes, is_large, _atan_to_one(lanes, quotient)), x)


def atan2(lanes: Lanes, y: Value, x: Value) -> Value:
    """Compute the angle of (x, y) within 4 ulp; special values as in C."""
    builder = lanes.builder
    across, up = lanes.absolute(x), lanes.absolute(y)
    is_steep = lanes.compare(">", up, across)
    less, more = (
        lanes.select(is_steep, *pair) for pair in ((across, up), (up, across))
    )
    quotient = lanes.div(less, more)
    quotient = lanes.select(lanes.compare("==", more, 0.0), 0.0, quotient)
    quotient = lanes.select(lanes.compare("==", less, inf), 1.0, quotient)
    angle = _turned(lanes, is_steep, _atan_to_one(lanes, quotient))
    is_left = builder.icmp_signed("<", lanes.bits(x), lanes.integer(0))
    high, low = _half_turn(lanes, 2.0)
    angle = lanes.select(is_left, lanes.add(lanes.sub(high, angle), low), angle)
    is_number = builder.fcmp_ordered("ord", x, y)
    return lanes.copysign(lanes.select(is_number, angle, nan), y)


def asin(lanes: Lanes, x: Value) -> Value:
    """Compute the inverse sine within 4 ulp; NaN outside of -1 to 1."""
    is_outer, angle = _asin_parts(lanes, x)
    high, low = _half_turn(lanes, 1.0)
    outer = lanes.add(lanes.fma(angle, -2.0, high), low)
    return lanes.copysign(lanes.select(is_outer, outer, angle), x)


def acos(lanes: Lanes, x: Value) -> Value:
    """Compute the inverse cosine within 4 ulp; NaN outside of -1 to 1."""
    is_outer, angle = _asin_parts(lanes, x)
    is_left = lanes.compare("<", x, 0.0)
    twice = lanes.add(angle, angle)
    high, low = _half_turn(lanes, 2.0)
    left = lanes.add(lanes.sub(high, twice), low)
    outer = lanes.select(is_left, left, twice)
    high, low = _half_turn(lanes, 1.0)
    inner = lanes.add(lanes.sub(high, lanes.copysign(angle, x)), low)
    return lanes.select(is_outer, outer, inner)


def _half_turn(lanes: Lanes, times: float) -> tuple[float, float]:
    """Return ``times`` pi / 2 as a number of the format plus the rest."""
    if lanes.format.bits == 64:
        return times * HALF_PI_PARTS[0], times * HALF_PI_PARTS[1]
    high = 1.57079637050628662109375
    return times * high, times * (pi / 2 - high)


def _turned(lanes: Lanes, where: Value, angle: Value) -> Value:
    """Return a quarter turn minus ``angle`` in some lanes, else ``angle``."""
    high, low = _half_turn(lanes, 1.0)
    return lanes.select(where, lanes.add(lanes.sub(high, angle), low), angle)


def _atan_to_one(lanes: Lanes, q: Value) -> Value:
    """Compute atan(q) for 0 <= q <= 1; beyond an eighth of a turn by (q-1)/(q+1)."""
    is_outer = lanes.compare(">", q, _TAN_OF_EIGHTH)
    rest = lanes.div(lanes.sub(q, 1.0), lanes.add(q, 1.0))
    s = lanes.select(is_outer, rest, q)
    high, low = _half_turn(lanes, 0.5)
    angle = _odd(lanes, s, ATAN[lanes.format.name])
    return lanes.select(is_outer, lanes.add(lanes.add(angle, low), high), angle)


def _asin_parts(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Return (|x| > 1/2, asin of |x|), or asin of sqrt((1 - |x|) / 2) where true."""
    size = lanes.absolute(x)
    is_outer = lanes.compare(">", size, 0.5)
    half = lanes.mul(lanes.sub(1.0, size), 0.5)
    s = lanes.select(is_outer, lanes.sqrt(half), size)
    return is_outer, _odd(lanes, s, ASIN[lanes.format.name])


def _odd(lanes: Lanes, s: Value, coefficients: tuple[float, ...]) -> Value:
    """Compute ``s + s**3 p(s**2)``."""
    u = lanes.mul(s, s)
    return lanes.fma(lanes.mul(s, u), lanes.polynomial(u, coefficients), s)
