"""How a convolution is computed: which windows its input has, and the launches.

The input is written anew with its channels last and zeros around it; so is the weight.
A row of the result is then a batch-reduce GEMM over the rows of the kernel, as in
Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
architectures" (SC18). The gradient by the input is such convolutions of the gradient by
the result: one for each phase of the stride, with the taps that meet it.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.lib.stride_tricks import as_strided

from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.views import (
    array_of,
    flat_view,
    size_of,
    sums_of,
    vectors_of,
    width_of,
)
from xetl.ops.convolution.geometry import ALL, Geometry, Pair
from xetl.ops.convolution.kernels import cleared, convolution, direct, shifted, turned
from xetl.ops.products.product_steps import Seen, each_row, multiply
from xetl.runtime.placement import choose_backend

TILE = 64
MOST_COLUMNS = 256
"""Of a tile that is copied."""
MOST_PIXELS = 128
"""The most of a tile of the result."""
_LONGEST = 8192
"""Steps of k of one tap: columns of the kernel that are longer together are taps."""
PART = 8
"""Rows that a program makes, so that weights come from a cache."""
_ROWS, _SUMS, MOST_ROWS = 8, 8, 32
"""At most: rows of a tile of `direct`, its channels of a result, rows of a program."""
_SCRATCH = 1 << 16
"""Bytes that it copies of the input: what the shared memory of any GPU holds."""
_FEW_TAPS = 64
"""Terms of a sum that `direct` makes of any number of channels."""
_STRIP = 32
"""Rows of a product on tiles."""
_FILLED = 4096
_VECTOR = 16
"""Elements of the widest vectors of 32 bits, and lanes of a subgroup."""


class Windows(NamedTuple):
    """The windows of an input.

    Attributes:
        steps: make them.
        operand: has them.
        view: of them, as the kernels take them.
        columns: taps of a row of the kernel that are windows of their own.
        width: columns of a window.
        constants: TAPS, ROWS, STRIDE and DILATION of the kernels.
    """

    steps: list[Step]
    operand: Operand
    view: View
    columns: int
    width: int
    constants: tuple[int, int, int, int]


def turn(
    source: Operand, view: View, to: Operand, to_view: View, first: Pair = (0, 0)
) -> Step:
    """The launch that writes matrices anew, rows and columns exchanged.

    ``first`` says where those of the source begin; around them are zeros. A view may
    have more dimensions than the four of the kernel: the host goes through the first.
    """
    shape = to_view(array_of(to)).shape
    loops, (a, b, n, m) = shape[:-4], shape[-4:]
    tile = min(TILE, width_of(m)), min(TILE, width_of(n))
    grid = (cdiv(m, tile[0]), cdiv(b, PART), a)
    launch = Launch(turned, (view, to_view), loops, grid, (*first, PART, *tile))
    return Step(launch, (source, to))


def paired(channels: int, x: Operand) -> int:
    """Channels in pairs where products take pairs of them; the last one may be 0."""
    return channels + channels % 2 if x.dtype.itemsize == 2 else channels


def contiguous(x: Operand, groups: int) -> tuple[list[Step], Operand]:
    """Images whose channels can be split: the launch that copies others."""
    if groups == 1 or array_of(x).flags.c_contiguous:
        return [], x
    found = temporary(x.shape, x.dtype)
    return [copied(x, found, sums_of(x.dtype))], found


def _with_channels_last(
    x: Operand, shape: Shape, behind: int, g: Geometry, groups: int, apart: int
) -> tuple[list[Step], Operand]:
    """Steps that write the padded input anew, as ``shape`` in one row, and this.

    ``behind``: more elements, which nobody writes. Only rows so far ``apart`` are.
    """
    (images, *_), (_, channels, height, width) = shape, x.shape
    count = size_of(shape)
    steps, x = contiguous(x, groups)
    padded = temporary((count + behind,), x.dtype)

    def whole(array: Numbers) -> Numbers:
        split = array.reshape(images, channels // groups, height, width)
        return split.swapaxes(1, 2)[:, ::apart]

    step = turn(x, whole, padded, lambda a: a[:count].reshape(shape), g.first)
    assert step is not None
    return [*steps, step], padded


def find_windows(x: Operand, g: Geometry, groups: int) -> Windows:
    """The windows of an input (batch, channels, rows, columns).

    Rows have windows for whole tiles, though nobody wants the last ones: then products
    on tiles read them where they are (128 channels of 28 x 28 in bf16 on AMX, copies of
    28 rows: a fifth of the time).
    """
    images, (rows, across) = x.shape[0] * groups, g.padded
    # Windows of one row see only every so many rows.
    apart = g.stride[0] if g.taps[0] == 1 and g.first[0] == 0 else 1
    rows = cdiv(rows, apart)
    channels = paired(x.shape[1] // groups, x)
    pixels = cdiv(g.result[1], _STRIP) * _STRIP
    behind = (pixels - g.result[1]) * g.stride[1] * channels
    shape = images, rows, across, channels
    steps, padded = _with_channels_last(x, shape, behind, g, groups, apart)
    kh, kw = g.taps
    # Taps beside each other are one piece of memory.
    merges = g.dilation[1] == 1 and kw * channels <= _LONGEST
    kj, k = (1, kw * channels) if merges else (kw, channels)

    def view(array: Numbers) -> Numbers:
        one = channels * array.itemsize
        shape = (images * rows, kj, pixels, k)
        strides = across * one, g.dilation[1] * one, g.stride[1] * one, array.itemsize
        return as_strided(array, shape, strides, subok=True)

    constants = (kh, rows, g.stride[0] // apart, g.dilation[0])
    return Windows(steps, padded, view, kj, k, constants)


def evenly(extent: int, most: int) -> int:
    """A part of an extent that is split into equal ones."""
    return cdiv(extent, cdiv(extent, most))


def copy_matrices(
    source: Operand, view: View, to: Operand, to_view: View = itself
) -> Step:
    """The launch that copies matrices; behind those of the source are zeros."""
    a, b, m, n = to_view(array_of(to)).shape
    grid = (cdiv(m, PART), b, a)
    tile = PART, min(MOST_COLUMNS, width_of(n))
    return Step(Launch(shifted, (view, to_view), (), grid, (0, 0, *tile)), (source, to))


def _taps_first(weight: Operand, to: Operand) -> list[Step]:
    """Write (groups * o, c, kh, kw) as (groups, kh, kw, c, o).

    Through (groups, c, kh, kw, o): memory is read and written in whole rows.
    """
    groups, kh, kw, depth, outer = to.shape
    inner, taps = weight.shape[1], kh * kw
    between = to
    if taps > 1 or depth > inner:
        between = temporary((groups, inner * taps, outer), weight.dtype)
    flat: View = lambda a: a.reshape(groups, 1, outer, -1)
    to_flat: View = lambda a: a.reshape(groups, 1, -1, outer)
    first = turn(weight, flat, between, to_flat)
    if between is to:
        return [first]
    split: View = lambda a: a.reshape(groups, inner, taps, outer).swapaxes(1, 2)
    each_tap: View = lambda a: a.reshape(groups, taps, depth, outer)
    return [first, copy_matrices(between, split, to, each_tap)]


def taps_last(found: Operand, made: Operand) -> list[Step]:
    """Write (groups, taps, c, o) as (groups * o, c, kh, kw): see `_taps_first`."""
    groups, taps, inner, outer = found.shape
    between, steps = found, list[Step]()
    if taps > 1:
        between = temporary((groups, inner, taps, outer), found.dtype)
        steps.append(copy_matrices(found, itself, between, lambda a: a.swapaxes(1, 2)))
    flat: View = lambda a: a.reshape(groups, 1, -1, outer)
    to_flat: View = lambda a: a.reshape(groups, 1, outer, -1)
    return [*steps, turn(between, flat, made, to_flat)]


def _turned_around(weight: Operand, to: Operand, g: Geometry) -> list[Step]:
    """Write the chosen taps of (groups * o, c, kh, kw) as (groups, kh, kw, o, c).

    They are turned around, too.
    """
    groups, _, _, depth, inner = to.shape
    outer = weight.shape[0] // groups

    def view(array: Numbers) -> Numbers:
        split = array.reshape(groups, outer, inner, *array.shape[2:])
        return split[:, :, :, g.chosen[0], g.chosen[1]].transpose(0, 3, 4, 1, 2)

    def to_view(array: Numbers) -> Numbers:
        return array[:, ::-1, ::-1].swapaxes(-1, -2)

    def each_row(array: Numbers) -> Numbers:
        return array.reshape(groups, outer, inner, -1)

    def to_each_row(array: Numbers) -> Numbers:
        return array.reshape(groups, -1, depth, inner)[:, ::-1].swapaxes(1, 2)

    if g.chosen == ALL and depth == outer:
        return [turn(weight, each_row, to, to_each_row)]
    return [turn(weight, view, to, to_view)]


def convolve(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    groups: int,
) -> list[Step]:
    """The launches of a convolution.

    Args:
        x: (batch, channels, rows, columns).
        weight: (channels of the result, channels / groups, *g.taps).
        bias: (channels of the result,) or None.
        made: the result.
        g: see `Geometry`.
        groups: of channels.
    """
    if g.is_product and groups == 1:
        return multiply_pixels(x, weight, bias, made)
    channels = weight.shape[1], weight.shape[0] // groups
    is_split = groups > 1 or _has_few_taps(x, g, channels[0])
    if is_split and (part := part_of(x, g, channels)):
        return _directly(x, weight, bias, made, g, channels, part, False)
    return _of_windows(x, weight, bias, made, g, groups, False)


def by_input(
    grad: Operand, weight: Operand, made: Operand, parts: list[Geometry], groups: int
) -> list[Step]:
    """The launches of the gradient by the input.

    Args:
        grad: by the result, contiguous.
        weight: of the convolution.
        made: the gradient, contiguous.
        parts: see `phases`.
        groups: of channels.
    """
    steps: list[Step] = []
    if any(0 in g.taps for g in parts):
        grid = (cdiv(size_of(made.shape), _FILLED), 1, 1)
        launch = Launch(cleared, (flat_view,), (), grid, (_FILLED,))
        steps.append(Step(launch, (made,)))
    for g in parts:
        if g.is_product and groups == 1:
            steps += multiply_pixels(grad, weight, None, made, True)
        elif 0 not in g.taps:
            channels = weight.shape[0] // groups, weight.shape[1]
            if groups > 1 and (part := part_of(grad, g, channels)):
                how = g, channels, part, True
                steps += _directly(grad, weight, None, made, *how)
            else:
                steps += _of_windows(grad, weight, None, made, g, groups, True)
    return steps


def _of_windows(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    groups: int,
    is_by_input: bool,
) -> list[Step]:
    """By products; ``is_by_input``: with the weight turned, as `by_input` says."""
    outer, inner = weight.shape[0] // groups, weight.shape[1]
    windows = find_windows(x, g, groups)
    images = x.shape[0] * groups
    depth, channels = (outer, inner) if is_by_input else (inner, outer)
    depth = paired(depth, x)
    turned_weight = temporary((groups, *g.taps, depth, channels), weight.dtype)
    if is_by_input:
        turns = _turned_around(weight, turned_weight, g)
    else:
        turns = _taps_first(weight, turned_weight)
    rows, pixels = g.result

    def each_group(array: Numbers) -> Numbers:
        return array.reshape(groups, -1, channels)

    def each_row(array: Numbers) -> Numbers:
        split = array.reshape(images, channels, *array.shape[2:])
        return split[:, :, g.where[0], g.where[1]].swapaxes(1, 2)

    views = (windows.view, each_group, None, each_row)
    # Of several groups a program has all channels of one.
    tile = channels if groups > 1 else min(TILE, channels)
    tiles = evenly(pixels, MOST_PIXELS), tile, windows.width
    part = min(rows, PART)
    grid = (cdiv(rows, part), groups * cdiv(channels, tile), x.shape[0])
    constants = (*windows.constants, groups, sums_of(x.dtype), part, *tiles)
    launch = Launch(convolution, views, (), grid, constants)
    operands = (windows.operand, turned_weight, bias)
    return [*windows.steps, *turns, Step(launch, (*operands, made))]


def multiply_pixels(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    is_turned: bool = False,
) -> list[Step]:
    """Of one tap: the weight times the pixels of each image."""
    batch, pixels = x.shape[0], size_of(x.shape[2:])
    shape = (batch, made.shape[1], pixels)

    def matrix(array: Numbers) -> Numbers:
        return array.reshape(array.shape[:2])

    def each_image(array: Numbers) -> Numbers:
        return array.reshape(batch, -1, pixels)

    left = Seen(weight, matrix)
    left = left.turned() if is_turned else left
    added = each_row(bias, shape)
    return [multiply(left, Seen(x, each_image), Seen(made, each_image), added)]


def each_image(array: Numbers) -> Numbers:
    """A channel of an image as an image."""
    return array.reshape(-1, *array.shape[2:])


def part_of(x: Operand, g: Geometry, channels: Pair) -> int:
    """How many rows of the result `direct` makes at once; 0: it should not be used.

    Products have the channels of a result in vectors: of two they are faster, if sums
    have terms enough.

    Args:
        x: the input.
        g: see `Geometry`.
        channels: of a group, of the input and of the result.
    """
    inner, outer = channels
    item = sums_of(x.dtype).bits // 8
    if outer > vectors_of(x)[1] and not _has_few_taps(x, g, inner):
        return 0
    down = (g.taps[0] - 1) * g.dilation[0] // g.stride[0]
    planes = inner * g.stride[0] * g.stride[1] * item
    taps = inner * outer * size_of(g.taps) * item
    room = (_SCRATCH - taps) // (planes * widths_of(x, g)[1]) - down
    step, _ = tile_of(x, g, outer)
    rows = max(0, min(MOST_ROWS, room)) // step * step
    return rows and cdiv(evenly(g.result[0], rows), step) * step


def _has_few_taps(x: Operand, g: Geometry, inner: int) -> bool:
    """Whether sums have so few terms that a product mostly moves its operands.

    Measured with 32 registers: 3 x 3 taps of 3 or 4 channels, 7 x 7 of one. With 5 x 5
    of 3 products are faster. A GPU has too few programs then.
    """
    is_cpu = choose_backend(values=[array_of(x)]).name == "cpu"
    is_short = inner * g.taps[1] < _VECTOR and inner * size_of(g.taps) <= _FEW_TAPS
    return is_cpu and is_short and vectors_of(x)[0] >= 32


def tile_of(x: Operand, g: Geometry, outer: int) -> Pair:
    """Rows of a tile of `direct`, and channels of the result that it sums at once.

    Their sums take half of the registers.
    """
    registers, lanes = vectors_of(x)
    vectors = cdiv(widths_of(x, g)[0], lanes)
    most = max(1, min(_SUMS, registers // 2 // vectors))
    sums = max(n for n in range(1, most + 1) if outer % n == 0)
    rows = max(1, min(_ROWS, registers // 2 // (sums * vectors)))
    return evenly(g.result[0], rows), sums


def widths_of(x: Operand, g: Geometry) -> Pair:
    """Columns of a tile of `direct`, and of the planes that it copies."""
    registers, lanes = vectors_of(x)
    width = min(TILE, registers // 4 * lanes, width_of(g.result[1]))
    seen = width + (g.taps[1] - 1) * g.dilation[1] // g.stride[1]
    # Whole vectors: they are stored without masks, and shuffled apart.
    return width, cdiv(seen, lanes) * lanes


def _directly(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    channels: Pair,
    part: int,
    is_by_input: bool,
) -> list[Step]:
    """Of few channels a group: sums of rows, no product."""
    (inner, outer), taps, steps = channels, size_of(g.taps), list[Step]()
    images, height = made.shape[0] * made.shape[1] // outer, g.result[0]
    if g.chosen != ALL:
        chosen = temporary((*weight.shape[:2], *g.taps), weight.dtype)
        steps.append(copy_matrices(weight, lambda a: a[:, :, *g.chosen], chosen))
        weight = chosen

    def each_group(array: Numbers) -> Numbers:
        if is_by_input:
            return array.reshape(-1, inner, outer, taps)
        return array.reshape(-1, 1, outer, inner * taps)

    def to_image(array: Numbers) -> Numbers:
        return each_image(array)[:, g.where[0], g.where[1]]

    unrolled = max(n for n in range(1, 9) if g.taps[0] % n == 0)
    rows, sums = tile_of(x, g, outer)
    tile = (sums_of(x.dtype), part, unrolled, sums, rows, *widths_of(x, g))
    how = g.stride, g.dilation, g.taps, channels, is_by_input
    views = (each_image, each_group, None, to_image)
    grid = (cdiv(height, part), images, 1)
    launch = Launch(direct, views, (), grid, (*g.first, *how, *tile))
    return [*steps, Step(launch, (x, weight, bias, made))]
