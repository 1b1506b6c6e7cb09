"""Statements one after the other, as far as the path runs."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xetl.frontend import arithmetic
from xetl.frontend.arguments import Arg
from xetl.frontend.branches import branch, resume
from xetl.frontend.context import BLOCKS, STATEMENTS, Context, unsupported_statement
from xetl.frontend.exits import Tail


def run_block(ctx: Context, body: Sequence[ast.stmt], tail: Tail | None) -> None:
    """Compile statements; ``tail`` is the end that they reach, if any."""
    for position, statement in enumerate(body):
        ctx.node = statement
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
