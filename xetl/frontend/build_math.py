"""The IR of the operations of ``ops/elementwise.py``."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.ir import Operation, SSAValue

from xetl.dialects.upstream import arith, math
from xetl.dialects.upstream.elementwise import FastMathFlag, FastMathFlagsAttr
from xetl.frontend import arithmetic, casts
from xetl.frontend.arguments import Arg, Call, builds
from xetl.frontend.context import Context
from xetl.frontend.operators import ADD, MUL, extremum
from xetl.frontend.types import (
    I64,
    Scalar,
    Value,
    Vector,
    describe,
    is_int,
    is_number,
    scalar_kind,
)
from xetl.ir.builder import upper_half
from xetl.language.dtypes import f32, i1, i32, i64

Maker = Callable[[SSAValue], Operation]

_AS_PYTHON = (
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "erf"),
    *("acos", "asin", "atan", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
    *("ceil", "floor", "trunc"),
)
"""Functions that have the same name in Python's `math`."""
_FUNCTIONS: dict[str, tuple[Maker, Callable[[Any], Any]]] = {
    **{
        name: (getattr(math, f"{name.capitalize()}Op"), getattr(python_math, name))
        for name in _AS_PYTHON
    },
    "round": (math.RoundevenOp, round),
    "rsqrt": (math.RsqrtOp, lambda x: 1.0 / python_math.sqrt(x)),
}

_APPROXIMATE = FastMathFlagsAttr(frozenset({FastMathFlag.AFN}))


@builds(*_FUNCTIONS)
def _function(call: Call) -> Value:
    make, python = _FUNCTIONS[call.name]
    value = call.value("x")
    if is_number(value):
        try:
            return float(python(value))
        except (ValueError, OverflowError, ZeroDivisionError):
            pass  # the op returns infinities and NaN
    if call.name == "exp2":
        flags = _APPROXIMATE if call.flag("approximate") else None
        is_low = call.flag("nonpositive")
        make = partial(math.Exp2Op, fastmath=flags, nonpositive=is_low)
    return _of_floats(call, "x", make)


def _of_floats(
    call: Call, names: str, make: Callable[..., Operation], *, widens: bool = False
) -> Value:
    """Apply ``make`` to numbers (as f64), or to vectors of floats (integers as f32).

    With ``widens``, 16-bit floats are f32 in the whole formula, which rounds once.
    """
    ctx, args = call.ctx, [call.args[name] for name in names]
    arithmetic.check_operands(ctx, call.name, args)
    if not any(isinstance(arg.value, Vector) for arg in args):
        numbers = [casts.to_float(ctx, arg.value) for arg in args]
        wide = casts.wide_of("float", *(arg.value for arg in args))
        return Scalar(ctx.emit(make(*numbers)), "float", wide)
    both = arithmetic.unify(ctx, call.name, args, to_floats=True)
    if both.dtype.is_bool:
        raise arithmetic.no_such_operator(ctx, call.name, both.dtype)
    wide = f32 if widens and both.dtype.bits == 16 else both.dtype
    vectors = [casts.convert(ctx, vector, wide).ssa for vector in both.vectors]
    result = Vector(ctx.emit(make(*vectors)), both.shape, wide)
    return casts.convert(ctx, result, both.dtype)


_OF_TWO: dict[str, tuple[str, Callable[[SSAValue, SSAValue], Operation]]] = {
    "atan2": ("yx", math.Atan2Op),
    "copysign": ("xy", math.CopysignOp),
    "fmod": ("xy", arith.RemfOp),
}


@builds(*_OF_TWO)
def _function_of_two(call: Call) -> Value:
    return _of_floats(call, *_OF_TWO[call.name])


@builds("hypot")
def _hypotenuse(call: Call) -> Value:
    return _of_floats(call, "xy", partial(_hypot, call.ctx), widens=True)


@builds("sigmoid")
def _sigmoid(call: Call) -> Value:
    return _of_floats(call, "x", partial(_logistic, call.ctx), widens=True)


def _logistic(ctx: Context, x: SSAValue) -> Operation:
    one = ctx.emit(arith.ConstantOp.of(1.0, x.type))
    power = ctx.emit(math.ExpOp(ctx.emit(arith.NegfOp(x))))
    return arith.DivfOp(one, ctx.emit(arith.AddfOp(one, power)))


def _hypot(ctx: Context, x: SSAValue, y: SSAValue) -> Operation:
    """Compute the root of ``x * x + y * y``, scaled by the larger: without overflow."""
    a, b = ctx.emit(math.AbsfOp(x)), ctx.emit(math.AbsfOp(y))
    large, small = ctx.emit(arith.MaxnumfOp(a, b)), ctx.emit(arith.MinimumfOp(a, b))
    one, infinite = (
        ctx.emit(arith.ConstantOp.of(each, x.type)) for each in (1.0, python_math.inf)
    )
    # 0 / 0 and inf / inf are NaN, and infinity wins even over NaN (IEEE 754, 9.2.1).
    is_equal = ctx.emit(arith.CmpfOp("oeq", small, large))
    ratio = ctx.emit(arith.DivfOp(small, large))
    ratio = ctx.emit(arith.SelectOp(is_equal, one, ratio))
    root = ctx.emit(math.SqrtOp(ctx.emit(math.FmaOp(ratio, ratio, one))))
    is_infinite = ctx.emit(arith.CmpfOp("oeq", large, infinite))
    return arith.SelectOp(is_infinite, infinite, ctx.emit(arith.MulfOp(large, root)))


_BITS: dict[str, Maker] = {
    "popcount": math.CtpopOp,
    "clz": math.CtlzOp,
    "ctz": math.CttzOp,
}


@builds(*_BITS)
def _count_bits(call: Call) -> Value:
    ctx, value, make = call.ctx, call.value("x"), _BITS[call.name]
    if is_int(value):
        bits = ctx.emit(arith.IndexCastOp(casts.to_int(ctx, value), I64))
        return casts.from_element(ctx, ctx.emit(make(bits)), i64)
    vector = call.vector("x")
    if not vector.dtype.is_integer:
        problem = f"`{call.name}` is defined on integers, not on {vector.dtype}"
        help_ = "convert first: `.to(xetile.i32)`, or `.to(..., bitcast=True)`"
        raise call.error("X0304", problem, "x", help=help_)
    return casts.convert(
        ctx, Vector(ctx.emit(make(vector.ssa)), vector.shape, vector.dtype), i32
    )


@builds("umulhi")
def _umulhi(call: Call) -> Value:
    ctx, args = call.ctx, [call.args["x"], call.args["y"]]
    arithmetic.check_operands(ctx, "umulhi", args)
    if not any(isinstance(arg.value, Vector) for arg in args):
        a, b = (
            ctx.emit(arith.IndexCastOp(casts.to_int(ctx, v.value), I64)) for v in args
        )
        return casts.from_element(ctx, upper_half(ctx.builder(), a, b, False), i64)
    both = arithmetic.unify(ctx, "umulhi", args)
    if not both.dtype.is_integer:
        raise arithmetic.no_such_operator(ctx, "umulhi", both.dtype)
    a, b = (vector.ssa for vector in both.vectors)
    return Vector(upper_half(ctx.builder(), a, b, False), both.shape, both.dtype)


@builds("abs")
def _abs(call: Call) -> Value:
    arithmetic.check_operands(call.ctx, "abs", [call.args["x"]])
    return casts.absolute(call.ctx, call.value("x"))


@builds("minimum", "maximum")
def _extremum(call: Call) -> Value:
    op = extremum(call.name[:3], propagate_nan=call.flag("propagate_nan"))
    return arithmetic.binary(call.ctx, op, call.args["a"], call.args["b"])


@builds("fma")
def _fma(call: Call) -> Value:
    ctx, (a, b, c) = call.ctx, (call.args[name] for name in "abc")
    arithmetic.check_operands(ctx, "fma", [a, b, c])
    if not any(isinstance(arg.value, Vector) for arg in (a, b, c)):
        product = Arg(arithmetic.binary(ctx, MUL, a, b), call.node)
        return arithmetic.binary(ctx, ADD, product, c)
    both = arithmetic.unify(ctx, "fma", [a, b, c])
    if both.dtype.is_bool:
        raise arithmetic.no_such_operator(ctx, "fma", both.dtype)
    x, y, z = (vector.ssa for vector in both.vectors)
    if both.dtype.is_float:
        return Vector(ctx.emit(math.FmaOp(x, y, z)), both.shape, both.dtype)
    total = arith.AddiOp(ctx.emit(arith.MuliOp(x, y)), z)
    return Vector(ctx.emit(total), both.shape, both.dtype)


# where ------------------------------------------------------------------------------


@builds("where")
def _where(call: Call) -> Value:
    ctx, condition = call.ctx, call.value("cond")
    a, b = call.args["a"], call.args["b"]
    arithmetic.check_operands(ctx, "where", [call.args["cond"], a, b])
    if isinstance(condition, Vector) and not condition.dtype.is_bool:
        problem = f"the condition of `where` must be a mask, not {describe(condition)}"
        help_ = "compare it, for example `v != 0`"
        raise call.error("X0304", problem, "cond", help=help_)
    if not any(isinstance(v, Vector) for v in (condition, a.value, b.value)):
        truth = arithmetic.truth(ctx, call.args["cond"])
        if isinstance(truth, bool):
            return a.value if truth else b.value
        if "float" in (scalar_kind(a.value), scalar_kind(b.value)):
            left, right = casts.to_float(ctx, a.value), casts.to_float(ctx, b.value)
            return Scalar(ctx.emit(arith.SelectOp(truth.ssa, left, right)), "float")
        one, other = casts.runtime(ctx, a.value), casts.runtime(ctx, b.value)
        return Scalar(ctx.emit(arith.SelectOp(truth.ssa, one.ssa, other.ssa)), one.kind)
    left, right = _branches(ctx, condition, a, b)
    shape = _joined_shape(call, condition, left)
    mask = condition
    if not isinstance(mask, Vector):
        truth = arithmetic.truth(ctx, call.args["cond"])
        mask = casts.splat(ctx, truth, shape, i1)
    operands = [casts.broadcast(ctx, v, shape).ssa for v in (mask, left, right)]
    return Vector(ctx.emit(arith.SelectOp(*operands)), shape, left.dtype)


def _branches(ctx: Context, condition: Value, a: Arg, b: Arg) -> tuple[Vector, Vector]:
    """Return both values as vectors of one dtype.

    Scalar floats are f32, ints i32; but elements of 64 bits keep their dtype.
    """
    if isinstance(a.value, Vector) or isinstance(b.value, Vector):
        both = arithmetic.unify(ctx, "where", [a, b])
        return both.vectors[0], both.vectors[1]
    kinds = {scalar_kind(a.value), scalar_kind(b.value)}
    dtype = f32 if "float" in kinds else i1 if kinds == {"bool"} else i32
    dtype = casts.wide_of("float" if dtype == f32 else "int", a.value, b.value) or dtype
    shape = condition.shape
    left, right = (casts.splat(ctx, arg.value, shape, dtype) for arg in (a, b))
    return left, right


def _joined_shape(call: Call, condition: Value, chosen: Vector) -> tuple[int, ...]:
    if not isinstance(condition, Vector):
        return chosen.shape
    shape = casts.broadcast_shapes(condition.shape, chosen.shape)
    if shape is None:
        raise arithmetic.shape_error(call.ctx, "where", chosen.shape, call.args["cond"])
    return shape
