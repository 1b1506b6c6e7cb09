"""``xetl.ops.softmax`` and ``log_softmax``: a program has rows, or some columns."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from xetl import xetile
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    DTypeLike,
    Operand,
    copied,
    result,
    temporary,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.folded_rows import folded
from xetl.ops.calling.views import (
    RowTile,
    array_of,
    as_dtype,
    columns,
    columns_of,
    find_dim,
    floats_as,
    row_tile,
    row_view,
    row_width,
    rows,
    rows_at_once,
    same_shapes,
    sums_of,
)
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, Vector, constexpr

LOG2_E = 1.4426950408889634


@xetile.kernel
def softmax_rows(
    x: Array,
    out: Array,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
    MAP: constexpr = None,
    IS_FULL: constexpr = False,
    IS_LOG: constexpr = False,
) -> None:
    """``out = exp(x - max(x)) / sum(exp(x - max(x)))`` in each row.

    Args:
        x: (..., m, n).
        out: as ``x``.
        ACC: the dtype of the computation.
        WIDTH: columns of a tile, n or more.
        ROWS: rows of a program.
        MAP: the part of the tile that each subgroup owns.
        IS_FULL: whether WIDTH is n.
        IS_LOG: whether to return the logarithm of the softmax.
    """
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, to, first = matrix(x, number), matrix(out, number), [row, 0]
    v = take(source, first, (ROWS, WIDTH), ACC, 0.0 if IS_FULL else -xetile.inf, MAP)
    # A NaN makes the sum NaN, so the maximum does not have to propagate it.
    v = v - v.max(1, keepdims=True, propagate_nan=False)
    e = xetile.exp2(v * LOG2_E, nonpositive=True)
    total = e.sum(1, keepdims=True)
    y = v - xetile.log(total) if IS_LOG else e * (1.0 / total)
    put(y, to, first, MAP)


@xetile.kernel
def softmax_folded_rows(
    x: Array,
    out: Array,
    ACC: constexpr,
    SHAPE: constexpr,
    MAP: constexpr,
    EACH: constexpr,
    PITCH: constexpr,
) -> None:
    """`softmax_rows` of folded rows; see `xetl.ops.rows.normalization`."""
    for i in xetile.static_range(EACH):
        row = xetile.program_id(0) * EACH + i
        v = take(x, [row * PITCH, 0], SHAPE, ACC, 0, MAP)
        # As in `softmax_rows`.
        largest = v.max(0, keepdims=True, propagate_nan=False)
        largest = largest.max(1, keepdims=True, propagate_nan=False)
        e = xetile.exp2((v - largest) * LOG2_E, nonpositive=True)
        y = e * (1.0 / e.sum(0, keepdims=True).sum(1, keepdims=True))
        put(y, out, [row * SHAPE[0], 0], MAP)


@xetile.kernel
def softmax_backward_rows(
    grad: Array,
    y: Array,
    out: Array,
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``y * (grad - sum(grad * y))``; log_softmax: ``grad - exp(y) * sum(grad)``."""
    row, number = xetile.program_id(0), xetile.program_id(1)
    g = take(matrix(grad, number), [row, 0], (1, WIDTH), ACC)
    p = take(matrix(y, number), [row, 0], (1, WIDTH), ACC)
    if IS_LOG:
        d = g - xetile.exp(p) * g.sum(1, keepdims=True)
    else:
        d = p * (g - (g * p).sum(1, keepdims=True))
    put(d, matrix(out, number), [row, 0])


@xetile.function
def largest_of_columns(
    source: Array, first: int, ACC: constexpr, WIDTH: constexpr
) -> Vector:
    """Return the maxima of WIDTH columns of a matrix, as (1, WIDTH)."""
    largest = xetile.full((1, WIDTH), -xetile.inf, ACC)
    for row in range(0, source.shape[0]):
        largest = xetile.maximum(largest, take(source, [row, first], (1, WIDTH), ACC))
    return largest


@xetile.kernel
def softmax_columns(
    x: Array, out: Array, IS_LOG: constexpr, ACC: constexpr, WIDTH: constexpr
) -> None:
    """`softmax_rows` of columns, which are read three times."""
    first, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source, to = matrix(x, number), matrix(out, number)
    largest = largest_of_columns(source, first, ACC, WIDTH)
    total = xetile.zeros((1, WIDTH), ACC)
    for row in range(0, source.shape[0]):
        v = take(source, [row, first], (1, WIDTH), ACC) - largest
        total = total + xetile.exp2(v * LOG2_E, nonpositive=True)
    factor, shift = 1.0 / total, xetile.log(total)
    for row in range(0, source.shape[0]):
        v = take(source, [row, first], (1, WIDTH), ACC) - largest
        y = v - shift if IS_LOG else xetile.exp2(v * LOG2_E, nonpositive=True) * factor
        put(y, to, [row, first])


@xetile.kernel
def softmax_backward_columns(
    grad: Array,
    y: Array,
    out: Array,
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """`softmax_backward_rows` of columns."""
    first, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source, kept, to = matrix(grad, number), matrix(y, number), matrix(out, number)
    total = xetile.zeros((1, WIDTH), ACC)
    for row in range(0, source.shape[0]):
        g = take(source, [row, first], (1, WIDTH), ACC)
        if not IS_LOG:
            g = g * take(kept, [row, first], (1, WIDTH), ACC)
        total = total + g
    for row in range(0, source.shape[0]):
        g = take(source, [row, first], (1, WIDTH), ACC)
        p = take(kept, [row, first], (1, WIDTH), ACC)
        d = g - xetile.exp(p) * total if IS_LOG else p * (g - total)
        put(d, to, [row, first])


def _along(name: str, x: Operand, dim: int, dtype: Any) -> Call:
    wanted = floats_as(name, x, dtype)
    dim = find_dim(name, x, dim)
    view, is_log = row_view(x.ndim, dim), name == "log_softmax"

    def steps(made: Any) -> Any:
        if x.dtype.is_float:
            return launches(x, made)
        between = temporary(x.shape, sums_of(wanted))
        return [copied(x, between), *launches(between, made)]

    def launches(x: Operand, made: Any) -> Any:
        operands, sums = (x, *made), sums_of(x.dtype, wanted)
        if prod(x.shape[dim + 1 :]) != 1:
            return [columns(softmax_columns, operands, dim, (is_log, sums))]
        count = columns_of(x.shape, dim)
        width = row_width(x, count)
        fold = None if is_log else folded(operands, count, sums)
        if fold is not None:
            views, how, some = (fold.view, fold.view), (sums, *fold), fold.rows
            folding = softmax_folded_rows
            return [rows(folding, operands, views, how, rows_of_program=some)]
        sizes = view(array_of(x)).shape[-2:]
        if is_log:
            tile = RowTile(rows_at_once(x, sizes[0], width))
        else:
            tile = row_tile(x, sizes, width, sums)
        given = operands, (view, view), (sums, width, *tile, is_log)
        return [rows(softmax_rows, *given, rows_of_program=tile.rows)]

    return Call((result(x.shape, wanted),), steps)


@function(by_rows=True)
def softmax_backward(
    grad: ArrayLike, input: ArrayLike, dim: int, is_log: bool, dtype: DTypeLike
) -> Any:
    """The gradient of the input, in ``dtype``; ``input`` is the result of softmax."""
    same_shapes("softmax", input, grad)
    dim = find_dim("softmax", input, dim)
    view = row_view(input.ndim, dim)
    wanted = as_dtype(dtype, input.dtype)

    def steps(made: Any) -> Any:
        operands, how = (grad, input, *made), (is_log, sums_of(input.dtype, wanted))
        if prod(input.shape[dim + 1 :]) != 1:
            return [columns(softmax_backward_columns, operands, dim, how)]
        width = row_width(input, columns_of(input.shape, dim))
        constants = (*how, width)
        return [rows(softmax_backward_rows, operands, (view,) * 3, constants)]

    return Call((result(input.shape, wanted),), steps)


def _backward(is_log: bool) -> Any:
    def backward(context: Context, grad: Any) -> Mapping[str, Any]:
        (dtype, _), dim, *_ = context.values
        found = softmax_backward(grad, context.saved[0], dim, is_log, dtype)
        return {"input": found}

    return backward


_ONLY: dict[str, object] = {"_stacklevel": int}
"""`torch.nn.Softmax` passes it, for a warning that we do not give."""


def _out_second(values: list[Any]) -> None:
    """Accept the former form ``softmax(x, out)``."""
    if getattr(values[1], "shape", ()):
        values[1], values[-1] = -1, values[1]


@function(
    backward=_backward(False),
    saves=["result"],
    aliases={"x": "input"},
    adapt=_out_second,
    only=_ONLY,
    by_rows=True,
)
def softmax(
    input: ArrayLike, dim: int = -1, dtype: DTypeLike = None, *, out: ArrayLike = None
) -> Any:
    """``exp(x) / sum(exp(x))`` along a dimension, without overflow.

    It is computed in f32 (f64 for f64) and rounded once.

    Args:
        input: any shape; f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch,
            memory of a device (USM), anything with ``__dlpack__``.
        dim: the dimension.
        dtype: the dtype of the result. None: that of ``input``. Integers need one.
        out: the array that gets the result: shape of ``input``, any float dtype. It
            may be ``input`` itself, but must not overlap it in any other way.

    Returns:
        ``out``, or a new array of the library of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` overlaps
            ``input`` (X0807), is read-only (X0806), or a gradient is required (X0838).

    >>> softmax(np.zeros((1, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return _along("softmax", input, dim, dtype)


@function(backward=_backward(True), saves=["result"], only=_ONLY, by_rows=True)
def log_softmax(
    input: ArrayLike, dim: int = -1, dtype: DTypeLike = None, *, out: ArrayLike = None
) -> Any:
    """``log(softmax(x))`` along a dimension, also right where softmax rounds to 0.

    Arguments and errors are those of `softmax`.
    """
    return _along("log_softmax", input, dim, dtype)
