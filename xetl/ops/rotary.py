"""``xetl.ops.rope``: rotary position embedding.

Source: Su et al., "RoFormer", arXiv 2104.09864.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xetl import xetile
from xetl.language.ops import next_power_of_2
from xetl.ops.calling.calls import View, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    result,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import Shared, floats, no_wider, rows
from xetl.ops.matrices import matrices, matrix, put, take
from xetl.xetile import Array, constexpr

_PAIRS = 1024
"""The number of pairs that a program rotates."""


@xetile.kernel
def rope_rows(
    x: Array,
    cos: Array,
    sin: Array,
    out: Array,
    positions: int,
    INTERLEAVED: constexpr,
    INVERSE: constexpr,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """Rotate ``(a, b)`` to ``(a * cos - b * sin, b * cos + a * sin)``, row by row.

    Args:
        x: (..., 2, n), the rows a and b of each position; (..., n, 2) if interleaved.
        cos: (positions or more, n).
        sin: the same.
        out: as ``x``.
        positions: the number of positions; the rows of ``x`` repeat them.
        INTERLEAVED: see ``x``.
        INVERSE: whether pairs are rotated back.
        ACC: the dtype of the computation.
        ROWS: pairs of rows of a program.
        WIDTH: columns of a tile, n or more.
    """
    first = xetile.program_id(1) * ROWS
    for number in range(first, min(first + ROWS, matrices(x))):
        source, to = matrix(x, number), matrix(out, number)
        if INTERLEAVED:
            source, to = source.T, to.T
        table = [number % positions, 0]
        c = take(cos, table, (1, WIDTH), ACC)
        s = take(sin, table, (1, WIDTH), ACC)
        if INVERSE:
            s = -s
        a = take(source, [0, 0], (1, WIDTH), ACC)
        b = take(source, [1, 0], (1, WIDTH), ACC)
        one, two = a * c - b * s, b * c + a * s
        put(one, to, [0, 0])
        put(two, to, [1, 0])


def _turned(
    x: Operand, cos: Operand, sin: Operand, interleaved: bool, *, inverse: bool
) -> Call:
    dtype = floats("rope", x)
    if x.ndim < 2:
        raise wrong_shape("rope", f"`{x.name}` is {x.shape}", "pass (..., s, d)")
    s, d = x.shape[-2:]
    for table in (cos, sin):
        fits = table.ndim == 2 and table.shape[0] >= s and 2 * table.shape[1] == d
        if not fits:
            problem = f"`{table.name}` is {table.shape}, but `{x.name}` is {x.shape}"
            raise wrong_shape("rope", problem, "pass (..., s, d) and tables (s, d / 2)")
        no_wider("rope", x, table)

    parts = (-1, 2) if interleaved else (2, -1)
    view: View = lambda a: a.reshape(*a.shape[:-1], *parts)

    def steps(made: Any) -> Any:
        width = next_power_of_2(d // 2)
        some = max(1, _PAIRS // width)
        step = rows(
            rope_rows,
            (x, cos, sin, *made),
            (view, Shared(itself), Shared(itself), view),
            (interleaved, inverse, SUMS[dtype], some, width),
            (s,),
            rows_of_program=d,
            matrices_of_program=some,
        )
        return [step]

    return Call((result(x.shape, dtype),), steps)


@function()
def rope_backward(
    grad: ArrayLike, cos: ArrayLike, sin: ArrayLike, interleaved: bool
) -> Any:
    """The gradient of the input: that of the result, rotated back."""
    return _turned(grad, cos, sin, interleaved, inverse=True)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    cos, sin = context.saved
    return {"input": rope_backward(grad, cos, sin, context["interleaved"])}


@function(backward=_backward, saves=["cos", "sin"])
def rope(
    input: ArrayLike,
    cos: ArrayLike,
    sin: ArrayLike,
    interleaved: bool = False,
    *,
    out: ArrayLike = None,
) -> Any:
    """Rotary position embedding: rotate pairs of numbers by angles of their position.

    ``(a, b)`` becomes ``(a * cos - b * sin, b * cos + a * sin)``. Heads come before
    positions, as in attention.

    Args:
        input: (..., s, d), d even; f16, bf16, f32 or f64, from any library as for
            `softmax`.
        cos: (s or more, d / 2), the cosines for each position; any float dtype with no
            more bits than the computation has.
        sin: the same.
        interleaved: whether pairs are neighbours (as in GPT-J). If not, ``a`` is from
            the first half of a row and ``b`` from the second (as in GPT-NeoX, Llama).
        out: the array that gets the result: shape of ``input``, any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return _turned(input, cos, sin, interleaved, inverse=False)
