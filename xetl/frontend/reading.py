"""Reading the Python around a kernel, with errors on the user's line."""

from __future__ import annotations

import ast
from collections.abc import Callable

from xetl.errors import CompileError
from xetl.frontend.arguments import Arg
from xetl.frontend.context import Context
from xetl.frontend.types import Value
from xetl.language.contents import is_opaque
from xetl.language.reads import UnreadableError


def read(
    ctx: Context,
    node: ast.AST,
    look: Callable[[], Value],
    *missing: type[Exception],
) -> Value:
    """What ``look`` finds by way of ``ctx.reads``.

    The errors ``missing``, which say that there is nothing to find, pass through.

    Raises:
        NameLookupError: what it finds cannot be told from another value later.
        TileTypeError: the code of the user's object failed.
    """
    try:
        return look()
    except missing:
        raise
    except UnreadableError as reason:
        raise _unreadable(ctx, node, str(reason)) from None
    except Exception as problem:
        text = f"reading `{ctx.frame.text(node)}` failed: {problem}"
        raise ctx.error("X0307", text, node) from None


def check_readable(ctx: Context, *args: Arg) -> None:
    """Refuse objects in a place where their own code would say what they mean.

    Raises:
        NameLookupError: an argument is such an object.
    """
    for arg in args:
        if is_opaque(arg.value):
            kind = type(arg.value).__name__
            reason = f"what a {kind} means here is known to its own code alone"
            raise _unreadable(ctx, arg.node, reason)


def _unreadable(ctx: Context, node: ast.AST, reason: str) -> CompileError:
    return ctx.error(
        "X0108",
        f"`{ctx.frame.text(node)}` cannot be read in a kernel",
        node,
        notes=[f"{reason}: a change would not be noticed"],
        help="use its attributes or elements, or compute the value before the launch",
    )
