"""sin and cos: reduced to a quarter turn in f64, also for f32.

Up to 2**30 the reduction subtracts multiples of pi / 2 in three parts with FMAs (each
but the last is exact); beyond, the lanes go one by one through ``huge_angles``.
"""

from math import inf
from typing import Any

from xetl_cpu.llvm import Value, call_intrinsic
from xetl_cpu.vector_math.coefficients import COS, HALF_PI_PARTS, SIN, TWO_OVER_PI
from xetl_cpu.vector_math.huge_angles import emit_reduce_huge
from xetl_cpu.vector_math.lanes import FORMATS, Lanes

__all__ = ["cos", "sin"]

_HUGE = 2.0**30


def sin(lanes: Lanes, x: Value) -> Value:
    """Within 3 ulp for every finite x; NaN for infinities."""
    return _sine(lanes, x, 0)


def cos(lanes: Lanes, x: Value) -> Value:
    """Within 3 ulp for every finite x; NaN for infinities."""
    return _sine(lanes, x, 1)


def _sine(lanes: Lanes, x: Value, ahead: int) -> Value:
    """The sine of x and ``ahead`` quarter turns."""
    builder = lanes.builder
    quadrant, r = _reduce(lanes, x)
    quadrant = builder.add(quadrant, lanes.integer(ahead))
    z = lanes.mul(r, r)
    name = lanes.format.name
    tail = lanes.mul(lanes.polynomial(z, SIN[name]), z)
    # The sign of -0 would be lost in the sum.
    sine = lanes.copysign(lanes.fma(tail, r, r), r)
    tail = lanes.fma(lanes.polynomial(z, COS[name]), z, -0.5)
    cosine = lanes.fma(tail, z, 1.0)
    one = lanes.integer(1)
    is_odd = builder.icmp_signed("!=", builder.and_(quadrant, one), lanes.integer(0))
    value = lanes.bits(lanes.select(is_odd, cosine, sine))
    turned = builder.shl(
        builder.lshr(quadrant, one), lanes.integer(lanes.format.bits - 1)
    )
    return lanes.from_bits(builder.xor(value, turned))


def _reduce(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """(quadrant, r): x is r, at most pi / 4 in size, and quadrants modulo 4."""
    if lanes.format.bits == 64:
        return _reduce_f64(lanes, x)
    builder = lanes.builder
    wide = Lanes(builder, lanes.target, FORMATS["f64"], lanes.count)
    quadrant, r = _reduce_f64(wide, builder.fpext(x, wide.type))
    return builder.trunc(quadrant, lanes.int_type), builder.fptrunc(r, lanes.type)


def _reduce_f64(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    builder = lanes.builder
    shifted = lanes.fma(x, TWO_OVER_PI, lanes.format.magic)
    n = lanes.sub(shifted, lanes.format.magic)
    r = x
    for part in HALF_PI_PARTS:
        r = lanes.fma(n, -part, r)
    # The parts have different signs: -0 would become 0.
    r = lanes.select(lanes.compare("==", n, 0.0), x, r)
    # An infinity stays here: it has become NaN.
    size = lanes.absolute(x)
    is_huge = builder.and_(
        lanes.compare(">", size, _HUGE), lanes.compare("<", size, inf)
    )
    quadrant = lanes.bits(shifted)
    before = builder.block
    with builder.if_then(_any(lanes, is_huge), likely=False):
        huge = emit_reduce_huge(builder.module, lanes)
        both = builder.call(huge, [x])
        huge_quadrant = builder.select(
            is_huge, builder.extract_value(both, 0), quadrant
        )
        huge_r = builder.select(is_huge, builder.extract_value(both, 1), r)
        inside = builder.block
    return (
        _merge(builder, (quadrant, before), (huge_quadrant, inside)),
        _merge(builder, (r, before), (huge_r, inside)),
    )


def _merge(builder: Any, *incoming: tuple[Value, Any]) -> Value:
    phi = builder.phi(incoming[0][0].type)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def _any(lanes: Lanes, mask: Value) -> Value:
    """Whether a lane of the mask is true, as one i1."""
    if lanes.count == 1:
        return mask
    name = f"llvm.vector.reduce.or.v{lanes.count}i1"
    return call_intrinsic(lanes.builder, name, mask.type.element, [mask])
