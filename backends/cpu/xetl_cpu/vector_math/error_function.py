"""erf: an odd polynomial near 0, one minus the complement further out.

Where a register holds 16 numbers, the coefficients of 16 pieces fit six registers, and
one short polynomial serves all pieces: half the operations, and GELU consists of them.
"""

from xetl_cpu.llvm import Value
from xetl_cpu.vector_math.coefficients import (
    ERF_END,
    ERF_PIECES,
    ERF_SMALL,
    ERF_STEPS,
    ERFC_F64,
    LOG_ERFC_F32,
)
from xetl_cpu.vector_math.exponential import exp
from xetl_cpu.vector_math.lanes import Lanes

__all__ = ["erf"]

_SMALL = {"f32": 0.9, "f64": 1.0}
_IS_ONE = {"f32": 4.0, "f64": 6.0}


def erf(lanes: Lanes, x: Value) -> Value:
    """Within 4 ulp."""
    if lanes.has_lookup():
        return _by_pieces(lanes, x)
    name = lanes.format.name
    size = lanes.absolute(x)
    inner = lanes.mul(x, lanes.polynomial(lanes.mul(x, x), ERF_SMALL[name]))
    limit = _IS_ONE[name]
    size = lanes.select(lanes.compare(">", size, limit), limit, size)
    complement = _erfc_f32 if name == "f32" else _erfc_f64
    outer = lanes.copysign(lanes.sub(1.0, complement(lanes, size)), x)
    return lanes.select(lanes.compare("<", size, _SMALL[name]), inner, outer)


def _by_pieces(lanes: Lanes, x: Value) -> Value:
    """The product of x and erf(x) / x, which is even; in the last piece it gives 1."""
    size = lanes.absolute(x)
    size = lanes.select(lanes.compare(">", size, ERF_END), ERF_END, size)
    moved = lanes.fma(size, ERF_STEPS, lanes.format.magic)
    piece = lanes.bits(moved)
    number = lanes.sub(lanes.format.magic, moved)
    t = lanes.fma(size, ERF_STEPS, number)
    *others, quotient = (lanes.lookup(table, piece) for table in ERF_PIECES)
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
