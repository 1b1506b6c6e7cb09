"""``xetl.ops.sort``, ``argsort`` and ``topk``: one row to a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import i64
from xetl.language.ops import next_power_of_2
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
from xetl.ops.calling.views import columns_of, find_dim, row_view, rows, sums_of
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.extremes import Extremes
from xetl.ops.rows.reductions import limit_of
from xetl.xetile import Array, Vector, constexpr

_LONGEST = 1 << 14
"""Elements of a row, which a program holds; of 64 bits half as many."""

_FEW = 8
"""Up to so many times k elements a row is sorted: each of the k costs 14 ns, to sort 16
55 ns, 64 155 and 256 760 (AVX-512)."""


@xetile.function
def store_found(
    source: Array, values: Array, indices: Array, places: Vector, row: int
) -> None:
    """The elements of a row that have these places, and the places."""
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
    """The elements of each row in order, and where they were; NaN comes last."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    tile = xetile.init_tile(source, [row, 0], (1, WIDTH))
    # What is loaded besides the row stays behind it, for equals keep their order.
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
    ACC: constexpr,
    K: constexpr,
    WIDTH: constexpr,
) -> None:
    """The K largest (least) elements of each row, and where they are; NaN last."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    source = matrix(x, number)
    v = take(source, [row, 0], (1, WIDTH), ACC, PADDING)
    if ACC.is_float:
        v = xetile.where(xetile.isnan(v), PADDING, v)
        v = v if LARGEST else -v
    elif not LARGEST:
        v = ~v
    _, places = xetile.topk(v, K, 1)
    store_found(source, matrix(values, number), matrix(indices, number), places, row)


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
    zeros = grad.new_zeros(context.shape_of("input"))
    return {"input": zeros.scatter(dim, places, grad)}


def _sorted(
    x: Operand, made: Sequence[Operand], dim: int, descending: bool, width: int
) -> Step:
    """The launch that sorts rows; results may have fewer elements."""
    padding = float("nan")
    if not x.dtype.is_float:
        padding = limit_of("max" if descending else "min", x.dtype)
    views, constants = [row_view(x.ndim, dim)] * 3, (descending, padding, width)
    return rows(sort_rows, (x, *made), views, constants)


@function(results=2, backward=_backward, saves=["result1"])
def sort_with_indices(
    input: ArrayLike, dim: int, descending: bool, *, out: ArrayLike = None
) -> Any:
    """What `sort` gives."""
    dim = find_dim("sort", input, dim)
    width = _width("sort", input, dim)

    def steps(made: Any) -> Any:
        return [_sorted(input, made, dim, descending, width)]

    return Call((result(input.shape, input.dtype), result(input.shape, i64)), steps)


@function(results=2, backward=_backward, saves=["result1"])
def topk_with_indices(
    input: ArrayLike, k: int, dim: int, largest: bool, *, out: ArrayLike = None
) -> Any:
    """What `topk` gives."""
    dim = find_dim("topk", input, dim)
    n = columns_of(input.shape, dim)
    if not 0 <= k <= n:
        raise wrong_shape("topk", f"{n} elements have no {k} largest", "pass a less k")
    width, view = _width("topk", input, dim), row_view(input.ndim, dim)
    dtype = input.dtype
    padding = limit_of("max" if largest else "min", dtype)
    acc = sums_of(dtype) if dtype.is_float else dtype
    shape = (*input.shape[:dim], k, *input.shape[dim + 1 :])
    if not input.shape:
        shape, k = (), 1  # of a number that is what torch gives for 0 as well

    def steps(made: Any) -> Any:
        if width <= _FEW * k:
            return [_sorted(input, made, dim, largest, width)]
        constants = (largest, padding, acc, k, width)
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
    """The elements along a dimension in order, and where they were: a pair.

    Args:
        input: any shape; floats or integers, from any library as for `softmax`; at most
            16,384 elements along ``dim``, of 64 bits 8,192.
        descending: whether the largest comes first. NaN comes last in either order.
        stable: whether equals keep their order; they do always.
        out: where the results go: a pair of the dtype of ``input`` and i64.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return Extremes(*sort_with_indices(input, dim, descending, out=out))


def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False
) -> Any:
    """Where the elements along a dimension are, in order, i64; see `sort`."""
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
    """The k largest elements along a dimension, and where they are: a pair.

    Args:
        input: see `sort`.
        k: how many.
        largest: whether the largest are wanted; else the least. NaN comes last.
        sorted: whether they are in order; they are always.
        out: where the results go: a pair of the dtype of ``input`` and i64.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return Extremes(*topk_with_indices(input, k, dim, largest, out=out))
