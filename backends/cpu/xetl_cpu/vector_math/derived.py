"""Functions made of others.

Of exp and log: expm1, log1p, log10, sinh, cosh and cbrt. By identities and odd
polynomials near 0: atan, atan2, asin and acos. Exactly, x minus a whole multiple of y:
fmod.
"""

from __future__ import annotations

from math import inf, nan, pi

from xetl_cpu.llvm import Function, Value, begin
from xetl_cpu.vector_math import exponentials
from xetl_cpu.vector_math.coefficients import (
    ASIN,
    ATAN,
    HALF_PI_PARTS,
    LOG10_2_PARTS,
    LOG10_E_PARTS,
)
from xetl_cpu.vector_math.lanes import FORMATS, Lanes
from xetl_cpu.vector_math.trigonometry import any_lane, merge

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


_FAR = 2.0**52
"""Below it the integer part of an f64 quotient is at most one too large."""


def fmod(lanes: Lanes, x: Value, y: Value) -> Value:
    """Compute fmod exactly; special values as C's, which computes quotients >= 2**52.

    For f32 the quotient is an f64. Its remainder is a multiple of the last places of x
    and y, and not larger than y, so an f64 holds it exactly.
    """
    builder, wide, sides = lanes.builder, lanes, [x, y]
    if lanes.format.bits == 32:
        wide = Lanes(builder, lanes.target, FORMATS["f64"], lanes.count)
        sides = [builder.fpext(each, wide.type) for each in sides]
    above, below = map(wide.absolute, sides)
    quotient = wide.div(above, below)
    rest = wide.fma(wide.truncate(quotient), wide.mul(below, -1.0), above)
    rest = wide.select(wide.compare("<", rest, 0.0), wide.add(rest, below), rest)
    is_finite = wide.compare("<", above, inf)
    is_all = builder.and_(is_finite, wide.compare("==", below, inf))
    rest = wide.select(is_all, above, rest)
    if wide is not lanes:
        rest = builder.fptrunc(rest, lanes.type)
    rest = lanes.copysign(rest, x)
    is_far = builder.and_(wide.compare(">=", quotient, _FAR), is_finite)
    is_far = builder.and_(is_far, wide.compare(">", below, 0.0))
    before = builder.block
    with builder.if_then(any_lane(lanes, is_far), likely=False):
        far = builder.call(_emit_far(lanes), [x, y])
        inside = builder.block
    return merge(builder, (rest, before), (far, inside))


def _emit_far(lanes: Lanes) -> Function:
    """Get or create the function that calls C's ``fmod`` for each lane."""
    name, type_ = f"xetl_far_fmod_{lanes.format.name}x{lanes.count}", lanes.type
    module = lanes.builder.module
    function, builder = begin(module, name, [("x", type_), ("y", type_)], type_)
    if builder is not None:
        function.attributes.add("noinline")
        builder.ret(builder.frem(*function.args))
    return function
