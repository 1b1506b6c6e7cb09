"""log and log2: the exponent, and a series on sqrt(1/2) to sqrt(2)."""

from math import inf, nan, sqrt
from struct import pack, unpack

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import (
    LN2_PARTS,
    LOG1P_F32,
    LOG2E,
    LOG_RATIO_F64,
)
from xetl_cpu.vector_math.lanes import FloatFormat, Lanes

__all__ = ["log", "log2", "split"]


def log(lanes: Lanes, x: Value) -> Value:
    """Within 3 ulp, subnormals included; -inf of 0, NaN of negatives."""
    exponent, m = split(lanes, x)
    high, low = LN2_PARTS[lanes.format.name]
    result = lanes.fma(exponent, low, _log_near_one(lanes, m))
    return _special(lanes, x, lanes.fma(exponent, high, result))


def log2(lanes: Lanes, x: Value) -> Value:
    """Within 4 ulp; exact for powers of two; special values as for ``log``."""
    exponent, m = split(lanes, x)
    result = lanes.fma(_log_near_one(lanes, m), LOG2E, exponent)
    return _special(lanes, x, result)


def split(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """(e, m) with x = m * 2**e and sqrt(1/2) <= m < sqrt(2), for finite x > 0."""
    form, builder = lanes.format, lanes.builder
    up = form.fraction + 1
    is_subnormal = lanes.compare("<", x, 2.0 ** (1 - form.bias))
    bias = lanes.select(is_subnormal, float(form.bias + up), float(form.bias))
    x = lanes.select(is_subnormal, lanes.mul(x, 2.0**up), x)
    half = _sqrt_half_bits(form)
    # Moved up so that the exponent field steps at sqrt(2), not at 2.
    moved = builder.add(lanes.bits(x), lanes.integer(form.one - half))
    field = builder.lshr(moved, lanes.integer(form.fraction))
    fraction = builder.and_(moved, lanes.integer((1 << form.fraction) - 1))
    m = lanes.from_bits(builder.add(fraction, lanes.integer(half)))
    # A small integer put into the low bits of 2**fraction is a float at once.
    base = (form.bias + form.fraction) << form.fraction
    whole = lanes.from_bits(builder.or_(field, lanes.integer(base)))
    exponent = lanes.sub(lanes.sub(whole, 2.0**form.fraction), bias)
    return exponent, m


def _sqrt_half_bits(form: FloatFormat) -> int:
    layout = ("<f", "<I") if form.bits == 32 else ("<d", "<Q")
    return unpack(layout[1], pack(layout[0], sqrt(0.5)))[0]


def _log_near_one(lanes: Lanes, m: Value) -> Value:
    """log(m) for sqrt(1/2) <= m <= sqrt(2), relative error about an ulp."""
    f = lanes.sub(m, 1.0)
    if lanes.format.bits == 32:
        square = lanes.mul(f, f)
        tail = lanes.mul(lanes.polynomial(f, LOG1P_F32), f)
        return lanes.fma(square, lanes.add(tail, -0.5), f)
    s = lanes.div(f, lanes.add(f, 2.0))
    z = lanes.mul(s, s)
    tail = lanes.mul(lanes.polynomial(z, LOG_RATIO_F64), z)
    return lanes.fma(s, tail, lanes.add(s, s))


def _special(lanes: Lanes, x: Value, result: Value) -> Value:
    result = lanes.select(lanes.compare("==", x, inf), inf, result)
    result = lanes.select(lanes.compare("==", x, 0.0), -inf, result)
    return lanes.select(lanes.compare(">=", x, 0.0), result, nan)
