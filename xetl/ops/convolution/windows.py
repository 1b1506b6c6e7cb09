"""The windows of a convolution's input: a padded copy with its channels last.

A window of a row is contiguous in memory, so that a product can read it in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xetl.language.ops import cdiv
from xetl.ops.activations import row_major
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.views import LEAST, array_of, width_of
from xetl.ops.convolution.geometry import ALL, Geometry, Pair
from xetl.ops.convolution.kernels import shifted, turned

TILE = 64
LONGEST = 8192
"""The most steps of k of one tap: longer columns of the kernel are separate taps."""
PART = 8
"""Rows of a program, which share the weights in a cache."""
MOST_COLUMNS = 256
"""The most columns of a tile that is copied."""
SCRATCH = 1 << 16
"""The most bytes of input and weight in shared memory; any GPU has them."""
LAST = 0, 2, 3, 1
"""The order of the dimensions of images whose channels are last in memory."""
STRIP = 32
"""Rows of a product on AMX tiles."""


class Windows(NamedTuple):
    """The windows of a padded input.

    Attributes:
        view: the view of the padded input as windows, for the kernels.
        columns: taps of a row of the kernel that have separate windows.
        width: columns of a window.
        constants: TAPS, ROWS, STRIDE and DILATION of the kernels.
        image: ABOVE and HEIGHT of `convolution`.
    """

    view: View
    columns: int
    width: int
    constants: tuple[int, int, int, int]
    image: Pair


def turn(
    source: Operand, view: View, to: Operand, to_view: View, first: Pair = (0, 0)
) -> Step:
    """Return the launch that copies matrices transposed.

    The matrices of the source begin at ``first``; around them are zeros. If a view has
    more than the four dimensions of the kernel, the host loops over the first ones.
    """
    shape = to_view(array_of(to)).shape
    loops, (a, b, n, m) = shape[:-4], shape[-4:]
    tile = min(TILE, width_of(m)), min(TILE, width_of(n))
    grid = (cdiv(m, tile[0]), cdiv(b, PART), a)
    launch = Launch(turned, (view, to_view), loops, grid, (*first, PART, *tile))
    return Step(launch, (source, to))


def copy_matrices(
    source: Operand,
    view: View,
    to: Operand,
    to_view: View = itself,
    first: Pair = (0, 0),
) -> Step:
    """Return the launch that copies matrices to ``first``, with zeros around them."""
    a, b, m, n = to_view(array_of(to)).shape
    grid = (cdiv(m, PART), b, a)
    tile = PART, min(MOST_COLUMNS, width_of(n))
    launch = Launch(shifted, (view, to_view), (), grid, (*first, *tile))
    return Step(launch, (source, to))


def choose_taps(weight: Operand, g: Geometry) -> tuple[list[Step], Operand]:
    """Return the weight with the taps that a geometry has, and its copy if needed."""
    if g.chosen == ALL:
        return [], weight
    found = temporary((*weight.shape[:2], *g.taps), weight.dtype)
    return [copy_matrices(weight, lambda a: a[:, :, *g.chosen], found)], found


def is_channels_last(x: Operand) -> bool:
    """Return whether the channels of images are contiguous in memory."""
    return x.order == LAST


def by_pixels(array: Numbers) -> Numbers:
    """View images as (images, rows, columns, channels)."""
    return np.moveaxis(array, 1, -1)


def each_pixel(array: Numbers) -> Numbers:
    """View images as a matrix (pixels of all, channels)."""
    return by_pixels(array).reshape(-1, array.shape[1])


def paired(channels: int, x: Operand) -> int:
    """Return an even number of channels for 16-bit products, which take pairs."""
    return channels + channels % 2 if x.dtype.itemsize == 2 else channels


def contiguous(x: Operand, groups: int) -> tuple[list[Step], Operand]:
    """Return images whose channels can be split into groups, and the copy if needed."""
    return ([], x) if groups == 1 and x.order is None else row_major(x)


def _with_channels_last(
    x: Operand, shape: Shape, behind: int, first: Pair, groups: int, apart: int
) -> tuple[list[Step], Operand]:
    """Return the steps that write the padded input as ``shape``, and its operand.

    The operand is one row with ``behind`` more elements, which are not written. Only
    every ``apart``-th row of the input is copied.
    """
    (images, *_), (_, channels, height, width) = shape, x.shape
    count = prod(shape)
    padded = temporary((count + behind,), x.dtype)
    if is_channels_last(x) and groups == 1 and channels == shape[-1]:
        rows: View = lambda a: by_pixels(a)[None, :, ::apart].reshape(
            1, images, -1, width * channels
        )
        to_rows: View = lambda a: a[:count].reshape(*shape[:2], -1)[None]
        at = first[0], first[1] * channels
        return [copy_matrices(x, rows, padded, to_rows, at)], padded
    steps, x = contiguous(x, groups)

    def whole(array: Numbers) -> Numbers:
        split = array.reshape(images, channels // groups, height, width)
        return split.swapaxes(1, 2)[:, ::apart]

    step = turn(x, whole, padded, lambda a: a[:count].reshape(shape), first)
    return [*steps, step], padded


def find_windows(
    x: Operand, parts: Sequence[Geometry], groups: int
) -> tuple[list[Step], Operand, list[Windows]]:
    """Return the windows of an input (batch, channels, rows, columns) per geometry.

    All windows are of one padded input, which has the zeros that any geometry needs.
    Returns the launches that write it, its operand, and the windows.

    The windows of a row fill whole tiles, though the last ones have no use: so products
    on AMX tiles read them in place. (128 channels of 28 x 28 in bf16: copies of 28 rows
    would take a fifth of the time.)
    """
    images, channels = x.shape[0] * groups, paired(x.shape[1] // groups, x)
    above, before = (max(g.first[d] for g in parts) for d in (0, 1))
    # Where the input of each geometry begins.
    at = [(above - g.first[0], before - g.first[1]) for g in parts]
    rows, across = (max(i[d] + g.padded[d] for i, g in zip(at, parts)) for d in (0, 1))
    # Windows of one row read only every stride-th row.
    sees_all = any(g.taps[0] > 1 or g.first[0] for g in parts)
    apart = 1 if sees_all else parts[0].stride[0]
    # Whole vectors of columns are transposed in registers, others one by one.
    rows, across = cdiv(rows, apart), cdiv(across, LEAST) * LEAST
    whole, height = (images * rows, rows, across, channels), x.shape[2]
    found = [
        _windows(g, whole, i, apart, (g.first[0], height if sees_all else rows))
        for i, g in zip(at, parts)
    ]
    shape = images, rows, across, channels
    behind = channels * max(
        i * across + (_pixels(g) - g.result[1]) * g.stride[1]
        for (i, _), g in zip(at, parts)
    )
    zeros = above, before
    return *_with_channels_last(x, shape, behind, zeros, groups, apart), found


def _pixels(g: Geometry) -> int:
    """Return the pixels of a row of the result, in whole tiles."""
    return cdiv(g.result[1], STRIP) * STRIP


def _windows(g: Geometry, shape: Shape, at: Pair, apart: int, image: Pair) -> Windows:
    """Return the windows of one geometry.

    Args:
        g: the convolution.
        shape: (rows of all images, rows, columns, channels) of the padded input.
        at: the row and column of an image where the windows begin.
        apart: rows of the input from one copied row to the next.
        image: the rows of zeros before the rows of an image, and the number of these.
    """
    count, rows, across, channels = shape
    kh, kw = g.taps
    # Neighbouring taps of a row are contiguous in memory.
    merges = g.dilation[1] == 1 and kw * channels <= LONGEST
    kj, k = (1, kw * channels) if merges else (kw, channels)
    start = (at[0] * across + at[1]) * channels

    def view(array: Numbers) -> Numbers:
        one = channels * array.itemsize
        strides = across * one, g.dilation[1] * one, g.stride[1] * one, array.itemsize
        return as_strided(
            array[start:], (count, kj, _pixels(g), k), strides, subok=True
        )

    return Windows(view, kj, k, (kh, rows, g.stride[0] // apart, g.dilation[0]), image)
