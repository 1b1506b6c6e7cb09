"""The launches of ``group_norm`` where channels lie last, and of its derivative.

Memory is read as it lies: a program has some rows, whose columns are channels. It finds
the sums of each channel, the next launch those of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from xetl import xetile
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import SUMS, Operand, Step, along_view, temporary
from xetl.ops.calling.views import STRIP, width_of
from xetl.ops.matrices import put, take
from xetl.ops.rows.variances import exact
from xetl.xetile import Array, constexpr

SUMMED = 8192
"""Elements of a program: 32 KB of f32, so that the first cache has them twice."""
_WIDE = 1024
"""Columns of a program that sums nothing."""
_ROWS = 64


@xetile.kernel
def sum_channels(
    x: Array,
    grad: Array | None,
    mean: Array,
    squares: Array,
    slopes: Array,
    products: Array,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """The sums of each channel over ROWS rows, or what is left of them.

    Args:
        x: (samples, n, channels).
        grad: the same, or None.
        mean: (samples, blocks, channels).
        squares: the same, sums of ``(x - mean) ** 2``.
        slopes: sums of ``grad``; None without it, as is the next one.
        products: sums of ``grad * (x - mean)``.
        ACC: the dtype that is computed in.
        WIDTH: columns of a program.
    """
    column, block = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    sample = xetile.program_id(2)
    source, first = x[sample], block * ROWS
    end = min(first + ROWS, source.shape[0])
    total, given = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    for row in range(first, end):
        total = total + take(source, [row, column], (1, WIDTH), ACC)
        if grad is not None:
            given = given + take(grad[sample], [row, column], (1, WIDTH), ACC)
    middle = total / (end - first)
    total, rest = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    both = xetile.zeros((1, WIDTH), ACC)
    for row in range(first, end):
        d = take(source, [row, column], (1, WIDTH), ACC) - middle
        total, rest = total + d * d, rest + d
        if grad is not None:
            both = both + d * take(grad[sample], [row, column], (1, WIDTH), ACC)
    error = rest / (end - first)  # of the rounded mean
    put(middle + error, mean[sample], [block, column])
    put(exact(total, rest, end - first), squares[sample], [block, column])
    if grad is not None:
        put(given, slopes[sample], [block, column])
        put(both - given * error, products[sample], [block, column])


@xetile.kernel
def factors_of_groups(
    x: Array,
    mean: Array,
    squares: Array,
    slopes: Array | None,
    products: Array,
    weight: Array | None,
    bias: Array | None,
    slope: Array,
    shift: Array,
    factor: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``x * slope + shift`` is the result; plus ``grad * factor``, the gradient by x.

    See `sum_channels`, and `group_norm_backward_rows` for how that is derived.

    Args:
        x: (samples, n, channels), of which only n is read.
        mean: (samples, groups, blocks, channels of a group), and so the next three.
        weight: (groups, channels of a group) or None.
        bias: the same.
        slope: (samples, groups, channels of a group), and so the next four, of which
            three are None without ``slopes``.
        WIDTH: channels of a group, or more.
    """
    group, sample = xetile.program_id(0), xetile.program_id(1)
    means, n, to = mean[sample, group], x.shape[1], [group, 0]
    channels = means.shape[1]
    total = xetile.zeros((1, WIDTH), ACC)
    for block in range(0, means.shape[0]):
        count = min(ROWS, n - block * ROWS)
        total = total + take(means, [block, 0], (1, WIDTH), ACC) * count
    middle = total.sum(1, keepdims=True) / (n * channels)
    total, both = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    given = xetile.zeros((1, WIDTH), ACC)
    is_there = xetile.arange(WIDTH)[None, :] < channels
    for block in range(0, means.shape[0]):
        count = min(ROWS, n - block * ROWS)
        d = take(means, [block, 0], (1, WIDTH), ACC) - middle
        d = xetile.where(is_there, d, 0.0)
        squared = take(squares[sample, group], [block, 0], (1, WIDTH), ACC)
        total = total + (squared + d * d * count)
        if slopes is not None:
            g = take(slopes[sample, group], [block, 0], (1, WIDTH), ACC)
            given = given + g
            both = both + g * d
            both = both + take(products[sample, group], [block, 0], (1, WIDTH), ACC)
    count = n * channels
    r = xetile.rsqrt(total.sum(1, keepdims=True) / count + eps)
    weights = xetile.full((1, WIDTH), 1.0, ACC)
    if weight is not None:
        weights = take(weight, [group, 0], (1, WIDTH), ACC)
    if slopes is None:
        put(weights * r, slope[sample], to)
        added = -middle * (weights * r)
        if bias is not None:
            added = added + take(bias, [group, 0], (1, WIDTH), ACC)
        put(added, shift[sample], to)
    else:
        put(weights * r, factor[sample], to)
        put(both * r, by_weight[sample], to)
        put(given, by_bias[sample], to)
        s = -(both * weights).sum(1, keepdims=True) * r * r * r / count
        common = (given * weights).sum(1, keepdims=True) * r / count
        put(xetile.where(is_there, s, 0.0), slope[sample], to)
        put(xetile.where(is_there, -middle * s - common, 0.0), shift[sample], to)


@xetile.kernel
def scale_channels(
    x: Array,
    grad: Array | None,
    slope: Array,
    shift: Array,
    factor: Array,
    out: Array,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = x * slope + shift``, and ``+ grad * factor`` if there is one.

    ``x``, ``grad`` and ``out`` are (samples, n, channels), others (samples, channels).
    """
    column, first = xetile.program_id(0) * WIDTH, xetile.program_id(1) * ROWS
    sample = xetile.program_id(2)
    source, to = x[sample], out[sample]
    scale = take(slope, [sample, column], (1, WIDTH), ACC)
    added = take(shift, [sample, column], (1, WIDTH), ACC)
    for row in range(first, min(first + ROWS, source.shape[0])):
        y = take(source, [row, column], (1, WIDTH), ACC) * scale + added
        if grad is not None:
            g = take(grad[sample], [row, column], (1, WIDTH), ACC)
            y = y + g * take(factor, [sample, column], (1, WIDTH), ACC)
        put(y, to, [row, column])


def group_steps(
    x: Operand,
    grad: Operand | None,
    weight: Operand | None,
    bias: Operand | None,
    num_groups: int,
    eps: float,
    out: Operand,
    *by_others: Operand,
) -> Sequence[Step]:
    """The launches of ``group_norm`` of channels that lie last, or of its derivative.

    Args:
        grad: the gradient by the result; None: the result itself is wanted.
        by_others: of the derivative, the gradients by weight and bias of each sample.
    """
    (samples, channels), n = x.shape[:2], prod(x.shape[2:])
    each, acc = channels // num_groups, SUMS[x.dtype]
    width = width_of(cdiv(channels, cdiv(channels, STRIP)))
    rows, wide = max(1, SUMMED // width), min(_WIDE, width_of(channels))
    blocks = cdiv(n, rows)
    whole: View = lambda a: np.moveaxis(a, 1, -1).reshape(samples, n, channels)
    own: View = lambda a: a.reshape(num_groups, each)
    of_sample: View = lambda a: a.reshape(samples, num_groups, each)
    of_block: View = lambda a: a.reshape(samples, blocks, num_groups, each).swapaxes(
        1, 2
    )
    x, moves = along_view(x, whole, 1)
    if grad is not None:
        grad, more = along_view(grad, whole, 1)
        moves = [*moves, *more]
    count = 2 if grad is None else 4
    parts = [temporary((samples, blocks, channels), acc) for _ in range(count)]
    parts += [None] * (4 - count)
    slope, shift = (temporary((samples, channels), acc) for _ in "ab")
    factor = None if grad is None else temporary((samples, channels), acc)
    sums = Launch(
        sum_channels,
        (whole, whole, *[itself] * 4),
        (),
        (cdiv(channels, width), blocks, samples),
        (acc, rows, width),
    )
    factors = Launch(
        factors_of_groups,
        (whole, *[of_block] * 4, own, own, *[of_sample] * 5),
        (),
        (num_groups, samples, 1),
        (acc, rows, width_of(each)),
    )
    scale = Launch(
        scale_channels,
        (whole, whole, *[itself] * 3, whole),
        (),
        (cdiv(channels, wide), cdiv(n, _ROWS), samples),
        (acc, _ROWS, wide),
    )
    found = slope, shift, factor, *(by_others or (None, None))
    return [
        *moves,
        Step(sums, (x, grad, *parts)),
        Step(factors, (x, *parts, weight, bias, *found), (eps,)),
        Step(scale, (x, grad, slope, shift, factor, out)),
    ]
