"""``xetl.ops.sort``, ``argsort`` and ``topk``: how rows of each length are ordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xetl.language.dtypes import DType, i32, i64
from xetl.language.ops import cdiv, next_power_of_2
from xetl.language.ops.order import SORTED
from xetl.ops.calling.calls import Launch, View, are_views, as_line
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Operands,
    Step,
    along,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import LEAST, array_of, columns_of, find_dim, row_view, rows
from xetl.ops.indexing import gather_backward
from xetl.ops.rows.extremes import Extremes
from xetl.ops.rows.ordering_kernels import (
    DIGITS,
    best_of_groups,
    count_digits,
    first_of_rows,
    move_by_digits,
    order_columns,
    order_narrow_rows,
    place_digits,
    store_keys,
    store_places,
    take_groups,
)
from xetl.ops.rows.reductions import compared_in, limit_of
from xetl.runtime.kernel import Kernel

_NARROW, _ROWS = 8, 16
"""The most columns of rows that are ordered together, and the rows of a program.

[measured] Zen 4, 8192 rows of 4, f32 and i64: 387 us, then 80; 844, then 87. 1000 rows
of 13: 49 us, then 118.
"""

_LONGEST = 1 << 14
"""The most elements of a row that one program holds; half as many of 64 bits."""

_BLOCK = 1 << 14
"""The elements whose digits a program counts: many for each digit, but few enough for
several programs of a row."""

_WIDTH = 1024
"""The elements of a program that has nothing to count."""

_MOST = 1 << 31
"""Rows have less elements, so that an index fits half of a key."""


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
    if not 1 <= n <= most or not prod(x.shape) or not k:
        return None
    if not is_whole or n == 1:
        return _down(x, made, dim, (descending, compared_in(x.dtype), n, k))
    each_row: View = lambda a: a.reshape(-1, k)
    grid = (cdiv(prod(x.shape), n * _ROWS), 1, 1)
    constants = (descending, compared_in(x.dtype), n, k, _ROWS)
    views = as_line, each_row, each_row
    return Step(Launch(order_narrow_rows, views, (), grid, constants), (x, *made))


def _down(
    x: Operand, made: Sequence[Operand], dim: int, how: Sequence[Any]
) -> Step | None:
    """Return the launch for a few elements along ``dim``: each lane has one row."""
    outer, inner = prod(x.shape[:dim]), prod(x.shape[dim + 1 :])

    def seen(a: Numbers) -> Numbers:
        a = a.reshape(outer, a.shape[dim], inner)
        return a if outer < inner else a.T

    if not are_views([array_of(each) for each in (x, *made)], [seen] * 3):
        return None
    batch, lanes = sorted((outer, inner))
    grid = (cdiv(lanes, LEAST), batch, 1)
    constants = (*how, next_power_of_2(how[2]), LEAST)
    return Step(Launch(order_columns, (seen,) * 3, (), grid, constants), (x, *made))


def _ordered(
    x: Operand, made: Sequence[Operand], dim: int, largest: bool, k: int
) -> list[Step]:
    """Return the launches of `sort` (k is all) and `topk`."""
    narrow = _narrow(x, made, dim, largest, k)
    return [narrow] if narrow is not None else _first(x, made, dim, largest, k)


def _taken(k: int, n: int, width: int) -> int:
    """Return how many a program takes of a row of n: many are a part of a sorted row.

    [measured] Zen 4, 4096 rows of 10, f64, 3 of them: 456 us, 4 of them: 324.
    """
    if k == n:
        return width
    return next_power_of_2(k) if SORTED * k >= width else k


def _along(
    dim: int,
    kernel: Kernel,
    operands: Operands,
    constants: Sequence[Any] = (),
    numbers: tuple[float, ...] = (),
    parts: int = 1,
) -> Step:
    """Return a launch along ``dim`` of all operands; see `rows`."""
    views = [x and row_view(x.ndim, dim) for x in operands]
    return rows(kernel, operands, views, constants, numbers, parts)


def _first(x: Operand, made: Operands, dim: int, largest: bool, k: int) -> list[Step]:
    """Return the launches that find the first k of each row in order.

    Args:
        x: the input.
        made: the values, or None, and the indices.
        largest: whether the largest come first.
    """
    n, padding = columns_of(x.shape, dim), _last(x.dtype, largest)
    if n <= (_LONGEST // 2 if x.dtype.bits == 64 else _LONGEST):
        width = max(LEAST, next_power_of_2(max(1, n)))
        constants = (largest, padding, _taken(k, n, width), width)
        return [_along(dim, first_of_rows, (x, *made), constants)]
    # An array of the user may be `x`, which is still to be read; and a copy takes less
    # than reading elements that are far from one another twice.
    is_kept = all(each is None or each.is_new for each in made)
    is_along = (x.order or range(x.ndim))[-1] == dim
    x, copies = (x, []) if is_kept and is_along else along(x, dim)
    size = 1 << ((n // max(k, 1)).bit_length() - 1) // 2
    chosen = None
    if size == 1:
        found, steps = _sorted_by_digits(x, dim, largest)
    else:
        found, chosen, steps = _by_groups(x, dim, largest, k, size)
    constants, parts = (size, _WIDTH), cdiv(k, _WIDTH)
    operands = (x, found, chosen, *made)
    return [
        *copies,
        *steps,
        _along(dim, store_places, operands, constants, parts=parts),
    ]


def _made(x: Operand, dim: int, n: int, dtype: DType) -> Operand:
    """Make an array like x with rows of n elements, contiguous along ``dim``."""
    shape, order = list(x.shape), list(range(x.ndim))
    shape[dim] = n
    order[dim], order[-1] = order[-1], dim
    return temporary(tuple(shape), dtype, order=tuple(order))


def _by_groups(
    x: Operand, dim: int, largest: bool, k: int, size: int
) -> tuple[Operand, Operand, list[Step]]:
    """Return the places of the first k among those of k groups, the groups, the steps.

    An element that is wanted is in one of the k groups with the best first elements.
    Groups follow one another, and are taken in that order: equals keep theirs.
    """
    n, key = columns_of(x.shape, dim), i64 if x.dtype.bits == 64 else i32
    best = _made(x, dim, cdiv(n, size), key)
    found, chosen = _made(x, dim, k, i64), _made(x, dim, k, i32)
    in_order, places = _made(x, dim, k, i32), _made(x, dim, k, i32)
    taken = _made(x, dim, k * size, x.dtype)
    padding, groups = _last(x.dtype, largest), max(1, _WIDTH // size)
    constants, parts = (largest, padding, size, groups), cdiv(n, groups * size)
    steps = [
        _along(dim, best_of_groups, (x, best), constants, parts=parts),
        *_first(best, (None, chosen), dim, False, k),
        *_first(chosen, (in_order, places), dim, False, k),
        _along(dim, take_groups, (x, in_order, taken), (padding, size)),
        *_first(taken, (None, found), dim, largest, k),
    ]
    return found, in_order, steps


def _sorted_by_digits(
    x: Operand, dim: int, largest: bool
) -> tuple[Operand, list[Step]]:
    """Return the keys of each row in order, with indices, and the launches."""
    n, steps = columns_of(x.shape, dim), list[Step]()
    keys, moved = _made(x, dim, n, i64), _made(x, dim, n, i64)
    parts = cdiv(n, _BLOCK)
    counts = _made(x, dim, parts * DIGITS, i32)
    for half in (0, 1) if x.dtype.bits == 64 else (None,):
        constants = (largest, half, _WIDTH)
        steps.append(
            _along(dim, store_keys, (x, keys), constants, parts=cdiv(n, _WIDTH))
        )
        for shift in range(32, 64, 8):
            how = (_BLOCK,), (shift,), parts
            steps += [
                _along(dim, count_digits, (keys, counts), *how),
                _along(dim, place_digits, (counts,)),
                _along(dim, move_by_digits, (keys, counts, moved), *how),
            ]
            keys, moved = moved, keys
    return keys, steps


def _find_rows(name: str, x: Operand, dim: int) -> int:
    """Return the dimension, counted from 0; refuse rows that are too long."""
    dim = find_dim(name, x, dim)
    n = columns_of(x.shape, dim)
    if n >= _MOST:
        problem = f"rows of {n} elements are too long"
        raise wrong_shape(name, problem, f"{_MOST - 1} are the most")
    return dim


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
    dim = _find_rows("sort", input, dim)

    def steps(made: Any) -> Any:
        return _ordered(input, made, dim, descending, columns_of(input.shape, dim))

    return Call((result(input.shape, input.dtype), result(input.shape, i64)), steps)


@function(results=2, backward=_backward, saves=["result1"])
def topk_with_indices(
    input: ArrayLike, k: int, dim: int, largest: bool, *, out: ArrayLike = None
) -> Any:
    """The results of `topk`."""
    dim = _find_rows("topk", input, dim)
    n = columns_of(input.shape, dim)
    if not 0 <= k <= n:
        raise wrong_shape("topk", f"{n} elements have no {k} largest", "pass a less k")
    shape = (*input.shape[:dim], k, *input.shape[dim + 1 :])
    if not input.shape:
        shape, k = (), 1  # for an array without dimensions torch ignores a k of 0

    def steps(made: Any) -> Any:
        return _ordered(input, made, dim, largest, k)

    return Call((result(shape, input.dtype), result(shape, i64)), steps)


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
        input: any shape; floats, integers or booleans, from any library as for
            `softmax`.
        dim: the dimension.
        descending: whether the largest comes first. NaN comes last in either order.
        stable: has no effect: equal elements always keep their order.
        out: a pair of arrays that get the results: the dtype of ``input`` and i64.

    Raises:
        LaunchError: shapes (X0827), or dtypes of ``out`` (X0828), do not fit.
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
        LaunchError: shapes (X0827), or dtypes of ``out`` (X0828), do not fit.
    """
    return Extremes(*topk_with_indices(input, k, dim, largest, out=out))
