"""``embedding``: rows of a table by their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import i32, i64
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.batches import itself
from xetl.ops.calls import Launch
from xetl.ops.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
    temporary,
)
from xetl.ops.declare import function
from xetl.ops.operands import Numbers
from xetl.ops.rules import SUMS, wrong_shape
from xetl.ops.views import floats, width_of
from xetl.xetile import Array, constexpr

_STRIPE = 64


@xetile.kernel
def embedding_rows(numbers: Array, table: Array, out: Array, WIDTH: constexpr) -> None:
    """``out[i] = table[numbers[i]]``; numbers outside give 0."""
    i = xetile.program_id(0)
    row = xetile.load_tile(xetile.init_tile(table, [numbers[i], 0], (1, WIDTH)))
    xetile.store_tile(row, xetile.init_tile(out, [i, 0], (1, WIDTH)))


@xetile.kernel
def embedding_backward_columns(
    grad: Array,
    numbers: Array,
    out: Array,
    padding: int,
    WIDTH: constexpr,
) -> None:
    """``out[numbers[i]] += grad[i]`` in some columns, one i after the other.

    A program has its columns to itself: no atomics, the same sums each time.
    """
    first = xetile.program_id(0) * WIDTH
    zeros = xetile.zeros((1, WIDTH), out.dtype)
    for row in range(0, out.shape[0]):
        xetile.store_tile(zeros, xetile.init_tile(out, [row, first], (1, WIDTH)))
    for i in range(0, numbers.shape[0]):
        number = numbers[i]
        if number != padding:
            tile = xetile.init_tile(out, [number, first], (1, WIDTH))
            g = xetile.load_tile(xetile.init_tile(grad, [i, first], (1, WIDTH)))
            xetile.store_tile(xetile.load_tile(tile) + g.to(out.dtype), tile)


def _line(x: Numbers) -> Numbers:
    return x.reshape(-1)


def _rows(x: Numbers) -> Numbers:
    return x.reshape(-1, x.shape[-1])


@function()
def embedding_backward(
    grad: ArrayLike, input: ArrayLike, rows: int, padding_idx: int
) -> Any:
    """The gradient by the table."""
    shape, acc = (rows, grad.shape[-1]), SUMS[grad.dtype]

    def steps(made: Sequence[Operand]) -> list[Step | None]:
        to = made[0] if acc == grad.dtype else temporary(shape, acc)
        grid = (cdiv(shape[1], _STRIPE), 1, 1)
        views = (_rows, _line, itself)
        launch = Launch(embedding_backward_columns, views, (), grid, (_STRIPE,))
        first = Step(launch, (grad, input, to), (padding_idx,))
        if to is made[0]:
            return [first]
        return [first, copied(to, made[0], acc)]

    return Call((result(shape, grad.dtype),), steps)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (numbers,) = context.saved
    rows, padding = context.shapes["weight"][0], context.options["padding_idx"]
    padding = -1 if padding is None else padding % rows
    return {"weight": embedding_backward(grad.contiguous(), numbers, rows, padding)}


@function(backward=_backward, saves=["input"])
def embedding(
    input: ArrayLike,
    weight: ArrayLike,
    padding_idx: int | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``weight[input]``: the rows of a table that have these numbers.

    Args:
        input: (...), i32 or i64. A number outside of the table gives zeros.
        weight: (rows, n); f16, bf16, f32 or f64, from any library as for `softmax`.
        padding_idx: a row that gets no gradient.
        out: where the result goes.

    Returns:
        ``out``, or a new array: (..., n), dtype of ``weight``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dtype = floats("embedding", weight)
    if input.dtype not in (i32, i64):
        raise LaunchError(
            f"`embedding` was given numbers of {input.dtype}",
            code="X0828",
            help="pass numbers of rows as i32 or i64",
        )
    if weight.ndim != 2:
        problem = f"`weight` is {weight.shape}"
        raise wrong_shape("embedding", problem, "pass a table (rows, n)")
    n = weight.shape[1]

    def steps(made: Sequence[Operand]) -> list[Step | None]:
        count = prod(input.shape)
        views = (_line, itself, _rows)
        launch = Launch(embedding_rows, views, (), (count, 1, 1), (width_of(n),))
        return [Step(launch, (input, weight, *made)) if count else None]

    return Call((result((*input.shape, n), dtype),), steps)
