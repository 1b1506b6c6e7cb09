"""Expressions: one handler for each kind of syntax."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from xetl.errors import did_you_mean
from xetl.frontend import arithmetic, branches, types
from xetl.frontend.arguments import (
    OPERATIONS,
    Arg,
    Call,
    check_readable,
    dtype_of,
    read,
)
from xetl.frontend.casts import invert, minus
from xetl.frontend.context import EXPRESSIONS, Context, ExpressionHandler, unsupported
from xetl.frontend.limits import check_format
from xetl.frontend.operators import BINARY, COMPARISONS
from xetl.imports import import_whole
from xetl.ir.builder import move_to_end
from xetl.language import ops
from xetl.language.dtypes import DType

_OTHER_NAMES = "xetl.language.other_names"

NodeT = TypeVar("NodeT", bound=ast.expr)


def expression(
    kind: type[NodeT],
) -> Callable[[Callable[[Context, NodeT], types.Value]], ExpressionHandler]:
    """Register the handler of one kind of expression."""

    def register(handler: Callable[[Context, NodeT], types.Value]) -> ExpressionHandler:
        EXPRESSIONS[kind] = handler  # pyright: ignore[reportArgumentType]
        return EXPRESSIONS[kind]

    return register


def argument(ctx: Context, node: ast.expr) -> Arg:
    """Evaluate an expression; return its value and its place."""
    return Arg(ctx.evaluate(node), node)


@expression(ast.Constant)
def _constant(ctx: Context, node: ast.Constant) -> types.Value:
    if isinstance(node.value, bytes | complex):
        kind = type(node.value).__name__
        problem = f"{kind} constants are not part of the kernel language"
        raise ctx.error("X0402", problem, help="write an int, a float or a text")
    return node.value


@expression(ast.Name)
def _name(ctx: Context, node: ast.Name) -> types.Value:
    binding = read(ctx, node, lambda: ctx.scope.find(node.id))
    if binding is None and ctx.scope.sets(node.id):
        help_ = f"set `{node.id}` before the loop or the `if`"
        raise ctx.error("X0101", f"`{node.id}` is not defined here", help=help_)
    if binding is None:
        candidates = {*ctx.scope.names(), *dir(builtins)}
        raise ctx.error(
            "X0101",
            f"`{node.id}` is not defined",
            label="not found here, around the kernel, or in its module",
            help=import_whole(_OTHER_NAMES).MODULES.get(node.id)
            or _elsewhere(node.id)
            or did_you_mean(node.id, candidates),
        )
    binding.used = True
    if isinstance(binding.value, types.Unset):
        raise binding.value.error or ctx.error(
            "X0601",
            f"`{node.id}` may have no usable value here",
            notes=[binding.value.why],
            help=f"set `{node.id}` before, on every path and to one kind of value",
        )
    return plain(binding.value)


def _elsewhere(name: str) -> str | None:
    if name in ops.__all__:
        return f"write `xetile.{name}`"
    return import_whole(_OTHER_NAMES).advice_on(name, ops.__all__)


def plain(value: types.Value) -> types.Value:
    """Convert a NumPy scalar to a Python number; return any other value as it is."""
    if isinstance(value, np.generic):
        return cast("np.generic[Any]", value).item()
    return value


@expression(ast.Tuple)
@expression(ast.List)
def _tuple(ctx: Context, node: ast.Tuple | ast.List) -> types.Value:
    found: list[types.Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            found += [arg.value for arg in starred(ctx, item)]
        else:
            found.append(ctx.evaluate(item))
    return tuple(found)


def starred(ctx: Context, node: ast.Starred) -> list[Arg]:
    """Return the items of the tuple after a ``*``."""
    items = types.items_of(ctx.evaluate(node.value))
    if items is None:
        raise unsupported(ctx, node)
    return [Arg(item, node) for item in items]


@expression(ast.BinOp)
def _binary(ctx: Context, node: ast.BinOp) -> types.Value:
    return binary_operation(ctx, node.op, argument(ctx, node.left), node.right)


def binary_operation(
    ctx: Context, op: ast.operator, left: Arg, right_node: ast.expr
) -> types.Value:
    """Compile ``left op right``; ``@`` is tile_mma."""
    right = argument(ctx, right_node)
    if isinstance(op, ast.MatMult):
        return OPERATIONS["matmul"](Call(ctx, "@", ctx.node, {"a": left, "b": right}))
    return arithmetic.binary(ctx, BINARY[type(op)], left, right)


@expression(ast.UnaryOp)
def _unary(ctx: Context, node: ast.UnaryOp) -> types.Value:
    operand = argument(ctx, node.operand)
    if isinstance(node.op, ast.Not):
        condition = arithmetic.truth(ctx, operand)
        if isinstance(condition, types.Scalar):
            return arithmetic.negate(ctx, condition)
        return not condition
    arithmetic.check_operands(ctx, _SIGNS[type(node.op)], [operand])
    if isinstance(node.op, ast.USub):
        return minus(ctx, operand.value)
    if isinstance(node.op, ast.Invert):
        return invert(ctx, operand.value)
    return operand.value


_SIGNS: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


@expression(ast.BoolOp)
def _bool(ctx: Context, node: ast.BoolOp) -> types.Value:
    """Compile ``and``/``or``; as in Python, an operand is computed only if needed."""
    return _decide(ctx, isinstance(node.op, ast.And), node.values, node)


def _decide(
    ctx: Context, is_and: bool, operands: Sequence[ast.expr], node: ast.BoolOp
) -> types.Value:
    first = argument(ctx, operands[0])
    if len(operands) == 1:
        return first.value
    condition = arithmetic.truth(ctx, first)
    if isinstance(condition, bool):
        if condition != is_and:
            return first.value
        return _decide(ctx, is_and, operands[1:], node)
    values: list[types.Value] = []

    def compute() -> None:
        values.append(_decide(ctx, is_and, operands[1:], node))

    path = branches.begin_path(ctx, compute)
    value = values[0]
    if not types.is_scalar(value):
        arithmetic.truth(ctx, Arg(value, operands[1]))  # an error for vectors
    alike = types.is_scalar(value) and types.scalar_kind(value) == types.scalar_kind(
        first.value
    )
    if not alike:  # different kinds are joined as conditions
        with ctx.appending(path.block):
            value = arithmetic.truth(ctx, Arg(value, operands[1]))
        first = Arg(condition, first.node)
    if branches.is_cheap(path.block):
        move_to_end(path.block.ops, ctx.block)
        return arithmetic.select(ctx, is_and, condition, first.value, value)
    # Inside an ``scf.if``: the second operand reads memory or has effects.
    other = branches.begin_path(ctx, lambda: None)
    paths, both = (other, path), [first.value, value]
    if is_and:
        paths, both = (path, other), [value, first.value]
    return branches.join_values(ctx, condition, paths, both, node)


@expression(ast.Compare)
def _compare(ctx: Context, node: ast.Compare) -> types.Value:
    """Compile ``a < b <= c`` as ``a < b and b <= c``, for vectors in each lane."""
    left = argument(ctx, node.left)
    result: types.Value = True
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = argument(ctx, comparator)
        part = _compare_pair(ctx, op, left, right)
        if result is True:
            result = part
        else:
            symbol = BINARY[ast.BitAnd]
            pair = (Arg(result, node), Arg(part, node))
            result = arithmetic.binary(ctx, symbol, *pair)
        if result is False:
            return False
        left = right
    return result


def _compare_pair(ctx: Context, op: ast.cmpop, left: Arg, right: Arg) -> types.Value:
    if isinstance(op, ast.Is | ast.IsNot):
        identical = left.value is right.value
        return identical == isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(ctx, isinstance(op, ast.In), left, right)
    return arithmetic.compare(ctx, COMPARISONS[type(op)], left, right)


def _contains(ctx: Context, wanted: bool, left: Arg, right: Arg) -> types.Value:
    """Compile ``n in (1, 2, 3)``: whether one of the items is equal."""
    if types.is_constant(left.value) and types.is_constant(right.value):
        items = types.items_of(right.value)
        if isinstance(left.value, DType) and items is not None:
            known = [dtype_of(ctx, Arg(item, right.node)) or item for item in items]
            right = Arg(tuple(known), right.node)
        in_tuple = isinstance(right.value, tuple | list)
        check_readable(ctx, left, *([right] if in_tuple else []))
        found = read(
            ctx, right.node, lambda: ctx.reads.contains(right.value, left.value)
        )
        return found == wanted
    items = types.items_of(right.value)
    if items is None or not all(types.is_scalar(item) for item in [left.value, *items]):
        problem = "`in` looks for a number in a tuple of numbers"
        help_ = "compare with `==` and combine with `or`"
        raise ctx.error("X0305", problem, help=help_)
    found: types.Value = False
    for item in items:
        same = arithmetic.compare(ctx, COMPARISONS[ast.Eq], left, Arg(item, right.node))
        both = Arg(found, right.node), Arg(same, right.node)
        found = arithmetic.binary(ctx, BINARY[ast.BitOr], *both)
    if isinstance(found, types.Scalar):
        return found if wanted else arithmetic.negate(ctx, found)
    return found == wanted


@expression(ast.IfExp)
def _ternary(ctx: Context, node: ast.IfExp) -> types.Value:
    condition = arithmetic.truth(ctx, argument(ctx, node.test))
    if isinstance(condition, bool):
        return ctx.evaluate(node.body if condition else node.orelse)
    return branches.choose(ctx, condition, node)


@expression(ast.Lambda)
def _lambda(ctx: Context, node: ast.Lambda) -> types.Value:
    return types.LocalFunction(
        node, ctx.scope, ctx.frame, evaluate_defaults(ctx, node.args)
    )


def evaluate_defaults(ctx: Context, arguments: ast.arguments) -> dict[str, types.Value]:
    """Evaluate the defaults of a local function, by the names of parameters."""
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(reversed(places), reversed(arguments.defaults), strict=False))
    pairs += [
        (parameter, default)
        for parameter, default in zip(
            arguments.kwonlyargs, arguments.kw_defaults, strict=True
        )
        if default is not None
    ]
    return {parameter.arg: ctx.evaluate(default) for parameter, default in pairs}


@expression(ast.NamedExpr)
def _walrus(ctx: Context, node: ast.NamedExpr) -> types.Value:
    value = ctx.evaluate(node.value)
    ctx.scope.bind(node.target.id, value, node)
    return value


@expression(ast.JoinedStr)
def _f_string(ctx: Context, node: ast.JoinedStr) -> types.Value:
    """Compile an f-string: constants become text, run-time values become fields."""
    return _joined([ctx.evaluate(part) for part in node.values])


def _joined(parts: Iterable[types.Value]) -> types.Text | str:
    template, shown = "", ""
    values: list[types.Value] = []
    for value in parts:
        if isinstance(value, types.Text):
            template, shown = template + value.template, shown + value.shown
            values += value.values
        else:
            template, shown = template + escaped(value), shown + value
    return types.Text(template, tuple(values), shown) if values else shown


def as_text(value: types.Value) -> types.Value:
    """Convert a tuple to the text that Python prints; return others as they are."""
    items = types.items_of(value)
    if items is None:
        return value
    if types.is_constant(value):
        return str(value)
    parts: list[types.Value] = ["("]
    for item in items:
        parts += [_item_as_text(item), ", "]
    return _joined([*parts[:-1], ",)" if len(items) == 1 else ")"])


def escaped(text: str) -> str:
    """Escape the braces of ``text`` for a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _item_as_text(item: types.Value) -> types.Value:
    if isinstance(item, types.Scalar | types.Vector):
        return types.Text("{}", (item,), types.describe(item))
    if types.is_constant(item):
        return repr(item)
    return types.describe(item) if types.items_of(item) is None else as_text(item)


@expression(ast.FormattedValue)
def _formatted(ctx: Context, node: ast.FormattedValue) -> types.Value:
    value = ctx.evaluate(node.value)
    spec = ctx.evaluate(node.format_spec) if node.format_spec is not None else ""
    if spec and not isinstance(value, types.Scalar) and not types.is_constant(value):
        problem = (
            f"{types.describe(value)} is printed as it is: only numbers take a format"
        )
        raise ctx.error("X0315", problem, help="write `{}` without a format")
    if isinstance(spec, types.Text):
        raise ctx.error("X0315", "this format is known at run time only")
    if isinstance(value, types.Scalar | types.Vector):
        field = f"{{:{spec}}}" if spec else "{}"
        return types.Text(field, (value,), types.describe(value))
    if not types.is_constant(value):
        return (
            as_text(value)
            if types.items_of(value) is not None
            else types.describe(value)
        )
    check_readable(ctx, Arg(value, node.value))
    check_format(ctx, spec)
    try:
        return format(_CONVERSIONS[node.conversion](value), spec)
    except (TypeError, ValueError) as problem:
        raise ctx.error("X0307", f"formatting failed: {problem}") from None


_CONVERSIONS: dict[int, Callable[[types.Value], types.Value]] = {
    -1: lambda value: value,
    ord("s"): str,
    ord("r"): repr,
    ord("a"): ascii,
}


@expression(ast.Starred)
def _starred(ctx: Context, node: ast.Starred) -> types.Value:
    raise unsupported(ctx, node)
