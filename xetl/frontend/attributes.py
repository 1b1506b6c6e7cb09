"""Attributes and subscripts: ``X.shape``, ``X[b]``, ``v.T``, ``v[:, None]``."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import cast

from xetl.errors import did_you_mean
from xetl.frontend.arguments import Arg, read
from xetl.frontend.arrays import as_seen, index_array, transpose
from xetl.frontend.build_vectors import slice_matrix
from xetl.frontend.calls import inline_operation
from xetl.frontend.casts import shape_cast, transpose_vector
from xetl.frontend.context import Context
from xetl.frontend.expressions import argument, expression, plain
from xetl.frontend.gathers import load_elements
from xetl.frontend.types import (
    Array,
    BoundMethod,
    Scalar,
    Shape,
    Tile,
    Value,
    Vector,
    describe,
    is_constant,
    is_int,
    is_scalar,
    items_of,
    matrix_shape,
    show_shape,
)
from xetl.frontend.views import slice_array
from xetl.imports import import_whole, late
from xetl.language import ops, values
from xetl.language.ops import reductions
from xetl.language.signature import Record

_OTHER_NAMES = "xetl.language.other_names"
_advice_on = late(_OTHER_NAMES, "advice_on")


def _attributes_of(kind: type) -> tuple[str, ...]:
    """Return the attributes and methods that a class of `xetl.language.values` has."""
    names = (*kind.__annotations__, *vars(kind))
    return tuple(name for name in names if not name.startswith("_"))


_ARRAY = _attributes_of(values.Array)
_VECTOR = _attributes_of(values.Vector)
_TILE = _attributes_of(values.Tile)


@expression(ast.Attribute)
def _attribute(ctx: Context, node: ast.Attribute) -> Value:
    owner = ctx.evaluate(node.value)
    if isinstance(owner, Array) and node.attr in _ARRAY:
        return _of_array(owner, node)
    if isinstance(owner, Vector) and node.attr in _VECTOR:
        if node.attr in ("shape", "dtype", "ndim"):
            return _of_shaped(owner, node.attr)
        if node.attr == "T":
            return transpose_vector(ctx, owner)
        return BoundMethod(owner, node.value, node.attr)
    if isinstance(owner, Tile) and node.attr in _TILE:
        return _of_shaped(owner, node.attr)
    if isinstance(owner, Scalar) and node.attr == "to":
        return BoundMethod(owner, node.value, "to")
    if isinstance(owner, Record) and node.attr in owner.names:
        return owner.field(node.attr)
    if not is_constant(owner) or isinstance(owner, BoundMethod | Record):
        raise _no_attribute(ctx, owner, node)
    try:
        value = read(
            ctx, node, lambda: ctx.reads.attribute(owner, node.attr), AttributeError
        )
    except AttributeError:
        raise _no_attribute(ctx, owner, node) from None
    return plain(value)


def _of_shaped(owner: Vector | Tile, name: str) -> Value:
    if name == "ndim":
        return len(owner.shape)
    return owner.shape if name == "shape" else owner.dtype


def _of_array(owner: Array, node: ast.Attribute) -> Value:
    if node.attr == "shape":
        return tuple(map(as_seen, owner.sizes))
    if node.attr == "T":
        return transpose(owner)
    if node.attr in ("stride", "reshape"):
        return BoundMethod(owner, node.value, node.attr)
    return owner.dtype if node.attr == "dtype" else owner.rank


def _no_attribute(ctx: Context, owner: Value, node: ast.Attribute) -> Exception:
    text = ctx.frame.text(node.value)
    known: tuple[str, ...] = tuple(n for n in dir(owner) if not n.startswith("_"))
    what = f"`{text}`"
    for kind, names in ((Array, _ARRAY), (Vector, _VECTOR), (Tile, _TILE)):
        if isinstance(owner, kind):
            known, what = names, f"`{text}`, {describe(owner)},"
    if isinstance(owner, Record):
        known, what = owner.names, f"`{text}`, {describe(owner)},"
    advice = did_you_mean(node.attr, known)
    if isinstance(owner, ModuleType | Vector):
        advice = _advice_on(node.attr, ops.__all__) or advice
    if is_scalar(owner) and node.attr in _ARRAY:
        wanted = "a vector" if ctx.frame.hidden else "an array"
        advice = f"`{text}` is {describe(owner)}: pass {wanted}"
    if isinstance(owner, Tile) and node.attr in _VECTOR:
        advice = "load the tile first: xetile.load_tile(...)"
    if isinstance(owner, Array) and (node.attr in _VECTOR or node.attr in ops.__all__):
        advice = "load a tile of it first: xetile.load_tile(xetile.init_tile(X, ...))"
    if isinstance(owner, Array):
        advice = import_whole(_OTHER_NAMES).OF_ARRAYS.get(node.attr, advice)
    if isinstance(owner, tuple) and node.attr in ("append", "extend", "insert"):
        advice = f"make a new list: `{text} = [*{text}, new]`"
    return ctx.error("X0102", f"{what} has no attribute `{node.attr}`", help=advice)


# Subscripts -------------------------------------------------------------------------


@expression(ast.Subscript)
def _subscript(ctx: Context, node: ast.Subscript) -> Value:
    owner = ctx.evaluate(node.value)
    if isinstance(owner, Vector):
        return _index_vector(ctx, owner, node)
    if isinstance(owner, Tile):
        problem = "a tile has no elements: it says where they are"
        raise ctx.error("X0303", problem, help="load it first: xetile.load_tile(...)")
    if isinstance(owner, Array):
        return _index_array(ctx, owner, node.slice)
    return _index_constant(ctx, owner, node)


def _index_array(ctx: Context, owner: Array, index: ast.expr) -> Value:
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    # `X[b, ...]` means `X[b]`.
    if isinstance(items[-1], ast.Constant) and items[-1].value is Ellipsis:
        items = items[:-1]
    if any(isinstance(item, ast.Slice) for item in items):
        return slice_array(ctx, owner, items)
    indices = [argument(ctx, item) for item in items]
    if any(isinstance(arg.value, Vector) for arg in indices):
        return load_elements(ctx, owner, indices)
    return index_array(ctx, owner, indices)


_NO_ELEMENT = (IndexError, KeyError, TypeError)


def _index_constant(ctx: Context, owner: Value, node: ast.Subscript) -> Value:
    is_tuple = items_of(owner) is not None
    name = "a tuple" if is_tuple else f"`{ctx.frame.text(node.value)}`"
    index = _constant_index(ctx, node.slice, f"an index of {name}")
    if isinstance(owner, Record):
        owner = tuple(owner)
    try:
        return plain(
            read(ctx, node, lambda: ctx.reads.item(owner, index), *_NO_ELEMENT)
        )
    except (IndexError, KeyError):
        problem = f"`{ctx.frame.text(node.value)}` has no element {index!r}"
        raise ctx.error("X0205", problem, label=f"it is {describe(owner)}") from None
    except TypeError:
        problem = f"{describe(owner)} cannot be indexed like this"
        raise ctx.error("X0303", problem) from None


def _constant_index(
    ctx: Context, node: ast.expr, what: str = "an index of a tuple"
) -> Value:
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        bound = "a bound of a slice"
        return slice(*(p and _constant_index(ctx, p, bound) for p in parts))
    value = ctx.evaluate(node)
    if not is_constant(value):
        problem = f"{what} must be known when compiling"
        help_ = "loop over xetile.static_range, choose with `if`, or pass an array"
        help_ += " as an argument"
        if "slice" in what:
            help_ = "of a vector xetile.gather chooses elements as the run decides"
        label = f"is {describe(value)}"
        raise ctx.error("X0305", problem, node, label=label, help=help_)
    return value


def _index_vector(ctx: Context, owner: Vector, node: ast.Subscript) -> Value:
    """Compile ``v[:, None]``, ``v[None, :]``, ``v[a:b]``, ``v[3]``, ``v[1, 3]``."""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    shape: list[int] = []
    parts: list[range] = []
    rest = list(owner.shape)
    for item in items:
        if isinstance(item, ast.Constant) and item.value is None:
            shape.append(1)
            continue
        if not rest or len(owner.shape) > 2:
            raise _bad_vector_index(ctx, owner, node)
        extent = rest.pop(0)
        if item is items[-1] and not (isinstance(item, ast.Slice) or rest or shape):
            row = shape_cast(ctx, _sliced(ctx, owner, parts), (extent,))
            return _at(ctx, row, _place(ctx, owner, item, extent, node), 0, node)
        if isinstance(item, ast.Slice):
            parts.append(_part(ctx, owner, item, extent, node))
            shape.append(len(parts[-1]))
            continue
        place, dim = _place(ctx, owner, item, extent, node), len(parts)
        if not isinstance(place, int):
            matrix = shape_cast(ctx, owner, matrix_shape(owner.shape))
            line = _at(ctx, matrix, place, dim - len(owner.shape), node)
            rank_kept = (*owner.shape[:dim], 1, *owner.shape[dim + 1 :])
            owner, place = shape_cast(ctx, cast("Vector", line), rank_kept), 0
        parts.append(range(place, place + 1))
    result: Shape = (*shape, *rest)
    if len(result) > 2:
        text, rank = ctx.frame.text(node.slice), len(result)
        problem = f"`[{text}]` makes a vector of rank {rank}"
        help_ = "a vector has rank 1 or 2: write a loop over the third dim"
        label = f"is {describe(owner)}"
        raise ctx.error("X0407", problem, label=label, help=help_)
    if not result:
        raise _bad_vector_index(ctx, owner, node)
    return shape_cast(ctx, _sliced(ctx, owner, parts), result)


def _part(
    ctx: Context, owner: Vector, item: ast.Slice, extent: int, node: ast.Subscript
) -> range:
    """Return the indices of a slice along a dim of ``extent`` elements."""
    chosen = cast("slice", _constant_index(ctx, item))
    try:
        places = range(*chosen.indices(extent))
    except (TypeError, ValueError):
        raise _bad_vector_index(ctx, owner, node) from None
    if places.step < 1 or not places:
        raise _bad_vector_index(ctx, owner, node)
    return places


def _place(
    ctx: Context, owner: Vector, item: ast.expr, extent: int, node: ast.Subscript
) -> Value:
    """Return an index along a dim of ``extent`` elements: a constant counts from 0."""
    place = ctx.evaluate(item)
    if not is_int(place):
        raise _bad_vector_index(ctx, owner, node)
    if isinstance(place, int):
        if not -extent <= place < extent:
            raise _bad_vector_index(ctx, owner, node)
        return place % extent
    return place


def _sliced(ctx: Context, owner: Vector, parts: list[range]) -> Vector:
    """Return the elements of a vector at chosen indices of its leading dims."""
    shape = matrix_shape(owner.shape)
    places = [range(extent) for extent in shape]
    first = len(shape) - len(owner.shape)
    places[first : first + len(parts)] = parts
    return slice_matrix(ctx, shape_cast(ctx, owner, shape), *places)


def _at(
    ctx: Context, owner: Vector, place: Value, dim: int, node: ast.Subscript
) -> Value:
    """Return the number, row or column of a vector at index ``place`` of a dim."""
    given = zip(("v", "place", "dim"), (owner, place, dim % len(owner.shape)))
    args = {name: Arg(each, node) for name, each in given}
    return inline_operation(ctx, reductions.element, args, node)


def _bad_vector_index(ctx: Context, owner: Vector, node: ast.Subscript) -> Exception:
    problem = f"a vector cannot be indexed with `[{ctx.frame.text(node.slice)}]`"
    help_ = (
        "`v[:, None]` and `v[None, :]` add a dim; `v[a:b]` and `v[i]` choose"
        f" elements of {show_shape(owner.shape)}, a and b known when compiling; reverse"
        " with xetile.flip, choose by a vector with xetile.gather"
    )
    return ctx.error("X0407", problem, label=f"is {describe(owner)}", help=help_)
