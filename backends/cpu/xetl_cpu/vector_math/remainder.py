"""fmod: x minus a whole multiple of y, exact."""

from __future__ import annotations

from math import inf

from xetl_cpu.llvm import Function, Value, begin
from xetl_cpu.vector_math.lanes import FORMATS, Lanes
from xetl_cpu.vector_math.trigonometry import any_lane, merge

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
