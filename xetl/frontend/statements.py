"""Statements: each kind of syntax, one handler."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

from xetl.frontend import arithmetic
from xetl.frontend.arguments import Arg, Call
from xetl.frontend.assignment import assign
from xetl.frontend.branches import branch, resume
from xetl.frontend.build_debug import add_stop
from xetl.frontend.context import (
    BLOCKS,
    OPERATIONS,
    STATEMENTS,
    Context,
    StatementHandler,
    unsupported_statement,
)
from xetl.frontend.exits import Tail
from xetl.frontend.expressions import argument, binary_operation, evaluate_defaults
from xetl.frontend.loops import refuse_else, run_loop
from xetl.frontend.scope import BROKEN, CONTINUED, RETURNED, Binding, Exit
from xetl.frontend.types import LocalFunction, Scalar
from xetl.frontend.while_loops import run_while
from xetl.language.operation import constexpr, function


def run_block(ctx: Context, body: Sequence[ast.stmt], tail: Tail | None) -> None:
    """Compile statements; ``tail`` is the end that they reach, if any."""
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
                raise unsupported_statement(ctx, statement)
            handler(ctx, statement)
        exit_ = ctx.scope.exit
        if exit_.known is None and exit_.may_run:
            resume(ctx, rest, tail, statement)
            return
        if not exit_.may_run:
            break
    if tail is not None:
        tail.reach(ctx)


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether nothing happens at a statement, or a debugger stops there anyway."""
    if isinstance(statement, ast.FunctionDef | ast.Pass):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    called = getattr(getattr(statement.value, "func", None), "id", None)
    return isinstance(statement.value, ast.Constant) or called == breakpoint.__name__


def _run_if(
    ctx: Context, node: ast.If, rest: Sequence[ast.stmt], tail: Tail | None
) -> bool:
    """Compile an ``if``; whether the rest was compiled with it."""
    condition = arithmetic.truth(ctx, Arg(ctx.evaluate(node.test), node.test))
    if isinstance(condition, bool):
        chosen = node.body if condition else node.orelse
        ctx.run([*chosen, *rest], tail)
        return True
    return branch(ctx, condition, node, rest, tail)


BLOCKS.append(run_block)


NodeT = TypeVar("NodeT", bound=ast.stmt)
Handler = Callable[[Context, NodeT], None]


def statement(
    kind: type[NodeT],
) -> Callable[[Handler[NodeT]], StatementHandler]:
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
    """Nothing to do."""


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
    if isinstance(value, Scalar) and ctx.evaluate(node.annotation) is constexpr:
        raise ctx.error(
            "X0606", "this `constexpr` is known at run time only", node.value
        )
    assign(ctx, node.target, value, node)


@statement(ast.AugAssign)
def _augmented(ctx: Context, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        read: ast.expr = ast.Name(target.id, ast.Load())
    elif isinstance(target, ast.Subscript):
        read = ast.Subscript(target.value, target.slice, ast.Load())
    else:
        assign(ctx, target, None, node)
        return
    left = Arg(ctx.evaluate(ast.copy_location(read, target)), target)
    assign(ctx, node.target, binary_operation(ctx, node.op, left, node.value), node)


@statement(ast.For)
def _for(ctx: Context, node: ast.For) -> None:
    run_loop(ctx, node)


@statement(ast.While)
def _while(ctx: Context, node: ast.While) -> None:
    refuse_else(ctx, node)
    run_while(ctx, node)


@statement(ast.Break)
def _break(ctx: Context, node: ast.Break) -> None:
    ctx.scope.exit = Exit.of(BROKEN)


@statement(ast.Continue)
def _continue(ctx: Context, node: ast.Continue) -> None:
    ctx.scope.exit = Exit.of(CONTINUED)


@statement(ast.Return)
def _return(ctx: Context, node: ast.Return) -> None:
    value = ctx.evaluate(node.value) if node.value is not None else None
    ctx.scope.returned = Binding(value, node)
    ctx.scope.exit = Exit.of(RETURNED)


@statement(ast.FunctionDef)
def _function(ctx: Context, node: ast.FunctionDef) -> None:
    for decorator in node.decorator_list:
        if ctx.evaluate(decorator) is not function:
            raise ctx.error(
                "X0402",
                "decorators of nested functions are not part of the kernel language",
                decorator,
                help="leave it out: nested functions need none",
            )
    defaults = evaluate_defaults(ctx, node.args)
    ctx.scope.bind(node.name, LocalFunction(node, ctx.scope, ctx.frame, defaults), node)


@statement(ast.Assert)
def _assert(ctx: Context, node: ast.Assert) -> None:
    """``assert c, "msg"`` is ``device_assert(c, "msg")``."""
    message = Arg(None, node)
    if node.msg is not None:
        message = argument(ctx, node.msg)
    args = {"cond": argument(ctx, node.test), "msg": message}
    OPERATIONS["device_assert"](Call(ctx, "assert", node, args))
