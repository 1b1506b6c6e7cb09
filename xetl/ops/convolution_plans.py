"""How a convolution is computed: which windows its input has, and the launches.

The input is written anew with its channels last and zeros around it; so is the weight.
A row of the result is then a product for each row of the kernel. Where rows are short,
the windows of a whole image are copied first: products of few rows are slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xetl.language.ops import cdiv
from xetl.ops.activations import copied, through
from xetl.ops.batches import View, chain, itself
from xetl.ops.calls import Launch
from xetl.ops.convolution_kernels import (
    cleared,
    convolution,
    convolution_by_weight,
    copied_windows,
    depthwise,
    turned,
)
from xetl.ops.declarations import Operand, Step, temporary
from xetl.ops.operands import Numbers
from xetl.ops.plans import choose_method
from xetl.ops.views import array_of, flat_view, size_of, sums_of, width_of

Pair: TypeAlias = tuple[int, int]

_SHORT = 32
"""Pixels of a row: with fewer, windows are copied. [measured] 14 x 14 pixels, 256
channels: 105 GFLOP/s with the copy, 77 without."""

_TILE = 64
_PIXELS = 128
"""The most of a tile of the result."""
_DEPTH = 256
_PART = 8
"""Rows that a program makes, so that weights come from a cache."""
_FILLED = 4096


@dataclass(frozen=True)
class Geometry:
    """Where the pixels of a convolution are.

    Attributes:
        taps: rows and columns of its kernel.
        stride: pixels between two windows.
        dilation: pixels between two taps.
        first: where the first pixel of the input is in the padded one.
        step: pixels between two of the input there; the ones between are 0.
        result: rows and columns of the result.
    """

    taps: Pair
    stride: Pair
    dilation: Pair
    first: Pair
    step: Pair
    result: Pair

    @property
    def padded(self) -> Pair:
        """Rows and columns of the padded input that windows see."""
        spans = zip(self.result, self.stride, self.dilation, self.taps)
        rows, columns = ((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in spans)
        return rows, columns

    @property
    def is_product(self) -> bool:
        """Whether it is one of matrices, of the pixels as they are."""
        numbers = *self.taps, *self.stride, *self.step
        return all(n == 1 for n in numbers) and self.first == (0, 0)


class Windows(NamedTuple):
    """The windows of an input.

    Attributes:
        steps: make them.
        operand: has them.
        view: of them, as the kernels take them.
        width: columns of a window.
        rows: of the result, each of ``pixels``.
        pixels: see ``rows``.
        constants: TAPS, ROWS, STRIDE and DILATION of the kernels.
    """

    steps: list[Step]
    operand: Operand
    view: View
    width: int
    rows: int
    pixels: int
    constants: tuple[int, int, int, int]


def _inside(first: int, step: int, size: int, padded: int) -> tuple[slice, slice]:
    """Which pixels of the input are in the padded one, and where."""
    low = max(0, cdiv(-first, step))
    high = max(low, min(size, (padded - 1 - first) // step + 1))
    start = first + low * step
    return slice(low, high), slice(start, start + (high - low - 1) * step + 1, step)


def _turn(
    source: Operand, view: View, to: Operand, to_view: View, first: Pair = (0, 0)
) -> Step | None:
    """The launch that writes matrices anew, rows and columns exchanged.

    ``first`` says where those of the source begin; around them are zeros.
    """
    a, b, n, m = to_view(array_of(to)).shape
    if 0 in (a, b, m, n):
        return None
    tile = min(_TILE, width_of(m)), min(_TILE, width_of(n))
    grid = (cdiv(m, tile[0]), cdiv(b, _PART), a)
    launch = Launch(turned, (view, to_view), (), grid, (*first, _PART, *tile))
    return Step(launch, (source, to))


def _with_channels_last(x: Operand, g: Geometry, groups: int) -> list[Step]:
    """Steps that write the padded input anew; the last operand is (images, ...)."""
    batch, channels, height, width = x.shape
    images, channels = batch * groups, channels // groups
    steps: list[Step] = []
    if groups > 1 and not array_of(x).flags.c_contiguous:
        x, source = temporary(x.shape, x.dtype), x
        steps.append(copied(source, x, sums_of(x.dtype)))
    padded = temporary((images, *g.padded, channels), x.dtype)

    def whole(array: Numbers) -> Numbers:
        return array.reshape(images, channels, height, width).swapaxes(1, 2)

    if g.step == (1, 1):
        step = _turn(x, whole, padded, itself, g.first)
        assert step is not None
        return [*steps, step]
    rows, columns = (
        _inside(*each) for each in zip(g.first, g.step, (height, width), g.padded)
    )
    grid = (cdiv(size_of(padded.shape), _FILLED), 1, 1)
    launch = Launch(cleared, (flat_view,), (), grid, (_FILLED,))
    steps.append(Step(launch, (padded,)))
    view: View = lambda a: whole(a)[:, rows[0], :, columns[0]]  # noqa: E731
    step = _turn(x, view, padded, lambda a: a[:, rows[1], columns[1]])
    return steps if step is None else [*steps, step]


def find_windows(x: Operand, g: Geometry, groups: int) -> Windows:
    """The windows of an input (batch, channels, rows, columns)."""
    steps = _with_channels_last(x, g, groups)
    padded = steps[-1].operands[-1]
    assert padded is not None
    images, rows, _, channels = padded.shape
    (kh, kw), (height, width) = g.taps, g.result
    # Taps beside each other are one piece of memory.
    merges = g.dilation[1] == 1
    kj, k = (1, kw * channels) if merges else (kw, channels)

    def view(array: Numbers) -> Numbers:
        row, one, item = array.strides[1:]
        shape = (images * rows, kj, width, k)
        strides = (row, g.dilation[1] * one, g.stride[1] * one, item)
        return as_strided(array, shape, strides, subok=True)

    constants = (kh, rows, g.stride[0], g.dilation[0])
    if g.taps == (1, 1) or (width >= _SHORT and groups == 1):
        return Windows(steps, padded, view, k, height, width, constants)
    pixels, depth = height * width, kh * kj * k
    matrix = temporary((images, pixels, depth), x.dtype)

    def of_rows(array: Numbers) -> Numbers:
        split = array.reshape(images * height, width, kh * kj, k)
        return split.swapaxes(1, 2)

    tile = min(_TILE, width_of(width)), min(_DEPTH, width_of(k))
    launch = Launch(
        copied_windows,
        (view, of_rows),
        (),
        (height, images, 1),
        (*constants, *tile),
    )
    steps.append(Step(launch, (padded, matrix)))
    whole: View = lambda a: a[:, None]  # noqa: E731
    return Windows(steps, matrix, whole, depth, 1, pixels, (1, 1, 1, 1))


def _evenly(extent: int, most: int) -> int:
    """A part of an extent that is split into equal ones."""
    return cdiv(extent, cdiv(extent, most))


def _depth(width: int) -> int:
    return width if width <= _DEPTH else _DEPTH


def convolve(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    groups: int,
    is_by_input: bool = False,
) -> list[Step]:
    """The launches of a convolution.

    Args:
        x: (batch, channels, rows, columns).
        weight: (channels of the result, channels / groups, *g.taps).
        bias: (channels of the result,) or None.
        made: the result.
        g: see `Geometry`.
        groups: of channels.
        is_by_input: whether ``x`` is the gradient by the result of a convolution with
            this weight, and the one by its input is made.
    """
    outer, inner = weight.shape[0] // groups, weight.shape[1]
    taps = size_of(g.taps)
    if g.is_product and groups == 1:
        return _product(x, weight, bias, made, is_by_input)
    if outer == inner == 1 and g.stride == g.step == (1, 1):
        return _of_each_channel(x, weight, bias, made, g, is_by_input)
    windows = find_windows(x, g, groups)
    depth, channels = (outer, inner) if is_by_input else (inner, outer)
    turned_weight = temporary((groups, taps, depth, channels), weight.dtype)

    def view(array: Numbers) -> Numbers:
        split = array.reshape(groups, outer, inner, taps)
        return split if is_by_input else split.swapaxes(1, 2)

    def to_view(array: Numbers) -> Numbers:
        taps_first = array[:, ::-1] if is_by_input else array
        return taps_first.swapaxes(1, 2)

    step = _turn(weight, view, turned_weight, to_view)
    assert step is not None
    kh = windows.constants[0]
    images, rows, pixels = x.shape[0] * groups, windows.rows, windows.pixels

    def each_tap(array: Numbers) -> Numbers:
        return array.reshape(groups * kh, -1, windows.width, channels)

    def each_row(array: Numbers) -> Numbers:
        return array.reshape(images, channels, rows, pixels).swapaxes(1, 2)

    views = (windows.view, each_tap, None, each_row)
    tile = _evenly(pixels, _PIXELS), min(_TILE, channels), _depth(windows.width)
    part = min(rows, _PART)
    grid = (cdiv(rows, part), cdiv(channels, tile[1]), images)
    constants = (*windows.constants, groups, sums_of(x.dtype), part, *tile)
    launch = Launch(convolution, views, (), grid, constants)
    operands = (windows.operand, turned_weight, bias)
    return [*windows.steps, step, *through(launch, operands, made)]


def _product(
    x: Operand, weight: Operand, bias: Operand | None, made: Operand, is_turned: bool
) -> list[Step]:
    """Of one tap: the weight times the pixels of each image."""
    batch, pixels = x.shape[0], size_of(x.shape[2:])
    shape = (batch, made.shape[1], pixels)

    def matrix(array: Numbers) -> Numbers:
        found = array.reshape(array.shape[:2])
        return found.T if is_turned else found

    def each_image(array: Numbers) -> Numbers:
        return array.reshape(batch, -1, pixels)

    def added(array: Numbers) -> Numbers:
        return np.broadcast_to(array[:, None], shape, subok=True)

    to, steps = made, list[Step]()
    if not array_of(made).flags.c_contiguous:
        to = temporary(made.shape, made.dtype)
        steps.append(copied(to, made, sums_of(made.dtype)))
    seen = matrix(array_of(weight)), each_image(array_of(x)), each_image(array_of(to))
    method = choose_method(*seen, None, sums_of(x.dtype), False)
    found, operands = [matrix, each_image], [weight, x]
    if method.swaps:
        found, operands = found[::-1], operands[::-1]
    last = method.launch.views[2]
    views = [
        chain(one, two or itself)
        for one, two in zip(
            (*found, each_image, added), (*method.launch.views[:3], last)
        )
    ]
    launch = replace(method.launch, views=views)
    return [Step(launch, (*operands, to, bias)), *steps]


def _of_each_channel(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    is_by_input: bool,
) -> list[Step]:
    """Of one channel a group: sums of rows, no product."""
    images, (height, width) = x.shape[0] * x.shape[1], g.result

    def each_image(array: Numbers) -> Numbers:
        return array.reshape(images, *array.shape[2:])

    def each_kernel(array: Numbers) -> Numbers:
        return array[:, 0]

    constants = (x.shape[1], *g.first, *g.dilation, is_by_input, sums_of(x.dtype))
    tile = (_PART, min(_TILE, width_of(width)))
    views = (each_image, each_kernel, None, each_image)
    grid = (cdiv(height, _PART), images, 1)
    launch = Launch(depthwise, views, (), grid, (*constants, *tile))
    return through(launch, (x, weight, bias), made)


def by_weight(
    grad: Operand, x: Operand, made: Operand, g: Geometry, groups: int
) -> list[Step | None]:
    """The launches of the gradient by the weight."""
    windows = find_windows(x, g, groups)
    taps, inner = size_of(g.taps), made.shape[1]
    outer, images = made.shape[0] // groups, x.shape[0] * groups
    kh, width = windows.constants[0], windows.width
    rows, pixels = windows.rows, windows.pixels
    kj = taps * inner // (kh * width)
    found = temporary((groups, kh, kj, outer, width), made.dtype)

    def of_grad(array: Numbers) -> Numbers:
        return array.reshape(images, outer, rows, pixels).swapaxes(1, 2)

    def of_found(array: Numbers) -> Numbers:
        return array.reshape(groups * kh, kj, outer, width)

    tile = min(_TILE, outer), min(_TILE, width), _depth(pixels)
    grid = (cdiv(outer, tile[0]), cdiv(width, tile[1]), groups * kh * kj)
    constants = (*windows.constants, groups, sums_of(x.dtype), *tile)
    views = (windows.view, of_grad, of_found)
    launch = Launch(convolution_by_weight, views, (), grid, constants)
    product = Step(launch, (windows.operand, grad, found))
    return [*windows.steps, product, _in_order(found, made, groups)]


def _in_order(found: Operand, made: Operand, groups: int) -> Step | None:
    """The launch that puts channels before taps again."""
    _, kh, kj, outer, width = found.shape
    inner = made.shape[1]
    # Of several groups the taps are one piece (see `find_windows`).
    shape = (groups, outer, inner, kh * kj, width // inner)

    def view(array: Numbers) -> Numbers:
        return array.reshape(groups * kh * kj, outer, -1, inner)

    def to_view(array: Numbers) -> Numbers:
        split = array.reshape(shape).transpose(0, 3, 1, 2, 4)
        return split[0] if groups == 1 else split[:, 0]

    return _turn(found, view, made, to_view)
