"""The IR of the operations of ``ops/program.py``; prints and assertions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import UnitAttr, VectorType
from xdsl.ir import SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import gpu, vector
from xetl.errors import CompileError
from xetl.frontend import arithmetic, types
from xetl.frontend.arguments import Arg, Call, Given, builds, check_readable, wrong_kind
from xetl.frontend.arrays import as_memref
from xetl.frontend.builtin_calls import BUILTINS
from xetl.frontend.casts import extract, minus, runtime
from xetl.frontend.context import Context
from xetl.frontend.expressions import as_text, escaped
from xetl.frontend.operators import ADD, COMPARISONS, FLOORDIV, MOD, MUL
from xetl.language import ops


def _grid_axis(call: Call) -> str:
    axis = call.constant_int("axis")
    if axis not in (0, 1, 2):
        problem = f"a grid has the axes 0, 1 and 2, not {axis}"
        help_ = "make one size of several, and take it apart with `//` and `%`"
        raise call.error("X0205", problem, "axis", help=help_)
    return "xyz"[axis]


@builds("program_id")
def _program_id(call: Call) -> types.Value:
    return types.Scalar(call.ctx.emit(gpu.BlockIdOp(_grid_axis(call))), "int")


@builds("num_programs")
def _num_programs(call: Call) -> types.Value:
    return types.Scalar(call.ctx.emit(gpu.GridDimOp(_grid_axis(call))), "int")


@builds("barrier")
def _barrier(call: Call) -> None:
    call.ctx.add(gpu.BarrierOp())


@builds("subgroup_id")
def _subgroup_id(call: Call) -> types.Value:
    if call.ctx.level != "subgroup":
        problem = "`subgroup_id` has a meaning in subgroup-level kernels only"
        help_ = "declare the kernel with @xetile.kernel(subgroups=[rows, columns])"
        raise call.error("X0608", problem, help=help_)
    return types.Scalar(call.ctx.emit(gpu.SubgroupIdOp()), "int")


# While compiling --------------------------------------------------------------------


@builds("cdiv")
def _cdiv(call: Call) -> types.Value:
    ctx, a, b = call.ctx, call.args["a"], call.args["b"]
    kinds = [types.scalar_kind(call.scalar(name)) for name in ("a", "b")]
    if kinds == ["int", "int"] and types.is_constant(b.value) and b.value > 0:
        # If `a` is known not to be negative, this becomes an unsigned division.
        total = arithmetic.binary(ctx, ADD, a, Arg(b.value - 1, b.node))
        return arithmetic.binary(ctx, FLOORDIV, Arg(total, call.node), b)
    negative = Arg(minus(ctx, a.value), call.node)
    return minus(ctx, arithmetic.binary(ctx, FLOORDIV, negative, b))


@builds("next_power_of_2")
def _next_power_of_2(call: Call) -> types.Value:
    return ops.next_power_of_2(call.constant_int("n"))


@builds("static_assert")
def _static_assert(call: Call) -> None:
    condition = call.value("cond")
    if not types.is_constant(condition):
        problem = "the condition of `static_assert` is known at run time only"
        help_ = "use xetile.device_assert"
        if call.ctx.frame.hidden:
            name = call.ctx.frame.operation()
            problem = f"`{name}` takes numbers known when compiling"
            help_ = "pass them to the kernel as `constexpr`"
        raise call.unfit("X0606", problem, "cond", help_)
    if not arithmetic.truth(call.ctx, call.args["cond"]):
        raise _fails_always(call)


@builds("static_print")
def _static_print(call: Call) -> None:
    values = [as_text(arg.value) for arg in call.rest]
    shown = [v if types.is_constant(v) else types.describe(v) for v in values]
    call.ctx.said.append(" ".join(map(str, shown)))


@builds("static_range")
def _static_range(call: Call) -> types.Value:
    start, step = call.constant_int("start"), call.constant_int("step")
    if call.value("stop") is None:
        return range(start)
    if step == 0:
        raise call.error("X0604", "the step of `static_range` is 0", "step")
    return range(start, call.constant_int("stop"), step)


def _breakpoint(ctx: Context, given: Given, node: ast.Call) -> None:
    arguments = [*given.positional, *given.keywords.values()]
    if arguments:
        problem = "`breakpoint` takes no arguments in a kernel"
        raise ctx.error("X0105", problem, arguments[0].node)
    add_stop(ctx)


def add_stop(ctx: Context, *, step: bool = False) -> None:
    """Let a debugger stop here, if ``step`` only one that steps: it sees variables."""
    names: list[str] = []
    values: list[SSAValue] = []
    unsigned: list[int] = []
    for name, value in _visible(ctx.scope).items():
        ssa = _visible_value(ctx, value)
        if ssa is None:
            continue
        if (
            isinstance(value, types.Vector | types.Array | types.Tile)
            and value.dtype.kind == "u"
        ):
            unsigned.append(len(values))
        names.append(name)
        values.append(ssa)
    marked = UnitAttr() if step else None
    ctx.add(xetile.BreakpointOp(values, names=names, unsigned=unsigned, step=marked))


def _visible(scope: types.Scope) -> Mapping[str, types.Value]:
    """Return the variables of a function, and of functions around it in the kernel."""
    found: dict[str, types.Value] = {}
    if isinstance(scope.outer, types.Scope):
        found.update(_visible(scope.outer))
    found.update((name, each.value) for name, each in scope.bindings.items())
    return found


def _visible_value(ctx: Context, value: types.Value) -> SSAValue | None:
    """Return a variable as an SSA value; None if a debugger does not show it."""
    if isinstance(value, types.Array):
        return as_memref(ctx, value)
    if isinstance(value, types.Tile):
        return value.ssa
    if types.is_number(value) or isinstance(value, types.Scalar | types.Vector):
        return _plain_value(ctx, value)
    return None


def _plain_value(ctx: Context, value: types.Value) -> SSAValue:
    """Return a number or vector as an SSA value to show; rank 1 remains rank 1."""
    if not isinstance(value, types.Vector):
        return runtime(ctx, value).ssa
    if len(value.shape) != 1:
        return value.ssa
    line = VectorType(types.element_type(value.dtype), value.shape)
    return ctx.emit(vector.ShapeCastOp(value.ssa, line))


BUILTINS[breakpoint] = _breakpoint


def _print(ctx: Context, given: Given, node: ast.Call) -> None:
    """Compile ``print(...)`` to a `device_print` with spaces between the values."""
    for keyword, arg in given.keywords.items():
        problem = f"`print` has no parameter `{keyword}` in a kernel"
        help_ = "write one text: print(f'...')"
        raise ctx.error("X0104", problem, arg.node, help=help_)
    parts: list[str] = []
    values: list[Arg] = []
    for arg in given.positional:
        value = as_text(arg.value)
        if types.is_constant(value):  # as in an f-string
            check_readable(ctx, arg)
            value = str(value)
        if isinstance(value, types.Text):
            parts.append(value.template)
            values += [Arg(each, arg.node) for each in value.values]
        elif isinstance(value, str):
            parts.append(escaped(value))
        else:
            parts.append("{}")
            values.append(arg)
    call = Call(ctx, "print", node, {})
    text = " ".join(parts)
    shown, unsigned = _shown_values(call, text, values)
    ctx.add(xetile.PrintOp(shown, template=text, unsigned=unsigned))


BUILTINS[print] = _print


@builds("device_print")
def _device_print(call: Call) -> None:
    text, values = _text(call, "fmt")
    values = [*values, *call.rest]
    wanted = xetile.count_fields(text)
    if wanted == 0:  # Triton's form: a text, then values
        text, wanted = " ".join([text, *["{}"] * len(values)]), len(values)
    if wanted is None:
        problem = "this text has a field that is not `{}`"
        help_ = "write `{}`, or `{:.3f}`, once for each value, and `{{` for a brace"
        raise call.error("X0315", problem, "fmt", help=help_)
    if wanted != len(values):
        problem = (
            f"the text has {_plural(wanted, 'field')} `{{}}`, but"
            f" {_plural(len(values), 'value')} {'is' if len(values) == 1 else 'are'}"
            " given"
        )
        raise call.error("X0315", problem, "fmt", help="write `{}` once for each value")
    shown, unsigned = _shown_values(call, text, values)
    call.ctx.add(xetile.PrintOp(shown, template=text, unsigned=unsigned))


@builds("device_assert")
def _device_assert(call: Call) -> None:
    condition = call.value("cond")
    text, values = "", []
    if call.value("msg") is not None:
        text, values = _text(call, "msg")
    if types.is_constant(condition):
        if not arithmetic.truth(call.ctx, call.args["cond"]):
            raise _fails_always(call)
        return
    holds = _all(call.ctx, call.args["cond"])
    text = text or escaped(_source(call))
    shown, unsigned = _shown_values(call, text, values)
    call.ctx.add(xetile.AssertOp(holds, shown, template=text, unsigned=unsigned))


@builds("assume")
def _assume(call: Call) -> None:
    if types.is_constant(call.value("cond")):
        if not arithmetic.truth(call.ctx, call.args["cond"]):
            raise call.error("X0607", "what is assumed never holds", "cond")
        return
    holds = _all(call.ctx, call.args["cond"])
    _promise(call, holds, f"assume({_source(call)})")


def _promise(call: Call, holds: SSAValue, text: str) -> None:
    template = f"broken promise: {escaped(text)}"
    call.ctx.add(xetile.AssertOp(holds, [], template=template, assumed=True))


@builds("multiple_of")
def _multiple_of(call: Call) -> types.Value:
    factor, arg = call.constant_int("n"), call.args["v"]
    if factor < 1:
        raise call.error("X0204", f"nothing is a multiple of {factor}", "n")
    is_vector = isinstance(arg.value, types.Vector) and arg.value.dtype.is_integer
    if not is_vector and types.scalar_kind(call.scalar("v")) != "int":
        raise call.wrong_kind("v", "an int")
    number = Arg(factor, call.args["n"].node)
    rest = Arg(arithmetic.binary(call.ctx, MOD, arg, number), call.node)
    zero = arithmetic.compare(call.ctx, COMPARISONS[ast.Eq], rest, Arg(0, call.node))
    if types.is_constant(zero):
        if not zero:
            raise call.error("X0204", f"{arg.value} is no multiple of {factor}", "v")
        return arg.value
    text = f"multiple_of({call.ctx.frame.text(arg.node)}, {factor})"
    _promise(call, _all(call.ctx, Arg(zero, call.node)), text)
    if is_vector:
        return arg.value
    count = Arg(arithmetic.binary(call.ctx, FLOORDIV, arg, number), call.node)
    return arithmetic.binary(call.ctx, MUL, count, number)


def _fails_always(call: Call) -> CompileError:
    text = call.value("msg")
    shown = text if isinstance(text, str) else types.describe(text)
    # In the body of an operation the text describes an error of the user's call.
    message = shown if call.ctx.frame.hidden else f"assertion failed: {shown}"
    message = "assertion failed" if text is None else message
    return call.error("X0607", message.rstrip(": "), "cond")


def _source(call: Call) -> str:
    return call.ctx.frame.text(call.args["cond"].node)


def _all(ctx: Context, arg: Arg) -> SSAValue:
    """Compute whether a condition is true, for a mask in all lanes."""
    value = arg.value
    if isinstance(value, types.Vector) and value.dtype.is_bool:
        every = xetile.TileReduceOp(value.ssa, "and", [0, 1])
        return extract(ctx, types.Vector(ctx.emit(every), (1, 1), value.dtype)).ssa
    return runtime(ctx, arithmetic.truth(ctx, arg)).ssa


def _text(call: Call, name: str) -> tuple[str, list[Arg]]:
    """Return a text argument as a template, and the values of an f-string."""
    arg = call.args[name]
    if isinstance(arg.value, types.Text):
        return arg.value.template, [Arg(value, arg.node) for value in arg.value.values]
    if not isinstance(arg.value, str):
        raise call.wrong_kind(name, "a text")
    # Braces are fields only in `device_print`, which takes values.
    return arg.value if name == "fmt" else escaped(arg.value), []


def _shown_values(
    call: Call, text: str, values: Sequence[Arg]
) -> tuple[list[SSAValue], list[int]]:
    """Return SSA values for the fields of ``text``, and indices of unsigned ones."""
    shown: list[SSAValue] = []
    unsigned: list[int] = []
    for arg in values:
        value = arg.value
        if not (
            types.is_number(value) or isinstance(value, types.Scalar | types.Vector)
        ):
            what = f"a value of `{call.name}`"
            raise wrong_kind(call.ctx, what, "a vector or a number", arg)
        if isinstance(value, types.Vector) and value.dtype.kind == "u":
            unsigned.append(len(shown))
        shown.append(_plain_value(call.ctx, value))
    wrong = xetile.wrong_format(text, [each.type for each in shown])
    if wrong is not None:
        arg = values[wrong[0]]
        problem = f"{types.describe(arg.value)} cannot be printed so: {wrong[1]}"
        help_ = "write `{}` without a format, or one for its kind: `{:d}`, `{:.3f}`"
        raise call.ctx.error("X0315", problem, arg.node, help=help_)
    return shown, unsigned


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
