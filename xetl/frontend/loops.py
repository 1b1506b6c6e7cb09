"""``for`` loops: ``scf.for`` with carried values, or unrolled."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Region, SSAValue

from xetl.dialects.upstream import arith, scf
from xetl.errors import (
    CompileError,
    ControlFlowError,
    SyntaxNotSupportedError,
    TileTypeError,
)
from xetl.frontend.casts import index_constant, to_int
from xetl.frontend.context import Context, Returned
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
from xetl.frontend.types import INDEX, Range, Scalar, Value, describe, items_of

MAX_UNROLLED = 4096


def run_loop(ctx: Context, node: ast.For) -> Returned | None:
    """Compile a ``for`` statement."""
    if node.orelse:
        raise ctx.error(
            SyntaxNotSupportedError,
            "X0402",
            "`else` of a loop is not part of the kernel language",
            node.orelse[0],
            help="put the statements behind the loop",
        )
    iterated = ctx.evaluate(node.iter)
    if isinstance(iterated, Range):
        _run_range(ctx, node, iterated)
        return None
    items = iterated if isinstance(iterated, range) else items_of(iterated)
    if items is not None:
        return _unroll(ctx, node, items)
    raise ctx.error(
        TileTypeError,
        "X0305",
        f"a loop cannot run over {describe(iterated)}",
        node.iter,
        help="write `range(...)`, or xetile.static_range(...) to unroll",
    )


def _unroll(ctx: Context, node: ast.For, items: Sequence[Value]) -> Returned | None:
    if len(items) > MAX_UNROLLED:
        raise ctx.error(
            ControlFlowError,
            "X0605",
            f"this loop would be unrolled {len(items)} times",
            node.iter,
            help="write `range(...)` for a loop of the run",
        )
    for item in items:
        ctx.node = node
        assign(ctx, node.target, item, node)
        returned = ctx.run(node.body)
        if returned is not None:
            return returned
    return None


def assign(ctx: Context, target: ast.expr, value: Value, node: ast.AST) -> None:
    """Bind a name, or the names of a tuple.

    Raises:
        SyntaxNotSupportedError: the target is an attribute or an element.
        TileTypeError: not as many values as names.
    """
    if isinstance(target, ast.Name):
        origin = getattr(value, "origin", None)
        if origin is not None and origin.name is None:
            origin.name = target.id
        ctx.scope.bind(target.id, value, node)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(ctx, target, value, node)
    else:
        raise ctx.error(
            SyntaxNotSupportedError,
            "X0404",
            "only names can be assigned to in a kernel",
            target,
            help="write memory with xetile.store_tile(value, tile)",
        )


def _unpack(
    ctx: Context, target: ast.Tuple | ast.List, value: Value, node: ast.AST
) -> None:
    count, items = len(target.elts), items_of(value)
    if items is None or len(items) != count:
        raise ctx.error(
            TileTypeError,
            "X0309",
            f"{describe(value)} cannot be unpacked into {count} names",
            target,
        )
    for item, part in zip(target.elts, items, strict=True):
        assign(ctx, item, part, node)


# Loops of the run -------------------------------------------------------------------


def _run_range(ctx: Context, node: ast.For, bounds: Range) -> None:
    before = ctx.scope.bindings
    counter = _Counter(ctx, bounds)
    changing = assigned_names(node.body) | _targets(node)
    carried = {
        name: binding
        for name, binding in before.items()
        if name in changing and can_cross(binding.value)
    }
    starts = [ssa for b in carried.values() for ssa in to_ssa(ctx, b.value)]
    with ctx.into([INDEX, *(value.type for value in starts)]) as block:
        arguments = iter(block.args[1:])
        inside = {
            name: Binding(from_ssa(b.value, arguments), b.node)
            for name, b in carried.items()
        }
        ctx.scope.bindings = before | inside
        assign(ctx, node.target, counter.value(ctx, block.args[0]), node)
        ctx.run(node.body)
        after, ctx.scope.bindings = ctx.scope.bindings, before
        ctx.node = node
        ends = {n: _end(ctx, n, b, inside[n], after[n]) for n, b in carried.items()}
        _check_unchanged(ctx, before, carried.keys() | _targets(node), after)
        yielded = [ssa for end in ends.values() for ssa in to_ssa(ctx, end.carried)]
        ctx.add(scf.YieldOp(*yielded))
    loop = scf.ForOp(*counter.bounds, starts, Region(block))
    results = iter(ctx.add(loop).results)
    merged = dict(before)
    for name, end in ends.items():
        value = from_ssa(end.carried, results)
        merged[name] = Binding(end.unset or value, after[name].node)
    for name in after:
        if name not in before or name in _targets(node):
            merged[name] = Binding(Unset(_only_inside(name, node)), node)
    ctx.scope.bindings = merged


@dataclass(frozen=True, slots=True)
class _End:
    """What the body gives on, and why the name has no value after the loop."""

    carried: Value
    unset: Unset | None = None


def _end(
    ctx: Context, name: str, first: Binding, inside: Binding, last: Binding
) -> _End:
    """What the body makes of a carried variable.

    A variable that the body sets anew before it reads it may change its kind: only
    a use after the loop is wrong then.

    Raises:
        ControlFlowError: the next iteration would read another kind of value.
    """
    if same_kind(first.value, last.value):
        return _End(last.value)
    error = _change(ctx, name, first, last)
    if inside.used:
        raise error
    return _End(inside.value, Unset("", error))


def _targets(node: ast.For) -> set[str]:
    return assigned_names([node.target])


def _only_inside(name: str, node: ast.For) -> str:
    return f"only the loop at line {node.lineno} sets `{name}`, and it may run no times"


class _Counter:
    """Bounds of an ``scf.for``, and the user's counter computed from its own."""

    def __init__(self, ctx: Context, bounds: Range) -> None:
        self.start = bounds.start
        self.downwards = isinstance(bounds.step, int) and bounds.step < 0
        if self.downwards:
            # Count up from 0 to the distance: scf.for has no negative steps.
            start, stop = to_int(ctx, bounds.start), to_int(ctx, bounds.stop)
            distance = ctx.emit(arith.SubiOp(start, stop))
            step = index_constant(ctx, -bounds.step)
            self.bounds = (index_constant(ctx, 0), distance, step)
        elif isinstance(bounds.step, int):
            self.bounds = (
                to_int(ctx, bounds.start),
                to_int(ctx, bounds.stop),
                index_constant(ctx, bounds.step),
            )
        else:
            self.bounds = _guarded(ctx, bounds)

    def value(self, ctx: Context, own: SSAValue) -> Scalar:
        """The user's counter."""
        if not self.downwards:
            return Scalar(own, "int")
        start = to_int(ctx, self.start)
        return Scalar(ctx.emit(arith.SubiOp(start, own)), "int")


def _guarded(ctx: Context, bounds: Range) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A step of the run that is not positive runs the loop no times."""
    start, stop = to_int(ctx, bounds.start), to_int(ctx, bounds.stop)
    step = to_int(ctx, bounds.step)
    positive = ctx.emit(arith.CmpiOp("sgt", step, index_constant(ctx, 0)))
    stop = ctx.emit(arith.SelectOp(positive, stop, start))
    step = ctx.emit(arith.MaxsiOp(step, index_constant(ctx, 1)))
    return start, stop, step


def _check_unchanged(
    ctx: Context,
    before: dict[str, Binding],
    changeable: set[str],
    after: dict[str, Binding],
) -> None:
    """What cannot be carried (None, a dtype, an array) must stay what it is."""
    for name, first in before.items():
        last = after[name]
        if name in changeable or isinstance(first.value, Unset) or last is first:
            continue
        if not same(first.value, last.value):
            raise _change(ctx, name, first, last)


def _change(ctx: Context, name: str, first: Binding, last: Binding) -> CompileError:
    if isinstance(last.value, Unset):
        return ctx.error(
            ControlFlowError,
            "X0601",
            f"`{name}` may have no usable value in the next iteration",
            last.node,
            notes=[last.value.why],
            help=f"keep `{name}` one kind of value on every path",
        )
    origin = f" (set{line_of(first.node)})" if first.node else " (a parameter)"
    before, now = describe_kind(first.value), describe_kind(last.value)
    advice = "keep one shape and dtype, or use another name in the loop"
    if (before, now) == ("an int", "a float"):
        advice = f"start with a float: `{name} = 0.0`"
    return ctx.error(
        ControlFlowError,
        "X0602",
        f"the loop changes `{name}` from {before} to {now}",
        last.node,
        label=f"here it becomes {now}",
        notes=[f"before the loop `{name}` is {before}{origin}"],
        help=advice,
    )


# Names ------------------------------------------------------------------------------


def assigned_names(nodes: Sequence[ast.AST]) -> set[str]:
    """The names that statements assign to, inner functions left out."""
    return set(_assigned(nodes))


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif not isinstance(node, ast.Lambda):
            yield from _assigned(list(ast.iter_child_nodes(node)))
