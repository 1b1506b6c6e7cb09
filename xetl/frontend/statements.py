"""Statements: one handler for each kind of syntax.

A ``for`` loop becomes ``scf.for`` with loop-carried values or ``scf.while``, or it is
unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Region, SSAValue

from xetl.dialects.upstream import arith, scf
from xetl.frontend import arithmetic, types
from xetl.frontend.arguments import OPERATIONS, Arg, Call
from xetl.frontend.assignment import assign, assigned_names
from xetl.frontend.branches import branch, guard, resume
from xetl.frontend.build_program import add_stop
from xetl.frontend.carrying import Carried, from_ssa, to_ssa
from xetl.frontend.casts import index_constant, to_int
from xetl.frontend.context import (
    STATEMENTS,
    Again,
    Context,
    StatementHandler,
    unsupported,
)
from xetl.frontend.exits import reach, remap
from xetl.frontend.expressions import (
    argument,
    binary_operation,
    evaluate_defaults,
    expression,
)
from xetl.frontend.limits import check_count
from xetl.imports import late
from xetl.ir.builder import move_to_end
from xetl.language.operation import constexpr, function

_WHILE_LOOPS = "xetl.frontend.while_loops"
_run_while = late(_WHILE_LOOPS, "run_while")
_run_left_range = late(_WHILE_LOOPS, "run_left_range")


def refuse_else(ctx: Context, node: ast.For | ast.While) -> None:
    """Refuse ``else`` of a loop."""
    if node.orelse:
        problem = "`else` of a loop is not part of the kernel language"
        help_ = (
            "put the statements behind the loop; where it has a `break`, under an `if`"
            " on a name set before it"
        )
        raise ctx.error("X0402", problem, node.orelse[0], help=help_)


# Unrolled ---------------------------------------------------------------------------


def _unroll(ctx: Context, node: ast.For, items: Sequence[types.Value]) -> None:
    outer, ctx.node = ctx.node, node.iter
    advice = "write `range(...)` for a loop of the run"
    check_count(ctx, len(items), "this loop would be unrolled", advice)
    ctx.unrolled += len(items)
    check_count(ctx, ctx.unrolled, "loops are unrolled, up to this one,", advice)
    ctx.node = outer
    for item in items:
        ctx.node = node
        if ctx.scope.exit.known is None:
            guard(ctx, lambda item=item: _iteration(ctx, node, item), node)
        else:
            _iteration(ctx, node, item)
        ctx.scope.exit = remap(ctx, ctx.scope.exit, {types.CONTINUED: 0})
        if not ctx.scope.exit.may_run:
            break
    ctx.scope.exit = remap(ctx, ctx.scope.exit, {types.BROKEN: 0})


def _iteration(ctx: Context, node: ast.For, item: types.Value) -> None:
    assign(ctx, node.target, item, node)
    ctx.run(node.body, types.Tail())


# Loops of the run -------------------------------------------------------------------


def _run_range(ctx: Context, node: ast.For, bounds: types.Range) -> None:
    def run() -> None:
        if node in ctx.leaving:
            _run_left_range(ctx, node, Counter(ctx, bounds))
        else:
            _run_for(ctx, node, bounds)

    run_until_known(ctx, run)


def run_until_known(ctx: Context, run: Callable[[], None]) -> None:
    """Compile a loop by ``run``, until that knows what its first try found out."""
    node, start, said = ctx.node, ctx.scope.state, list(ctx.said)
    counts = ctx.unrolled, ctx.calls
    try:
        with ctx.into() as trial:
            run()
    except Again as found:
        ctx.node, ctx.scope.state, ctx.said[:] = node, start, said
        ctx.unrolled, ctx.calls = counts
        if found.name is not None:
            first = ctx.scope.bindings[found.name]
            values = iter(to_ssa(ctx, first.value))
            wide = from_ssa(first.value, values, found.value)
            ctx.scope.bind(found.name, wide, first.node)
        run_until_known(ctx, run)
    else:
        move_to_end(trial.ops, ctx.block)


def _run_for(ctx: Context, node: ast.For, bounds: types.Range) -> None:
    """Compile to ``scf.for``.

    Raises:
        Again: the body leaves the loop. (A compile-time condition may have removed
            every `break`, so the statements alone do not tell.)
    """
    counter = Counter(ctx, bounds)
    targets = assigned_names([node.target])
    carried = Carried(ctx, node, assigned_names(node.body) | targets)
    starts = carried.starts(ctx)
    with ctx.into([types.INDEX, *(value.type for value in starts)]) as block:
        carried.enter(ctx, block.args[1:])
        assign(ctx, node.target, counter.value(ctx, block.args[0]), node)
        ctx.run(node.body, types.Tail())
        if ctx.scope.exit.codes - {0, types.CONTINUED}:
            ctx.leaving.add(node)
            raise Again
        ctx.scope.exit, ctx.node = types.RUNNING, node
        ctx.add(scf.YieldOp(*carried.ends(ctx, targets)))
    loop = scf.ForOp(*counter.bounds, starts, Region(block))
    carried.leave(ctx, ctx.add(loop).results, targets)


class Counter:
    """The bounds of an ``scf.for``; computes the user's counter from the op's."""

    def __init__(self, ctx: Context, bounds: types.Range) -> None:
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

    def value(self, ctx: Context, own: SSAValue) -> types.Scalar:
        """Return the user's counter for the counter ``own`` of the op."""
        if not self.downwards:
            return types.Scalar(own, "int")
        start = to_int(ctx, self.start)
        return types.Scalar(ctx.emit(arith.SubiOp(start, own)), "int")


def _guarded(ctx: Context, bounds: types.Range) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return bounds for a run-time step: without iterations if it is not positive."""
    start, stop = to_int(ctx, bounds.start), to_int(ctx, bounds.stop)
    step = to_int(ctx, bounds.step)
    compared = arith.CmpiOp("sgt", step, index_constant(ctx, 0))
    compared.attributes["xetile.step"] = UnitAttr()  # `interpret` reports it
    stop = ctx.emit(arith.SelectOp(ctx.emit(compared), stop, start))
    step = ctx.emit(arith.MaxsiOp(step, index_constant(ctx, 1)))
    return start, stop, step


def run_block(ctx: Context, body: Sequence[ast.stmt], tail: types.Tail | None) -> None:
    """Compile statements; ``tail`` is the end of a function or body that follows."""
    for position, statement in enumerate(body):
        ctx.node = statement
        if ctx.steps and not _is_quiet(statement):
            add_stop(ctx, step=True)
        rest = body[position + 1 :]
        if isinstance(statement, ast.If):
            if _run_if(ctx, statement, rest, tail):
                return
        else:
            handler = STATEMENTS.get(type(statement))
            if handler is None:
                raise unsupported(ctx, statement)
            handler(ctx, statement)
        exit_ = ctx.scope.exit
        if exit_.known is None and exit_.may_run:
            resume(ctx, rest, tail, statement)
            return
        if not exit_.may_run:
            break
    if tail is not None:
        reach(ctx, tail)


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether a statement does nothing, or a debugger stops at it anyway."""
    if isinstance(statement, ast.FunctionDef | ast.Pass):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    called = getattr(getattr(statement.value, "func", None), "id", None)
    return isinstance(statement.value, ast.Constant) or called == breakpoint.__name__


def _run_if(
    ctx: Context, node: ast.If, rest: Sequence[ast.stmt], tail: types.Tail | None
) -> bool:
    """Compile an ``if``; return whether ``rest`` was compiled with it."""
    condition = arithmetic.truth(ctx, Arg(ctx.evaluate(node.test), node.test))
    if isinstance(condition, bool):
        chosen = node.body if condition else node.orelse
        ctx.run([*chosen, *rest], tail)
        return True
    return branch(ctx, condition, node, rest, tail)


NodeT = TypeVar("NodeT", bound=ast.stmt)
Handler = Callable[[Context, NodeT], None]


def statement(kind: type[NodeT]) -> Callable[[Handler[NodeT]], StatementHandler]:
    """Register the handler of one kind of statement."""

    def register(handler: Handler[NodeT]) -> StatementHandler:
        STATEMENTS[kind] = handler  # pyright: ignore[reportArgumentType]
        return STATEMENTS[kind]

    return register


@statement(ast.Expr)
def _expression(ctx: Context, node: ast.Expr) -> None:
    ctx.evaluate(node.value)


@statement(ast.Pass)
def _pass(ctx: Context, node: ast.Pass) -> None:
    """Do nothing."""


@statement(ast.Assign)
def _assign(ctx: Context, node: ast.Assign) -> None:
    value = ctx.evaluate(node.value)
    for target in node.targets:
        assign(ctx, target, value, node)


@statement(ast.AnnAssign)
def _annotated(ctx: Context, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    value = ctx.evaluate(node.value)
    if isinstance(value, types.Scalar) and ctx.evaluate(node.annotation) is constexpr:
        problem = "this `constexpr` is known at run time only"
        help_ = "leave `constexpr` out, or pass it to the kernel as one"
        raise ctx.error("X0606", problem, node.value, help=help_)
    assign(ctx, node.target, value, node)


@statement(ast.AugAssign)
def _augmented(ctx: Context, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        read: ast.expr = ast.Name(target.id, ast.Load())
    elif isinstance(target, ast.Subscript):
        target = _evaluated(ctx, target)
        read = ast.Subscript(target.value, target.slice, ast.Load())
    else:
        assign(ctx, target, None, node)
        return
    left = Arg(ctx.evaluate(ast.copy_location(read, target)), target)
    assign(ctx, target, binary_operation(ctx, node.op, left, node.value), node)


class _Known(ast.expr):
    """An expression that is evaluated already."""

    known: types.Value


@expression(_Known)
def _known(ctx: Context, node: _Known) -> types.Value:
    return node.known


def _evaluated(ctx: Context, target: ast.Subscript) -> ast.Subscript:
    """Evaluate the array and the indices of ``X[i] += v`` once, as Python does."""

    def once(part: ast.expr) -> ast.expr:
        if isinstance(part, ast.Slice | ast.Constant):
            return part
        known = _Known()
        known.known = ctx.evaluate(part)
        return ast.copy_location(known, part)

    array, index = once(target.value), target.slice
    if isinstance(index, ast.Tuple):
        items = [once(item) for item in index.elts]
        index = ast.copy_location(ast.Tuple(items, ast.Load()), index)
    else:
        index = once(index)
    return ast.copy_location(ast.Subscript(array, index, ast.Store()), target)


@statement(ast.For)
def _for(ctx: Context, node: ast.For) -> None:
    refuse_else(ctx, node)
    iterated = ctx.evaluate(node.iter)
    if isinstance(iterated, types.Range):
        _run_range(ctx, node, iterated)
        return
    items = iterated if isinstance(iterated, range) else types.items_of(iterated)
    if items is None:
        problem = f"a loop cannot run over {types.describe(iterated)}"
        help_ = "write `range(...)`, or xetile.static_range(...) to unroll"
        raise ctx.error("X0305", problem, node.iter, help=help_)
    _unroll(ctx, node, items)


@statement(ast.While)
def _while(ctx: Context, node: ast.While) -> None:
    refuse_else(ctx, node)
    run_until_known(ctx, lambda: _run_while(ctx, node))


@statement(ast.Break)
def _break(ctx: Context, node: ast.Break) -> None:
    ctx.scope.exit = types.Exit.of(types.BROKEN)


@statement(ast.Continue)
def _continue(ctx: Context, node: ast.Continue) -> None:
    ctx.scope.exit = types.Exit.of(types.CONTINUED)


@statement(ast.Return)
def _return(ctx: Context, node: ast.Return) -> None:
    value = ctx.evaluate(node.value) if node.value is not None else None
    ctx.scope.returned = types.Binding(value, node)
    ctx.scope.exit = types.Exit.of(types.RETURNED)


@statement(ast.FunctionDef)
def _function(ctx: Context, node: ast.FunctionDef) -> None:
    for decorator in node.decorator_list:
        if ctx.evaluate(decorator) is not function:
            problem = (
                "decorators of nested functions are not part of the kernel language"
            )
            help_ = "leave it out: nested functions need none"
            raise ctx.error("X0402", problem, decorator, help=help_)
    defaults = evaluate_defaults(ctx, node.args)
    ctx.scope.bind(
        node.name, types.LocalFunction(node, ctx.scope, ctx.frame, defaults), node
    )


@statement(ast.Assert)
def _assert(ctx: Context, node: ast.Assert) -> None:
    """Compile ``assert c, "msg"`` as ``device_assert(c, "msg")``."""
    message = Arg(None, node)
    if node.msg is not None:
        message = argument(ctx, node.msg)
    args = {"cond": argument(ctx, node.test), "msg": message}
    OPERATIONS["device_assert"](Call(ctx, "assert", node, args))
