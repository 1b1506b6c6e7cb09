"""Python's own functions that a kernel may call: ``range``, ``min``, ``len``, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from xetl.dialects.upstream import math
from xetl.errors import CompileError
from xetl.frontend import arithmetic, operators, types
from xetl.frontend.arguments import Arg, Given, check_readable, wrong_kind
from xetl.frontend.arrays import as_seen
from xetl.frontend.casts import absolute, to_float, to_int, whole
from xetl.frontend.context import Context

BuiltinHandler = Callable[[Context, Given, ast.Call], types.Value]


def _no_keywords(ctx: Context, name: str, given: Given) -> None:
    for keyword, arg in given.keywords.items():
        raise ctx.error("X0104", f"`{name}` has no parameter `{keyword}`", arg.node)


def _check_count(ctx: Context, name: str, given: Given, most: int | None) -> None:
    _no_keywords(ctx, name, given)
    count = len(given.positional)
    if not count or (most is not None and count > most):
        many = "1 or more" if most is None else f"1 to {most}"
        wanted = "1 argument" if most == 1 else f"{many} arguments"
        raise ctx.error("X0105", f"`{name}` takes {wanted}, not {count}")


def _of_a_vector(
    ctx: Context, name: str, wanted: str, arg: Arg, help_: str
) -> CompileError:
    problem = f"`{name}` of Python takes {wanted}, not {types.describe(arg.value)}"
    return ctx.error("X0303", problem, arg.node, help=help_)


def _range(ctx: Context, given: Given, node: ast.Call) -> types.Value:
    _check_count(ctx, "range", given, 3)
    for arg in given.positional:
        if not types.is_scalar(arg.value) or types.scalar_kind(arg.value) == "float":
            problem = "bounds of `range` must be ints"
            label, help_ = f"is {types.describe(arg.value)}", "convert with `int(...)`"
            raise ctx.error("X0305", problem, arg.node, label=label, help=help_)
    values = [arg.value for arg in given.positional]
    start, stop = (0, values[0]) if len(values) == 1 else values[:2]
    step = values[2] if len(values) == 3 else 1
    if not isinstance(step, types.Scalar) and step == 0:
        problem = "the step of `range` is 0"
        help_ = "a loop needs a step that is not 0"
        raise ctx.error("X0604", problem, given.positional[2].node, help=help_)
    if isinstance(step, int):
        step = whole(step, wraps=False)
    return types.Range(start, stop, step)


def _extremum(op: operators.Binary, name: str) -> BuiltinHandler:
    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        _no_keywords(ctx, name, given)
        args = given.positional
        items = types.items_of(args[0].value) if len(args) == 1 else None
        if items is not None:
            args = [Arg(item, args[0].node) for item in items]
        if len(args) == 1 and isinstance(args[0].value, types.Vector):
            help_ = f"use xetile.{name}(v, axis) or v.{name}(axis)"
            raise _of_a_vector(ctx, name, "numbers", args[0], help_)
        _check_count(ctx, name, Given(args, {}), None)
        result = args[0]
        for arg in args[1:]:
            result = Arg(_pairwise(ctx, op, name, result, arg), arg.node)
        return result.value

    return handler


def _pairwise(
    ctx: Context, op: operators.Binary, name: str, one: Arg, other: Arg
) -> types.Value:
    for arg in (one, other):
        if not types.is_scalar(arg.value):
            if isinstance(arg.value, types.Vector):
                help_ = f"use xetile.{op.symbol}"
                raise _of_a_vector(ctx, name, "numbers", arg, help_)
            raise wrong_kind(ctx, f"an argument of `{name}`", "a number", arg)
    return arithmetic.binary(ctx, op, one, other)


def _abs(ctx: Context, given: Given, node: ast.Call) -> types.Value:
    _check_count(ctx, "abs", given, 1)
    arithmetic.check_operands(ctx, "abs", given.positional)
    return absolute(ctx, given.positional[0].value)


def _len(ctx: Context, given: Given, node: ast.Call) -> types.Value:
    _check_count(ctx, "len", given, 1)
    arg = given.positional[0]
    if isinstance(arg.value, types.Array):
        return as_seen(arg.value.sizes[0])
    if isinstance(arg.value, types.Vector):
        return arg.value.shape[0]
    items = types.items_of(arg.value)
    if items is not None:
        return len(items)
    if isinstance(arg.value, str | bytes | range):
        return len(arg.value)
    raise wrong_kind(ctx, "the argument of `len`", "an array or a tuple", arg)


def _scalar_cast(kind: type[int] | type[float] | type[bool]) -> BuiltinHandler:
    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        _check_count(ctx, kind.__name__, given, 1)
        arg = given.positional[0]
        if types.is_number(arg.value) or isinstance(arg.value, str):
            return _on_constants(kind)(ctx, given, node)
        if not isinstance(arg.value, types.Scalar):
            raise wrong_kind(ctx, f"the argument of `{kind.__name__}`", "a number", arg)
        if kind is bool:
            return arithmetic.truth(ctx, arg)
        if kind is int:
            return types.Scalar(to_int(ctx, arg.value), "int")
        return types.Scalar(to_float(ctx, arg.value), "float")

    return handler


def _sequence(ctx: Context, name: str, arg: Arg) -> list[types.Value]:
    """Return the items of a sequence that is known at compile time."""
    value = arg.value
    if isinstance(value, types.Range):
        bounds = (value.start, value.stop, value.step)
        value = range(*bounds) if types.is_constant(bounds) else None
    if isinstance(value, range):
        return list(value)
    items = types.items_of(arg.value)
    if items is None:
        raise wrong_kind(ctx, f"an argument of `{name}`", "a tuple", arg)
    return items


def _over_sequences(function: Callable[..., Any]) -> BuiltinHandler:
    """Handle ``enumerate``, ``zip``, ``reversed``: they return items to unroll."""

    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        name = function.__name__
        _check_count(ctx, name, given, 1 if function is reversed else None)
        args = given.positional
        sequences: list[types.Value] = [_sequence(ctx, name, args[0])]
        for arg in args[1:]:
            start = function is enumerate and isinstance(arg.value, int)
            sequences.append(arg.value if start else _sequence(ctx, name, arg))
        return tuple(function(*sequences))

    return handler


def _folded(op: operators.Binary, name: str, start: types.Value) -> BuiltinHandler:
    """Handle ``sum``, ``all``, ``any`` of a tuple of numbers."""

    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        _check_count(ctx, name, given, 1)
        arg = given.positional[0]
        if isinstance(arg.value, types.Vector):
            help_ = f"use xetile.{name}(v, axis)"
            raise _of_a_vector(ctx, name, "a tuple", arg, help_)
        result = Arg(start, node)
        for item in _sequence(ctx, name, arg):
            part = Arg(item, arg.node)
            if name != "sum":
                part = Arg(arithmetic.truth(ctx, part), arg.node)
            result = Arg(arithmetic.binary(ctx, op, result, part), arg.node)
        return result.value

    return handler


def _round(ctx: Context, given: Given, node: ast.Call) -> types.Value:
    """Compile ``round``; a run-time number goes to the nearest int, halves to even."""
    if len(given.positional) != 1 or types.is_constant(given.positional[0].value):
        return _on_constants(round)(ctx, given, node)
    _check_count(ctx, "round", given, 1)
    arg = given.positional[0]
    if not isinstance(arg.value, types.Scalar):
        raise _of_a_vector(ctx, "round", "numbers", arg, "use xetile.round")
    if arg.value.kind != "float":
        return types.Scalar(to_int(ctx, arg.value), "int")
    whole = ctx.emit(math.RoundevenOp(arg.value.ssa))
    return types.Scalar(to_int(ctx, types.Scalar(whole, "float")), "int")


def _isinstance(ctx: Context, given: Given, node: ast.Call) -> types.Value:
    """Compile ``isinstance`` of a constant; of run-time values only against tuple."""
    if len(given.positional) == 2 and given.positional[1].value is tuple:
        items = types.items_of(given.positional[0].value)
        if items is not None or not types.is_constant(given.positional[0].value):
            return items is not None
    return _on_constants(isinstance)(ctx, given, node)


def _on_constants(function: Callable[..., Any]) -> BuiltinHandler:
    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        name = function.__name__
        _no_keywords(ctx, name, given)
        for arg in given.positional:
            if not types.is_constant(arg.value):
                raise wrong_kind(ctx, f"an argument of `{name}`", "a constant", arg)
            if function is not isinstance:
                check_readable(ctx, arg)
        try:
            return function(*(arg.value for arg in given.positional))
        except Exception as problem:
            raise ctx.error("X0307", f"`{name}` failed: {problem}") from None

    return handler


def _by_operators(
    function: Callable[..., Any], *ops: operators.Binary
) -> BuiltinHandler:
    """Handle a function of two operands; run-time values are joined by operators."""

    def handler(ctx: Context, given: Given, node: ast.Call) -> types.Value:
        constant = all(types.is_constant(arg.value) for arg in given.positional)
        if constant or len(given.positional) != 2:
            return _on_constants(function)(ctx, given, node)
        _no_keywords(ctx, function.__name__, given)
        one, other = given.positional
        found = [arithmetic.binary(ctx, op, one, other) for op in ops]
        return tuple(found) if len(found) > 1 else found[0]

    return handler


BUILTINS: dict[Callable[..., Any], BuiltinHandler] = {
    range: _range,
    min: _extremum(operators.MINIMUM, "min"),
    max: _extremum(operators.MAXIMUM, "max"),
    abs: _abs,
    len: _len,
    int: _scalar_cast(int),
    float: _scalar_cast(float),
    bool: _scalar_cast(bool),
    round: _round,
    sum: _folded(operators.ADD, "sum", 0),
    all: _folded(operators.AND, "all", True),
    any: _folded(operators.OR, "any", False),
    enumerate: _over_sequences(enumerate),
    zip: _over_sequences(zip),
    reversed: _over_sequences(reversed),
    isinstance: _isinstance,
    str: _on_constants(str),
    ord: _on_constants(ord),
    tuple: _on_constants(tuple),
    divmod: _by_operators(divmod, operators.FLOORDIV, operators.MOD),
    pow: _by_operators(pow, operators.POW),
}
