"""erf: an odd polynomial near 0, one minus the complement further out."""

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import ERF_SMALL, ERFC_F64, LOG_ERFC_F32
from xetl_cpu.vector_math.exponential import exp
from xetl_cpu.vector_math.lanes import Lanes

__all__ = ["erf"]

_SMALL = {"f32": 0.9, "f64": 1.0}
_IS_ONE = {"f32": 4.0, "f64": 6.0}


def erf(lanes: Lanes, x: Value) -> Value:
    """Within 4 ulp."""
    name = lanes.format.name
    size = lanes.absolute(x)
    inner = lanes.mul(x, lanes.polynomial(lanes.mul(x, x), ERF_SMALL[name]))
    limit = _IS_ONE[name]
    size = lanes.select(lanes.compare(">", size, limit), limit, size)
    complement = _erfc_f32 if name == "f32" else _erfc_f64
    outer = lanes.copysign(lanes.sub(1.0, complement(lanes, size)), x)
    return lanes.select(lanes.compare("<", size, _SMALL[name]), inner, outer)


def _erfc_f32(lanes: Lanes, x: Value) -> Value:
    return exp(lanes, lanes.polynomial(x, LOG_ERFC_F32))


def _erfc_f64(lanes: Lanes, x: Value) -> Value:
    above = lanes.add(x, 3.0)
    u = lanes.div(lanes.sub(x, 3.0), above)
    decay = exp(lanes, lanes.mul(lanes.mul(x, -1.0), x))
    return lanes.div(lanes.mul(decay, lanes.polynomial(u, ERFC_F64)), above)
