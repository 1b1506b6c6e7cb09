"""``sum``, ``mean``, ``amax``, ``amin``, ``argmax``, ``argmin`` and ``cumsum``.

One row to a program, piece by piece. Few long rows are cut into parts, whose results
are reduced again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, i32, i64
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, are_views, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    DTypeLike,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import (
    STRIP,
    array_of,
    as_dtype,
    columns,
    columns_of,
    find_dim,
    floats_as,
    piece_width,
    row_view,
    rows,
    sums_of,
    width_of,
)
from xetl.ops.rows.reduction_kernels import (
    ENOUGH,
    TILE,
    WIDEST,
    Dims,
    Down,
    Reduced,
    by_columns,
    cumsum_columns,
    cumsum_rows,
    down_of,
    find_columns,
    find_rows,
    reduce_columns,
    reduce_rows,
    reduce_short_rows,
    reduced,
    rows_of_tile,
    spread,
    views_of,
    with_reduced,
)

_LONG = 1 << 16
_PIECE = 1024
_COLUMN_ROWS = 16
"""Of a tile where columns are reduced, at least."""
_PART = 256
"""Rows of a part of long columns."""
_PROGRAM = 1 << 20
"""Elements that a program reads where columns are reduced, if rows are wide enough."""


def limit_of(kind: str, dtype: DType) -> Any:
    """What a reduction of that kind starts with."""
    if kind == "add":
        return 0
    if dtype.is_float:
        return float("-inf" if kind == "max" else "inf")
    if dtype.is_bool:
        return int(kind == "min")
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if kind == "max" else limits.max)


def _compared_in(dtype: DType) -> DType:
    """What extremes are searched in: it has the values of ``dtype``, in their order."""
    return SUMS.get(dtype, dtype if dtype.bits >= 32 else i32)


def _nothing(name: str, x: Operand) -> LaunchError:
    problem = f"`{x.name}` is {x.shape}, which has no elements there"
    return wrong_shape(name, problem, "reduce one element at least")


def _reduce(
    name: str, kind: str, x: Operand, dim: Any, keepdim: bool, dtype: DType, acc: DType
) -> Call:
    what = reduced(name, x, dim, keepdim)
    if kind != "add" and what.columns == 0:
        raise _nothing(name, x)
    factor = 1.0 if name != "mean" else 1 / what.columns if what.columns else np.nan

    def steps(made: Sequence[Operand]) -> Sequence[Step]:
        return _steps(x, made[0], what, (kind, acc), factor)

    return Call((result(what.shape, dtype),), steps)


def _steps(
    x: Operand, to: Operand, what: Reduced, how: tuple[str, DType], factor: float
) -> Sequence[Step]:
    kind, acc = how
    views = views_of(x, what.dims)
    if not are_views([array_of(x)], views[:1]):
        return _by_dims(x, to, what, how, factor)
    width = min(width_of(what.columns), WIDEST)
    if what.columns > WIDEST:
        width = min(width, piece_width(x, what.columns))
    count = prod(what.shape)
    # Of the input: a limit of wider numbers would not be a padding of its tiles.
    first = limit_of(kind, x.dtype)
    down = down_of(x, what.dims, (to,))
    if down is not None:
        return _by_columns(x, to, down, (kind, first, acc), factor)
    if what.columns <= width and count >= ENOUGH:
        some = rows_of_tile(what, width)
        step = rows(
            reduce_short_rows,
            (x, to),
            views,
            (kind, first, some, acc, width),
            (factor,),
            rows_of_program=some,
        )
        return [step]
    if count >= ENOUGH or what.columns < _LONG:
        constants = (kind, first, 0, acc, width)
        return [rows(reduce_rows, (x, to), views, constants, (factor,))]
    return _in_parts(x, to, what.columns, views, (kind, first, acc), factor, width)


def add_all(x: Operand, to: Operand, factor: float) -> Sequence[Step]:
    """The sum of all elements, in the dtype of ``x``, times a number."""
    return _steps(x, to, reduced("", x, None, False), ("add", x.dtype), factor)


def _by_dims(
    x: Operand, to: Operand, what: Reduced, how: tuple[str, DType], factor: float
) -> Sequence[Step]:
    """Where there are gaps between dimensions: the reduction of the innermost first."""
    inner = [i for i in x.order or range(x.ndim) if i in what.dims][-1]
    part = reduced("", x, inner, keepdim=True)
    between = temporary(part.shape, how[1])
    rest = reduced("", between, what.dims, len(what.shape) == x.ndim)
    first = _steps(x, between, part, how, 1.0)
    return [*first, *_steps(between, to, rest, how, factor)]


def _in_parts(
    x: Operand,
    to: Operand,
    columns: int,
    views: tuple[View, View],
    how: tuple[Any, ...],
    factor: float,
    width: int,
) -> list[Step]:
    """The reduction of few long rows: of their parts, then of what these came to.

    Parts are pieces of one length, as short rows, where that divides the rows.
    """
    (source, target), (kind, first, acc) = views, how
    kept = source(array_of(x)).shape[:-1]
    if columns % _PIECE == 0:
        between = temporary((*kept, columns // _PIECE), acc)
        some = TILE // _PIECE
        cut: View = lambda a: source(a).reshape(*between.shape, _PIECE)
        last: View = lambda a: a[..., None]
        one = rows(
            reduce_short_rows,
            (x, between),
            (cut, last),
            (kind, first, some, acc, _PIECE),
            (1.0,),
            rows_of_program=some,
        )
    else:
        pieces = max(1, cdiv(columns, width * ENOUGH))
        parts = cdiv(columns, width * pieces)
        between = temporary((*kept, parts), acc)
        constants, seen = (kind, first, pieces, acc, width), (source, itself)
        one = rows(reduce_rows, (x, between), seen, constants, (1.0,), parts)
    constants = (kind, first, 0, acc, min(width_of(between.shape[-1]), WIDEST))
    two = rows(reduce_rows, (between, to), (itself, target), constants, (factor,))
    return [one, two]


def _by_columns(
    x: Operand, to: Operand, what: Down, how: tuple[Any, ...], factor: float
) -> list[Step]:
    """The reduction of a dimension before the last: rows are read as they lie.

    Long columns in parts, then the results of these: whole rows are read one after the
    other then, and there is work for many threads.
    """
    outer, n, inner = what.shape
    count = n // _PART if n % _PART == 0 else 1
    if count == 1:
        return [_down(x, to, what, how, factor)]
    parts, sums = (outer * count, _PART, inner), (outer, count, inner)
    between = temporary((outer * count, 1, inner), how[-1])
    source: View = lambda a: what.source(a).reshape(parts)
    one = _down(x, between, Down(parts, source, itself), how, 1.0)
    seen: View = lambda a: a.reshape(sums)
    return [one, _down(between, to, Down(sums, seen, what.target), how, factor)]


def _down(
    x: Operand, to: Operand, what: Down, how: tuple[Any, ...], factor: float
) -> Step:
    """The reduction of the middle of three dimensions."""
    outer, n, inner = what.shape
    kind, first, acc = how
    wide = STRIP
    while wide < min(inner, WIDEST) and wide * n < _PROGRAM:
        wide *= 2
    constants = (kind, first, _COLUMN_ROWS, acc, wide)
    grid = (cdiv(inner, wide), outer, 1)
    launch = Launch(reduce_columns, what[1:], (), grid, constants)
    return Step(launch, (x, to), (factor,))


def _sum_dtypes(name: str, x: Operand, dtype: Any) -> tuple[DType, DType]:
    """That of a result, and what it is computed in: integers as what is asked for."""
    if not x.dtype.is_float and not as_dtype(dtype, i64).is_float:
        return as_dtype(dtype, i64), i64
    wanted = floats_as(name, x, dtype, converts=True)
    return wanted, sums_of(x.dtype, wanted)


def _sum_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    return {"input": spread(context, grad)}


def _mean_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    part = grad.numel() / max(1, prod(context.shape_of("input")))
    return {"input": spread(context, grad * part)}


@function(backward=_sum_backward)
def sum(
    input: ArrayLike,
    dim: Dims | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """The sum over dimensions, in f32 (f64 for f64, i64 for integers), rounded once.

    Integers are summed as floats where ``dtype`` is one.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`.
        dim: one or more dimensions; None: all.
        keepdim: whether they stay, with extent 1.
        dtype: of the result; None: that of ``input``, i64 for integers.
        out: where the result goes.

    Returns:
        ``out``, or a new array of the library of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    wanted, acc = _sum_dtypes("sum", input, dtype)
    return _reduce("sum", "add", input, dim, keepdim, wanted, acc)


@function(backward=_mean_backward)
def mean(
    input: ArrayLike,
    dim: Dims | None = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """The mean over dimensions; arguments as of `sum`; integers need ``dtype``."""
    wanted = floats_as("mean", input, dtype, converts=True)
    acc = sums_of(input.dtype, wanted)
    return _reduce("mean", "add", input, dim, keepdim, wanted, acc)


def _extreme_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """Shared evenly among equals, as torch does for amax."""
    x, y = context.saved
    dim = context["dim"]
    grad, y = (with_reduced(context, each, x.ndim) for each in (grad, y))
    is_best = (x == y).to(x.dtype)
    dims = None if dim in (None, ()) else dim
    count = is_best.sum(keepdim=True, dim=dims) if dims is not None else is_best.sum()
    return {"input": grad * is_best / count}


def _extreme(name: str, kind: str, x: Operand, dim: Any, keepdim: bool) -> Call:
    acc = _compared_in(x.dtype)
    return _reduce(name, kind, x, dim, keepdim, x.dtype, acc)


@function(backward=_extreme_backward, saves=["input", "result"])
def amax(
    input: ArrayLike, dim: Dims = (), keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The largest numbers over dimensions, NaN if there is one; see `sum`."""
    return _extreme("amax", "max", input, dim, keepdim)


@function(backward=_extreme_backward, saves=["input", "result"])
def amin(
    input: ArrayLike, dim: Dims = (), keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The least numbers over dimensions, NaN if there is one; see `sum`."""
    return _extreme("amin", "min", input, dim, keepdim)


def _found(
    name: str, x: Operand, dim: int | None, keepdim: bool, *, largest: bool, both: bool
) -> Call:
    what = reduced(name, x, dim, keepdim)
    if what.columns == 0:
        raise _nothing(name, x)
    acc = _compared_in(x.dtype)
    results = (result(what.shape, i64),)
    if both:
        results = (result(what.shape, x.dtype), *results)

    def steps(made: Sequence[Operand]) -> list[Step]:
        # Places are counted along rows.
        seen = x if len(what.dims) == 1 else replace(x, order=None)
        source, target = views_of(seen, what.dims)
        padding = limit_of("max" if largest else "min", x.dtype)
        down = down_of(seen, what.dims, made)
        if down is not None:
            operands = (x, made[0] if both else None, made[-1])
            how = largest, padding, acc
            return [by_columns(find_columns, operands, down, how)]
        constants = (largest, padding, acc, piece_width(x, what.columns))
        values = made[0] if both else None
        views = (source, target if both else None, target)
        return [rows(find_rows, (x, values, made[-1]), views, constants)]

    return Call(results, steps)


@function()
def argmax(
    input: ArrayLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """The place of the largest number, i64; the first one of equals, or of NaN.

    Args:
        input: any shape; floats or integers.
        dim: the dimension that is searched; None: all, in memory's order of rows.
        keepdim: whether it stays, with extent 1.
        out: where the result goes.

    Raises:
        LaunchError: there is nothing to search (X0827).
    """
    return _found("argmax", input, dim, keepdim, largest=True, both=False)


@function()
def argmin(
    input: ArrayLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """The place of the least number; arguments as of `argmax`."""
    return _found("argmin", input, dim, keepdim, largest=False, both=False)


def _chosen_backward(context: Context, grad: Any, _: Any) -> Mapping[str, Any]:
    shape = context.shape_of("input")
    pair = (grad, context.saved[0])
    grad, places = (with_reduced(context, each, len(shape)) for each in pair)
    return {"input": grad.new_zeros(shape).scatter(context["dim"], places, grad)}


@function(results=2, backward=_chosen_backward, saves=["result1"])
def max_with_indices(
    input: ArrayLike, dim: int, keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The largest numbers along a dimension, and their places."""
    return _found("max", input, dim, keepdim, largest=True, both=True)


@function(results=2, backward=_chosen_backward, saves=["result1"])
def min_with_indices(
    input: ArrayLike, dim: int, keepdim: bool = False, *, out: ArrayLike = None
) -> Any:
    """The least numbers along a dimension, and their places."""
    return _found("min", input, dim, keepdim, largest=False, both=True)


def _cumsum(x: Operand, dim: int, dtype: Any, *, reverse: bool) -> Call:
    wanted, acc = _sum_dtypes("cumsum", x, dtype)
    dim = find_dim("cumsum", x, dim)
    view = row_view(x.ndim, dim)

    def steps(made: Sequence[Operand]) -> list[Step]:
        if dim < x.ndim - 1:
            return [columns(cumsum_columns, (x, *made), dim, (reverse, acc))]
        constants = (reverse, acc, width_of(columns_of(x.shape, dim)))
        return [rows(cumsum_rows, (x, *made), (view, view), constants)]

    return Call((result(x.shape, wanted),), steps)


@function()
def cumsum_backward(grad: ArrayLike, dim: int, dtype: DTypeLike) -> Any:
    """The sums from each place to the end."""
    return _cumsum(grad, dim, dtype, reverse=True)


def _cumsum_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    dim, dtype = context["dim"], context.dtype_of("input")
    return {"input": cumsum_backward(grad, dim, dtype)}


@function(backward=_cumsum_backward)
def cumsum(
    input: ArrayLike, dim: int, dtype: DTypeLike = None, *, out: ArrayLike = None
) -> Any:
    """The sums from the start to each place of a dimension; arguments as of `sum`."""
    return _cumsum(input, dim, dtype, reverse=False)
