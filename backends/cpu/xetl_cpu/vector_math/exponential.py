"""exp, exp2 and tanh: 2**n times a polynomial on half a binary order."""

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import EXP, EXP2, LN2_PARTS, LOG2E
from xetl_cpu.vector_math.lanes import Lanes

__all__ = ["exp", "exp2", "tanh"]

# Below the first all is 0, above the second all is infinite.
_EXP_RANGE = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
_EXP2_RANGE = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}
_TANH_IS_ONE = {"f32": 10.0, "f64": 20.0}


def exp(lanes: Lanes, x: Value) -> Value:
    """Within 2 ulp; overflows to infinity, underflows through subnormals to 0."""
    name = lanes.format.name
    x = lanes.clamp(x, *_EXP_RANGE[name])
    n, r = _reduce(lanes, x)
    return lanes.scale(lanes.polynomial(r, (1.0, 1.0, *EXP[name])), n)


def exp2(lanes: Lanes, x: Value) -> Value:
    """Within 2 ulp; exact for integers."""
    name = lanes.format.name
    x = lanes.clamp(x, *_EXP2_RANGE[name])
    n = lanes.round(x)
    r = lanes.sub(x, n)
    return lanes.scale(lanes.polynomial(r, (1.0, *EXP2[name])), n)


def tanh(lanes: Lanes, x: Value) -> Value:
    """Within 4 ulp: e / (e + 2) with e = exp(2 |x|) - 1, which is accurate near 0."""
    name = lanes.format.name
    size = lanes.absolute(x)
    limit = _TANH_IS_ONE[name]
    size = lanes.select(lanes.compare(">", size, limit), limit, size)
    n, r = _reduce(lanes, lanes.add(size, size))
    fraction = lanes.fma(lanes.mul(r, r), lanes.polynomial(r, EXP[name]), r)
    power = lanes.power_of_two(n)
    e = lanes.fma(power, fraction, lanes.sub(power, 1.0))
    return lanes.copysign(lanes.div(e, lanes.add(e, 2.0)), x)


def _reduce(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Split x into n ln(2) + r, where r is at most ln(2) / 2 in size."""
    high, low = LN2_PARTS[lanes.format.name]
    n = lanes.round(lanes.mul(x, LOG2E))
    r = lanes.fma(n, -high, x)
    return n, lanes.fma(n, -low, r)
