"""Elementary functions on vectors, emitted as LLVM functions.

No function of libm is called, except fmod for quotients of 2**52 and more. Errors are
in units in the last place (ulp) of the true result.
"""

from collections.abc import Callable
from typing import Any

from xetl_cpu.llvm import Builder, Function, Module, Value, begin, element_type, vector
from xetl_cpu.targets import Target
from xetl_cpu.vector_math.derived import (
    acos,
    asin,
    atan,
    atan2,
    cbrt,
    cosh,
    expm1,
    fmod,
    log1p,
    log10,
    sinh,
)
from xetl_cpu.vector_math.exponentials import (
    erf,
    exp,
    exp2,
    exp2_approximate,
    exp2_nonpositive,
    exp2_nonpositive_approximate,
    log,
    log2,
    power,
    tanh,
)
from xetl_cpu.vector_math.lanes import FORMATS, Lanes
from xetl_cpu.vector_math.trigonometry import cos, sin, tan


def _rsqrt(lanes: Lanes, x: Value) -> Value:
    """Compute 1 / sqrt(x) within 2 ulp: two correctly rounded operations."""
    return lanes.div(1.0, lanes.sqrt(x))


_FORMULAS = (
    *(acos, asin, atan, atan2, cbrt, cos, cosh, erf, exp, exp2),
    *(exp2_approximate, exp2_nonpositive, exp2_nonpositive_approximate),
    *(expm1, fmod, log, log10, log1p, log2, sin, sinh, tan, tanh),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{formula.__name__: formula for formula in _FORMULAS},
    "pow": power,
    "rsqrt": _rsqrt,
}
"""The formulas by name; each takes the lanes and one or two values."""

BINARY = "atan2", "fmod", "pow"


def emit_math(
    module: Module, target: Target, name: str, dtype: str, lanes: int
) -> Function:
    """Get or create ``<lanes x dtype> name(<lanes x dtype>)``; `BINARY` take two.

    One lane means scalars.  Any power of two is allowed: more lanes than a register
    holds are computed register by register.

    Args:
        module: the module of the function, which is internal and always inlined.
        target: the target, whose instructions may be used.
        name: a key of ``FUNCTIONS``.
        dtype: ``f32`` or ``f64``.
        lanes: a power of two.
    """
    label = f"xetl_{name}_{dtype}x{lanes}_{target.name}"
    inputs = ("x", "y") if name in BINARY else ("x",)
    type_ = vector(element_type(dtype), lanes)
    function, builder = begin(module, label, [(x, type_) for x in inputs], type_)
    if builder is None:
        return function
    function.attributes.add("alwaysinline")
    arguments: list[Value] = list(function.args)
    if lanes > target.lanes(dtype):
        half = emit_math(module, target, name, dtype, lanes // 2)
        builder.ret(_halves(builder, half, arguments))
    else:
        formula = FUNCTIONS[name]
        builder.ret(formula(Lanes(builder, target, FORMATS[dtype], lanes), *arguments))
    return function


def _halves(builder: Builder, half: Function, arguments: list[Value]) -> Value:
    """Call ``half`` on both halves of the arguments."""
    count = arguments[0].type.count
    results: list[Value] = []
    for start in (0, count // 2):
        lanes = range(start, start + count // 2)
        parts = [builder.shuffle(value, value, lanes) for value in arguments]
        results.append(builder.call(half, parts))
    low, high = results
    return builder.shuffle(low, high, range(count))
