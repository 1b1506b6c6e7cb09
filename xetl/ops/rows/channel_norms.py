"""``xetl.ops.group_norm``: each channel has a weight.

Source: Wu and He, arXiv 1803.08494.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, as_line, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    along_view,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import (
    LEAST,
    Shared,
    floats,
    is_on_gpu,
    one_for_each,
    row_width,
    rows,
    rows_at_once,
    sums_of,
    vectors_of,
    width_of,
)
from xetl.ops.rows import channel_norm_kernels as kernels
from xetl.ops.rows.grouped_columns import group_steps
from xetl.ops.rows.normalization import norm_backward, norm_rows
from xetl.ops.rows.reductions import add_each

NARROW = 64
"""Columns of a piece with two sums for each column."""
WIDE = 1024
"""Columns of a piece without sums: 4 KB of f32, so pages are written one by one."""
FEW = 8
"""Channels of a channels-last array. For fewer, the derivative is faster along rows of
a copy."""


_WHOLE, _LEAST_GROUPS = 2048, 4
"""Elements of the small groups that a program has in one tile, and how many groups must
fit, of ``group_norm`` itself [measured: Zen 4, f32, derivative of 32 x 16 x 8 x 8 in 8
groups 35 us, then 16; itself 20, then 10; of 4 x 512 x 7 x 7, of which two fit, 30, and
it would be 38]."""


def check_channels(name: str, x: Operand, *others: Operand | None) -> DType:
    """Return the dtype of x; check that the others have one number for each channel.

    Raises:
        LaunchError: shapes or dtypes do not fit.
    """
    if x.ndim < 2:
        problem = f"`{x.name}` is {x.shape}, which has no channels"
        raise wrong_shape(name, problem, "pass (samples, channels, ...)")
    dtype = floats(name, x)
    whole = f"`{x.name}` is {x.shape}"
    one_for_each("channel", name, x, tuple(x.shape[1:2]), whole, *others)
    return dtype


def _grouped(x: Operand, num_groups: int) -> tuple[int, int, int]:
    """Return the groups of all samples, channels of a group, elements of a channel.

    Raises:
        LaunchError: ``num_groups`` does not divide the number of channels.
    """
    channels = x.shape[1]
    if num_groups < 1 or channels % num_groups:
        problem = f"{channels} channels are no {num_groups} groups"
        raise wrong_shape("group_norm", problem, "`num_groups` divides the channels")
    n = prod(x.shape[2:])
    return x.shape[0] * num_groups, channels // num_groups, n


def _piece(x: Operand, n: int) -> int:
    """Return the columns of a piece of n: the sums fill at most half of the registers.

    For 16-bit elements they fill a quarter, because the conversion to f32 needs
    registers as well. [measured] Zen 4 as AVX2, 32 x 32 x 1024, 4 groups: bf16 249 us,
    then 199; f32 would take 3 % longer.
    """
    registers, lanes = vectors_of(x)
    parts = 2 * sums_of(x.dtype).bits // x.dtype.bits
    return width_of(cdiv(n, cdiv(n, registers // parts * lanes))) if n else 1


def channels_at_once(x: Operand, channels: int, n: int) -> int:
    """Return the channels of a group that are computed at once, each of n elements."""
    most = rows_at_once(x, channels, width_of(n))
    return max(i for i in range(1, most + 1) if channels % i == 0)


def _groups_at_once(
    x: Operand, num_groups: int, least: int = 1
) -> tuple[Any, ...] | None:
    """Return the constants of kernels that have some whole groups in a tile.

    The last but one is how many, which divides ``num_groups``. Return None if fewer
    than ``least`` groups fit, or if a GPU computes.
    """
    if is_on_gpu(x):
        return None
    _, channels, n = _grouped(x, num_groups)
    width = row_width(x, n, LEAST // 2)
    most = _WHOLE // (channels * width)
    if most < least:
        return None
    each = max(i for i in range(1, most + 1) if num_groups % i == 0)
    return channels, x.shape[1], width, each, width == n


def channels_last(x: Operand, least: int = 1) -> tuple[int, ...] | None:
    """Return the result's order if x has ``least`` or more channels, last; or None."""
    is_last = x.order is not None and x.order[-1] == 1 and x.shape[1] >= least
    return (0, *range(2, x.ndim), 1) if is_last else None


@function(results=3)
def group_norm_backward(
    grad: ArrayLike,
    input: ArrayLike,
    weight: ArrayLike | None,
    num_groups: int,
    eps: float,
) -> Any:
    """The gradients of input, weight and bias."""
    acc = SUMS[input.dtype]
    order = channels_last(input, FEW)

    def steps(made: Any) -> Any:
        groups, channels, n = _grouped(input, num_groups)
        if order is not None:
            given = input, grad, weight, None, num_groups, eps
            return group_steps(*given, *made)
        flat: View = lambda a: a.reshape(-1, n)
        column: View = lambda a: a.reshape(-1, 1)
        whole: View = lambda a: a.reshape(groups, -1)
        x, moves = along_view(input, whole, *range(input.ndim))
        g, more = along_view(grad, flat, *range(input.ndim))
        some = _groups_at_once(x, num_groups)
        if some is not None:
            kernel = kernels.group_norm_backward_groups
            grid = (groups // some[-2], 1, 1)
            views = (flat, flat, itself, flat, as_line, as_line)
            launch = Launch(kernel, views, (), grid, (acc, *some))
            return [*moves, *more, Step(launch, (g, x, weight, *made), (eps,))]
        views = (flat, flat, whole, itself, flat, column, column)
        pieces = min(_piece(input, n), NARROW), min(width_of(n), WIDE)
        constants = (
            channels,
            num_groups,
            acc,
            *pieces,
            channels_at_once(x, channels, n),
        )
        grid = (groups, 1, 1)
        launch = Launch(kernels.group_norm_backward_rows, views, (), grid, constants)
        step = Step(launch, (g, x, x, weight, *made), (eps,))
        return [*moves, *more, step]

    return gradients(input, weight, order, input.shape[0], steps)


def gradients(
    x: Operand,
    weight: Operand | None,
    order: tuple[int, ...] | None,
    count: int,
    steps: Callable[[Sequence[Operand]], Sequence[Step]],
) -> Call:
    """Return the call whose results are the gradients of input, weight and bias.

    Args:
        x: the input.
        weight: (channels,). Without it, the last two have the dtype of the sums.
        order: of the dimensions of the first result.
        count: the parts of the gradients of weight and bias.
        steps: the launches that write the first gradient, and the parts of the others,
            (count, channels).
    """
    channels, acc = x.shape[1:2], SUMS[x.dtype]
    other = result(channels, acc if weight is None else weight.dtype)

    def all_steps(made: Sequence[Operand]) -> Sequence[Step]:
        parts = [temporary((count, *channels), acc) for _ in "ab"]
        return [*steps([made[0], *parts]), *add_each(parts, made[1:])]

    by_input = result(x.shape, x.dtype, order=order)
    return Call((by_input, other, other), all_steps)


def _group_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    x, weight = context.saved
    groups, eps = context["num_groups"], float(context["eps"])
    if x.numel() == x.shape[0] * x.shape[1] > 0:
        # Channels of one element are columns of rows.
        found = norm_backward(grad, x, weight, x.ndim - 1, True, eps, groups)
        names = "weight", "bias"
        by_others = {name: by.flatten() for name, by in zip(names, found[1:])}
        return {"input": found[0], **by_others}
    return named(context, group_norm_backward, grad, x, weight, groups, eps)


def named(
    context: Context, gradients: Callable[..., Any], grad: Any, x: Any, *others: Any
) -> Mapping[str, Any]:
    """Return the gradients by name; the last two are 0 if x has no elements."""
    if x.numel():
        by_input, by_weight, by_bias = gradients(grad, x, *others)
    else:
        by_input, by_weight, by_bias = grad, *[grad.new_zeros(x.shape[1])] * 2
    if context.needs("bias"):
        by_bias = by_bias.to(context.dtype_of("bias"))
    return {"input": by_input, "weight": by_weight, "bias": by_bias}


@function(backward=_group_backward, saves=["input", "weight"])
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

    Mean and variance are taken over all elements of a group of one sample. They are
    computed in f32 (f64 for f64), and the result is rounded once.

    Args:
        input: (samples, channels, ...); f16, bf16, f32 or f64, from any library as for
            `softmax`.
        num_groups: the number of groups; it divides the number of channels.
        weight: (channels,), any float dtype with no more bits than the computation.
            None: ones.
        bias: the same. None: zeros.
        eps: prevents a division by 0 for groups of equal elements.
        out: the array that gets the result: shape of ``input``, any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    dtype = check_channels("group_norm", input, weight, bias)
    groups, channels, n = _grouped(input, num_groups)
    order = channels_last(input, FEW) if n > 1 else None

    def steps(made: Any) -> Any:
        if order is not None:
            return group_steps(input, None, weight, bias, num_groups, eps, *made)
        flat: View = lambda a: a.reshape(-1, n)
        whole: View = lambda a: a.reshape(groups, -1)
        grid, acc = (groups, 1, 1), SUMS[dtype]
        x, moves = along_view(input, whole, *range(input.ndim))
        if n == 1:
            each: View = lambda a: a.reshape(-1, num_groups, channels)
            own: View = lambda a: a.reshape(num_groups, channels)
            operands, one = (x, weight, bias, *made), Shared(own)
            how = (True, acc, width_of(channels))
            views = (each, one, one, each)
            return [*moves, rows(norm_rows, operands, views, how, (eps,))]
        some = _groups_at_once(x, num_groups, _LEAST_GROUPS)
        if some is not None:
            kernel, grid = kernels.group_norm_groups, (groups // some[-2], 1, 1)
            views = (flat, itself, itself, flat)
            launch = Launch(kernel, views, (), grid, (acc, *some))
            return [*moves, Step(launch, (x, weight, bias, *made), (eps,))]
        pieces = _piece(input, n), channels_at_once(x, channels, n)
        constants = (channels, num_groups, acc, *pieces)
        views = (flat, whole, itself, itself, flat)
        launch = Launch(kernels.group_norm_rows, views, (), grid, constants)
        return [*moves, Step(launch, (x, x, weight, bias, *made), (eps,))]

    return Call((result(input.shape, dtype, order=order),), steps)
