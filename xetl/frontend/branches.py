"""``if`` and ternaries whose condition is known at run time only: ``scf.if``."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Block, Region, SSAValue

from xetl.dialects.upstream import scf
from xetl.errors import ControlFlowError
from xetl.frontend.casts import to_float
from xetl.frontend.context import Context
from xetl.frontend.merging import (
    can_cross,
    describe_kind,
    from_ssa,
    line_of,
    same,
    same_kind,
    to_ssa,
)
from xetl.frontend.scope import Binding, Unset
from xetl.frontend.types import Scalar, Value, is_scalar, scalar_kind

Bindings = dict[str, Binding]


def run_branches(ctx: Context, condition: Scalar, node: ast.If) -> None:
    """Compile both branches; names they set become results where they agree."""
    before = ctx.scope.bindings
    then_block, then_names = _branch(ctx, node.body, before)
    else_block, else_names = _branch(ctx, node.orelse, before)
    ctx.node = node
    merged: Bindings = dict(before)
    crossing: list[tuple[str, Binding, Binding]] = []
    for name in {**then_names, **else_names}:
        one, other = then_names.get(name), else_names.get(name)
        why = _why_unset(name, one, other, node)
        if one is not None and (one is other or _agree(one, other)):
            merged[name] = one
        elif why is not None or one is None or other is None:
            merged[name] = Binding(Unset(why or ""), node)
        else:
            crossing.append((name, one, other))
    values = [_yield(ctx, then_block, [one.value for _, one, _ in crossing])]
    values.append(_yield(ctx, else_block, [other.value for _, _, other in crossing]))
    results = iter(_add_if(ctx, condition, then_block, else_block, values[0]))
    for name, one, other in crossing:
        where = one if one is not before.get(name) else other
        merged[name] = Binding(from_ssa(one.value, results), where.node)
    ctx.scope.bindings = merged


def _branch(
    ctx: Context, body: Sequence[ast.stmt], before: Bindings
) -> tuple[Block, Bindings]:
    with ctx.into() as block:
        ctx.scope.bindings = dict(before)
        ctx.run(body)
        after = ctx.scope.bindings
        ctx.scope.bindings = before
    return block, after


def _agree(one: Binding, other: Binding | None) -> bool:
    return other is not None and same(one.value, other.value)


def _why_unset(
    name: str, one: Binding | None, other: Binding | None, node: ast.If
) -> str | None:
    """Why ``name`` has no value after the branches; None if it has one."""
    for binding in (one, other):
        if binding is not None and isinstance(binding.value, Unset):
            return binding.value.why
    if one is None or other is None:
        return f"the `if` at line {node.lineno} sets `{name}` on one path only"
    if same_kind(one.value, other.value) and can_cross(one.value):
        return None
    return (
        f"after the `if` at line {node.lineno} it is {describe_kind(one.value)}"
        f" (set{line_of(one.node)}) or {describe_kind(other.value)}"
        f" (set{line_of(other.node)})"
    )


@contextmanager
def _appending(ctx: Context, block: Block) -> Generator[None]:
    outer, ctx.block = ctx.block, block
    yield
    ctx.block = outer


def _yield(ctx: Context, block: Block, values: Sequence[Value]) -> list[SSAValue]:
    """End ``block`` with a yield of ``values``."""
    with _appending(ctx, block):
        yielded = [ssa for value in values for ssa in to_ssa(ctx, value)]
        ctx.add(scf.YieldOp(*yielded))
    return yielded


def _add_if(
    ctx: Context,
    condition: Scalar,
    then_block: Block,
    else_block: Block,
    yielded: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    types = [value.type for value in yielded]
    op = scf.IfOp(condition.ssa, types, Region(then_block), Region(else_block))
    return ctx.add(op).results


def choose(ctx: Context, condition: Scalar, node: ast.IfExp) -> Value:
    """``a if condition else b``; int and float become float.

    Raises:
        ControlFlowError: the two are of different kinds.
    """
    with ctx.into() as then_block:
        one = ctx.evaluate(node.body)
    with ctx.into() as else_block:
        other = ctx.evaluate(node.orelse)
    if same(one, other) and not isinstance(one, Scalar):
        return one
    one, other = _as_floats(ctx, then_block, one, other)
    other, one = _as_floats(ctx, else_block, other, one)
    if not same_kind(one, other) or not can_cross(one):
        raise ctx.error(
            ControlFlowError,
            "X0602",
            f"this is {describe_kind(one)} or {describe_kind(other)}, as the run"
            " decides",
            help="make both of one kind, shape and dtype",
        )
    yielded = _yield(ctx, then_block, [one])
    _yield(ctx, else_block, [other])
    return from_ssa(one, iter(_add_if(ctx, condition, then_block, else_block, yielded)))


def _as_floats(
    ctx: Context, block: Block, value: Value, other: Value
) -> tuple[Value, Value]:
    """``value`` as a float if ``other`` is one."""
    if not (is_scalar(value) and is_scalar(other)):
        return value, other
    if scalar_kind(value) == "int" and scalar_kind(other) == "float":
        with _appending(ctx, block):
            return Scalar(to_float(ctx, value), "float"), other
    return value, other
