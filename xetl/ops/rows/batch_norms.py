"""``xetl.ops.batch_norm``, with statistics of the batch or given ones.

In training, one launch finds the sums of parts of each channel, the next one what all
parts give, and the last one scales each channel.

Source: Ioffe and Szegedy, arXiv 1502.03167.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, ParamSpec, cast

import numpy as np

from xetl.errors import LaunchError
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, as_column, as_row, chain, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Number,
    Operand,
    Step,
    along_view,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import Function, function, public_function
from xetl.ops.calling.views import (
    LEAST,
    STRIP,
    elements,
    floats,
    same_shapes,
    side_by_side,
    sums_of,
    width_of,
)
from xetl.ops.rows import batch_norm_kernels as kernels
from xetl.ops.rows.channel_norms import (
    FEW,
    NARROW,
    WIDE,
    channels_at_once,
    channels_last,
    check_channels,
    gradients,
    named,
)
from xetl.ops.rows.grouped_columns import SUMMED, scale_channels, sum_channels
from xetl.runtime.call_site import at_caller
from xetl.runtime.kernel import Kernel

P = ParamSpec("P")

_ROWS = 64
"""Rows of a program if channels are columns; the numbers of its channels stay in L1."""


def _whole(
    x: Operand, is_columns: bool, together: int = 1
) -> tuple[View, Sequence[int]]:
    """Return the view (samples, channels, n), or (rows, channels) if channels are last.

    Also return the dimensions of x that become the last one of the view.

    Args:
        together: how many rows (of channels) become one row of the view.
    """
    samples, channels, n = *x.shape[:2], prod(x.shape[2:])
    if is_columns:
        shape = samples * n // together, together * channels
        return lambda a: np.moveaxis(a, 1, -1).reshape(shape), (1,)
    return lambda a: a.reshape(samples, channels, n), range(2, x.ndim)


@function(results=3)
def batch_norm_backward(
    grad: ArrayLike,
    input: ArrayLike,
    running_mean: ArrayLike,
    running_var: ArrayLike,
    weight: ArrayLike | None,
    eps: float,
) -> Any:
    """The gradients of input, weight and bias.

    The last two are summed in parts: over one sample, or over some rows if channels are
    columns.
    """
    acc, (samples, channels) = SUMS[input.dtype], input.shape[:2]
    order, n = channels_last(input, FEW), prod(input.shape[2:])
    is_columns = n == 1 or order is not None
    parts = cdiv(samples * n, _ROWS) if is_columns else samples

    def steps(made: Any) -> Any:
        whole, dims = _whole(input, is_columns)
        (g, first), (x, then) = (along_view(a, whole, *dims) for a in (grad, input))
        views = (whole, whole, *[itself] * 3, whole, itself, itself)
        width = width_of(channels if is_columns else n)
        kernel, grid = kernels.batch_norm_backward_rows, (channels, samples, 1)
        constants: tuple[Any, ...] = (acc, min(NARROW, width))
        if is_columns:
            width = min(WIDE, width)
            kernel, constants = kernels.batch_norm_backward_columns, (acc, _ROWS, width)
            grid = (cdiv(channels, width), parts, 1)
        launch = Launch(kernel, views, (), grid, constants)
        given = g, x, running_mean, running_var, weight
        return [*first, *then, Step(launch, (*given, *made), (eps,))]

    return gradients(input, weight, order, parts, steps)


def _batch_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    x, mean, variance, weight = context.saved
    eps = float(context["eps"])
    if x.numel() and not (context.needs("weight") or context.needs("bias")):
        zeros = mean * 0
        return {"input": batch_norm(grad, zeros, variance, weight, None, eps=eps)}
    return named(context, batch_norm_backward, grad, x, mean, variance, weight, eps)


class _Ways(NamedTuple):
    """How the launches of training see the batch, and their kernels.

    Attributes:
        view: of the input, with the dimensions that become its last one.
        parts: the number of parts of each channel, and the elements of a part.
        of_parts: the view of arrays of (parts, channels).
        own: the view of arrays of (channels,).
        sums: the kernel that sums parts, its grid and its constants.
        scale: those of the kernel that scales channels.
    """

    view: tuple[View, Sequence[int]]
    parts: tuple[int, int]
    of_parts: View
    own: View
    sums: tuple[Kernel, tuple[int, int, int], tuple[Any, ...]]
    scale: tuple[Kernel, tuple[int, int, int], tuple[Any, ...]]


def _ways(x: Operand, is_columns: bool) -> _Ways:
    """Return how channels are seen: as columns, or as rows of each sample."""
    (samples, channels), n, acc = x.shape[:2], prod(x.shape[2:]), SUMS[x.dtype]
    if not is_columns:
        width, wide = min(NARROW, width_of(n)), min(WIDE, width_of(n))
        some = channels_at_once(x, channels, n)
        grid = channels // some, samples, 1
        return _Ways(
            _whole(x, False),
            (samples, n),
            as_column,
            itself,
            (kernels.sum_rows, grid, (acc, some, width, n <= width)),
            (kernels.scale_rows, grid, (acc, some, wide)),
        )
    width = width_of(cdiv(channels, cdiv(channels, STRIP)))
    part, wide = max(1, SUMMED // width), min(WIDE, width_of(channels))
    parts = cdiv(samples * n, part)
    rows, dims = _whole(x, True)
    each = cdiv(channels, wide), cdiv(samples * n, _ROWS), 1
    grid = cdiv(channels, width), parts, 1
    return _Ways(
        (chain(rows, as_row), dims),
        (parts, part),
        as_row,
        as_row,
        (sum_channels, grid, (acc, part, width)),
        (scale_channels, each, (acc, _ROWS, wide)),
    )


def _of_batch(
    x: Operand,
    grad: Operand | None,
    weight: Operand | None,
    bias: Operand | None,
    eps: float,
    is_columns: bool,
    made: Sequence[Operand],
) -> list[Step]:
    """Return the launches of `batch_norm_training`, or of its derivative.

    Args:
        grad: the gradient by the result; None: the result itself is wanted.
        made: the result, the mean and the variance; or the gradients.
    """
    channels, acc = x.shape[1], SUMS[x.dtype]
    count = prod(x.shape) // channels
    ways = _ways(x, is_columns)
    (whole, dims), (parts, part) = ways.view, ways.parts
    x, moves = along_view(x, whole, *dims)
    numbers = eps, float(count), float(part)
    sums = [temporary((parts, channels), acc) for _ in "ab"]
    slope, shift = (temporary((channels,), acc) for _ in "ab")
    more: list[Operand | None] = [None, None]
    factor = None
    if grad is not None:
        grad, others = along_view(grad, whole, *dims)
        moves = [*moves, *others]
        more = [temporary((parts, channels), acc) for _ in "ab"]
        factor = temporary((channels,), acc)
    kernel, grid, constants = ways.sums
    views = (whole, whole, *[ways.of_parts] * 4)
    first = Launch(kernel, views, (), grid, constants)
    width = min(STRIP, width_of(channels))
    views = (*[itself] * 4, *[as_row] * 7)
    grid = (cdiv(channels, width), 1, 1)
    second = Launch(kernels.factors_of_batch, views, (), grid, (acc, width))
    kernel, grid, constants = ways.scale
    views = (whole, whole, *[ways.own] * 3, whole)
    third = Launch(kernel, views, (), grid, constants)
    found = slope, shift, factor
    return [
        *moves,
        Step(first, (x, grad, *sums, *more)),
        Step(second, (*sums, *more, weight, bias, *found, *made[1:]), numbers),
        Step(third, (x, grad, *found, made[0])),
    ]


@function(results=3)
def batch_norm_training_backward(
    grad: ArrayLike, input: ArrayLike, weight: ArrayLike | None, eps: float
) -> Any:
    """The gradients of input, weight and bias, whose sums are found again."""
    order, acc = channels_last(input, FEW), SUMS[input.dtype]
    is_columns = order is not None or prod(input.shape[2:]) == 1
    other = result(input.shape[1:2], acc if weight is None else weight.dtype)
    by_input = result(input.shape, input.dtype, order=order)

    def steps(made: Sequence[Operand]) -> list[Step]:
        return _of_batch(input, grad, weight, None, eps, is_columns, made)

    return Call((by_input, other, other), steps)


def _training_backward(context: Context, grad: Any, *_: Any) -> Mapping[str, Any]:
    x, weight = context.saved
    eps = float(context["eps"])
    return named(context, batch_norm_training_backward, grad, x, weight, eps)


@function(results=3, backward=_training_backward, saves=["input", "weight"])
def batch_norm_training(
    input: ArrayLike,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    eps: float,
    *,
    out: ArrayLike = None,
) -> Any:
    """`batch_norm` by the statistics of the batch, which are the further results.

    They are the mean and the variance without bias of each channel, in the dtype of the
    computation and without derivatives.
    """
    dtype = check_channels("batch_norm", input, weight, bias)
    order, own = channels_last(input), result(input.shape[1:2], SUMS[dtype])
    is_columns = order is not None or prod(input.shape[2:]) == 1
    if input.shape[0] * prod(input.shape[2:]) == 1:
        problem = f"`input` is {input.shape}: one number has no variance"
        raise wrong_shape("batch_norm", problem, "pass more samples to training")

    def steps(made: Sequence[Operand]) -> list[Step]:
        return _of_batch(input, None, weight, bias, eps, is_columns, made)

    by_channels = result(input.shape, dtype, order=order)
    return Call((by_channels, own, own), steps)


@function(results=0, writes=["running_mean", "running_var"])
def batch_norm_step(
    running_mean: ArrayLike,
    running_var: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    momentum: Number,
) -> Any:
    """``running += momentum * (new - running)`` of the statistics of `batch_norm`."""
    arrays = running_mean, running_var, mean, variance
    same_shapes("batch_norm", mean, running_mean, running_var)
    for each in arrays:
        floats("batch_norm", each)
    acc = sums_of(*(each.dtype for each in arrays))

    def steps(made: Any) -> list[Step]:
        return [elements(kernels.move_averages, arrays, (acc,))]

    return Call((), steps)


class _BatchNorm(Function):
    """`batch_norm`: training is two other operators of torch."""

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        values = self.complete(args, kwargs)
        if values[self.places["training"]]:
            return _trained(*values)
        return super()._called(*args, **kwargs)


def _trained(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
    out: Any,
) -> Any:
    if (running_mean is None) is not (running_var is None):
        problem = "one of `running_mean` and `running_var` is None"
        raise at_caller(wrong_shape("batch_norm", problem, "pass both, or neither"))
    to = None if out is None else (out, None, None)
    found, *new = batch_norm_training(x, weight, bias, eps, out=to)
    if running_mean is not None and 0 not in x.shape:
        if getattr(new[0], "requires_grad", False):
            new = [each.detach() for each in new]
        batch_norm_step(running_mean, running_var, *new, momentum)
    return found if out is None else out


def _public(rule: Callable[P, Any]) -> Callable[P, Any]:
    saves = "input", "running_mean", "running_var", "weight"
    declared = _BatchNorm(rule.__name__, rule, backward=_batch_backward, saves=saves)
    return cast("Callable[P, Any]", public_function(declared))


@_public
def batch_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None,
    running_var: ArrayLike | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    out: ArrayLike = None,
) -> Any:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` of channels.

    Mean and variance are the running ones. In training they are those of the batch:
    over samples and all dimensions after the channels, computed in f32 (f64 for f64).

    Args:
        input: (samples, channels, ...); f16, bf16, f32 or f64, from any library as for
            `softmax`.
        running_mean: (channels,), without a derivative. Training changes it to
            ``(1 - momentum) * running_mean + momentum * mean``.
        running_var: the same of the variance, to which training adds the one without
            bias. Both may be None in training.
        weight: (channels,), any float dtype with no more bits than the computation.
            None: ones.
        bias: the same. None: zeros.
        training: whether the statistics of the batch are used.
        momentum: the share of the new statistics in the running ones.
        eps: prevents a division by 0.
        out: the array that gets the result: shape of ``input``, any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, or ``training`` was
            asked of torch's operator ``xetl::batch_norm`` (X0829).
    """
    if training:
        help_ = "call `xetl.ops.batch_norm`"
        raise LaunchError(
            "this operator knows no statistics of a batch", "X0829", help_
        )
    if running_mean is None or running_var is None:
        problem = "`running_mean` or `running_var` is None"
        raise wrong_shape("batch_norm", problem, "pass both, or `training=True`")
    others = running_mean, running_var, weight, bias
    dtype = check_channels("batch_norm", input, *others)
    samples, channels, n = *input.shape[:2], prod(input.shape[2:])
    order = channels_last(input)

    def steps(made: Any) -> Any:
        is_columns = n == 1 or order is not None
        some = side_by_side(samples * n, channels) if channels % LEAST else 1
        whole, dims = _whole(input, is_columns, some)
        x, moves = along_view(input, whole, *dims)
        columns = some * channels if is_columns else n
        width = min(WIDE, width_of(columns))
        each = channels_at_once(x, channels, n)
        kernel, grid = kernels.batch_norm_rows, (channels // each, samples, 1)
        constants: tuple[Any, ...] = (SUMS[dtype], each, width)
        if is_columns:
            kernel = kernels.batch_norm_columns
            grid = (cdiv(columns, width), cdiv(samples * n // some, _ROWS), 1)
            period = channels if some > 1 else None
            constants = (SUMS[dtype], _ROWS, width, period)
        launch = Launch(kernel, (whole, *[itself] * 4, whole), (), grid, constants)
        return [*moves, Step(launch, (x, *others, *made), (eps,))]

    return Call((result(input.shape, dtype, order=order),), steps)
