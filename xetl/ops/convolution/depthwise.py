"""Convolutions with one channel a group, of images whose channels lie last in memory.

Vectors are channels: each multiplies its own weights, so neighbouring pixels share the
weights in registers, and nothing is moved between lanes.
"""

from __future__ import annotations

from math import prod

from xetl import xetile
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.views import array_of, sums_of, vectors_of
from xetl.ops.convolution.geometry import Geometry, evenly
from xetl.ops.convolution.windows import (
    LAST,
    SCRATCH,
    by_pixels,
    choose_taps,
    is_channels_last,
)
from xetl.ops.matrices import put, take
from xetl.ops.rows.reductions import add_all
from xetl.runtime.executables import choose_target
from xetl.runtime.placement import choose_backend
from xetl.xetile import Array, constexpr

_VECTORS = 2
"""Vectors of channels of a program."""
_ROWS, _WIDTH = 32, 32
"""The most rows of a program, and columns of a tile."""


@xetile.function
def copy_pixels(
    image: Array,
    pixels: Array,
    top: int,
    left: int,
    c: int,
    ROWS: constexpr,
    STRIDE: constexpr,
    COLUMNS: constexpr,
    BLOCK: constexpr,
) -> None:
    """Copy BLOCK channels of the pixels from (top, left) on, with zeros around them.

    A row of ``image`` becomes a row of COLUMNS pixels for each remainder by STRIDE.
    ``pixels`` is (pixels, channels).
    """
    before = (min(max(-left, 0), COLUMNS * STRIDE) + STRIDE - 1) // STRIDE
    for j in range(before):
        put(xetile.zeros((1, BLOCK), pixels.dtype), pixels, [j, 0])
    for i in range(ROWS):
        for rest in xetile.static_range(STRIDE):
            first, to = left + rest, (i * STRIDE + rest) * COLUMNS
            skipped = (min(max(-first, 0), COLUMNS * STRIDE) + STRIDE - 1) // STRIDE
            at, end = max(first + skipped * STRIDE, 0), first + COLUMNS * STRIDE
            row = image[:, at : max(end, 0) : STRIDE][top + i]
            # Behind its pixels are zeros, with which the next row begins.
            found = take(row, [0, c], (COLUMNS + STRIDE // 2, BLOCK), pixels.dtype)
            put(found, pixels, [to + skipped, 0])


@xetile.kernel
def depthwise(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    above: int,
    before: int,
    STENCIL: constexpr,
    IS_BY_INPUT: constexpr,
    ACC: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
    BLOCK: constexpr,
) -> None:
    """``out[b, i, j] = sum over taps of x[b, i + ..., j + ...] * weight[tap] + bias``.

    A program copies the pixels that PART rows of BLOCK channels need to shared memory,
    with zeros around them: so taps read them without tests. Arguments that are not
    named here are those of `xetl.ops.convolution.kernels.direct`.

    Args:
        x: (images, rows, columns, channels), as ``out``.
        weight: (channels, taps).
        bias: (channels,) or None.
        COLUMNS: columns of a row that a tile reads, for each remainder by the stride.
        BLOCK: channels of a program.
    """
    c, first = xetile.program_id(0) * BLOCK, xetile.program_id(1) * PART
    (kh, kw), (down, across), dilation = STENCIL
    image, count = xetile.program_id(2), kh * kw
    rows = (PART - 1) * down + (kh - 1) * dilation[0] + 1
    pixels = xetile.slm(((rows * across + 2) * COLUMNS, BLOCK), ACC)
    taps = xetile.slm((count, BLOCK), ACC)
    put(take(weight, [c, 0], (BLOCK, count), ACC).T, taps, [0, 0])
    for n in range(0, out.shape[2], WIDTH):
        xetile.barrier()
        top, left = first * down - above, n * across - before
        copy_pixels(x[image], pixels, top, left, c, rows, across, COLUMNS, BLOCK)
        xetile.barrier()
        for i in range(PART):
            acc = xetile.zeros((WIDTH, BLOCK), ACC)
            for ki in range(kh):
                row = (i * down + ki * dilation[0]) * across
                for kj in xetile.static_range(kw):
                    column, k = kj * dilation[1], ki * kw + kj
                    at = (row + column % across) * COLUMNS + column // across
                    if IS_BY_INPUT:
                        k = count - 1 - k
                    v = take(pixels, [at, 0], (WIDTH, BLOCK), ACC)
                    acc = acc + v * take(taps, [k, 0], (1, BLOCK), ACC)
            if bias is not None:
                acc = acc + take(bias, [c], (BLOCK,), ACC)
            put(acc, out[image, first + i], [n, c])


@xetile.kernel
def depthwise_sums(
    x: Array,
    grad: Array,
    out: Array,
    above: int,
    before: int,
    STENCIL: constexpr,
    ACC: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
    BLOCK: constexpr,
) -> None:
    """The gradient of the weight by each image: the pixels of a tap times ``grad``.

    ``grad`` is (images, rows, columns, channels), ``out`` (images, channels, taps); a
    program has BLOCK channels of an image. Else as for `depthwise`.
    """
    c, image = xetile.program_id(0) * BLOCK, xetile.program_id(1)
    (kh, kw), (down, across), dilation = STENCIL
    count, rows = kh * kw, (PART - 1) * down + (kh - 1) * dilation[0] + 1
    pixels = xetile.slm(((rows * across + 2) * COLUMNS, BLOCK), ACC)
    copied = xetile.slm(((PART + 1) * WIDTH, BLOCK), ACC)
    sums = xetile.slm((count, BLOCK), ACC)
    put(xetile.zeros((count, BLOCK), ACC), sums, [0, 0])
    for first in range(0, grad.shape[1], PART):
        for n in range(0, grad.shape[2], WIDTH):
            top, left = first * down - above, n * across - before
            xetile.barrier()
            copy_pixels(x[image], pixels, top, left, c, rows, across, COLUMNS, BLOCK)
            copy_pixels(grad[image], copied, first, n, c, PART, 1, WIDTH, BLOCK)
            xetile.barrier()
            for ki in range(kh):
                accs = (xetile.zeros((1, BLOCK), ACC),) * kw
                for i in range(min(PART, grad.shape[1] - first)):
                    row = (i * down + ki * dilation[0]) * across
                    for j in range(min(WIDTH, grad.shape[2] - n)):
                        found = ()
                        other = take(copied, [i * WIDTH + j, 0], (1, BLOCK), ACC)
                        for kj in xetile.static_range(kw):
                            column = kj * dilation[1]
                            at = (row + column % across) * COLUMNS + column // across
                            v = take(pixels, [at + j, 0], (1, BLOCK), ACC)
                            found = (*found, accs[kj] + v * other)
                        accs = found
                for kj in xetile.static_range(kw):
                    k = ki * kw + kj
                    put(take(sums, [k, 0], (1, BLOCK), ACC) + accs[kj], sums, [k, 0])
    xetile.barrier()
    put(take(sums, [0, 0], (count, BLOCK), ACC).T, out[image], [c, 0])


def room_of(x: Operand) -> int:
    """Return the bytes that a program may copy to shared memory."""
    backend = choose_backend(values=[array_of(x)])
    if backend.name != "cpu":
        return SCRATCH
    return backend.private_cache(choose_target(backend)) // 4


def tile_of_channels(x: Operand, g: Geometry) -> tuple[int, int, int, int] | None:
    """Return the constants of `depthwise` from PART on; None if they do not fit."""
    item, lanes, room = sums_of(x.dtype).itemsize, vectors_of(x)[1], room_of(x)
    block = min(_VECTORS, cdiv(x.shape[1], lanes)) * lanes
    width = evenly(g.result[1], _WIDTH)
    columns = width + (g.taps[1] - 1) * g.dilation[1] // g.stride[1]
    room = room // (block * item) - prod(g.taps)
    rows = (room // columns - 2) // g.stride[1] - (g.taps[0] - 1) * g.dilation[0]
    part = min(cdiv(rows, g.stride[0]), _ROWS)
    return (evenly(g.result[0], part), width, columns, block) if part > 0 else None


def is_depthwise(x: Operand, weight: Operand, made: Operand) -> bool:
    """Return whether each channel has its own kernel."""
    is_single = weight.shape[0] == x.shape[1] == made.shape[1]
    return is_single and weight.shape[1] == 1


def by_channels(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    is_by_input: bool,
) -> list[Step]:
    """Return the launches of a convolution by `depthwise`; see `plans.convolve`.

    Images whose channels are not last are copied.
    """
    if not (is_channels_last(x) and is_channels_last(made)):
        seen, found = (temporary(n.shape, n.dtype, order=LAST) for n in (x, made))
        steps = by_channels(seen, weight, bias, found, g, is_by_input)
        return [copied(x, seen), *steps, copied(found, made)]
    tile = tile_of_channels(x, g)
    assert tile is not None

    steps, weight = choose_taps(weight, g)
    taps: View = lambda a: a.reshape(len(a), -1)

    to_pixels: View = lambda a: by_pixels(a)[:, g.where[0], g.where[1]]
    part, *_, block = tile
    grid = (cdiv(x.shape[1], block), cdiv(g.result[0], part), x.shape[0])
    how = g.stencil, is_by_input, sums_of(x.dtype)
    views = by_pixels, taps, None, to_pixels
    launch = Launch(depthwise, views, (), grid, (*g.first, *how, *tile))
    return [*steps, Step(launch, (x, weight, bias, made))]


def weight_by_channels(
    grad: Operand, x: Operand, made: Operand, g: Geometry
) -> list[Step]:
    """Return the launches of the gradient of the weight; see `depthwise_sums`."""
    if not (is_channels_last(x) and is_channels_last(grad)):
        seen, other = (temporary(n.shape, n.dtype, order=LAST) for n in (x, grad))
        steps = weight_by_channels(other, seen, made, g)
        return [copied(x, seen), copied(grad, other), *steps]
    tile, acc = tile_of_channels(x, g), sums_of(x.dtype)
    assert tile is not None
    (images, channels), taps, block = x.shape[:2], prod(g.taps), tile[-1]
    found = temporary((images, channels, taps), acc)
    views, grid = (by_pixels, by_pixels, itself), (cdiv(channels, block), images, 1)
    constants = *g.first, g.stencil, acc, *tile
    launch = Launch(depthwise_sums, views, (), grid, constants)
    return [Step(launch, (x, grad, found)), *add_all(found, made, 1.0, 0)]
