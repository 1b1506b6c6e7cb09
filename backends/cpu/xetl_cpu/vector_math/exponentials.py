"""exp, log, pow and erf, and functions that are computed with them.

exp, exp2, tanh   2**n times a polynomial on half a binary order; on AVX-512 tanh is
                  computed by pieces, as erf of f32 is in whole registers
log, log2         the exponent, and a series on sqrt(1/2) to sqrt(2)
pow               2**(y log2(x)), with more digits in the exponent than the result has
erf               an odd polynomial near 0, one minus the complement further out
"""

from __future__ import annotations

from math import inf, nan, sqrt
from struct import pack, unpack

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import (
    ERF_SMALL,
    ERFC_F64,
    EXP,
    EXP2,
    EXP2_BF16,
    EXP2_UP,
    EXP2_UP_BF16,
    LN2_PARTS,
    LOG1P_F32,
    LOG2_OF_F32,
    LOG2E,
    LOG2E_LOW,
    LOG_ERFC_F32,
    LOG_RATIO_F64,
)
from xetl_cpu.vector_math.lanes import FORMATS, Lanes
from xetl_cpu.vector_math.pieces import ERF, TANH, Pieces

# Below the first number results are 0, above the second they are infinite.
_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
_EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}
_TANH_IS_ONE = {"f32": 10.0, "f64": 20.0}


def exp(lanes: Lanes, x: Value) -> Value:
    """Compute e**x within 2 ulp; large x give infinity, small x subnormals and 0."""
    name = lanes.format.name
    low, high = _EXP_RANGE[name]
    is_large = lanes.at_least(x, low)
    x = lanes.limit(x, lanes.least / LOG2E, high)
    n, r = _reduce(lanes, x)
    return lanes.scale(lanes.polynomial(r, (1.0, 1.0, *EXP[name])), n, is_large, x)


def exp2(
    lanes: Lanes,
    x: Value,
    up: tuple[float, ...] = EXP2_UP,
    near: tuple[float, ...] = EXP2["f32"],
) -> Value:
    """Compute 2**x within 2 ulp; it is exact for integers.

    Coefficients for f32: ``up`` if it `has_scale`, else ``near``.
    """
    name = lanes.format.name
    is_large = lanes.at_least(x, _EXP2_RANGE[name][0])
    if lanes.has_scale() and name == "f32":
        power = lanes.polynomial(lanes.fraction(x), (1.0, *up))
        return lanes.scale_by_floor(power, x, is_large)
    x = lanes.clamp(x, *_EXP2_RANGE[name])
    n = lanes.nearest(x)
    r = lanes.sub(x, lanes.whole(n))
    factors = near if name == "f32" else EXP2[name]
    return lanes.scale(lanes.polynomial(r, (1.0, *factors)), n, is_large, x)


def exp2_approximate(lanes: Lanes, x: Value) -> Value:
    """Compute 2**x within 1e-4 in f32, else within 2 ulp; exact for integers."""
    return exp2(lanes, x, EXP2_UP_BF16, EXP2_BF16)


def exp2_nonpositive(
    lanes: Lanes, x: Value, near: tuple[float, ...] = EXP2["f32"]
) -> Value:
    """Compute `exp2` of 0 or less, or NaN, without `has_scale`.

    The factor that powers of two lack to reach subnormals is in the coefficients.
    """
    up = (lanes.format.fraction + 1) | 1  # odd as the bias: halves become even
    far = lanes.format.magic + (lanes.format.bias + up)
    x = lanes.select(lanes.compare("<", x, lanes.least), lanes.least, x)
    n = lanes.add(x, far)
    r = lanes.sub(x, lanes.sub(n, far))
    factors = 1.0, *(near if lanes.format.name == "f32" else EXP2["f64"])
    fraction = lanes.polynomial(r, [each * 2.0**-up for each in factors])
    return lanes.mul(fraction, lanes.shifted(n))


def exp2_nonpositive_approximate(lanes: Lanes, x: Value) -> Value:
    """Compute `exp2_approximate` of 0 or less, or NaN, without `has_scale`."""
    return exp2_nonpositive(lanes, x, EXP2_BF16)


def tanh(lanes: Lanes, x: Value) -> Value:
    """Compute tanh within 4 ulp: e / (e + 2), e = exp(2 |x|) - 1 accurate near 0.

    A quotient takes as long as ten other instructions, so pieces are faster.
    """
    if lanes.has_lookup() and lanes.count in TANH:
        return _by_pieces(lanes, x, TANH[lanes.count])
    name = lanes.format.name
    size = lanes.absolute(x)
    limit = _TANH_IS_ONE[name]
    size = lanes.select(lanes.compare(">", size, limit), limit, size)
    e = exp_minus_one(lanes, lanes.add(size, size))
    return lanes.copysign(lanes.div(e, lanes.add(e, 2.0)), x)


def exp_minus_one(lanes: Lanes, x: Value) -> Value:
    """Compute exp(x) - 1, accurate near 0, where exp(x) is a normal number."""
    n, r = _reduce(lanes, x)
    tail = lanes.polynomial(r, EXP[lanes.format.name])
    fraction = lanes.fma(lanes.mul(r, r), tail, r)
    power = lanes.power_of_two(n)
    return lanes.fma(power, fraction, lanes.sub(power, 1.0))


def _reduce(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Return (n, r): x = n ln(2) + r, n in `nearest` form, and |r| <= ln(2) / 2."""
    high, low = LN2_PARTS[lanes.format.name]
    nearest = lanes.nearest(x, LOG2E)
    n = lanes.whole(nearest)
    r = lanes.fma(n, -high, x)
    return nearest, lanes.fma(n, -low, r)


def log(lanes: Lanes, x: Value) -> Value:
    """Compute the logarithm within 3 ulp, also of subnormals; -inf of 0, NaN below."""
    exponent, m = split(lanes, x)
    high, low = LN2_PARTS[lanes.format.name]
    result = lanes.fma(exponent, low, _log_near_one(lanes, m))
    return log_special(lanes, x, lanes.fma(exponent, high, result))


def log2(lanes: Lanes, x: Value) -> Value:
    """Compute the logarithm within 4 ulp; exact for powers of two; else as ``log``."""
    exponent, m = split(lanes, x)
    result = lanes.fma(_log_near_one(lanes, m), LOG2E, exponent)
    return log_special(lanes, x, result)


def split(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Return (e, m): x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for finite x > 0."""
    form, builder = lanes.format, lanes.builder
    up = form.fraction + 1
    is_subnormal = lanes.compare("<", x, 2.0 ** (1 - form.bias))
    bias = lanes.select(is_subnormal, float(form.bias + up), float(form.bias))
    x = lanes.select(is_subnormal, lanes.mul(x, 2.0**up), x)
    layout = ("<f", "<I") if form.bits == 32 else ("<d", "<Q")
    (half,) = unpack(layout[1], pack(layout[0], sqrt(0.5)))
    # Shifted so that the exponent field changes at sqrt(2), not at 2.
    moved = builder.add(lanes.bits(x), lanes.integer(form.one - half))
    field = builder.lshr(moved, lanes.integer(form.fraction))
    fraction = builder.and_(moved, lanes.integer((1 << form.fraction) - 1))
    m = lanes.from_bits(builder.add(fraction, lanes.integer(half)))
    # A small integer in the low bits of 2**fraction makes a float without conversion.
    base = (form.bias + form.fraction) << form.fraction
    whole = lanes.from_bits(builder.or_(field, lanes.integer(base)))
    exponent = lanes.sub(lanes.sub(whole, 2.0**form.fraction), bias)
    return exponent, m


def _log_near_one(lanes: Lanes, m: Value) -> Value:
    """Compute log(m) for sqrt(1/2) <= m <= sqrt(2) within about an ulp."""
    first, by, tail = log_terms(lanes, m)
    return lanes.fma(by, tail, first)


def log_terms(lanes: Lanes, m: Value) -> tuple[Value, Value, Value]:
    """Return (a, b, c): a + b c = log(m) for sqrt(1/2) <= m <= sqrt(2), b c small."""
    f = lanes.sub(m, 1.0)
    if lanes.format.bits == 32:
        tail = lanes.mul(lanes.polynomial(f, LOG1P_F32), f)
        return f, lanes.mul(f, f), lanes.add(tail, -0.5)
    s = lanes.div(f, lanes.add(f, 2.0))
    z = lanes.mul(s, s)
    return lanes.add(s, s), s, lanes.mul(lanes.polynomial(z, LOG_RATIO_F64), z)


def log_special(lanes: Lanes, x: Value, result: Value) -> Value:
    """Replace ``result`` by the logarithm of 0, infinity or a negative number."""
    result = lanes.select(lanes.compare("==", x, inf), inf, result)
    result = lanes.select(lanes.compare("==", x, 0.0), -inf, result)
    return lanes.select(lanes.compare(">=", x, 0.0), result, nan)


def power(lanes: Lanes, x: Value, y: Value) -> Value:
    """Compute x**y within 1 ulp in f32, 16 in f64; special values as C's ``pow``."""
    size = lanes.absolute(x)
    raise_ = _power_f32 if lanes.format.bits == 32 else _power_f64
    return _power_special(lanes, x, y, raise_(lanes, size, y))


def _power_f32(lanes: Lanes, x: Value, y: Value) -> Value:
    """Compute in f64 with the digits f32 needs; special cases of x are f32 tests."""
    builder = lanes.builder
    wide = Lanes(builder, lanes.target, FORMATS["f64"], lanes.count)
    exponent, m = split(lanes, x)
    exponent = lanes.select(lanes.compare("<", x, inf), exponent, x)
    exponent = lanes.select(lanes.compare("==", x, 0.0), -inf, exponent)
    parts = exponent, lanes.sub(m, 1.0), y
    exponent, f, y = (builder.fpext(each, wide.type) for each in parts)
    log2_of_x = wide.fma(f, wide.polynomial(f, LOG2_OF_F32), exponent)
    power = wide.clamp(wide.mul(y, log2_of_x), *_EXP2_RANGE["f32"])
    n = wide.nearest(power)
    r = wide.sub(power, wide.whole(n))
    result = wide.polynomial(r, (1.0, *EXP2["f32"]))
    result = wide.mul(result, wide.power_of_two(n))
    return builder.fptrunc(result, lanes.type)


def _power_f64(lanes: Lanes, x: Value, y: Value) -> Value:
    high, low = log2_pair(lanes, x)
    exponent = lanes.mul(y, high)
    rest = lanes.fma(y, high, lanes.mul(exponent, -1.0))
    rest = lanes.fma(y, low, rest)
    # Out of range (or for NaN) the rest is 0: it would be infinity minus infinity.
    is_normal = lanes.compare("<", lanes.absolute(exponent), 1100.0)
    rest = lanes.select(is_normal, rest, 0.0)
    is_large = lanes.at_least(exponent, _EXP2_RANGE["f64"][0])
    exponent = lanes.clamp(exponent, *_EXP2_RANGE["f64"])
    n = lanes.nearest(exponent)
    r = lanes.add(lanes.sub(exponent, lanes.whole(n)), rest)
    power = lanes.polynomial(r, (1.0, *EXP2["f64"]))
    return lanes.scale(power, n, is_large, exponent)


def log2_pair(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Return log2(x) as a sum of two, x >= 0; the second is garbage for 0 and inf."""
    exponent, m = split(lanes, x)
    high, low = _log_pair_near_one(lanes, m)
    scaled = lanes.mul(high, LOG2E)
    rest = lanes.fma(high, LOG2E, lanes.mul(scaled, -1.0))
    rest = lanes.add(rest, lanes.fma(high, LOG2E_LOW, lanes.mul(low, LOG2E)))
    total = lanes.add(exponent, scaled)
    rest = lanes.add(rest, lanes.sub(scaled, lanes.sub(total, exponent)))
    total = lanes.select(lanes.compare("==", x, inf), inf, total)
    total = lanes.select(lanes.compare("==", x, 0.0), -inf, total)
    return lanes.select(lanes.compare(">=", x, 0.0), total, nan), rest


def _log_pair_near_one(lanes: Lanes, m: Value) -> tuple[Value, Value]:
    """Return log(m) for sqrt(1/2) <= m <= sqrt(2) as a sum of two numbers."""
    f = lanes.sub(m, 1.0)
    divisor = lanes.add(f, 2.0)
    divisor_rest = lanes.sub(f, lanes.sub(divisor, 2.0))
    s = lanes.div(f, divisor)
    minus_s = lanes.mul(s, -1.0)
    left = lanes.fma(minus_s, divisor, f)
    left = lanes.fma(minus_s, divisor_rest, left)
    s_rest = lanes.div(left, divisor)
    z = lanes.mul(s, s)
    tail = lanes.mul(lanes.polynomial(z, LOG_RATIO_F64), z)
    twice = lanes.add(s, s)
    rest = lanes.fma(s, tail, lanes.add(s_rest, s_rest))
    total = lanes.add(twice, rest)
    return total, lanes.sub(rest, lanes.sub(total, twice))


def _power_special(lanes: Lanes, x: Value, y: Value, result: Value) -> Value:
    """Put in the sign and C's special cases; ``result`` is ``|x| ** y``."""
    builder = lanes.builder
    half = lanes.mul(y, 0.5)
    is_integer = lanes.compare("==", lanes.round(y), y)
    is_odd = builder.and_(is_integer, lanes.compare("!=", lanes.round(half), half))
    result = lanes.select(is_odd, lanes.copysign(result, x), result)
    is_negative = builder.and_(lanes.compare("<", x, 0.0), lanes.compare(">", x, -inf))
    has_no_value = builder.and_(is_negative, builder.not_(is_integer))
    result = lanes.select(has_no_value, nan, result)
    is_endless = lanes.compare("==", lanes.absolute(y), inf)
    is_minus_one = builder.and_(lanes.compare("==", x, -1.0), is_endless)
    is_one = builder.or_(lanes.compare("==", x, 1.0), is_minus_one)
    is_one = builder.or_(is_one, lanes.compare("==", y, 0.0))
    return lanes.select(is_one, 1.0, result)


_SMALL = {"f32": 0.9, "f64": 1.0}
_IS_ONE = {"f32": 4.0, "f64": 6.0}


def erf(lanes: Lanes, x: Value) -> Value:
    """Compute the error function within 4 ulp."""
    if lanes.has_lookup():
        return _by_pieces(lanes, x, ERF[lanes.count])
    name = lanes.format.name
    size = lanes.absolute(x)
    inner = lanes.mul(x, lanes.polynomial(lanes.mul(x, x), ERF_SMALL[name]))
    limit = _IS_ONE[name]
    size = lanes.select(lanes.compare(">", size, limit), limit, size)
    complement = _erfc_f32 if name == "f32" else _erfc_f64
    outer = lanes.copysign(lanes.sub(1.0, complement(lanes, size)), x)
    return lanes.select(lanes.compare("<", size, _SMALL[name]), inner, outer)


def _by_pieces(lanes: Lanes, x: Value, pieces: Pieces) -> Value:
    """Compute f(x) as x times the even f(x) / x; in the last piece f(x) is 1."""
    steps, end, powers = pieces
    size = lanes.absolute(x)
    size = lanes.select(lanes.compare(">", size, end), end, size)
    moved = lanes.fma(size, steps, lanes.format.magic)
    piece = lanes.bits(moved)
    number = lanes.sub(lanes.format.magic, moved)
    t = lanes.fma(size, steps, number)
    *others, quotient = (lanes.lookup(table, piece) for table in powers)
    for coefficient in reversed(others):
        quotient = lanes.fma(quotient, t, coefficient)
    return lanes.copysign(lanes.mul(size, quotient), x)


def _erfc_f32(lanes: Lanes, x: Value) -> Value:
    return exp(lanes, lanes.polynomial(x, LOG_ERFC_F32))


def _erfc_f64(lanes: Lanes, x: Value) -> Value:
    above = lanes.add(x, 3.0)
    u = lanes.div(lanes.sub(x, 3.0), above)
    decay = exp(lanes, lanes.mul(lanes.mul(x, -1.0), x))
    return lanes.div(lanes.mul(decay, lanes.polynomial(u, ERFC_F64)), above)
