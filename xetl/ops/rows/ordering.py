"""``xetl.ops.sort``, ``argsort`` and ``topk``: programs have one row, or narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import DType, i64
from xetl.language.ops import cdiv, next_power_of_2
from xetl.ops.calling.calls import Launch, View, as_line
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import (
    array_of,
    columns_of,
    find_dim,
    row_view,
    rows,
    size_of,
)
from xetl.ops.indexing import gather_backward
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.extremes import Extremes
from xetl.ops.rows.reduction_kernels import comes_before
from xetl.ops.rows.reductions import compared_in, limit_of
from xetl.xetile import Array, Vector, constexpr

_NARROW, _ROWS = 8, 16
"""The most columns of rows that are ordered together, and the rows of a program.

[measured] Zen 4, 8192 rows of 4, f32 and i64: 387 us, then 80; 844, then 87. 1000 rows
of 13: 49 us, then 118.
"""

_LONGEST = 1 << 14
"""The most elements of a row, which one program holds; half as many of 64 bits."""


@xetile.function
def store_found(
    source: Array, values: Array, indices: Array, places: Vector, row: int
) -> None:
    """Store the elements of a row at these indices, and the indices."""
    found = xetile.load_gather(xetile.init_tile(source, [places * 0 + row, places]))
    put(found, values, [row, 0])
    put(places, indices, [row, 0])


@xetile.kernel
def sort_rows(
    x: Array,
    values: Array,
    indices: Array,
    DESCENDING: constexpr,
    PADDING: constexpr,
    WIDTH: constexpr,
) -> None:
    """The elements of each row in order, and their indices; NaN comes last."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    tile = xetile.init_tile(source, [row, 0], (1, WIDTH))
    # The padding stays behind the row, because the sort is stable.
    v = xetile.load_tile(tile, padding=PADDING)
    places = xetile.argsort(v, 1, DESCENDING)
    store_found(source, matrix(values, number), matrix(indices, number), places, row)


@xetile.kernel
def topk_rows(
    x: Array,
    values: Array,
    indices: Array,
    LARGEST: constexpr,
    PADDING: constexpr,
    K: constexpr,
    WIDTH: constexpr,
) -> None:
    """The K largest (least) elements of each row, and their indices; NaN comes last."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    v = xetile.load_tile(
        xetile.init_tile(source, [row, 0], (1, WIDTH)), padding=PADDING
    )
    if not LARGEST:
        v = -v if v.dtype.is_float else ~v
    _, places = xetile.topk(v, K, 1)
    store_found(source, matrix(values, number), matrix(indices, number), places, row)


@xetile.kernel
def order_narrow_rows(
    x: Array,
    values: Array,
    indices: Array,
    DESCENDING: constexpr,
    ACC: constexpr,
    COLUMNS: constexpr,
    K: constexpr,
    ROWS: constexpr,
) -> None:
    """`sort_rows` or `topk_rows` of rows of a few COLUMNS, of which a program has ROWS.

    The place of an element is the number of those of its row that come before it.

    Args:
        x: the line of all elements, so that no vector is for one row alone.
        values: (rows, K).
        indices: the same.
    """
    width: constexpr = COLUMNS * ROWS
    begin = xetile.program_id(0) * ROWS
    lane, first = xetile.arange(width), begin * COLUMNS
    column, rank = lane % COLUMNS, xetile.zeros((width,), xetile.i32)
    v = take(x, [first], (width,), ACC)
    for away in xetile.static_range(1, COLUMNS):
        before = take(x, [first - away], (width,), ACC)
        behind = take(x, [first + away], (width,), ACC)
        # Elements that are equal keep their order.
        is_later = ~comes_before(before, v, not DESCENDING, ACC)
        rank = rank + xetile.where((column >= away) & is_later, 1, 0)
        is_later = comes_before(v, behind, not DESCENDING, ACC)
        is_there = column < COLUMNS - away
        rank = rank + xetile.where(is_there & is_later, 1, 0)
    place = [begin + lane // COLUMNS, rank]
    is_wanted = (rank < K) & (lane < x.shape[0] - first)
    found = v.to(values.dtype)
    xetile.store_scatter(found, is_wanted, xetile.init_tile(values, place))
    to = xetile.init_tile(indices, place)
    xetile.store_scatter(column.to(indices.dtype), is_wanted, to)


def _narrow(
    x: Operand, made: Sequence[Operand], dim: int, descending: bool, k: int
) -> Step | None:
    """Return the launch for rows of a few columns; None for others.

    Without AVX-512 the elements that `topk` leaves out cost a branch each.
    """
    n = columns_of(x.shape, dim)
    most = _NARROW if k == n or x.dtype.bits == 64 else _NARROW // 2
    both = [array_of(each) for each in (x, *made)]
    is_whole = dim == x.ndim - 1 and all(each.flags.c_contiguous for each in both)
    if not 1 < n <= most or not is_whole or not size_of(x.shape) or not k:
        return None
    each_row: View = lambda a: a.reshape(-1, k)
    grid = (cdiv(size_of(x.shape), n * _ROWS), 1, 1)
    constants = (descending, compared_in(x.dtype), n, k, _ROWS)
    views = as_line, each_row, each_row
    return Step(Launch(order_narrow_rows, views, (), grid, constants), (x, *made))


def _width(name: str, x: Operand, dim: int) -> int:
    n = columns_of(x.shape, dim)
    if x.dtype.is_bool:
        problem = f"`{name}` was given input of {x.dtype}"
        raise LaunchError(problem, "X0828", "convert it to numbers, such as uint8")
    longest = _LONGEST // 2 if x.dtype.bits == 64 else _LONGEST
    if n > longest:
        problem = f"rows of {n} elements of {x.dtype} are too long"
        raise wrong_shape(name, problem, f"{longest} are the most")
    return max(16, next_power_of_2(max(1, n)))


def _backward(context: Context, grad: Any, _: Any) -> Mapping[str, Any]:
    places, dim = context.saved[0], context["dim"]
    return {"input": gather_backward(grad, places, context.shape_of("input"), dim)}


def _last(dtype: DType, descending: bool) -> Any:
    """Return a number that is sorted behind all others."""
    if dtype.is_float:
        return float("nan")
    return limit_of("max" if descending else "min", dtype)


@function(results=2, backward=_backward, saves=["result1"])
def sort_with_indices(
    input: ArrayLike, dim: int, descending: bool, *, out: ArrayLike = None
) -> Any:
    """The results of `sort`."""
    dim = find_dim("sort", input, dim)
    width = _width("sort", input, dim)

    def steps(made: Any) -> Any:
        narrow = _narrow(input, made, dim, descending, columns_of(input.shape, dim))
        if narrow is not None:
            return [narrow]
        views = [row_view(input.ndim, dim)] * 3
        constants = (descending, _last(input.dtype, descending), width)
        return [rows(sort_rows, (input, *made), views, constants)]

    return Call((result(input.shape, input.dtype), result(input.shape, i64)), steps)


@function(results=2, backward=_backward, saves=["result1"])
def topk_with_indices(
    input: ArrayLike, k: int, dim: int, largest: bool, *, out: ArrayLike = None
) -> Any:
    """The results of `topk`."""
    dim = find_dim("topk", input, dim)
    n = columns_of(input.shape, dim)
    if not 0 <= k <= n:
        raise wrong_shape("topk", f"{n} elements have no {k} largest", "pass a less k")
    width, view = _width("topk", input, dim), row_view(input.ndim, dim)
    dtype = input.dtype
    shape = (*input.shape[:dim], k, *input.shape[dim + 1 :])
    if not input.shape:
        shape, k = (), 1  # for an array without dimensions torch ignores a k of 0

    def steps(made: Any) -> Any:
        narrow = _narrow(input, made, dim, largest, k)
        if narrow is not None:
            return [narrow]
        constants = (largest, _last(dtype, largest), k, width)
        return [rows(topk_rows, (input, *made), [view] * 3, constants)]

    return Call((result(shape, dtype), result(shape, i64)), steps)


def sort(
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    out: Any = None,
) -> Extremes:
    """The elements along a dimension in order, and their indices: a pair.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`; at most
            16,384 elements along ``dim``, or 8,192 elements of 64 bits.
        dim: the dimension.
        descending: whether the largest comes first. NaN comes last in either order.
        stable: has no effect: equal elements always keep their order.
        out: a pair of arrays that get the results: the dtype of ``input`` and i64.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return Extremes(*sort_with_indices(input, dim, descending, out=out))


def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """The indices that sort the elements along a dimension, i64; see `sort`."""
    return sort(input, dim, descending, stable)[1]


def topk(
    input: Any,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
) -> Extremes:
    """The k largest elements along a dimension, and their indices: a pair.

    Args:
        input: see `sort`.
        k: the number of elements.
        dim: the dimension.
        largest: True for the largest, False for the least. NaN comes last.
        sorted: has no effect: the elements are always in order.
        out: a pair of arrays that get the results: the dtype of ``input`` and i64.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return Extremes(*topk_with_indices(input, k, dim, largest, out=out))
