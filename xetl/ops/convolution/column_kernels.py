"""The kernels that copy what taps read to columns of a matrix (im2col), and back."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import put
from xetl.xetile import Array, cdiv, constexpr


@xetile.function
def place_of(tap: int, above: int, before: int, STENCIL: constexpr) -> tuple[int, int]:
    """Return the rows and columns from a pixel to the pixel that a tap reads."""
    (_, kw), _, dilation = STENCIL
    return tap // kw * dilation[0] - above, tap % kw * dilation[1] - before


@xetile.kernel
def columns(
    x: Array,
    out: Array,
    height: int,
    width: int,
    above: int,
    before: int,
    STENCIL: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out[c, tap, image]`` has the pixels of a channel that a tap reads (im2col).

    The strides are 1, and rows of the input and of the result are equally long. So
    neighbouring pixels of the result read neighbouring pixels of the input.

    Args:
        x: (images, channels, pixels).
        out: (channels, taps, images, pixels of the result).
        height: rows of the input.
        width: columns of the input and of the result.
        above: rows of zeros above the input.
        before: columns of zeros before the input.
        STENCIL: taps, stride and dilation, each of rows and of columns.
        PART: channels of a program.
        WIDTH: pixels of a program.
    """
    first, tap = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    image, c = xetile.program_id(2) % x.shape[0], xetile.program_id(2) // x.shape[0]
    down, right = place_of(tap, above, before, STENCIL)
    pixel = first + xetile.arange(WIDTH)
    i, j = pixel // width + down, pixel % width + right
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
    for each in range(c * PART, min((c + 1) * PART, x.shape[1])):
        v = x[image, each][pixel + (down * width + right)]
        put(xetile.where(inside, v, 0.0), out[each, tap, image], [first])


@xetile.kernel
def columns_by_rows(
    x: Array,
    out: Array,
    height: int,
    width: int,
    above: int,
    before: int,
    STENCIL: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """`columns` for any strides and widths; see there for arguments not named here.

    Args:
        out: (channels, taps, images, rows of the result, columns).
        WIDTH: columns of a program.
    """
    first, tap = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    image, c = xetile.program_id(2) % x.shape[0], xetile.program_id(2) // x.shape[0]
    down, right = place_of(tap, above, before, STENCIL)
    _, (below, across), _ = STENCIL
    j = xetile.arange(WIDTH) * across + (first * across + right)
    seen = (j >= 0) & (j < width)
    for each in range(c * PART, min((c + 1) * PART, x.shape[1])):
        for row in range(out.shape[3]):
            i = row * below + down
            v = x[image, each][i * width + j]
            v = xetile.where(seen & (i >= 0) & (i < height), v, 0.0)
            put(v[None, :], out[each, tap, image], [row, first])


@xetile.kernel
def sums_of_taps(
    found: Array,
    out: Array,
    height: int,
    width: int,
    above: int,
    before: int,
    columns: int,
    STENCIL: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out[image, c] = sum over taps of found`` (col2im); else as for `columns`.

    Args:
        found: (images, pixels of the result, channels * taps).
        out: (images, channels, pixels), in rows of ``columns`` pixels.
        height: rows of the result.
        width: columns of the result.
        PART: pixels of a program.
        WIDTH: channels of a program.
    """
    c, first = xetile.program_id(0) * WIDTH, xetile.program_id(1) * PART
    image, ((kh, kw), stride, _) = xetile.program_id(2), STENCIL
    count = kh * kw
    channel = (c + xetile.arange(WIDTH)) * count
    sums = xetile.slm((PART, WIDTH), found.dtype)
    for n in range(PART):
        acc = xetile.zeros((WIDTH,), found.dtype)
        for tap in xetile.static_range(count):
            down, right = place_of(tap, above, before, STENCIL)
            i, j = (first + n) // columns - down, (first + n) % columns - right
            row, column = i // stride[0], j // stride[1]
            meets = row * stride[0] == i and column * stride[1] == j
            inside = row >= 0 and row < height and column >= 0 and column < width
            if meets and inside:
                acc = acc + found[image, row * width + column][channel + tap]
        put(acc[None, :], sums, [n, 0])
    xetile.barrier()
    tile = xetile.load_tile(xetile.init_tile(sums, [0, 0], (PART, WIDTH)))
    put(tile.T, out[image], [c, first])


@xetile.kernel
def sums_of_windows(
    found: Array,
    out: Array,
    height: int,
    width: int,
    above: int,
    before: int,
    STENCIL: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """`sums_of_taps` with pixels in lanes; neighbouring taps read neighbouring pixels.

    A pixel meets every ``stride``-th tap: as many as there are windows that have it.

    Args:
        found: (images, channels, taps * pixels of the result).
        out: (images, channels, rows, columns).
        PART: rows of a program.
        WIDTH: columns of a program.
    """
    first, top = xetile.program_id(0) * WIDTH, xetile.program_id(1) * PART
    image, c = xetile.program_id(2) % out.shape[0], xetile.program_id(2) // out.shape[0]
    (kh, kw), (down, across), _ = STENCIL
    at = xetile.arange(WIDTH) + (first + before)
    for row in range(top, min(top + PART, out.shape[2])):
        acc = xetile.zeros((WIDTH,), found.dtype)
        for part in range(cdiv(kh, down) * cdiv(kw, across)):
            ki = (row + above) % down + part // cdiv(kw, across) * down
            i, q = (row + above - ki) // down, part % cdiv(kw, across)
            kj, j = at % across + q * across, at // across - q
            inside = (kj < kw) & (j >= 0) & (j < width)
            index = ((ki * kw + kj) * height + i) * width + j
            v = found[image, c][index]
            if ki < kh and i >= 0 and i < height:
                acc = acc + xetile.where(inside, v, 0.0)
        put(acc[None, :], out[image, c], [row, first])
