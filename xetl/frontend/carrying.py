"""Loop-carried values of run-time loops.

A value is converted to SSA values to enter or leave a region, and back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import zip_longest

from xdsl.ir import SSAValue

from xetl.errors import CompileError
from xetl.frontend.casts import runtime, wide_of
from xetl.frontend.context import Again, Context
from xetl.frontend.types import (
    KINDS,
    Array,
    Binding,
    Scalar,
    Tile,
    Unset,
    Value,
    Vector,
    describe,
    is_number,
    is_scalar,
    items_of,
    scalar_kind,
)
from xetl.records import record


def can_cross(value: Value) -> bool:
    """Whether a region can carry ``value``: a number, vector, tile, tuple of these."""
    if isinstance(value, tuple):
        return all(can_cross(item) for item in items_of(value) or ())
    return isinstance(value, Scalar | Vector | Tile) or is_number(value)


def same(one: Value, other: Value) -> bool:
    """Whether two values are the same: one object, or equal constants."""
    if one is other:
        return True
    if isinstance(one, Scalar | Vector | Tile):
        return type(one) is type(other) and one.ssa is other.ssa
    pairs = _pairs(one, other)
    if pairs is not None:
        return all(same(a, b) for a, b in pairs)
    # 0.0 == -0.0, but they are not the same; NaN != NaN, but it is the same.
    if is_number(one) and is_number(other):
        return type(one) is type(other) and repr(one) == repr(other)
    return isinstance(one, str) and isinstance(other, str) and one == other


def _pairs(one: Value, other: Value) -> list[tuple[Value, Value]] | None:
    """Return the items of two tuples of one length as pairs; None for other values."""
    if not (isinstance(one, tuple) and isinstance(other, tuple)):
        return None
    first, second = items_of(one) or [], items_of(other) or []
    return list(zip(first, second)) if len(first) == len(second) else None


def same_kind(one: Value, other: Value) -> bool:
    """Whether one name can have either value: same kind, shape and dtype."""
    pairs = _pairs(one, other)
    if pairs is not None:
        return all(same_kind(a, b) for a, b in pairs)
    if is_scalar(one) and is_scalar(other):
        return scalar_kind(one) == scalar_kind(other)
    if isinstance(one, Vector) and isinstance(other, Vector):
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    if isinstance(one, Tile) and isinstance(other, Tile):
        alike = (one.shape, one.dtype) == (other.shape, other.dtype)
        return alike and one.ssa.type == other.ssa.type
    return False


def _widens(first: Value, last: Value) -> bool:
    """Whether a number that is ``first`` or ``last`` is wider than ``first``."""
    pairs = _pairs(first, last)
    if pairs is not None:
        return any(_widens(a, b) for a, b in pairs)
    before = first.wide if isinstance(first, Scalar) else None
    return is_scalar(first) and wide_of(scalar_kind(first), first, last) != before


def to_ssa(ctx: Context, value: Value) -> list[SSAValue]:
    """Return the SSA values of a value that can cross; constants are materialised."""
    if isinstance(value, tuple):
        return [ssa for item in items_of(value) or () for ssa in to_ssa(ctx, item)]
    if isinstance(value, Vector | Tile):
        return [value.ssa]
    return [runtime(ctx, value).ssa]


def from_ssa(like: Value, values: Iterator[SSAValue], also: Value = None) -> Value:
    """Make a value like ``like`` of other SSA values.

    If ``also`` is given, the value is one of both: a number is as wide as either.
    """
    if isinstance(like, tuple):
        pairs = zip_longest(items_of(like) or (), items_of(also) or ())
        return tuple(from_ssa(item, values, other) for item, other in pairs)
    if isinstance(like, Vector | Tile):
        return replace(like, ssa=next(values))
    kind = scalar_kind(like)
    return Scalar(next(values), kind, wide_of(kind, like, also))


def describe_kind(value: Value) -> str:
    """Describe the kind of ``value``, for a constant like for a run-time number."""
    if is_number(value):
        return KINDS[scalar_kind(value)]
    if isinstance(value, tuple):
        return f"({', '.join(describe_kind(item) for item in items_of(value) or ())})"
    return describe(value)


def line_of(node: ast.AST | None) -> str:
    """Return text such as `` at line 5``; "" if the line is not known."""
    line = getattr(node, "lineno", None)
    return f" at line {line}" if line else ""


Bindings = dict[str, Binding]


@record(frozen=True)
class _End:
    """The carried value of a name at the end of the body.

    ``unset`` is set if the name has no usable value after the loop.
    """

    carried: Value
    unset: Unset | None = None


class Carried:
    """The names that a loop changes and that have a value before it.

    Call the methods in this order: ``starts`` before the loop, ``enter`` at the start
    of its block, ``ends`` at the end of its block, ``leave`` after the loop.
    """

    def __init__(
        self, ctx: Context, node: ast.For | ast.While, changing: Set[str]
    ) -> None:
        self.node = node
        self.before = ctx.scope.bindings
        self.first: Bindings = {
            name: binding
            for name, binding in self.before.items()
            if name in changing and can_cross(binding.value)
        }
        self.inside: Bindings = {}
        self.after: Bindings = {}
        self.end: dict[str, _End] = {}

    def starts(self, ctx: Context) -> list[SSAValue]:
        """Return the values before the loop."""
        return [s for b in self.first.values() for s in to_ssa(ctx, b.value)]

    def enter(self, ctx: Context, arguments: Sequence[SSAValue]) -> None:
        """Bind the names to the arguments of the body."""
        values = iter(arguments)
        self.inside = {
            name: Binding(from_ssa(b.value, values), b.node)
            for name, b in self.first.items()
        }
        ctx.scope.bindings = self.before | self.inside

    def pass_on(self, ctx: Context) -> list[SSAValue]:
        """Return the values of the names after the test of a loop, for its body.

        Raises:
            ControlFlowError: the test changed the kind of a name.
        """
        for name, first in self.first.items():
            last = ctx.scope.bindings[name]
            if not same_kind(first.value, last.value):
                raise _change(ctx, name, first, last)
        now = [ctx.scope.bindings[name].value for name in self.first]
        return [ssa for value in now for ssa in to_ssa(ctx, value)]

    def enter_body(self, ctx: Context, arguments: Sequence[SSAValue]) -> None:
        """Bind the names to the arguments of the second block of a loop."""
        values, now, was = iter(arguments), ctx.scope.bindings, self.inside
        self.inside = {
            name: Binding(from_ssa(b.value, values), now[name].node, was[name].used)
            for name, b in self.first.items()
        }
        ctx.scope.bindings = now | self.inside

    def ends(self, ctx: Context, targets: Set[str]) -> list[SSAValue]:
        """Return the values for the next iteration; restore the scope before the loop.

        Raises:
            ControlFlowError: a name changes its kind.
        """
        self.after = ctx.scope.bindings
        ctx.scope.bindings = self.before
        self.end = {name: self._end(ctx, name) for name in self.first}
        # A value that cannot be carried (None, a dtype, an array) must not change.
        changeable = self.first.keys() | targets
        for name, first in self.before.items():
            last = self.after[name]
            if name in changeable or isinstance(first.value, Unset) or last is first:
                continue
            if not same(first.value, last.value):
                raise _change(ctx, name, first, last)
        return [s for end in self.end.values() for s in to_ssa(ctx, end.carried)]

    def _end(self, ctx: Context, name: str) -> _End:
        """Return the value of a carried variable at the end of the body.

        If the body always sets a variable before it reads it, its kind may change:
        then only a use after the loop is an error.

        Raises:
            ControlFlowError: the next iteration would read another kind of value.
            Again: it would read a wider number.
        """
        first, last, inside = self.first[name], self.after[name], self.inside[name]
        if same_kind(first.value, last.value):
            if inside.used and _widens(first.value, last.value):
                raise Again(name, last.value)
            return _End(last.value)
        error = _change(ctx, name, first, last)
        if inside.used:
            raise error
        return _End(inside.value, Unset("", error))

    def leave(
        self, ctx: Context, results: Sequence[SSAValue], targets: Set[str]
    ) -> None:
        """Bind the names to the results; other names of the body have no value."""
        values = iter(results)
        merged = dict(self.before)
        for name, end in self.end.items():
            value = from_ssa(end.carried, values)
            merged[name] = Binding(end.unset or value, self.after[name].node)
        kept = {n for n in targets & self.end.keys() if self.end[n].unset is None}
        for name in self.after:
            if name not in self.before or name in targets - kept:
                why = (
                    f"only the loop at line {self.node.lineno} sets `{name}`, and it"
                    " may run no times"
                )
                merged[name] = Binding(Unset(why), self.node)
        ctx.scope.bindings = merged


def _change(ctx: Context, name: str, first: Binding, last: Binding) -> CompileError:
    if isinstance(last.value, Unset):
        problem = f"`{name}` may have no usable value in the next iteration"
        help_ = f"keep `{name}` one kind of value on every path"
        return ctx.error(
            "X0601", problem, last.node, notes=[last.value.why], help=help_
        )
    origin = f" (set{line_of(first.node)})" if first.node else " (a parameter)"
    before, now = (
        f"the array `{v.name}`" if isinstance(v, Array) else describe_kind(v)
        for v in (first.value, last.value)
    )
    advice = "keep one shape and dtype, or use another name in the loop"
    unrolled = "in a loop, unless xetile.static_range unrolls it"
    if (before, now) == ("an int", "a float"):
        advice = f"start with a float: `{name} = 0.0`"
    elif isinstance(last.value, Vector) and is_scalar(first.value):
        number = first.value if is_number(first.value) else name
        made = f"xetile.full({last.value.shape}, {number}, xetile.{last.value.dtype})"
        advice = f"start with a vector: `{name} = {made}`"
    elif isinstance(last.value, Vector) and isinstance(first.value, Vector):
        if first.value.shape == last.value.shape:
            advice = f"start with {last.value.dtype}, or convert what is added with"
            advice += f" `.to(xetile.{first.value.dtype})`"
    elif first.value is None:
        advice = f"start with a value: `{name} = xetile.zeros(shape, dtype)`, say"
    elif not (can_cross(first.value) and can_cross(last.value)):
        advice = f"only numbers, vectors and tiles change {unrolled}"
    elif isinstance(first.value, tuple) and isinstance(last.value, tuple):
        advice = f"a list keeps its length {unrolled}"
    return ctx.error(
        "X0602",
        f"the loop changes `{name}` from {before} to {now}",
        last.node,
        label=f"here it becomes {now}",
        notes=[f"before the loop `{name}` is {before}{origin}"],
        help=advice,
    )
