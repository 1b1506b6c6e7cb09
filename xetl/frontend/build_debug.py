"""What ``device_print``, ``device_assert`` and ``assert`` become."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import vector
from xetl.errors import ControlFlowError, NameLookupError, TileTypeError
from xetl.frontend import arithmetic
from xetl.frontend.arguments import Arg, Call, Given, wrong_kind
from xetl.frontend.arrays import as_memref
from xetl.frontend.builtin_calls import BUILTINS
from xetl.frontend.casts import extract, runtime
from xetl.frontend.context import Context, builds
from xetl.frontend.expressions import escaped
from xetl.frontend.scope import Scope
from xetl.frontend.types import (
    Array,
    Scalar,
    Text,
    Tile,
    Value,
    Vector,
    describe,
    element_type,
    is_constant,
    is_number,
)


def _breakpoint(ctx: Context, given: Given, node: ast.Call) -> None:
    arguments = [*given.positional, *given.keywords.values()]
    if arguments:
        raise ctx.error(
            NameLookupError,
            "X0105",
            "`breakpoint` takes no arguments in a kernel",
            arguments[0].node,
        )
    names: list[str] = []
    values: list[SSAValue] = []
    unsigned: list[int] = []
    for name, value in _visible(ctx.scope).items():
        ssa = _visible_value(ctx, value)
        if ssa is None:
            continue
        if isinstance(value, Vector | Array | Tile) and value.dtype.kind == "u":
            unsigned.append(len(values))
        names.append(name)
        values.append(ssa)
    ctx.add(xetile.BreakpointOp(values, names=names, unsigned=unsigned))


def _visible(scope: Scope) -> Mapping[str, Value]:
    """The variables of a function, and of those around it in the kernel."""
    found: dict[str, Value] = {}
    if isinstance(scope.outer, Scope):
        found.update(_visible(scope.outer))
    found.update((name, each.value) for name, each in scope.bindings.items())
    return found


def _visible_value(ctx: Context, value: Value) -> SSAValue | None:
    """A variable as a value of the IR; None: a debugger does not show it."""
    if is_number(value) or isinstance(value, Scalar):
        return runtime(ctx, value).ssa
    if isinstance(value, Array):
        return as_memref(ctx, value)
    if isinstance(value, Vector) and len(value.shape) == 1:
        line = VectorType(element_type(value.dtype), value.shape)
        return ctx.emit(vector.ShapeCastOp(value.ssa, line))
    if isinstance(value, Vector | Tile):
        return value.ssa
    return None


BUILTINS[breakpoint] = _breakpoint


def _print(ctx: Context, given: Given, node: ast.Call) -> None:
    """``print(...)`` is `device_print` with its values beside each other."""
    for keyword, arg in given.keywords.items():
        raise ctx.error(
            NameLookupError,
            "X0104",
            f"`print` has no parameter `{keyword}` in a kernel",
            arg.node,
            help="write one text: print(f'...')",
        )
    parts: list[str] = []
    values: list[Arg] = []
    for arg in given.positional:
        if isinstance(arg.value, Text):
            parts.append(arg.value.template)
            values += [Arg(value, arg.node) for value in arg.value.values]
        elif isinstance(arg.value, str):
            parts.append(escaped(arg.value))
        else:
            parts.append("{}")
            values.append(arg)
    call = Call(ctx, "print", node, {})
    line = _line(call, " ".join(parts), values)
    ctx.add(xetile.PrintOp(line.values, template=line.template, unsigned=line.unsigned))


BUILTINS[print] = _print


@dataclass(eq=False, slots=True)
class _Line:
    """A text with its values as the ops take them."""

    template: str
    values: list[SSAValue] = field(default_factory=list["SSAValue"])
    unsigned: list[int] = field(default_factory=list[int])


@builds("device_print")
def _device_print(call: Call) -> None:
    text, values = _text(call, "fmt")
    values = [*values, *call.rest]
    wanted = xetile.count_fields(text)
    if wanted == 0:  # Triton's form: a text, and values behind it
        text, wanted = " ".join([text, *["{}"] * len(values)]), len(values)
    if wanted is None:
        raise call.error(
            TileTypeError,
            "X0315",
            "this text has a field that is not `{}`",
            "fmt",
            help="write `{}`, or `{:.3f}`, once for each value, and `{{` for a brace",
        )
    if wanted != len(values):
        raise call.error(
            TileTypeError,
            "X0315",
            f"the text has {_plural(wanted, 'field')} `{{}}`, but"
            f" {_plural(len(values), 'value')} {'is' if len(values) == 1 else 'are'}"
            " given",
            "fmt",
            help="write `{}` once for each value",
        )
    line = _line(call, text, values)
    call.ctx.add(
        xetile.PrintOp(line.values, template=line.template, unsigned=line.unsigned)
    )


@builds("device_assert")
def _device_assert(call: Call) -> None:
    condition = call.value("cond")
    text, values = "", []
    if call.value("msg") is not None:
        text, values = _text(call, "msg")
    if is_constant(condition):
        if not arithmetic.truth(call.ctx, call.args["cond"]):
            raise _fails_always(call)
        return
    holds = _condition(call)
    line = _line(call, text or escaped(_source(call)), values)
    call.ctx.add(
        xetile.AssertOp(
            holds, line.values, template=line.template, unsigned=line.unsigned
        )
    )


def _fails_always(call: Call) -> ControlFlowError:
    message = call.value("msg")
    shown = "" if message is None else describe(message)
    if isinstance(message, str):
        shown = message
    error = call.error(
        ControlFlowError, "X0607", f"assertion failed: {shown}".rstrip(": "), "cond"
    )
    assert isinstance(error, ControlFlowError)
    return error


def _source(call: Call) -> str:
    return call.ctx.frame.text(call.args["cond"].node)


def _condition(call: Call) -> SSAValue:
    """Argument ``cond``; of a mask all lanes must hold."""
    value = call.value("cond")
    if isinstance(value, Vector) and value.dtype.is_bool:
        every = xetile.TileReduceOp("and", value.ssa, [0, 1])
        held = Vector(call.ctx.emit(every), (1, 1), value.dtype)
        return extract(call.ctx, held).ssa
    holds = arithmetic.truth(call.ctx, call.args["cond"])
    return runtime(call.ctx, holds).ssa


def _text(call: Call, name: str) -> tuple[str, list[Arg]]:
    """A text argument as template, with the values of an f-string."""
    arg = call.args[name]
    if isinstance(arg.value, Text):
        return arg.value.template, [Arg(value, arg.node) for value in arg.value.values]
    if not isinstance(arg.value, str):
        raise wrong_kind(call.ctx, f"`{name}` of `{call.name}`", "a text", arg)
    # Only `device_print` takes values, so only there braces are fields.
    return arg.value if name == "fmt" else escaped(arg.value), []


def _line(call: Call, template: str, values: Sequence[Arg]) -> _Line:
    """The values as SSA values."""
    line = _Line(template)
    for arg in values:
        value = arg.value
        if not (is_number(value) or isinstance(value, Scalar | Vector)):
            raise wrong_kind(
                call.ctx, f"a value of `{call.name}`", "a vector or a number", arg
            )
        if isinstance(value, Vector) and value.dtype.kind == "u":
            line.unsigned.append(len(line.values))
        line.values.append(_shown(call, value))
    return line


def _shown(call: Call, value: Value) -> SSAValue:
    """A value as it is printed: a rank-1 vector has rank 1."""
    if not isinstance(value, Vector):
        return runtime(call.ctx, value).ssa
    if len(value.shape) != 1:
        return value.ssa
    line = VectorType(element_type(value.dtype), value.shape)
    return call.ctx.emit(vector.ShapeCastOp(value.ssa, line))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
