"""Convolutions that split images into patches: products with a copy of the patches.

The windows of such a convolution share no pixels, so the copy is no larger than the
images. If channels are last in memory, it moves rows of patches, and so it costs less
than windows (see `windows`) with channels for pairs, or a gradient of separate taps.
"""

from __future__ import annotations

from xetl.ops.calling.calls import View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import size_of
from xetl.ops.convolution.geometry import Geometry
from xetl.ops.convolution.windows import (
    by_pixels,
    copy_matrices,
    is_channels_last,
    turn,
)
from xetl.ops.products.product_steps import Seen, multiply


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
    return [step, multiply(left, right, Seen(made, _each_pixel), added)]


def weight_by_patches(
    grad: Operand, x: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the weight: a sum over all patches."""
    step, right = _patches(x, g)
    (outer, inner), taps = made.shape[:2], size_of(g.taps)
    found = temporary((1, outer, taps, inner), made.dtype)
    to: View = lambda a: a.reshape(outer, -1)
    product = multiply(Seen(grad, _each_pixel).turned(), right, Seen(found, to))
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


def _each_pixel(array: Numbers) -> Numbers:
    return by_pixels(array).reshape(-1, array.shape[1])
