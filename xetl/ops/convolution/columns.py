"""Convolutions of few pixels: products with the weight as it lies in memory.

If a layer has fewer pixels than channels, copying its weight (see `plans`) costs more
than copying the pixels that each tap reads to the columns of a matrix (im2col:
Chellapilla et al., "High performance convolutional neural networks for document
processing", 2006).

Convolutions that split images into patches multiply a copy of the patches: their
windows share no pixels, so the copy is no larger than the images. If channels are last
in memory, it moves rows of patches, and so it costs less than windows (see `windows`)
with channels for pairs, or a gradient of separate taps.
"""

from __future__ import annotations

from math import prod

from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import sums_of, width_of
from xetl.ops.convolution.column_kernels import (
    columns,
    columns_by_rows,
    sums_of_taps,
    sums_of_windows,
)
from xetl.ops.convolution.geometry import Geometry
from xetl.ops.convolution.plans import multiply_pixels
from xetl.ops.convolution.windows import (
    LAST,
    by_pixels,
    contiguous,
    copy_matrices,
    each_pixel,
    is_channels_last,
    turn,
)
from xetl.ops.products.product_steps import Seen, each_row, multiply

_CHANNELS, _PIXELS, _PART = 64, 256, 16
"""Sizes of a program that copies; it computes the indices once for all its channels."""


def has_few_pixels(weight: Operand, batch: int, g: Geometry, groups: int) -> bool:
    """Return whether the results have no more pixels in all than channels.

    A weight with its channels last is no matrix for the rows of `_columns_of`.
    """
    is_few = groups == 1 and batch * prod(g.result) <= weight.shape[0]
    return is_few and not is_channels_last(weight)


def copies_pixels(weight: Operand, batch: int, g: Geometry, groups: int) -> bool:
    """Return whether to copy pixels: they are few, or the kernel has one tap."""
    is_few = has_few_pixels(weight, batch, g, groups)
    if g.is_product:
        return is_few and batch > 1
    return is_few or (groups == 1 and prod(g.taps) == 1)


def convolve_columns(
    x: Operand, weight: Operand, bias: Operand | None, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of a convolution; arguments as for `plans.convolve`."""
    if not has_few_pixels(weight, x.shape[0], g, 1):
        # The kernel has one tap. Each image is one product with a contiguous result.
        is_last = is_channels_last(made)
        order = LAST if is_last else None
        found = temporary((*x.shape[:2], *g.result), x.dtype, order=order)
        if is_last and g.first == (0, 0):
            step = _copy_pixels(x, found, g)
        else:
            step = _copy(x, found, g, lambda a: a.swapaxes(0, 1)[:, None])
        return [step, *multiply_pixels(found, weight, bias, made)]
    steps, x = contiguous(x, 1)
    step, seen = _columns_of(x, g)
    to, rest = made, list[Step]()
    if x.shape[0] > 1 or is_channels_last(made):
        to = temporary((made.shape[1], made.shape[0], *g.result), made.dtype)
        rest.append(copy_matrices(to, _exchanged, made, _rows))
    shape = made.shape[1], x.shape[0] * prod(g.result)
    added = each_row(bias, shape)
    product = multiply(Seen(weight, _flat), seen, Seen(to, _as(shape)), added)
    return [*steps, step, product, *rest]


def weight_by_columns(
    grad: Operand, x: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the weight: a sum over all pixels."""
    copies, x = contiguous(x, 1)
    step, right = _columns_of(x, g)
    steps, left = _channels_first(grad)
    return [*copies, step, *steps, multiply(left, right.turned(), Seen(made, _flat))]


def input_by_columns(
    grad: Operand, weight: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the input: a sum over all taps."""
    images, channels, height, width = made.shape
    across, pixels = channels * prod(g.taps), prod(g.result)
    steps, left = _channels_first(grad)
    found = temporary((images, pixels, across), sums_of(grad.dtype))
    to, flat = Seen(found, _as((-1, across))), _as((images, channels, -1))
    steps.append(multiply(left.turned(), Seen(weight, _flat), to))
    tile = _PART, min(_CHANNELS, width_of(channels))
    grid = cdiv(channels, tile[1]), cdiv(height * width, tile[0]), images
    numbers = (*g.result, *g.first, width, g.stencil, *tile)
    launch = Launch(sums_of_taps, (itself, flat), (), grid, numbers)
    return [*steps, Step(launch, (found, made))]


def input_by_windows(
    grad: Operand, weight: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the input: a sum over windows."""
    if is_channels_last(made):
        first = temporary(made.shape, made.dtype)
        return [*input_by_windows(grad, weight, first, g), copied(first, made)]
    (images, channels, height, width), taps = made.shape, prod(g.taps)
    outer, pixels = weight.shape[0], prod(g.result)
    found = temporary((images, channels, taps * pixels), sums_of(grad.dtype))
    to = Seen(found, _as((images, channels * taps, pixels)))
    right = Seen(grad, _as((images, outer, pixels)))
    step = multiply(Seen(weight, _flat).turned(), right, to)
    tile = min(_PART, height), min(_PIXELS, width_of(width))
    grid = cdiv(width, tile[1]), cdiv(height, tile[0]), images * channels
    numbers = (*g.result, *g.first, g.stencil, *tile)
    launch = Launch(sums_of_windows, (itself, itself), (), grid, numbers)
    return [step, Step(launch, (found, made))]


def suits_patches(x: Operand, other: Operand, g: Geometry, groups: int) -> bool:
    """Return whether channels are last in memory, and windows have all pixels of x.

    ``other``: the weight, or the gradient of the result.
    """
    is_whole = groups == 1 and g.has_patches and g.padded == tuple(x.shape[2:])
    return is_whole and is_channels_last(x) and is_channels_last(other)


def convolve_patches(
    x: Operand, weight: Operand, bias: Operand | None, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of a convolution; arguments as for `plans.convolve`."""
    step, left = _patches(x, g)
    added = None if bias is None else Seen(bias)
    right = Seen(weight, _each_patch).turned()
    return [step, multiply(left, right, Seen(made, each_pixel), added)]


def weight_by_patches(
    grad: Operand, x: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the weight: a sum over all patches."""
    step, right = _patches(x, g)
    (outer, inner), taps = made.shape[:2], prod(g.taps)
    found = temporary((1, outer, taps, inner), made.dtype)
    to: View = lambda a: a.reshape(outer, -1)
    product = multiply(Seen(grad, each_pixel).turned(), right, Seen(found, to))
    channels_first: View = lambda a: a.reshape(1, outer, inner, taps)
    return [step, product, turn(found, itself, made, channels_first)]


def _patches(x: Operand, g: Geometry) -> tuple[Step, Seen]:
    """Return the copying step, and the matrix (patches of all, taps * channels)."""
    (images, channels), (rows, columns) = x.shape[:2], g.result
    shape = images * rows, g.taps[0], columns, g.taps[1] * channels
    found = temporary((shape[0], shape[2], shape[1], shape[3]), x.dtype)
    view: View = lambda a: by_pixels(a).reshape(shape)
    to: View = lambda a: a.swapaxes(1, 2)
    flat: View = lambda a: a.reshape(images * rows * columns, -1)
    return copy_matrices(x, view, found, to), Seen(found, flat)


def _each_patch(array: Numbers) -> Numbers:
    return by_pixels(array).reshape(array.shape[0], -1)


def _columns_of(x: Operand, g: Geometry) -> tuple[Step, Seen]:
    """Return the copying step, and the matrix (channels * taps, pixels of results)."""
    images, channels, *_ = x.shape
    taps, pixels = prod(g.taps), prod(g.result)
    found = temporary((channels, taps, images, pixels), x.dtype)
    step = _copy(x, found, g, _as((channels, taps, images, *g.result)))
    return step, Seen(found, _as((channels * taps, -1)))


def _copy_pixels(x: Operand, found: Operand, g: Geometry) -> Step:
    """Return the launch that copies the pixels that one tap reads, channels last."""
    down, across = g.stride

    view: View = lambda a: by_pixels(a)[:, ::down, ::across]
    return copy_matrices(x, view, found, by_pixels)


def _copy(x: Operand, found: Operand, g: Geometry, to: View) -> Step:
    """Return the launch that copies what taps read to (channels, taps, images, ...)."""
    images, channels, height, width = x.shape
    taps, pixels = prod(g.taps), prod(g.result)
    is_alike = g.stride == (1, 1) and g.result[1] == width
    extent = pixels if is_alike else g.result[1]
    tile = _CHANNELS, min(_PIXELS, width_of(extent))
    grid = cdiv(extent, tile[1]), taps, images * cdiv(channels, tile[0])
    numbers = height, width, *g.first, g.stencil, *tile
    seen = _as((images, channels, -1))
    launch = Launch(columns_by_rows, (seen, to), (), grid, numbers)
    if is_alike:
        flat: View = lambda a: to(a).reshape(channels, taps, images, pixels)
        launch = Launch(columns, (seen, flat), (), grid, numbers)
    return Step(launch, (x, found))


def _channels_first(x: Operand) -> tuple[list[Step], Seen]:
    """Return images as a matrix (channels, pixels of all), and the copy if needed."""
    images, channels = x.shape[:2]
    seen = _as((channels, -1))
    if images == 1:
        return [], Seen(x, seen)
    found = temporary((channels, images, *x.shape[2:]), x.dtype)
    return [copy_matrices(x, _exchanged, found, _rows)], Seen(found, seen)


def _as(shape: tuple[int, ...]) -> View:
    return lambda a: a.reshape(shape)


def _flat(array: Numbers) -> Numbers:
    return array.reshape(len(array), -1)


def _rows(array: Numbers) -> Numbers:
    """View (a, b, rows, columns) as (1, a, b, pixels)."""
    return array.reshape(1, *array.shape[:2], -1)


def _exchanged(array: Numbers) -> Numbers:
    return _rows(array).swapaxes(1, 2)
