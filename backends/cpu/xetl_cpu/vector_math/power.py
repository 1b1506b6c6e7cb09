"""pow: 2**(y log2(x)), with more digits in the exponent than the result has.

f32 is done in f64.  For f64 the logarithm is a pair of f64 (about 2**-58 in error): the
exponent reaches 1024, which takes ten bits away again.
"""

from math import inf, nan

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import EXP2, LOG2E, LOG2E_LOW, LOG_RATIO_F64
from xetl_cpu.vector_math.exponential import exp2
from xetl_cpu.vector_math.lanes import FORMATS, Lanes
from xetl_cpu.vector_math.logarithm import log2, split

__all__ = ["power"]


def power(lanes: Lanes, x: Value, y: Value) -> Value:
    """Within 1 ulp in f32, 16 ulp in f64; special values as C's ``pow``."""
    size = lanes.absolute(x)
    raise_ = _power_f32 if lanes.format.bits == 32 else _power_f64
    return _special(lanes, x, y, raise_(lanes, size, y))


def _power_f32(lanes: Lanes, x: Value, y: Value) -> Value:
    builder = lanes.builder
    wide = Lanes(builder, lanes.target, FORMATS["f64"], lanes.count)
    x, y = (builder.fpext(value, wide.type) for value in (x, y))
    result = exp2(wide, wide.mul(y, log2(wide, x)))
    return builder.fptrunc(result, lanes.type)


def _power_f64(lanes: Lanes, x: Value, y: Value) -> Value:
    high, low = _log2_pair(lanes, x)
    exponent = lanes.mul(y, high)
    rest = lanes.fma(y, high, lanes.mul(exponent, -1.0))
    rest = lanes.fma(y, low, rest)
    # Out of range (or NaN) there is no rest: it would be infinity minus infinity.
    is_normal = lanes.compare("<", lanes.absolute(exponent), 1100.0)
    rest = lanes.select(is_normal, rest, 0.0)
    exponent = lanes.clamp(exponent, -1100.0, 1100.0)
    n = lanes.round(exponent)
    r = lanes.add(lanes.sub(exponent, n), rest)
    return lanes.scale(lanes.polynomial(r, (1.0, *EXP2["f64"])), n)


def _log2_pair(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """log2(x) as the sum of two, for x >= 0; the second is rubbish for 0 and inf."""
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
    """log(m) for sqrt(1/2) <= m <= sqrt(2); the quotient s is carried as two."""
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


def _special(lanes: Lanes, x: Value, y: Value, result: Value) -> Value:
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
