"""Statements: each kind of syntax, one handler."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from xetl.errors import ControlFlowError, SyntaxNotSupportedError
from xetl.frontend import arithmetic
from xetl.frontend.arguments import Arg
from xetl.frontend.branches import run_branches
from xetl.frontend.context import (
    STATEMENTS,
    Context,
    Returned,
    StatementHandler,
    unsupported_statement,
)
from xetl.frontend.expressions import binary_operation, evaluate_defaults
from xetl.frontend.loops import assign, run_loop
from xetl.frontend.types import LocalFunction, Scalar
from xetl.language.operation import constexpr, function

NodeT = TypeVar("NodeT", bound=ast.stmt)
Handler = Callable[[Context, NodeT], Returned | None]


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
            ControlFlowError,
            "X0606",
            "this `constexpr` is known at run time only",
            node.value,
        )
    assign(ctx, node.target, value, node)


@statement(ast.AugAssign)
def _augmented(ctx: Context, node: ast.AugAssign) -> None:
    if not isinstance(node.target, ast.Name):
        assign(ctx, node.target, None, node)
        return
    name = ast.Name(node.target.id, ast.Load())
    left = Arg(ctx.evaluate(ast.copy_location(name, node.target)), node.target)
    assign(ctx, node.target, binary_operation(ctx, node.op, left, node.value), node)


@statement(ast.If)
def _if(ctx: Context, node: ast.If) -> Returned | None:
    condition = arithmetic.truth(ctx, Arg(ctx.evaluate(node.test), node.test))
    if isinstance(condition, bool):
        return ctx.run(node.body if condition else node.orelse)
    run_branches(ctx, condition, node)
    return None


@statement(ast.For)
def _for(ctx: Context, node: ast.For) -> Returned | None:
    return run_loop(ctx, node)


@statement(ast.Return)
def _return(ctx: Context, node: ast.Return) -> Returned:
    if ctx.frame.regions:
        raise ctx.error(
            SyntaxNotSupportedError,
            "X0403",
            "`return` inside a run-time loop or branch is not supported yet",
            help="put what follows into `else`, or set a variable and return it at"
            " the end",
        )
    value = ctx.evaluate(node.value) if node.value is not None else None
    return Returned(value, node)


@statement(ast.FunctionDef)
def _function(ctx: Context, node: ast.FunctionDef) -> None:
    for decorator in node.decorator_list:
        if ctx.evaluate(decorator) is not function:
            raise ctx.error(
                SyntaxNotSupportedError,
                "X0402",
                "decorators of nested functions are not part of the kernel language",
                decorator,
                help="leave it out: nested functions need none",
            )
    defaults = evaluate_defaults(ctx, node.args)
    ctx.scope.bind(node.name, LocalFunction(node, ctx.scope, ctx.frame, defaults), node)


@statement(ast.Assert)
def _assert(ctx: Context, node: ast.Assert) -> None:
    condition = arithmetic.truth(ctx, Arg(ctx.evaluate(node.test), node.test))
    if isinstance(condition, Scalar):
        raise unsupported_statement(ctx, node)
    if not condition:
        message = ctx.evaluate(node.msg) if node.msg is not None else ""
        raise ctx.error(
            ControlFlowError, "X0607", f"assertion failed: {message}".rstrip(": ")
        )
