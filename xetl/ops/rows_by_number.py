"""``embedding``: rows selected by number, and rows added up by number.

To add rows up, a kernel first sorts them by number: Knuth's distribution counting (The
Art of Computer Programming, 5.2). Then each row of the result is written once,
independently of all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from numbers import Real
from typing import Any

import numpy as np

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import i32, i64
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, as_line, chain, itself
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.views import (
    BLOCK_BYTES,
    LEAST,
    array_of,
    is_on_gpu,
    sums_of,
    vectors_of,
    width_of,
)
from xetl.ops.matrices import matrix, put, take
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import DEVICE_BACKEND
from xetl.xetile import Array, constexpr

_WIDEST = 1024

_NARROW, _TOGETHER, _BYTES = 512, 64, 4096
"""Rows of at most `_NARROW` bytes are selected `_TOGETHER` to a program, or `_BYTES` on
a CPU, since the instructions around a load cost most [measured: Zen 5, 8 to 512 bytes,
2 ns a row less; Granite Rapids, rows of 16 bytes, 64 and 256: 1.6 and 1.4 ns]."""

_SINGLE = 7
"""The most words of a row that a CPU copies one by one, not as a vector with masks
[measured: Sapphire Rapids, 20,000 rows of 3 and 10 f32: 90 us both, then 30 and 48]."""

_EMPTY = 16
"""Rows of a table of zeros that are cleared together, as most are if few are added up
[measured: Zen 4, 100,000 rows of 64 bytes by 2048: 656 us, then 362]."""


@xetile.kernel
def select_rows(
    index: Array,
    x: Array,
    out: Array,
    ROWS: constexpr,
    WIDTH: constexpr,
    GATHERS: constexpr,
) -> None:
    """``out[i] = x[index[i]]`` of each matrix of a batch; index is (m,).

    ``GATHERS``: whether a program reads its rows together, as a GPU should, and not one
    after the other. WIDTH: the columns of a piece; up to `_SINGLE` are all of a row.
    """
    # Several rows are narrow ones, which have no second piece.
    first = xetile.program_id(0) * WIDTH if ROWS == 1 else 0
    i, number = xetile.program_id(1) * ROWS, xetile.program_id(2)
    source, to = matrix(x, number), matrix(out, number)
    if GATHERS:
        rows = take(index, [i], (ROWS,), index.dtype, -1)[:, None]
        columns = first + xetile.arange(WIDTH)[None, :]
        v = xetile.load_gather(xetile.init_tile(source, [rows, columns]))
        put(v, to, [i, first])
        return
    end = i + 1 if ROWS == 1 else min(i + ROWS, index.shape[0])
    for row in range(i, end):
        if WIDTH <= _SINGLE:
            for j in xetile.static_range(WIDTH):
                to[row, j] = source[index[row], j]
        else:
            v = take(source, [index[row], first], (1, WIDTH), x.dtype)
            put(v, to, [row, first])


@xetile.kernel
def order_by_number(
    numbers: Array, begins: Array, order: Array, skipped: int, WIDTH: constexpr
) -> None:
    """Sort indices by number: n stands at ``order[begins[n] : begins[n + 1]]``.

    The indices of one number are ascending.

    Args:
        numbers: (k,); a number that is ``skipped`` or out of range has no indices.
        begins: (count of numbers + 2,), written.
        order: (k,), written.
    """
    count = begins.shape[0] - 2
    for first in range(0, count + 2, WIDTH):
        put(xetile.zeros((WIDTH,), begins.dtype), begins, [first])
    # Counts are two items further: the last loop turns begins[n + 1] into n's end.
    for i in range(0, numbers.shape[0]):
        n = numbers[i]
        if n >= 0 and n < count and n != skipped:
            begins[n + 2] = begins[n + 2] + 1
    total = begins[0]
    for n in range(2, count + 2):
        total = total + begins[n]
        begins[n] = total
    for i in range(0, numbers.shape[0]):
        n = numbers[i]
        if n >= 0 and n < count and n != skipped:
            place = begins[n + 1]
            order[place] = i
            begins[n + 1] = place + 1


@xetile.kernel
def sum_by_number(
    x: Array | None,
    source: Array,
    begins: Array,
    order: Array,
    out: Array,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out[n]`` is ``x[n]`` plus all rows of ``source`` that have number n.

    Args:
        x: of the shape of ``out``; None: zeros.
        source: (..., k, columns).
        begins: see `order_by_number`, also for ``order``.
        out: (..., count of numbers, columns).
        ROWS: rows of a program. If none of them has a sum, they are cleared together.
    """
    start, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    added, to = matrix(source, number), matrix(out, number)
    stop = start + 1 if ROWS == 1 else min(start + ROWS, to.shape[0])
    if ROWS > 1 and x is None and begins[start] == begins[stop]:
        for first in range(0, to.shape[1], WIDTH):
            put(xetile.zeros((ROWS, WIDTH), to.dtype), to, [start, first])
        return
    for row in range(start, stop):
        begin, end = begins[row], begins[row + 1]
        for first in range(0, to.shape[1], WIDTH):
            total = xetile.zeros((1, WIDTH), ACC)
            if x is not None:
                total = take(matrix(x, number), [row, first], (1, WIDTH), ACC)
            for place in range(begin, end):
                total = total + take(added, [order[place], first], (1, WIDTH), ACC)
            put(total, to, [row, first])


def _matrices(shape: Shape, dim: int) -> tuple[int, int, View]:
    """Return the number of matrices with rows along ``dim``, their columns, a view."""
    outer, inner = prod(shape[:dim]), prod(shape[dim + 1 :])
    # For one matrix the view has rank 2: programs need no index of a batch.
    batch = (outer,) if outer != 1 else ()
    return outer, inner, lambda a: a.reshape(*batch, -1, inner)


def _word_of(arrays: Sequence[Numbers]) -> np.dtype[Any]:
    """Return the integers that rows move as; the dtype of the first if there are none.

    They are as wide as all rows allow, but never 8 in a row: vectors have 16 elements,
    and fewer words are copied one by one. [measured] Zen 5, 4096 rows of 56 columns:
    f32 26 us, then 17, bf16 21, then 12; of 16 columns as 8 words: f32 6 us, then 11.
    """
    own = arrays[0].dtype
    is_known = all(each.dtype == own for each in arrays)
    if not is_known or choose_backend(values=arrays).name == DEVICE_BACKEND:
        return own
    row = arrays[0].shape[-1] * own.itemsize
    for size in (8, 4, 2):
        is_wide = row != size * (_SINGLE + 1)
        if size > own.itemsize and is_wide and all(_has_words(x, size) for x in arrays):
            return np.dtype(f"i{size}")
    return own


def _has_words(x: Numbers, size: int) -> bool:
    outer = *x.strides[:-1], x.shape[-1] * x.itemsize
    return x.strides[-1] == x.itemsize and not any(each % size for each in outer)


def selected(
    x: Operand, index: Operand, shape: Shape, dim: int, line: View = as_line
) -> Call:
    """Select the slices of a dimension that have the numbers ``line(index)``."""

    def steps(made: Any) -> Any:
        count, (outer, inner, view) = (
            line(array_of(index)).size,
            _matrices(x.shape, dim),
        )
        word = _word_of([view(array_of(each)) for each in (x, *made)])
        n, words = inner * x.dtype.itemsize // word.itemsize, view
        if word != array_of(x).dtype:
            words = chain(view, lambda a: a.view(word))
        is_gpu = is_on_gpu(x)
        # One vector of a row of 8 f32 fits its line; of 16, every other one would not.
        least = min(LEAST, BLOCK_BYTES // word.itemsize) if is_gpu else 1
        is_single = n <= (1 if is_gpu else _SINGLE)
        width = n if is_single else min(_WIDEST, width_of(n, least))
        is_narrow = width * word.itemsize <= _NARROW
        most = _TOGETHER if is_gpu else max(_TOGETHER, _BYTES // (n * word.itemsize))
        together = min(most, 1 << (count - 1).bit_length()) if is_narrow else 1
        grid = (cdiv(n, width), cdiv(count, together), outer)
        gathers = together > 1 and is_gpu
        views, constants = (line, words, words), (together, width, gathers)
        launch = Launch(select_rows, views, (), grid, constants)
        return [Step(launch, (index, x, *made))] if count else []

    return Call((result(shape, x.dtype),), steps)


def added_rows(
    operands: Sequence[Operand | None],
    index: Operand,
    line: View,
    dim: int,
    skipped: int = -1,
) -> list[Step]:
    """Return the launches that add slices of a dimension by number.

    Args:
        operands: the array to add to, or None for zeros; the slices; the result. All
            are row-major.
        index: the numbers.
        line: the view of ``index`` that has one number for each slice.
        dim: the dimension.
        skipped: a number whose slices are left out.
    """
    x, source, out = operands
    assert source is not None
    assert out is not None
    rows, count = out.shape[dim], source.shape[dim]
    outer, inner, view = _matrices(out.shape, dim)
    begins, order = temporary((rows + 2,), i64), temporary((count,), i64)
    first = Launch(order_by_number, (line, itself, itself), (), (1, 1, 1), (_WIDEST,))
    acc = sums_of(out.dtype) if out.dtype.is_float else out.dtype
    registers, lanes = vectors_of(out)
    width = min(registers // 2 * lanes, width_of(inner))
    views = (view, view, itself, itself, view)
    together = _EMPTY if x is None and rows > count else 1
    grid = (cdiv(rows, together), outer, 1)
    last = Launch(sum_by_number, views, (), grid, (acc, together, width))
    return [
        Step(first, (index, begins, order), (skipped,)),
        Step(last, (x, source, begins, order, out)),
    ]


@function()
def select_backward(
    grad: ArrayLike, index: ArrayLike, dim: int, extent: int, skipped: int
) -> Any:
    """The gradient of the array that slices of a dimension were selected from."""
    dim %= grad.ndim
    shape = (*grad.shape[:dim], extent, *grad.shape[dim + 1 :])

    def steps(made: Any) -> Any:
        return added_rows((None, grad, made[0]), index, as_line, dim, skipped)

    return Call((result(shape, grad.dtype),), steps)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (numbers,) = context.saved
    rows, padding = context.shape_of("weight")[0], context["padding_idx"]
    padding = -1 if padding is None else padding % rows
    flat = grad.reshape(-1, grad.shape[-1])
    return {"weight": select_backward(flat, numbers, 0, rows, padding)}


@function(
    backward=_backward,
    saves=["input"],
    only={
        "max_norm": None,
        "norm_type": Real,  # the norm that `max_norm` limits
        "scale_grad_by_freq": False,
        "sparse": False,
    },
)
def embedding(
    input: ArrayLike,
    weight: ArrayLike,
    padding_idx: int | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``weight[input]``: the rows of a table at these indices.

    Args:
        input: (...), i32 or i64. An index outside of the table gives zeros.
        weight: (rows, n), of any dtype, from any library as for `softmax`.
        padding_idx: a row that gets no gradient.
        out: the array that gets the result.

    Returns:
        ``out``, or a new array: (..., n), dtype of ``weight``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    if input.dtype not in (i32, i64):
        problem = f"`embedding` was given numbers of {input.dtype}"
        raise LaunchError(problem, "X0828", "pass numbers of rows as i32 or i64")
    if weight.ndim != 2:
        problem = f"`weight` is {weight.shape}"
        raise wrong_shape("embedding", problem, "pass a table (rows, n)")
    rows, n = weight.shape
    if padding_idx is not None and not -rows <= padding_idx < rows:
        problem = f"`weight` is {weight.shape}, which has no row {padding_idx}"
        raise wrong_shape("embedding", problem, "`padding_idx` is one of its rows")
    return selected(weight, input, (*input.shape, n), 0)
