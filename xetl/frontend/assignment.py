"""Assignments to names, tuples of names and elements of arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xetl.errors import CompileError
from xetl.frontend.arguments import Arg
from xetl.frontend.arrays import store_scalar
from xetl.frontend.context import Context
from xetl.frontend.gathers import store_elements
from xetl.frontend.types import Array, Value, Vector, describe, items_of
from xetl.worklist import Worklist


def assign(ctx: Context, target: ast.expr, value: Value, node: ast.AST) -> None:
    """Bind a name or the names of a tuple, or store to an element of an array.

    Raises:
        SyntaxNotSupportedError: the target is an attribute, or an element of a value
            that is no array.
        TileTypeError: the numbers of values and names differ.
    """
    if isinstance(target, ast.Name):
        origin = getattr(value, "origin", None)
        if origin is not None and origin.name is None:
            origin.name = target.id
        ctx.scope.bind(target.id, value, node)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(ctx, target, value, node)
    elif isinstance(target, ast.Subscript):
        _store_element(ctx, target, value, node)
    else:
        raise _no_target(ctx, target)


def _no_target(
    ctx: Context, target: ast.expr, owner: Value | None = None
) -> CompileError:
    what = "only names and elements of arrays can"
    help_ = "write memory with xetile.store_tile(value, tile)"
    if isinstance(owner, Array):
        what = "a slice of an array cannot"
        help_ += f", the tile from xetile.init_tile({owner.name}, offsets, shape)"
    elif isinstance(target, ast.Subscript) and items_of(owner) is not None:
        name = ctx.frame.text(target.value)
        what = f"the items of `{name}` cannot"
        help_ = f"make a new list: `{name} = [*{name}[:i], new, *{name}[i + 1 :]]`"
    else:
        help_ += "; of a vector make a new one: xetile.where(mask, new, v)"
    return ctx.error("X0404", f"{what} be assigned to in a kernel", target, help=help_)


def _store_element(
    ctx: Context, target: ast.Subscript, value: Value, node: ast.AST
) -> None:
    """Compile ``X[i, j] = s``; elements outside of the array are not written."""
    owner = ctx.evaluate(target.value)
    slices = target.slice
    items = slices.elts if isinstance(slices, ast.Tuple) else [slices]
    if not isinstance(owner, Array) or any(isinstance(i, ast.Slice) for i in items):
        raise _no_target(ctx, target, owner)
    indices = [Arg(ctx.evaluate(item), item) for item in items]
    stored = Arg(value, getattr(node, "value", node))
    if any(isinstance(arg.value, Vector) for arg in indices):
        store_elements(ctx, owner, indices, stored)
    else:
        store_scalar(ctx, owner, indices, stored)


def _unpack(
    ctx: Context, target: ast.Tuple | ast.List, value: Value, node: ast.AST
) -> None:
    count, items = len(target.elts), items_of(value)
    stars = [i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)]
    if items is not None and stars and len(items) >= count - 1:
        (star,), rest = stars, len(items) - count + 1
        items[star : star + rest] = [tuple(items[star : star + rest])]
    if items is None or len(items) != count:
        problem = f"{describe(value)} cannot be unpacked into {count} names"
        raise ctx.error("X0309", problem, target)
    for item, part in zip(target.elts, items, strict=True):
        name = item.value if isinstance(item, ast.Starred) else item
        assign(ctx, name, part, node)


def assigned_names(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names that statements assign to, without those in inner functions."""
    found: set[str] = set()
    waiting = Worklist(nodes)
    for node in waiting:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found
