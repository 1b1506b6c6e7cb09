"""What the operations of ``ops/program.py`` become."""

from __future__ import annotations

from xetl.dialects.upstream import gpu
from xetl.frontend import arithmetic
from xetl.frontend.arguments import Arg, Call
from xetl.frontend.context import builds
from xetl.frontend.operators import ADD, FLOORDIV, SUB
from xetl.frontend.types import Scalar, Value, describe, is_constant
from xetl.language import ops


def _grid_axis(call: Call) -> str:
    axis = call.constant_int("axis")
    if axis not in (0, 1, 2):
        raise call.error("X0205", f"a grid has the axes 0, 1 and 2, not {axis}", "axis")
    return "xyz"[axis]


@builds("program_id")
def _program_id(call: Call) -> Value:
    return Scalar(call.ctx.emit(gpu.BlockIdOp(_grid_axis(call))), "int")


@builds("num_programs")
def _num_programs(call: Call) -> Value:
    return Scalar(call.ctx.emit(gpu.GridDimOp(_grid_axis(call))), "int")


@builds("barrier")
def _barrier(call: Call) -> None:
    call.ctx.add(gpu.BarrierOp())


@builds("subgroup_id")
def _subgroup_id(call: Call) -> Value:
    if call.ctx.level != "subgroup":
        raise call.error(
            "X0608",
            "`subgroup_id` has a meaning in subgroup-level kernels only",
            help="declare the kernel with @xetile.kernel(subgroups=[rows, columns])",
        )
    return Scalar(call.ctx.emit(gpu.SubgroupIdOp()), "int")


# While compiling --------------------------------------------------------------------


@builds("cdiv")
def _cdiv(call: Call) -> Value:
    a, b = call.args["a"], call.args["b"]
    if is_constant(a.value) and is_constant(b.value):
        return ops.cdiv(call.number("a"), call.number("b"))
    for name in ("a", "b"):
        call.scalar(name)
    ctx = call.ctx
    less = Arg(arithmetic.binary(ctx, SUB, b, Arg(1, b.node)), b.node)
    total = Arg(arithmetic.binary(ctx, ADD, a, less), call.node)
    return arithmetic.binary(ctx, FLOORDIV, total, b)


@builds("next_power_of_2")
def _next_power_of_2(call: Call) -> Value:
    return ops.next_power_of_2(call.constant_int("n"))


@builds("static_assert")
def _static_assert(call: Call) -> None:
    condition = call.value("cond")
    if not is_constant(condition):
        raise call.error(
            "X0606",
            "the condition of `static_assert` is known at run time only",
            "cond",
            label=f"is {describe(condition)}",
            help="use xetile.device_assert",
        )
    if not arithmetic.truth(call.ctx, call.args["cond"]):
        text = call.value("msg")
        shown = text if isinstance(text, str) else describe(text)
        # An operation made of others says what is wrong with the user's call.
        message = shown if call.ctx.frame.hidden else f"assertion failed: {shown}"
        raise call.error("X0607", message.rstrip(": "), "cond")


@builds("static_print")
def _static_print(call: Call) -> None:
    shown = [a.value if is_constant(a.value) else describe(a.value) for a in call.rest]
    call.ctx.said.append(" ".join(map(str, shown)))


@builds("static_range")
def _static_range(call: Call) -> Value:
    start, step = call.constant_int("start"), call.constant_int("step")
    if call.value("stop") is None:
        return range(start)
    if step == 0:
        raise call.error("X0604", "the step of `static_range` is 0", "step")
    return range(start, call.constant_int("stop"), step)
