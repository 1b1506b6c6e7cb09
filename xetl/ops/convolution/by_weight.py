"""Plans of the gradient of the weight: products that sum over pixels."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.views import LEAST, is_on_cpu, sums_of, vectors_of, width_of
from xetl.ops.convolution.costs import (
    cost_of_weight_products,
    cost_of_weight_sums,
    is_on_tiles,
    step_of_k,
)
from xetl.ops.convolution.depthwise import (
    is_depthwise,
    room_of,
    tile_of_channels,
    weight_by_channels,
)
from xetl.ops.convolution.geometry import Geometry, Pair, divisors, evenly
from xetl.ops.convolution.kernels import shifted
from xetl.ops.convolution.plans import (
    MOST_PIXELS,
    MOST_ROWS,
    are_narrow,
    each_image,
    taps_last,
    widths_of,
)
from xetl.ops.convolution.weight_kernels import (
    convolution_by_weight,
    convolution_by_windows,
    direct_by_weight,
)
from xetl.ops.convolution.windows import (
    MOST_COLUMNS,
    PART,
    TILE,
    by_pixels,
    contiguous,
    find_windows,
    is_channels_last,
    paired,
    turn,
)
from xetl.ops.products.host_tiles import ENOUGH
from xetl.ops.rows.reductions import add_all

_PROGRAMS = 64
"""Programs of `direct_by_weight` if there are as many images."""
_MOST_COLUMNS, _MOST_STEPS = 1024, 256
"""The most columns of a product of windows, which share what is read of the gradient,
and the most pixels that are copied for it, if there are several rows."""


class _Tile(NamedTuple):
    """The last constants of `direct_by_weight`."""

    part: int
    unrolled: int
    block: int
    sums: int
    tile: int
    width: int
    columns: int


def by_weight(
    grad: Operand, x: Operand, made: Operand, g: Geometry, groups: int
) -> list[Step]:
    """Return the launches of the gradient of the weight: products over pixels."""
    batch, (outer, inner) = x.shape[0], made.shape[:2]
    orders = is_channels_last(x), is_channels_last(grad)
    suits = groups > 1 and (all(orders) or are_narrow(x, g))
    if suits and is_depthwise(x, made, grad) and tile_of_channels(x, g):
        return weight_by_channels(grad, x, made, g)
    if groups > 1 and any(orders):
        copies, x = contiguous(x, groups)
        steps, grad = contiguous(grad, groups)
        return [*copies, *steps, *by_weight(grad, x, made, g, groups)]
    is_apart = inner == 1 or not any(orders)
    if is_apart and (tile := _tile_of(x, g, (inner, outer // groups))):
        return _directly(grad, x, made, g, tile)
    if g.stride != (1, 1):
        return _by_windows(grad, x, made, g, groups)
    outer, (kh, kw), (rows, columns) = outer // groups, g.taps, g.result
    tile = _tile_of_products(x, kw * inner, outer)
    tiles = kh * cdiv(kw * inner, tile[0])
    # If several programs read the gradient, it is transposed, and packed once for all.
    turns = groups == 1 and tiles > 1
    across = _across(x, g) if turns else columns
    pixels = rows * across
    copies, windows, view = _find_shifted(x, g, groups, across)
    wanted = cdiv(ENOUGH, tiles * cdiv(outer, tile[1]) * groups)
    parts = divisors(batch, 2 * wanted)[-1] if wanted > 1 else 1
    shape = groups, kh * kw, inner, outer
    found, whole, sums = _partial_sums(shape, parts, made)

    of_images: View = lambda a: a.reshape(batch * groups, outer, pixels)
    each_tap: View = lambda a: a.reshape(-1, kh, kw * inner, outer)
    right: Operand = grad
    seen: View = of_images
    if turns and is_channels_last(grad) and across == columns:
        seen = lambda a: by_pixels(a).reshape(parts, -1, outer)
    elif turns:
        right = temporary((batch, rows, across, outer), grad.dtype)
        seen = lambda a: a.reshape(parts, -1, outer)
        copies.append(_turn_pixels(grad, right))
    constants = (groups, batch // parts, kh, turns, sums_of(x.dtype), *tile, pixels)
    grid = (tiles, cdiv(outer, tile[1]), parts * groups)
    launch = Launch(convolution_by_weight, (view, seen, each_tap), (), grid, constants)
    product = Step(launch, (windows, right, found))
    return [*copies, product, *sums, *taps_last(whole, made)]


def _tile_of_products(x: Operand, rows: int, columns: int) -> Pair:
    """Return the rows and columns of a product.

    Products on tiles of AMX wait for memory: larger ones read operands less often (8
    images of 128 channels, 28 x 28, 3 x 3, Sapphire Rapids: 3.6 ms, now 2.3).
    """
    wide = 2 if is_on_tiles(x) else 1
    return evenly(rows, wide * MOST_PIXELS), min(wide * TILE, columns)


def _turn_pixels(grad: Operand, to: Operand) -> Step:
    """Return the launch that writes images as (batch, rows, across, channels)."""
    (batch, outer, rows, columns), across = grad.shape, to.shape[2]
    # Without zeros behind rows, an image is one matrix, which is turned faster.
    lines = (1, rows * columns) if across == columns else (rows, columns)

    of_lines: View = lambda a: a.reshape(batch, outer, *lines).swapaxes(1, 2)
    to_lines: View = lambda a: a.reshape(batch, lines[0], -1, outer)
    return turn(grad, of_lines, to, to_lines)


def _across(x: Operand, g: Geometry) -> int:
    """Return the columns of rows of pixels: an image is whole steps of k, if possible.

    Otherwise products on tiles of AMX copy the windows of each image again. Products of
    16 bits must have whole pairs.
    """
    (rows, columns), step = g.result, step_of_k(x)
    if rows * columns % step == 0:
        return columns
    padded = cdiv(columns, LEAST) * LEAST
    fits = rows * padded % step == 0 and 4 * padded <= 5 * columns
    if fits and is_on_tiles(x):
        return padded
    return paired(columns, x) if rows % 2 else columns


def _partial_sums(
    shape: Shape, parts: int, made: Operand
) -> tuple[Operand, Operand, list[Step]]:
    """Return the memory of the parts of products and of their sums, and the steps."""
    whole = temporary(shape, made.dtype)
    if parts == 1:
        return whole, whole, []
    found = temporary((parts, *shape), sums_of(made.dtype))
    return found, whole, [*add_all(found, whole, 1.0, 0)]


def _tile_of(x: Operand, g: Geometry, channels: Pair) -> _Tile | None:
    """Return the sizes of `direct_by_weight`, or None if it should not be used.

    ``channels``: of a group, of the input and of the result.
    """
    (inner, outer), (registers, lanes) = channels, vectors_of(x)
    if channels != (1, 1) and not suits_sums(x, g, channels):
        return None
    width, columns = widths_of(x, g)
    tile, most = lanes, registers // 2
    terms, item, room = inner * prod(g.taps), sums_of(x.dtype).itemsize, room_of(x)
    sums, unrolled = max(
        ((n, k) for n in divisors(outer, most) for k in divisors(terms, most // n)),
        key=lambda pair: pair[0] * pair[1] / sum(pair),
    )
    if channels == (1, 1):
        tile, unrolled = width, divisors(g.taps[1], 4)[-1]
    each = terms * tile * item * sums
    block = divisors(outer // sums, max(1, room // 2 // each))[-1]
    planes = g.stride[0] * g.stride[1] * columns * inner
    down = (g.taps[0] - 1) * g.dilation[0] // g.stride[0]
    left = (room - block * each) // item - planes * down
    rows = min(MOST_ROWS, left // (planes + sums * width))
    part = evenly(g.result[0], rows) if rows > 0 else 0
    tiles = unrolled, block * sums, sums, tile, width, columns
    return _Tile(part, *tiles) if part else None


def suits_sums(x: Operand, g: Geometry, channels: Pair) -> bool:
    """Return whether sums of rows cost less than products, and fit a cache."""
    if not is_on_cpu(x):
        return False
    inner, outer = channels
    lanes, item = vectors_of(x)[1], sums_of(x.dtype).itemsize
    fits = inner * outer * prod(g.taps) * lanes * item <= room_of(x) // 2
    products = cost_of_weight_products(x, g, channels)
    return fits and cost_of_weight_sums(x, g, channels) < products


def _directly(
    grad: Operand, x: Operand, made: Operand, g: Geometry, tile: _Tile
) -> list[Step]:
    """Return the launches of `direct_by_weight`."""
    (outer, inner), acc = made.shape[:2], sums_of(x.dtype)
    channels = inner, outer * inner // x.shape[1]
    blocks = outer // tile.block
    found = made
    programs = min(x.shape[0], cdiv(_PROGRAMS, blocks))
    shape = programs, outer, inner * prod(g.taps)
    if programs > 1:
        found = temporary(shape, acc)
    views: list[View] = [each_image, itself, lambda a: a.reshape(shape)]
    constants = *g.first, g.stencil, channels, acc, *tile
    launch = Launch(direct_by_weight, views, (), (blocks, programs, 1), constants)
    steps = [Step(launch, (x, grad, found))]
    return steps if found is made else [*steps, *add_all(found, made, 1.0, 0)]


def _by_windows(
    grad: Operand, x: Operand, made: Operand, g: Geometry, groups: int
) -> list[Step]:
    """Return the launches of `convolution_by_windows`."""
    (rows, columns), (outer, inner) = g.result, (made.shape[0] // groups, made.shape[1])
    batch, depth = x.shape[0], paired(inner, x)
    copies, padded, (windows,) = find_windows(x, [g], groups)
    if groups > 1 or not is_channels_last(grad):
        more, grad = contiguous(grad, groups)
        copies += more
    taps, room = g.taps[0] * windows.columns, room_of(x) // x.dtype.itemsize
    seen_taps = divisors(taps, max(1, _MOST_COLUMNS // windows.width))[-1]
    tile = min(TILE, outer), evenly(windows.width, _MOST_COLUMNS)
    most = min(_MOST_STEPS, room // (seen_taps * tile[1]))
    part = evenly(rows, max(1, most // columns))
    programs = groups * taps // seen_taps
    across = cdiv(outer, tile[0]), cdiv(windows.width, tile[1])
    count = batch * cdiv(rows, part)
    products = cdiv(count, cdiv(ENOUGH, prod(across) * programs))
    parts = cdiv(count, products)
    # What a program has of the taps of a group, whatever their order in a window.
    each = taps // seen_taps, outer, prod(g.taps) * seen_taps // taps, depth
    found, whole, sums = _partial_sums((groups, *each), parts, made)
    of_taps: View = lambda a: a.reshape(groups, *each).swapaxes(0, 1)[..., :inner]

    def to_taps(array: Numbers) -> Numbers:
        weights = array.reshape(groups, outer, inner, *each[::2])
        return np.moveaxis(weights, 3, 0)

    each_image: View = lambda a: a.reshape(batch * groups, outer, rows * columns)
    each_program: View = lambda a: a.reshape(-1, outer, seen_taps * windows.width)
    tiles = seen_taps, products, part, *tile, columns
    constants = (*windows.constants, groups, rows, sums_of(x.dtype), *tiles)
    views = (windows.view, each_image, each_program)
    grid = (*across, parts * programs)
    launch = Launch(convolution_by_windows, views, (), grid, constants)
    product = Step(launch, (padded, grad, found))
    return [*copies, product, *sums, turn(whole, of_taps, made, to_taps)]


def _find_shifted(
    x: Operand, g: Geometry, groups: int, across: int
) -> tuple[list[Step], Operand, View]:
    """Return copies of the pixels that each tap reads, in rows of ``across``.

    The stride is 1. The pixels are copied once for each column of the kernel; its rows
    share a copy, in which they read later rows.
    """
    steps, x = contiguous(x, groups)
    images, channels = x.shape[0] * groups, x.shape[1] // groups
    (kh, kw), (down, right) = g.taps, g.dilation
    rows, (top, before) = g.padded[0], g.first
    found = temporary((images, kw, channels, rows, across), x.dtype)
    split: View = lambda a: a.reshape(images, channels, *a.shape[2:])
    tile = PART, min(MOST_COLUMNS, width_of(across))
    grid = (cdiv(rows, PART), channels, images)
    for kj in range(kw):
        # The last pixel that a tap reads is the last of the copy.
        end = max(kj * right - before + g.result[1], 0)
        views: list[View] = [
            lambda a, end=end: split(a)[..., :end],
            lambda a, kj=kj: a[:, kj],
        ]
        constants = (top, before - kj * right, *tile)
        steps.append(Step(Launch(shifted, views, (), grid, constants), (x, found)))

    def view(array: Numbers) -> Numbers:
        image, _, channel, row, item = array.strides
        shape = images, kh, kw * channels, g.result[0] * across
        return as_strided(array, shape, (image, down * row, channel, item), subok=True)

    return steps, found, view
