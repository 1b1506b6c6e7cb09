"""``xetl.ops.cumsum`` and its derivative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xetl.errors import LaunchError
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, as_line
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    DTypeLike,
    Operand,
    Step,
    result,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import (
    LEAST,
    array_of,
    columns,
    columns_of,
    find_dim,
    is_on_gpu,
    row_view,
    rows,
    rows_at_once,
    vectors_of,
    width_of,
)
from xetl.ops.rows.reduction_kernels import (
    WIDEST,
    cumsum_columns,
    cumsum_narrow_rows,
    cumsum_rows,
)
from xetl.ops.rows.reductions import sum_dtypes

_NARROW = 8
"""The most columns of rows, shorter than a vector, that get as many additions to each
element [measured: Zen 5, f32, 3 columns 4.8 ns a row, then 0.7; 12: 4.8, then 5.4]."""

_LONG, _PIECE = 4096, 128
"""The least bytes of rows that a CPU sums in pieces, and the columns of a piece: it
loads the next piece while it stores one. [measured] Sapphire Rapids, f64, 1000 x 777:
890 us, then 650; f32 rows below a page lose a fifth by pieces."""


def _cumsum(x: Operand, dim: int, dtype: Any, *, reverse: bool) -> Call:
    wanted, acc = sum_dtypes("cumsum", x, dtype)
    if wanted.is_bool:
        problem = f"`cumsum` of {x.dtype} was asked for a result of {wanted}"
        raise LaunchError(problem, "X0828", "name an integer dtype, or leave it out")
    dim = find_dim("cumsum", x, dim)
    view = row_view(x.ndim, dim)

    def steps(made: Sequence[Operand]) -> list[Step]:
        if dim < x.ndim - 1:
            return [columns(cumsum_columns, (x, *made), dim, (reverse, acc))]
        n, (_, lanes) = columns_of(x.shape, dim), vectors_of(made[0])
        both, some, width = (array_of(x), array_of(made[0])), 1, n * LEAST
        if n <= min(_NARROW, lanes - 1) and all(y.flags.c_contiguous for y in both):
            grid = (cdiv(prod(x.shape), width), 1, 1)
            how = (as_line, as_line), (), grid, (reverse, acc, n, width)
            return [Step(Launch(cumsum_narrow_rows, *how), (x, *made))]
        is_long = n * made[0].dtype.itemsize >= _LONG and not is_on_gpu(x)
        widest = _PIECE if is_long else WIDEST
        width = min(width_of(n), widest)
        if width == LEAST:  # rows of one vector
            some = rows_at_once(x, view(both[0]).shape[-2], width)
            width = width if some == 1 else min(width, 1 << (n - 1).bit_length())
        given = (x, *made), (view, view), (reverse, n > widest, acc, some, width)
        return [rows(cumsum_rows, *given, rows_of_program=some)]

    return Call((result(x.shape, wanted),), steps)


@function()
def cumsum_backward(grad: ArrayLike, dim: int, dtype: DTypeLike) -> Any:
    """The sums from each element to the end."""
    return _cumsum(grad, dim, dtype, reverse=True)


def _cumsum_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    dim, dtype = context["dim"], context.dtype_of("input")
    return {"input": cumsum_backward(grad, dim, dtype)}


@function(backward=_cumsum_backward)
def cumsum(
    input: ArrayLike, dim: int, dtype: DTypeLike = None, *, out: ArrayLike = None
) -> Any:
    """The sums from the start to each element of a dimension; arguments as of `sum`."""
    return _cumsum(input, dim, dtype, reverse=False)
