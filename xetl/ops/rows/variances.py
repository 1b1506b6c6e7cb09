"""``xetl.ops.var``: the variance over dimensions, in two passes over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xetl import xetile
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import floats, piece_width, rows
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.reduction_kernels import (
    WIDEST,
    Dims,
    by_columns,
    down_of,
    reduced,
    rows_of_tile,
    spread,
    views_of,
)
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def exact(squares: Vector, rest: Vector, n: int) -> Vector:
    """The sum of squared differences from the true mean.

    Args:
        squares: the sum for a mean that was rounded.
        rest: the sum of these differences: n times the error of that mean.

    Source: Chan, Golub, LeVeque, Algorithms for computing the sample variance, 1983.
    """
    return xetile.maximum(squares - rest * rest / n, 0.0)


@xetile.kernel
def var_rows(
    x: Array,
    out: Array,
    CORRECTION: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
) -> None:
    """``out = sum((x - mean) ** 2) / max(n - CORRECTION, 0)`` of each row.

    Args:
        x: (..., m, n).
        out: (..., m, 1).
        CORRECTION: what the rows' length is lowered by.
        ACC: the dtype that is computed in.
        WIDTH: columns of a piece.
    """
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source = matrix(x, number)
    n = source.shape[1]
    total = xetile.zeros((ROWS, WIDTH), ACC)
    for column in range(0, n, WIDTH):
        total = total + take(source, [row, column], (ROWS, WIDTH), ACC)
    mean = total.sum(1, keepdims=True) / n
    squares, rest = xetile.zeros((ROWS, WIDTH), ACC), xetile.zeros((ROWS, WIDTH), ACC)
    for column in range(0, n, WIDTH):
        v = take(source, [row, column], (ROWS, WIDTH), ACC) - mean
        # What is loaded besides the row is 0, not the mean.
        v = xetile.where(xetile.arange(WIDTH)[None, :] < n - column, v, 0.0)
        squares, rest = squares + v * v, rest + v
    total, rest = squares.sum(1, keepdims=True), rest.sum(1, keepdims=True)
    found = exact(total, rest, n) / max(n - CORRECTION, 0)
    put(found, matrix(out, number), [row, 0])


@xetile.kernel
def var_columns(
    x: Array,
    out: Array,
    CORRECTION: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 16,
) -> None:
    """The same of each column: x is (..., n, m), out (..., 1, m)."""
    column, number = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source = matrix(x, number)
    n = source.shape[0]
    total = xetile.zeros((1, WIDTH), ACC)
    for row in range(0, n, ROWS):
        total = total + take(source, [row, column], (ROWS, WIDTH), ACC).sum(
            0, keepdims=True
        )
    mean = total / n
    squares, rest = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    for row in range(0, n, ROWS):
        v = take(source, [row, column], (ROWS, WIDTH), ACC) - mean
        v = xetile.where(xetile.arange(ROWS)[:, None] < n - row, v, 0.0)
        squares = squares + (v * v).sum(0, keepdims=True)
        rest = rest + v.sum(0, keepdims=True)
    found = exact(squares, rest, n) / max(n - CORRECTION, 0)
    put(found, matrix(out, number), [0, column])


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """``2 * (x - mean) / (n - correction)`` times the gradient."""
    (x,), options = context.saved, context.options
    count = x.numel() // max(1, grad.numel())
    divisor = max(0, count - options["correction"])
    dim = None if options["dim"] == () else options["dim"]
    slope = (x - x.mean(dim, keepdim=True)) * (2 / divisor if divisor else np.nan)
    return {"input": spread(context, grad) * slope}


def _bias_second(values: list[Any]) -> None:
    """``var(x, unbiased)`` is a form of torch's."""
    if isinstance(values[1], bool):
        values[1:3] = None, values[1]


@function(
    backward=_backward,
    saves=["input"],
    aliases={"unbiased": "correction"},
    adapt=_bias_second,
)
def var(
    input: ArrayLike,
    dim: Dims | None = None,
    correction: float = 1,
    keepdim: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """The variance over dimensions: ``sum((x - mean) ** 2) / (n - correction)``.

    Args:
        input: any shape, floats, from any library as for `softmax`.
        dim: one or more dimensions; None: all.
        correction: what the number of elements is lowered by; 1: an estimate without
            bias (Bessel), 0: the mean square. Also ``unbiased=``, True or False.
        keepdim: whether the dimensions stay, with extent 1.
        out: where the result goes.

    Returns:
        ``out``, or a new array of the library of ``input``; NaN of nothing, and of one
        element if ``correction`` is 1.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    acc = SUMS[floats("var", input)]
    what = reduced("var", input, dim, keepdim)

    def steps(made: Sequence[Operand]) -> list[Step]:
        constants = correction, acc
        down = down_of(input, what.dims, made)
        if down is not None:
            return [by_columns(var_columns, (input, *made), down, constants)]
        width = min(piece_width(input, max(1, what.columns)), WIDEST)
        seen = views_of(input, what.dims)
        some = rows_of_tile(what, width)
        how = (*constants, width, some)
        return [rows(var_rows, (input, *made), seen, how, rows_of_program=some)]

    return Call((result(what.shape, input.dtype),), steps)
