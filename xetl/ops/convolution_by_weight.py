"""The gradient of a convolution by its weight: products that sum over pixels."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xetl.language.ops import cdiv
from xetl.ops.batches import View, itself
from xetl.ops.calls import Launch
from xetl.ops.convolution_kernels import convolution_by_weight, shifted
from xetl.ops.convolution_plans import (
    MOST_COLUMNS,
    MOST_PIXELS,
    PART,
    TILE,
    Geometry,
    Pair,
    contiguous,
    evenly,
    paired,
    taps_last,
    turn,
)
from xetl.ops.declarations import Operand, Step, temporary
from xetl.ops.operands import Numbers
from xetl.ops.views import sums_of, width_of


def by_weight(
    grad: Operand, x: Operand, made: Operand, g: Geometry, groups: int
) -> list[Step | None]:
    """The launches of the gradient by the weight: products that sum over pixels."""
    batch, (outer, inner) = x.shape[0], made.shape[:2]
    outer, (kh, kw), (rows, columns) = outer // groups, g.taps, g.result
    tile = evenly(kw * inner, MOST_PIXELS), min(TILE, outer)
    tiles = kh * cdiv(kw * inner, tile[0])
    # What several programs read is turned, and packed once for them.
    turns = groups == 1 and tiles > 1
    # Rows of an even length then: products take pairs.
    across = paired(columns, x) if turns and rows % 2 else columns
    pixels = rows * across
    copies, windows, view = _find_shifted(x, g, groups, across)
    found = temporary((groups, kh * kw, inner, outer), made.dtype)

    def of_images(array: Numbers) -> Numbers:
        return array.reshape(batch * groups, outer, pixels)

    def of_rows(array: Numbers) -> Numbers:
        return array.reshape(batch, outer, rows, columns).swapaxes(1, 2)

    def each_tap(array: Numbers) -> Numbers:
        return array.reshape(groups * kh, kw * inner, outer)

    right, seen = grad, of_images
    if turns:
        right, seen = temporary((batch, rows, across, outer), grad.dtype), _as_one
        copies.append(turn(grad, of_rows, right, itself))
    grid = (cdiv(kw * inner, tile[0]), cdiv(outer, tile[1]), groups * kh)
    constants = (groups, turns, sums_of(x.dtype), *tile, pixels)
    launch = Launch(convolution_by_weight, (view, seen, each_tap), (), grid, constants)
    product = Step(launch, (windows, right, found))
    return [*copies, product, *taps_last(found, made)]


def _as_one(array: Numbers) -> Numbers:
    return array.reshape(1, -1, array.shape[-1])


def _find_shifted(
    x: Operand, g: Geometry, groups: int, across: int
) -> tuple[list[Step | None], Operand, View]:
    """The pixels that each tap sees, one after the other, in rows of ``across``.

    They are copied for each column of the kernel. Its rows see the same ones further
    down, but for a stride.
    """
    first, x = contiguous(x, groups)
    steps: list[Step | None] = [*first]
    images, channels = x.shape[0] * groups, x.shape[1] // groups
    (kh, kw), (down, right) = g.taps, g.dilation
    is_shared = g.stride[0] == 1
    copies = 1 if is_shared else kh
    rows = g.padded[0] if is_shared else g.result[0]
    shape = images, copies, kw, channels, rows, across
    found = temporary(shape, x.dtype)
    for ki, kj in np.ndindex(copies, kw):
        # Where the first pixel that a tap sees is.
        top, left = ki * down - g.first[0], kj * right - g.first[1]
        end = left + (g.result[1] - 1) * g.stride[1] + 1
        steps.append(_shift(x, found, (ki, kj), (top, left, end), g.stride))

    def view(array: Numbers) -> Numbers:
        image, copy, _, channel, row, item = array.strides
        shape = images, kh, kw * channels, g.result[0] * across
        step = down * row if is_shared else copy
        return as_strided(array, shape, (image, step, channel, item), subok=True)

    return steps, found, view


def _shift(
    x: Operand, to: Operand, tap: Pair, place: tuple[int, int, int], stride: Pair
) -> Step:
    """The launch that copies what a tap sees, from ``place`` on to a last column."""
    images, _, _, channels, rows, across = to.shape
    (top, left, end), (down, right) = place, stride
    below, behind = top % down, left % right

    def view(array: Numbers) -> Numbers:
        split = array.reshape(images, channels, *array.shape[2:])
        return split[:, :, below::down, behind : max(end, behind) : right]

    tile = PART, min(MOST_COLUMNS, width_of(across))
    grid = (cdiv(rows, PART), channels, images)
    constants = (-(top // down), -(left // right), *tile)
    launch = Launch(
        shifted, (view, lambda a: a[:, tap[0], tap[1]]), (), grid, constants
    )
    return Step(launch, (x, to))
