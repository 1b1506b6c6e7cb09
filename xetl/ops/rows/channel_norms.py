"""``xetl.ops.group_norm`` and ``xetl.ops.batch_norm``: weights belong to channels.

Source: Wu and He, arXiv 1803.08494; Ioffe and Szegedy, arXiv 1502.03167.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import (
    SUMS,
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
    Shared,
    floats,
    no_wider,
    rows,
    size_of,
    vectors_of,
    width_of,
)
from xetl.ops.matrices import put, take
from xetl.ops.rows.normalization import norm_backward, norm_rows
from xetl.xetile import Array, Vector, constexpr

_NARROW = 64
"""Columns of a piece of which there are two sums."""
_WIDE = 1024
"""Columns of a piece that nothing is summed of: pages are written one by one."""
_ROWS = 64
"""Of a program where channels are columns, whose numbers stay in the first cache."""


@xetile.function
def piece(x: Array, row: int, column: int, ACC: constexpr, WIDTH: constexpr) -> Vector:
    """Some columns of a row."""
    return take(x, [row, column], (1, WIDTH), ACC)


@xetile.function
def mean_of(x: Array, row: int, ACC: constexpr, WIDTH: constexpr) -> Vector:
    """The mean of a row, (1, 1)."""
    total = xetile.zeros((1, WIDTH), ACC)
    for column in range(0, x.shape[1], WIDTH):
        total = total + piece(x, row, column, ACC, WIDTH)
    return total.sum(1, keepdims=True) / x.shape[1]


@xetile.function
def moments(
    x: Array, row: int, eps: float, ACC: constexpr, WIDTH: constexpr
) -> tuple[Vector, Vector]:
    """The mean of a row, and 1 / sqrt(variance + eps), both (1, 1)."""
    n, mean = x.shape[1], mean_of(x, row, ACC, WIDTH)
    total = xetile.zeros((1, WIDTH), ACC)
    whole = n // WIDTH * WIDTH
    for column in range(0, whole, WIDTH):
        d = piece(x, row, column, ACC, WIDTH) - mean
        total = total + d * d
    if whole < n:
        d = piece(x, row, whole, ACC, WIDTH) - mean
        # What is loaded besides the row is 0, not the mean.
        d = xetile.where(xetile.arange(WIDTH)[None, :] < n - whole, d, 0.0)
        total = total + d * d
    variance = total.sum(1, keepdims=True) / n
    return mean, xetile.rsqrt(variance + eps)


@xetile.kernel
def group_norm_rows(
    x: Array,
    groups: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    CHANNELS: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` of each group.

    Args:
        x: (groups of all samples * CHANNELS, n).
        groups: the same elements, (groups of all samples, CHANNELS * n).
        weight: (GROUPS * CHANNELS,) or None.
        bias: the same.
        out: as ``x``.
        CHANNELS: rows of a group.
        ACC: the dtype that is computed in.
        WIDTH: columns of a piece.
    """
    group = xetile.program_id(0)
    first, channel = group * CHANNELS, group % GROUPS * CHANNELS
    mean, r = moments(groups, group, eps, ACC, WIDTH)
    for i in range(0, CHANNELS):
        factor = r
        if weight is not None:
            factor = r * weight[channel + i].to(ACC)
        shift = -mean * factor
        if bias is not None:
            shift = shift + bias[channel + i].to(ACC)
        for column in range(0, x.shape[1], WIDTH):
            y = piece(x, first + i, column, ACC, WIDTH) * factor + shift
            put(y, out, [first + i, column])


@xetile.kernel
def group_norm_backward_rows(
    grad: Array,
    x: Array,
    groups: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    CHANNELS: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    WIDE: constexpr,
) -> None:
    """The gradient by x of each group, and each row's part of those by the others.

    With h = (x - mean) / sqrt(variance + eps) and g = grad * weight it is
    ``(g - mean(g) - h * mean(g * h)) / sqrt(variance + eps)``; see `group_norm_rows`.
    ``by_weight`` and ``by_bias`` are (rows of x, 1).
    """
    group = xetile.program_id(0)
    first, channel, n = group * CHANNELS, group % GROUPS * CHANNELS, x.shape[1]
    mean, r = moments(groups, group, eps, ACC, WIDTH)
    both, alone = xetile.zeros((1, 1), ACC), xetile.zeros((1, 1), ACC)
    for i in range(0, CHANNELS):
        weights, biases = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
        for column in range(0, n, WIDTH):
            g = piece(grad, first + i, column, ACC, WIDTH)
            h = piece(x, first + i, column, ACC, WIDTH) - mean
            weights, biases = weights + g * h, biases + g
        dw, db = r * weights.sum(1, keepdims=True), biases.sum(1, keepdims=True)
        put(dw, by_weight, [first + i, 0])
        put(db, by_bias, [first + i, 0])
        if weight is not None:
            dw = dw * weight[channel + i].to(ACC)
            db = db * weight[channel + i].to(ACC)
        both, alone = both + dw, alone + db
    slope, shift = both * r * r / (CHANNELS * n), alone * r / (CHANNELS * n)
    for i in range(0, CHANNELS):
        factor = r
        if weight is not None:
            factor = r * weight[channel + i].to(ACC)
        for column in range(0, n, WIDE):
            v = piece(x, first + i, column, ACC, WIDE) - mean
            g = piece(grad, first + i, column, ACC, WIDE)
            put(g * factor - (v * slope + shift), out, [first + i, column])


@xetile.kernel
def batch_norm_rows(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` by channels.

    ``x`` and ``out`` are (samples, channels, n), the others (channels,).
    """
    channel, sample = xetile.program_id(0), xetile.program_id(1)
    source, to = x[sample], out[sample]
    factor = xetile.rsqrt(variance[channel].to(ACC) + eps)
    if weight is not None:
        factor = factor * weight[channel].to(ACC)
    shift = -mean[channel].to(ACC) * factor
    if bias is not None:
        shift = shift + bias[channel].to(ACC)
    for column in range(0, source.shape[1], WIDTH):
        y = piece(source, channel, column, ACC, WIDTH) * factor + shift
        put(y, to, [channel, column])


@xetile.kernel
def batch_norm_columns(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """The same of channels that are columns: x and out are (samples, channels)."""
    column, first = xetile.program_id(0) * WIDTH, xetile.program_id(1) * ROWS
    factor = xetile.rsqrt(piece(variance, 0, column, ACC, WIDTH) + eps)
    if weight is not None:
        factor = factor * piece(weight, 0, column, ACC, WIDTH)
    shift = -piece(mean, 0, column, ACC, WIDTH) * factor
    if bias is not None:
        shift = shift + piece(bias, 0, column, ACC, WIDTH)
    for row in range(first, min(first + ROWS, x.shape[0])):
        y = piece(x, row, column, ACC, WIDTH) * factor + shift
        put(y, out, [row, column])


def _check(name: str, x: Operand, *others: Operand | None) -> DType:
    """The dtype of x, whose channels others belong to.

    Raises:
        LaunchError: shapes or dtypes do not fit.
    """
    if x.ndim < 2:
        problem = f"`{x.name}` is {x.shape}, which has no channels"
        raise wrong_shape(name, problem, "pass (samples, channels, ...)")
    dtype = floats(name, x)
    for other in others:
        if other is None:
            continue
        if tuple(other.shape) != tuple(x.shape[1:2]):
            problem = f"`{other.name}` is {other.shape}, but `{x.name}` is {x.shape}"
            raise wrong_shape(name, problem, "pass one number for each channel")
        no_wider(name, x, other)
    return dtype


def _grouped(x: Operand, num_groups: int) -> tuple[int, int, int]:
    """Groups of all samples, channels of a group, elements of a channel.

    Raises:
        LaunchError: channels do not make up so many groups.
    """
    channels = x.shape[1]
    if num_groups < 1 or channels % num_groups:
        problem = f"{channels} channels are no {num_groups} groups"
        raise wrong_shape("group_norm", problem, "`num_groups` divides the channels")
    n = size_of(x.shape[2:])
    return x.shape[0] * num_groups, channels // num_groups, n


def _piece(x: Operand, n: int) -> int:
    """Columns of a piece of n: sums of each fill half of the registers at most."""
    registers, lanes = vectors_of(x)
    return width_of(cdiv(n, cdiv(n, registers // 2 * lanes))) if n else 1


@function(results=3, by_rows=True)
def group_norm_backward(
    grad: ArrayLike,
    input: ArrayLike,
    weight: ArrayLike | None,
    num_groups: int,
    eps: float,
) -> Any:
    """The gradients by the input, and of each sample those by weight and bias."""
    acc, parts = SUMS[input.dtype], input.shape[:2]
    found = result(input.shape, input.dtype), result(parts, acc), result(parts, acc)

    def steps(made: Any) -> Any:
        groups, channels, n = _grouped(input, num_groups)
        flat: View = lambda a: a.reshape(-1, n)
        column: View = lambda a: a.reshape(-1, 1)
        whole: View = lambda a: a.reshape(groups, -1)
        views = (flat, flat, whole, itself, flat, column, column)
        pieces = min(_piece(input, n), _NARROW), min(width_of(n), _WIDE)
        constants = (channels, num_groups, acc, *pieces)
        grid = (groups, 1, 1)
        launch = Launch(group_norm_backward_rows, views, (), grid, constants)
        return [Step(launch, (grad, input, input, weight, *made), (eps,))]

    return Call(found, steps)


def _group_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    x, weight = context.saved
    groups, eps = context["num_groups"], float(context["eps"])
    if x.numel() == x.shape[0] * x.shape[1] > 0:
        # Channels of one element are columns of rows.
        found = norm_backward(grad, x, weight, x.ndim - 1, True, eps, groups)
        return {
            "input": found[0],
            "weight": found[1].flatten(),
            "bias": found[2].flatten(),
        }
    if x.numel():
        found: Any = group_norm_backward(grad.contiguous(), x, weight, groups, eps)
    else:
        found = grad, *[grad.new_zeros(x.shape[:2])] * 2
    named = {"input": found[0]}
    for name, parts in (("weight", found[1]), ("bias", found[2])):
        if context.needs(name):
            named[name] = parts.sum(0).to(context.dtype_of(name))
    return named


@function(backward=_group_backward, saves=["input", "weight"], by_rows=True)
def group_norm(
    input: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    out: ArrayLike = None,
) -> Any:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` of groups of channels.

    Mean and variance are those of a group of a sample, over all of its elements.
    Computed in f32 (f64 for f64) and rounded once.

    Args:
        input: (samples, channels, ...); f16, bf16, f32 or f64, from any library as for
            `softmax`.
        num_groups: how many groups a sample has; it divides the channels.
        weight: (channels,), any float dtype that has no more bits than is computed in;
            None: ones.
        bias: the same; None: zeros.
        eps: keeps groups of equal elements from being divided by 0.
        out: where the result goes: shape of ``input``, any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dtype = _check("group_norm", input, weight, bias)
    groups, channels, n = _grouped(input, num_groups)

    def steps(made: Any) -> Any:
        flat: View = lambda a: a.reshape(-1, n)
        whole: View = lambda a: a.reshape(groups, -1)
        grid, acc = (groups, 1, 1), SUMS[dtype]
        if n == 1:
            each: View = lambda a: a.reshape(-1, num_groups, channels)
            own: View = lambda a: a.reshape(num_groups, channels)
            operands, one = (input, weight, bias, *made), Shared(own)
            how = (True, acc, width_of(channels))
            return [rows(norm_rows, operands, (each, one, one, each), how, (eps,))]
        constants = (channels, num_groups, acc, _piece(input, n))
        views = (flat, whole, itself, itself, flat)
        launch = Launch(group_norm_rows, views, (), grid, constants)
        return [Step(launch, (input, input, weight, bias, *made), (eps,))]

    return Call((result(input.shape, dtype),), steps)


def _batch_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    x, mean, variance, weight = context.saved
    eps = float(context["eps"])
    around = (1, -1, *[1] * (grad.ndim - 2))
    dims = [i for i in range(grad.ndim) if i != 1]
    r = (variance.to(mean.dtype) + eps).rsqrt()
    zeros = mean * 0
    found = {"input": batch_norm(grad, zeros, variance, weight, None, eps=eps)}
    if context.needs("weight"):
        h = (x - mean.reshape(around)) * r.reshape(around)
        found["weight"] = (grad * h).sum(dims).to(context.dtype_of("weight"))
    if context.needs("bias"):
        found["bias"] = grad.sum(dims).to(context.dtype_of("bias"))
    return found


@function(
    backward=_batch_backward,
    saves=["input", "running_mean", "running_var", "weight"],
    by_rows=True,
)
def batch_norm(
    input: ArrayLike,
    running_mean: ArrayLike,
    running_var: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    out: ArrayLike = None,
) -> Any:
    """``(x - running_mean) / sqrt(running_var + eps) * weight + bias`` of channels.

    Args:
        input: (samples, channels, ...); f16, bf16, f32 or f64, from any library as for
            `softmax`.
        running_mean: (channels,), without a derivative; so is the next one.
        running_var: the variance.
        weight: (channels,), any float dtype that has no more bits than is computed in;
            None: ones.
        bias: the same; None: zeros.
        training: False; statistics of a batch are not supported.
        momentum: has no meaning without training.
        eps: keeps from dividing by 0.
        out: where the result goes: shape of ``input``, any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, or ``training``
            (X0829).
    """
    if training:
        help_ = "leave out `training`, or use torch's function"
        raise LaunchError("`batch_norm` knows no statistics of a batch", "X0829", help_)
    others = running_mean, running_var, weight, bias
    dtype = _check("batch_norm", input, *others)
    samples, channels, n = *input.shape[:2], size_of(input.shape[2:])

    def steps(made: Any) -> Any:
        width = min(_WIDE, width_of(channels if n == 1 else n))
        shape = (samples, channels) if n == 1 else (samples, channels, -1)
        whole: View = lambda a: a.reshape(shape)
        views = (whole, *[itself] * 4, whole)
        if n == 1:
            constants: tuple[Any, ...] = (SUMS[dtype], _ROWS, width)
            grid = (cdiv(channels, width), cdiv(samples, _ROWS), 1)
            launch = Launch(batch_norm_columns, views, (), grid, constants)
        else:
            grid, constants = (channels, samples, 1), (SUMS[dtype], width)
            launch = Launch(batch_norm_rows, views, (), grid, constants)
        return [Step(launch, (input, *others, *made), (eps,))]

    return Call((result(input.shape, dtype),), steps)
