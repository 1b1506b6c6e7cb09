"""Paths that end early: by ``continue``, ``break`` or ``return``.

A statement is compiled only on a path that may still run. After an ``if`` in which some
paths have ended, the exit code is a run-time number, and the statements that follow are
guarded by it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import arith
from xetl.errors import ControlFlowError
from xetl.frontend import types
from xetl.frontend.carrying import describe_kind, line_of
from xetl.frontend.casts import index_constant, splat
from xetl.frontend.context import Context


def reach(ctx: Context, tail: types.Tail) -> None:
    """End the current path at the end of a function or of a loop's body."""
    scope = ctx.scope
    if tail.function is None:
        scope.exit = remap(ctx, scope.exit, {types.CONTINUED: 0})
    elif scope.exit.known == 0:
        scope.exit = types.Exit.of(types.RETURNED)
        scope.returned = types.Binding(None, tail.function)


def code_of(ctx: Context, exit_: types.Exit) -> SSAValue:
    """Return an exit code as a value of type index."""
    known = exit_.known
    if known is not None:
        return index_constant(ctx, known)
    assert exit_.ssa is not None
    return exit_.ssa


def has_code(ctx: Context, exit_: types.Exit, code: int) -> types.Scalar:
    """Compute whether a path has this exit code; with 0 it still runs."""
    same = arith.CmpiOp("eq", code_of(ctx, exit_), index_constant(ctx, code))
    return types.Scalar(ctx.emit(same), "bool")


def remap(ctx: Context, exit_: types.Exit, codes: Mapping[int, int]) -> types.Exit:
    """Return the exit with some codes replaced, as at the end of a loop."""
    result = frozenset(codes.get(code, code) for code in exit_.codes)
    if len(result) == 1:
        return types.Exit(result)
    ssa = code_of(ctx, exit_)
    for old, new in codes.items():
        if old in exit_.codes:
            found = has_code(ctx, exit_, old).ssa
            ssa = ctx.emit(arith.SelectOp(found, index_constant(ctx, new), ssa))
    return types.Exit(result, ssa)


def stopped(exit_: types.Exit) -> types.Exit:
    """Return the exit of a path that is known to have ended."""
    codes = exit_.codes - {0}
    return types.Exit(codes, exit_.ssa if len(codes) > 1 else None)


def any_value(ctx: Context, like: types.Value) -> types.Value:
    """Return any value of the kind of ``like``, for a path on which it is not read."""
    if types.is_scalar(like):
        return {"int": 0, "float": 0.0, "bool": False}[types.scalar_kind(like)]
    if isinstance(like, types.Vector):
        return splat(ctx, 0, like.shape, like.dtype)
    if isinstance(like, types.Tile):
        return _any_tile(ctx, like)
    return tuple(any_value(ctx, item) for item in types.items_of(like) or ())


def _any_tile(ctx: Context, like: types.Tile) -> types.Tile:
    """Return an empty tile at address 0."""
    type_ = like.ssa.type
    assert isinstance(type_, xetile.TileType)
    nowhere = ctx.emit(arith.ConstantOp.of(0, types.I64))
    if like.scattered:
        where = VectorType(IndexType(), type_.shape)
        indices = ctx.emit(arith.ConstantOp.of(0, where))
        op = xetile.InitTileOp(nowhere, (), type_, (0,), (1,), indices=indices)
    else:
        strides = (type_.shape[1], 1) if type_.order == (1, 0) else (1, type_.shape[0])
        op = xetile.InitTileOp(nowhere, (0, 0), type_, (0, 0), strides)
    return replace(like, ssa=ctx.emit(op))


def returned_value(ctx: Context, name: str, node: ast.AST) -> types.Value:
    """Return the value of a function, at its end.

    Raises:
        ControlFlowError: it returns a value only on some paths.
    """
    exit_, returned = ctx.scope.exit, ctx.scope.returned
    if returned is None:
        return None
    if exit_.known != types.RETURNED and returned.value is not None:
        raise disagreement(ctx, returned, types.Binding(None, node), name)
    return returned.value


def disagreement(
    ctx: Context, one: types.Binding, other: types.Binding, name: str
) -> ControlFlowError:
    """Return the error for two ``return`` of different kinds."""
    if one.value is None:
        one, other = other, one
    what = describe_kind(one.value)
    if other.value is None:
        message = f"`{name}` gives {what} here, but nothing on another path"
    else:
        message = (
            f"`{name}` gives {what} here, but {describe_kind(other.value)}"
            f"{line_of(other.node)}"
        )
    error = ctx.error(
        "X0609",
        message,
        one.node,
        help="return one kind of value, shape and dtype on every path",
    )
    assert isinstance(error, ControlFlowError)
    return error


# Syntax -----------------------------------------------------------------------------


def may_leave(body: Sequence[ast.AST]) -> bool:
    """Whether a body may leave its loop: by its own ``break``, or by a ``return``."""
    return any(_may_leave(node, inner=False) for node in body)


def _may_leave(node: ast.AST, *, inner: bool) -> bool:
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.Break):
        return not inner
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.expr):
        return False
    inner = inner or isinstance(node, ast.For | ast.While)
    return any(_may_leave(child, inner=inner) for child in ast.iter_child_nodes(node))
