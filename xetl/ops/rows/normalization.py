"""``xetl.ops.layer_norm`` and ``xetl.ops.rms_norm``: one row to a program.

Source: Ba et al., arXiv 1607.06450; Zhang and Sennrich, arXiv 1910.07467.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from xetl import xetile
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, as_line, itself
from xetl.ops.calling.declarations import (
    SUMS,
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
from xetl.ops.calling.folded_rows import folded
from xetl.ops.calling.views import (
    LEAST,
    STRIP,
    Shared,
    array_of,
    floats,
    one_for_each,
    row_tile,
    row_width,
    rows,
    rows_at_once,
    width_of,
)
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.reduction_kernels import Dims
from xetl.ops.rows.reductions import add_each
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def _of_row(x: Array, row: int, ACC: constexpr, WIDTH: constexpr) -> Vector:
    """Load the numbers of all rows, if x has one dimension, or those of one row."""
    if x.ndim == 1:
        return take(x, [0], (WIDTH,), ACC)
    return take(x, [row, 0], (1, WIDTH), ACC)


@xetile.kernel
def norm_rows(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    CENTERED: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
    MAP: constexpr = None,
    IS_FULL: constexpr = False,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` in each row.

    Args:
        x: (..., m, n).
        weight: (n,), or (m, n) with one row for each row of a matrix, or None.
        bias: the same.
        out: as ``x``.
        eps: prevents a division by 0 for rows of equal elements.
        CENTERED: whether the mean is subtracted. If not, the variance is mean(x * x).
        ACC: the dtype of the computation.
        WIDTH: columns of a tile, n or more.
        ROWS: rows of a program.
        MAP: the part of the tile that each subgroup owns.
        IS_FULL: whether WIDTH is n.
    """
    row, number = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source = matrix(x, number)
    v = take(source, [row, 0], (ROWS, WIDTH), ACC, 0, MAP)
    n = WIDTH if IS_FULL else source.shape[1]
    if CENTERED:
        mean = v.sum(1, keepdims=True) / n
        v = v - mean
        if not IS_FULL:
            # Columns beyond the row are loaded as 0, which differs from the mean.
            v = xetile.where(xetile.arange(WIDTH)[None, :] < n, v, 0.0)
    y, variance = v, (v * v).sum(1, keepdims=True) / n
    if CENTERED and MAP is None:
        # Subtract the mean of v, which rounding has left: rows of equal numbers have
        # nothing else. Subgroups that share a row sum in a tree, which rounds less.
        left = v.sum(1, keepdims=True) / n
        y, variance = v - left, variance - left * left
    y = y * xetile.rsqrt(variance + eps)
    if weight is not None:
        y = y * _of_row(weight, row, ACC, WIDTH)
    if bias is not None:
        y = y + _of_row(bias, row, ACC, WIDTH)
    put(y, matrix(out, number), [row, 0], MAP)


@xetile.function
def _mean(v: Vector) -> Vector:
    """Return the mean of all elements. Each lane sums its own elements first."""
    total = v.sum(0, keepdims=True).sum(1, keepdims=True)
    return total * (1.0 / (v.shape[0] * v.shape[1]))


@xetile.kernel
def norm_folded_rows(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    CENTERED: constexpr,
    ACC: constexpr,
    SHAPE: constexpr,
    MAP: constexpr,
    EACH: constexpr,
    PITCH: constexpr,
) -> None:
    """`norm_rows` of folded rows (`xetl.ops.calling.folded_rows.Folded`).

    ``x`` and ``out`` have SHAPE[1] columns; a row of theirs is SHAPE. The next one is
    PITCH rows of ``x`` below, and SHAPE[0] of ``out``. weight and bias are SHAPE.
    """
    factor, shift = 1.0, 0.0
    if weight is not None:
        factor = take(weight, [0, 0], SHAPE, ACC, 0, MAP)
    if bias is not None:
        shift = take(bias, [0, 0], SHAPE, ACC, 0, MAP)
    for i in xetile.static_range(EACH):
        row = xetile.program_id(0) * EACH + i
        v = take(x, [row * PITCH, 0], SHAPE, ACC, 0, MAP)
        if CENTERED:
            v = v - _mean(v)
        y = v * xetile.rsqrt(_mean(v * v) + eps)
        if weight is not None:
            y = y * factor
        if bias is not None:
            y = y + shift
        put(y, out, [row * SHAPE[0], 0], MAP)


@xetile.function
def _centered(
    v: Vector, n: int, CENTERED: constexpr, IS_FULL: constexpr
) -> tuple[Vector, Vector, Vector]:
    """Return v - mean, the mean, and the mean that rounding has left (`norm_rows`).

    ``v`` has n columns, or more. If not CENTERED, it stays, and both means are 0.
    """
    mean = left = xetile.zeros((v.shape[0], 1), v.dtype)
    if CENTERED:
        mean = v.sum(1, keepdims=True) / n
        v = v - mean
        if not IS_FULL:
            v = xetile.where(xetile.arange(v.shape[1])[None, :] < n, v, 0.0)
        left = v.sum(1, keepdims=True) / n
    return v, mean, left


@xetile.kernel
def norm_backward_rows(
    grad: Array,
    x: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array | None,
    by_bias: Array,
    moments: Array | None,
    eps: float,
    CENTERED: constexpr,
    ROWS: constexpr,
    BLOCK: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    IS_FULL: constexpr = False,
) -> None:
    """The gradient of x in some rows, and their part of those of weight and bias.

    With v = x - mean, r = 1 / sqrt(variance + eps) and u = grad * weight, the gradient
    of x is ``(u - mean(u) - v * mean(u * v) * r * r) * r``.

    Args:
        grad: (..., m, n).
        x: (..., m, n).
        weight: (n,), or (..., n) with one row for each matrix, or None.
        out: (..., m, n).
        by_weight: (..., programs, n), or None.
        by_bias: (..., programs, n), or None.
        moments: (..., m, 3) instead of both: the means of `_centered`, and r; or None.
        ROWS: rows of a program. Arguments not named here are as for `norm_rows`.
        BLOCK: rows at once; it divides ROWS.
    """
    program, group = xetile.program_id(0), xetile.program_id(1)
    source, grads, to = matrix(x, group), matrix(grad, group), matrix(out, group)
    n = WIDTH if IS_FULL else source.shape[1]
    weights, biases = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    end = min((program + 1) * ROWS, source.shape[0])
    for row in range(program * ROWS, end, BLOCK):
        v = take(source, [row, 0], (BLOCK, WIDTH), ACC)
        g = take(grads, [row, 0], (BLOCK, WIDTH), ACC)
        u = g
        if weight is not None:
            u = g * _of_row(weight, group, ACC, WIDTH)
        v, mean, left = _centered(v, n, CENTERED, IS_FULL)
        variance = (v * v).sum(1, keepdims=True) / n
        common, total = (u * v).sum(1, keepdims=True), u.sum(1, keepdims=True)
        if CENTERED:
            variance, common = variance - left * left, common - left * total
        r = xetile.rsqrt(variance + eps)
        if BLOCK > 1:  # rows beyond the last one are 0, and eps may be
            r = xetile.where(row + xetile.arange(BLOCK)[:, None] < end, r, 0.0)
        # Combine the factors of a row first: this saves passes over the row.
        factor = common * r / n * r
        d, normed = u - v * factor, v * r
        if CENTERED:
            d, normed = d + (left * factor - total / n), normed - left * r
        if by_weight is not None:
            slopes = g * normed
            if BLOCK > 1:
                slopes, g = slopes.sum(0, keepdims=True), g.sum(0, keepdims=True)
            weights, biases = weights + slopes, biases + g
        elif moments is not None:
            of_row = matrix(moments, group)
            put(mean, of_row, [row, 0])
            put(left, of_row, [row, 1])
            put(r, of_row, [row, 2])
        put(d * r, to, [row, 0])
    if by_weight is not None:
        put(weights, matrix(by_weight, group), [program, 0])
        put(biases, matrix(by_bias, group), [program, 0])


@xetile.kernel
def norm_backward_columns(
    grad: Array,
    x: Array,
    moments: Array,
    by_weight: Array,
    by_bias: Array,
    CENTERED: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The gradients of weight and bias for WIDTH columns; see `norm_backward_rows`.

    ``by_weight`` and ``by_bias`` are (n,), or (..., n).
    """
    column, group = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    source, grads = matrix(x, group), matrix(grad, group)
    of_row = matrix(moments, group)
    weights, biases = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    for row in range(source.shape[0]):
        v = take(source, [row, column], (1, WIDTH), ACC)
        g = take(grads, [row, column], (1, WIDTH), ACC)
        if CENTERED:
            v = v - of_row[row, 0] - of_row[row, 1]
        weights, biases = weights + g * (v * of_row[row, 2]), biases + g
    put(weights, by_weight, [group, column])
    put(biases, by_bias, [group, column])


_PARTS = 16
"""Programs of a backward pass: enough for the threads of a CPU."""

_FEW = 64
"""Rows that are read once more to sum their columns: more programs would store a sum
for each column [measured: Zen 4, f32, 8 x 100,000: 1084 us, then 541; 64 x 20,000:
1444, then 827; 128 x 4000: 324, then 306; f64, 64 x 20,000: 3101, then 3139]."""


def _inner(rank: int, count: int) -> View:
    """Return the view with the last ``count`` dimensions as one."""
    if rank == count:
        return lambda x: x.reshape(1, -1)
    if count == 1:
        return itself
    return lambda x: x.reshape(*x.shape[:-count], -1)


def _count(
    name: str, x: Operand, normalized_shape: Any, *others: Operand | None
) -> int:
    """Return the number of normalised dimensions.

    Raises:
        LaunchError: they are not the last ones of x, or an operand does not fit them.
    """
    given = normalized_shape
    dims = (given,) if isinstance(given, int) else tuple(given) or tuple(x.shape[-1:])
    last = tuple(x.shape[-len(dims) :])
    if not x.shape or last != dims:
        problem = f"`normalized_shape` is {dims}, but `{x.name}` is {x.shape}"
        raise wrong_shape(name, problem, "pass the extents of its last dimensions")
    one_for_each("column", name, x, dims, f"a row of x is {dims}", *others)
    return len(dims)


def _normed(
    name: str,
    x: Operand,
    normalized_shape: Any,
    weight: Operand | None,
    bias: Operand | None,
    eps: float,
) -> Call:
    dtype = floats(name, x)
    count = _count(name, x, normalized_shape, weight, bias)
    view = _inner(x.ndim, count)

    def steps(made: Any) -> Any:
        columns, sums = prod(x.shape[-count:]), SUMS[dtype]
        operands, how = (x, weight, bias, *made), (name == "layer_norm", sums)
        fold = folded(operands, columns, sums)
        if fold is not None:
            kernel, all_of, one, some = norm_folded_rows, fold.view, fold.one, fold.rows
            constants = (*how, *fold)
        else:
            width = row_width(x, columns)
            tile = row_tile(x, view(array_of(x)).shape[-2:], width, sums)
            kernel, all_of, one, some = norm_rows, view, as_line, tile.rows
            constants = (*how, width, *tile._replace(is_full=width == columns))
        views = (all_of, Shared(one), Shared(one), all_of)
        return [rows(kernel, operands, views, constants, (eps,), rows_of_program=some)]

    return Call((result(x.shape, dtype),), steps)


@function(results=3, by_rows=True)
def norm_backward(
    grad: ArrayLike,
    input: ArrayLike,
    weight: ArrayLike | None,
    dims: int,
    centered: bool,
    eps: float,
    groups: int = 1,
    by_others: bool = True,
) -> Any:
    """The gradients of input, weight and bias; the last ``dims`` dimensions are normed.

    A row of these dimensions consists of ``groups`` groups, each with its own mean and
    variance. Without a weight, the last two gradients have the dtype of the sums. They
    have no elements if ``by_others`` is False.
    """
    shape = input.shape[-dims:]
    n, sums = prod(shape), SUMS[input.dtype]
    dtype = sums if weight is None else weight.dtype
    other = result(shape if by_others else (0,), dtype)

    def steps(made: Any) -> Any:
        m = prod(input.shape) // n if n else 0
        each = n // groups
        width = row_width(input, each, LEAST // 2)
        block = rows_at_once(input, m, width * sums.bits // 32)
        some = max(1, cdiv(m, _PARTS * block)) * block
        programs = max(1, cdiv(m, some))
        flat: View = lambda x: x.reshape(-1, each)
        own: View = as_line
        if groups > 1:
            flat = lambda x: x.reshape(-1, groups, each).swapaxes(0, 1)
            own = lambda x: x.reshape(groups, each)
        constants = (centered, some, block, sums, width, width == each)
        views, grid = (flat, flat, own, *[flat] * 3, itself), (programs, groups, 1)
        launch = Launch(norm_backward_rows, views, (), grid, constants)
        given = grad, input, weight, made[0]
        if not by_others:
            return [Step(launch, (*given, None, None, None), (eps,))]
        if m > _FEW:
            parts = [temporary((programs, n), sums) for _ in range(2)]
            first = Step(launch, (*given, *parts, None), (eps,))
            return [first, *add_each(parts, made[1:])]
        moments = temporary((groups, m, 3), sums)
        lines: View = lambda x: x.reshape(groups, each)
        strip = min(width_of(each), STRIP)
        views, grid = (flat, flat, itself, lines, lines), (cdiv(each, strip), groups, 1)
        then = Launch(norm_backward_columns, views, (), grid, (centered, sums, strip))
        return [
            Step(launch, (*given, None, None, moments), (eps,)),
            Step(then, (grad, input, moments, *made[1:])),
        ]

    return Call((result(input.shape, input.dtype), other, other), steps)


def _backward(centered: bool) -> Any:
    def backward(context: Context, grad: Any) -> Mapping[str, Any]:
        x, weight = context.saved
        dims = context["normalized_shape"]
        count = 1 if isinstance(dims, int) else max(1, len(dims))
        eps = context["eps"]
        if eps is None:
            eps = np.finfo(np.float64 if x.dtype.itemsize == 8 else np.float32).eps
        by_others = any(context.needs(n) for n in context.places if n != "input")
        how = count, centered, float(eps), 1, by_others
        return dict(
            zip(("input", "weight", "bias"), norm_backward(grad, x, weight, *how))
        )

    return backward


def _without_shape(values: list[Any]) -> None:
    """Accept the former form ``layer_norm(x, weight, bias, eps)``."""
    x, shape, weight, bias, *rest = values
    if shape is not None and not getattr(shape, "shape", ()):
        return
    if weight is not None and bias is not None and not hasattr(bias, "shape"):
        bias, rest[0] = None, bias  # the fourth positional argument is eps
    values[:] = [x, (), shape, weight if bias is None else bias, *rest]


@function(
    backward=_backward(True),
    saves=["input", "weight"],
    aliases={"x": "input"},
    adapt=_without_shape,
    by_rows=True,
)
def layer_norm(
    input: ArrayLike,
    normalized_shape: Dims = (),
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    out: ArrayLike = None,
) -> Any:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last dimensions.

    Each row has its own mean and variance (the mean of squared differences from the
    mean). They are computed in f32 (f64 for f64), and the result is rounded once.

    Args:
        input: (...) + normalized_shape; f16, bf16, f32 or f64, from any library as for
            `softmax`.
        normalized_shape: extents of the last dimensions; (): the last one.
        weight: ``normalized_shape``, any float dtype with no more bits than the
            computation. None: ones.
        bias: the same. None: zeros.
        eps: prevents a division by 0 for rows of equal elements.
        out: the array that gets the result: shape of ``input``, any float dtype. It may
            be ``input`` itself, but must not overlap an argument in any other way.

    Returns:
        ``out``, or a new array of the library and the dtype of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` overlaps an
            argument (X0807), is read-only (X0806), or a gradient is required (X0838).
    """
    return _normed("layer_norm", input, normalized_shape, weight, bias, eps)


@function(backward=_backward(False), saves=["input", "weight"], by_rows=True)
def rms_norm(
    input: ArrayLike,
    normalized_shape: Dims = (),
    weight: ArrayLike | None = None,
    eps: float | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``x / sqrt(mean(x * x) + eps) * weight`` over the last dimensions.

    Arguments and errors are those of `layer_norm`. If ``eps`` is None, it is the
    distance from 1 to the next larger number in the dtype of the computation.
    """
    if eps is None:
        eps = float(np.finfo(SUMS[floats("rms_norm", input)].numpy).eps)
    return _normed("rms_norm", input, normalized_shape, weight, None, eps)
