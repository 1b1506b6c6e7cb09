"""The kernels behind `xetl.ops.conv1d` and ``conv2d``: products of windows and weights.

A *window* is what one pixel of the result is made of in one row of the input: the
channels of some neighbouring pixels, which are neighbours in memory where channels come
last. So an array of windows is a view, whose rows overlap (an implicit GEMM).
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import put, take
from xetl.xetile import Array, cdiv, constexpr


@xetile.kernel
def cleared(out: Array, WIDTH: constexpr) -> None:
    """``out = 0``, a row."""
    to = xetile.init_tile(out, [0, xetile.program_id(0) * WIDTH], (1, WIDTH))
    xetile.store_tile(xetile.zeros((1, WIDTH), out.dtype), to)


@xetile.kernel
def turned(
    x: Array,
    out: Array,
    TOP: constexpr,
    LEFT: constexpr,
    PART: constexpr,
    BM: constexpr,
    BN: constexpr,
) -> None:
    """``out[a, b] = x[a, b - TOP].T``, rows from LEFT on; what x does not have is 0.

    A program has BM columns of PART matrices.
    """
    m, first, a = xetile.program_id(0) * BM, xetile.program_id(1), xetile.program_id(2)
    for b in range(first * PART, min((first + 1) * PART, out.shape[1])):
        row = b - TOP
        for n in range(0, out.shape[2], BN):
            to = xetile.init_tile(out[a, b], [n, m], (BN, BM))
            if row >= 0 and row < x.shape[1]:
                tile = xetile.init_tile(x[a, row], [m, n - LEFT], (BM, BN))
                xetile.store_tile(xetile.load_tile(tile).T, to)
            else:
                xetile.store_tile(xetile.zeros((BN, BM), out.dtype), to)


@xetile.kernel
def convolution(
    windows: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    TAPS: constexpr,
    ROWS: constexpr,
    STRIDE: constexpr,
    DILATION: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    PART: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out[image, i] = sum of windows[row of i and tap] @ weight[tap], + bias``.

    A batch-reduce GEMM: a tap of the batch is all of its k at once, so that the weights
    of all taps are one operand, which is packed once for a launch.

    Args:
        windows: (images * ROWS, kj, pixels, k): of each row of the input a matrix with
            a row for each pixel of a row of the result.
        weight: (GROUPS, TAPS * kj * k, channels).
        bias: (GROUPS * channels,) or None.
        out: (images, rows, channels, pixels); an image is one group of channels of one.
        TAPS: rows of the kernel of the convolution.
        ROWS: rows of an image.
        STRIDE: rows between two of the result.
        DILATION: rows between two taps.
        GROUPS: of channels.
        ACC: the dtype that is summed in.
        PART: rows of the result that a program makes, with the same weights.
        BM: pixels of a tile.
        BN: its channels; all of a group where there are several.
        BK: k.
    """
    first, image = xetile.program_id(0) * PART, xetile.program_id(2) * GROUPS
    g, n = 0, xetile.program_id(1) * BN
    if GROUPS > 1:
        g, n = xetile.program_id(1), 0
        image = image + g
    kj = windows.shape[1]
    for i in range(first, min(first + PART, out.shape[1])):
        top = image * ROWS + i * STRIDE
        for m in range(0, out.shape[3], BM):
            acc = xetile.zeros((BM, BN), ACC)
            for tap in range(TAPS * kj):
                row = top + tap // kj * DILATION
                a = xetile.init_tile(windows[row, tap % kj], [m, 0], (BM, BK))
                b = xetile.init_tile(weight[g], [tap * BK, n], (BK, BN))
                acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
            if bias is not None:
                at = g * out.shape[2] + n
                added = xetile.load_tile(xetile.init_tile(bias, [at], (BN,)))
                acc = acc + added.to(ACC)
            put(acc.T, out[image, i], [n, m])


@xetile.function
def copy_planes(
    image: Array,
    planes: Array,
    at: int,
    top: int,
    left: int,
    ROWS: constexpr,
    STRIDES: constexpr,
) -> None:
    """The pixels from (top, left) on, as planes: one for each remainder by the strides.

    What the image does not have is 0. Neighbouring windows then read neighbouring
    elements of a plane, without masks.

    Args:
        image: (rows, columns).
        planes: (more, width), shared memory.
        at: the first row of it that is written, of STRIDES[0] * STRIDES[1] * ROWS.
        top: of the image; may be negative, as ``left``.
        left: of the image.
        ROWS: of a plane.
        STRIDES: rows and columns between two windows.
    """
    down, across, width = STRIDES[0], STRIDES[1], planes.shape[1]
    for i in range(ROWS * down):
        to, place = at + i % down * (across * ROWS) + i // down, [top + i, left]
        v = take(image, place, (1, width * across), planes.dtype)
        for j in xetile.static_range(across):
            put(v[:, j::across], planes, [to + j * ROWS, 0])


@xetile.function
def copy_taps(weight: Array, taps: Array, BLOCK: constexpr) -> None:
    """Blocks of columns, beside each other in shared memory."""
    for c in range(weight.shape[0]):
        block = take(weight[c], [0, 0], (taps.shape[0], BLOCK), taps.dtype)
        put(block, taps, [0, c * BLOCK])


@xetile.kernel
def direct(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    above: int,
    before: int,
    STRIDES: constexpr,
    DILATION: constexpr,
    TAPS: constexpr,
    CHANNELS: constexpr,
    IS_BY_INPUT: constexpr,
    ACC: constexpr,
    PART: constexpr,
    UNROLLED: constexpr,
    SUMS: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
) -> None:
    """A convolution of groups of few channels: sums of rows, no product.

    A program has one group of one image, and some rows of all its results.

    Args:
        x: (images * groups * CHANNELS[0], rows, columns).
        weight: (groups, 1, CHANNELS[1], CHANNELS[0] * taps); of a gradient by the
            input (groups, CHANNELS[0], CHANNELS[1], taps).
        bias: (groups * CHANNELS[1],) or None.
        out: (images * groups * CHANNELS[1], rows, columns).
        above: rows of zeros that the input begins with.
        before: columns of zeros likewise.
        STRIDES: rows and columns between two windows.
        DILATION: rows and columns between two taps.
        TAPS: rows and columns of the kernel.
        CHANNELS: of a group, of the input and of the result.
        IS_BY_INPUT: whether it is such a gradient: the taps are turned around.
        ACC: the dtype that is summed in.
        PART: rows of the result that a program makes.
        UNROLLED: rows of the kernel that are added one after the other, a divisor: what
            several of them read of a plane is loaded once.
        SUMS: channels of the result that are summed at once, a divisor.
        ROWS: of a tile, a divisor of PART.
        WIDTH: columns of a tile.
        COLUMNS: of the planes: what a tile sees, or more.
    """
    first, image = xetile.program_id(0) * PART, xetile.program_id(1)
    g = image % weight.shape[0]
    inner, outer = CHANNELS[0], CHANNELS[1]
    down, across = STRIDES[0], STRIDES[1]
    rows = PART + (TAPS[0] - 1) * DILATION[0] // down
    height, parts = down * across * rows, TAPS[0] * TAPS[1] // UNROLLED
    planes = xetile.slm((inner * height, COLUMNS), ACC)
    count = TAPS[0] * TAPS[1]
    taps = xetile.slm((outer, inner * count), ACC)
    copy_taps(weight[g], taps, count if IS_BY_INPUT else inner * count)
    for j in range(0, out.shape[2], WIDTH):
        top, left = first * down - above, j * across - before
        xetile.barrier()
        for c in range(inner):
            one, at = image * inner + c, c * height
            copy_planes(x[one], planes, at, top, left, rows, STRIDES)
        xetile.barrier()
        for tile in range(PART // ROWS * (outer // SUMS)):
            i, o = tile // (outer // SUMS) * ROWS, tile % (outer // SUMS) * SUMS
            accs = (xetile.zeros((ROWS, WIDTH), ACC),) * SUMS
            for part in range(inner * parts):
                c, tap = part // parts, part % parts
                kj = tap // (TAPS[0] // UNROLLED)
                column = kj * DILATION[1]
                plane = c * down * across + column % across
                for each in xetile.static_range(UNROLLED):
                    ki = tap % (TAPS[0] // UNROLLED) * UNROLLED + each
                    row = ki * DILATION[0]
                    at = (plane + row % down * across) * rows + i + row // down
                    place = [at, column // across]
                    v = xetile.load_tile(xetile.init_tile(planes, place, (ROWS, WIDTH)))
                    k = ki * TAPS[1] + kj
                    if IS_BY_INPUT:
                        k = count - 1 - k
                    found = ()
                    for n in xetile.static_range(SUMS):
                        found = (*found, accs[n] + v * taps[o + n, c * count + k])
                    accs = found
            for n in xetile.static_range(SUMS):
                acc, channel = accs[n], o + n
                if bias is not None:
                    acc = acc + bias[g * outer + channel].to(ACC)
                put(acc, out[image * outer + channel], [first + i, j])


@xetile.kernel
def depthwise_by_weight(
    x: Array,
    grad: Array,
    out: Array,
    above: int,
    before: int,
    STRIDES: constexpr,
    DILATION: constexpr,
    TAPS: constexpr,
    ACC: constexpr,
    PART: constexpr,
    UNROLLED: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
) -> None:
    """The gradient by kernels of one channel, those of a channel to a program.

    ``x`` and the numbers are as of `direct`; ``grad`` is (images, rows, columns),
    ``out`` (channels, *TAPS). PART rows of the gradient are copied at a time, with what
    they meet. UNROLLED taps of a row are summed together: each row is loaded once for
    them.
    """
    c, down, across = xetile.program_id(0), STRIDES[0], STRIDES[1]
    rows = PART + (TAPS[0] - 1) * DILATION[0] // down
    planes = xetile.slm((down * across * rows, COLUMNS), ACC)
    copied, sums = xetile.slm((PART, WIDTH), ACC), xetile.slm(TAPS, ACC)
    put(xetile.zeros(TAPS, ACC), sums, [0, 0])
    parts, pieces = cdiv(grad.shape[1], PART), cdiv(grad.shape[2], WIDTH)
    for number in range(grad.shape[0] // out.shape[0] * parts * pieces):
        image = number // (parts * pieces) * out.shape[0] + c
        first, j = number // pieces % parts * PART, number % pieces * WIDTH
        top, left = first * down - above, j * across - before
        xetile.barrier()
        copy_planes(x[image], planes, 0, top, left, rows, STRIDES)
        copy_planes(grad[image], copied, 0, first, j, PART, (1, 1))
        xetile.barrier()
        # Behind the row there may be pixels, which might be infinite.
        inside = xetile.arange(WIDTH)[None, :] < grad.shape[2] - j
        for part in range(TAPS[0] * TAPS[1] // UNROLLED):
            ki = part * UNROLLED // TAPS[1]
            first_kj = part * UNROLLED % TAPS[1]
            row = ki * DILATION[0]
            accs = (xetile.zeros((1, WIDTH), ACC),) * UNROLLED
            for i in range(PART):
                other = xetile.load_tile(xetile.init_tile(copied, [i, 0], (1, WIDTH)))
                found = ()
                for each in xetile.static_range(UNROLLED):
                    column = (first_kj + each) * DILATION[1]
                    plane = row % down * across + column % across
                    at = [plane * rows + row // down + i, column // across]
                    v = xetile.load_tile(xetile.init_tile(planes, at, (1, WIDTH)))
                    found = (*found, accs[each] + v * other)
                accs = found
            for each in xetile.static_range(UNROLLED):
                total, kj = xetile.where(inside, accs[each], 0.0).sum(), first_kj + each
                sums[ki, kj] = sums[ki, kj] + total
    xetile.barrier()
    put(xetile.load_tile(xetile.init_tile(sums, [0, 0], TAPS)), out[c], [0, 0])


@xetile.function
def place_of(
    tap: int, above: int, before: int, DILATION: constexpr, TAPS: constexpr
) -> tuple[int, int]:
    """Rows and columns from a pixel to the one that a tap sees."""
    i, j = tap // TAPS[1], tap % TAPS[1]
    return i * DILATION[0] - above, j * DILATION[1] - before


@xetile.kernel
def columns(
    x: Array,
    out: Array,
    height: int,
    width: int,
    above: int,
    before: int,
    DILATION: constexpr,
    TAPS: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out[c, tap, image]``: the pixels of a channel that a tap sees.

    Rows of the input and of the result are equally long, and the strides 1: neighbours
    are neighbours in both.

    Args:
        x: (images, channels, pixels).
        out: (channels, taps, images, pixels of the result).
        height: rows of the input.
        width: its columns, and those of the result.
        above: rows of zeros that the input begins with.
        before: columns of zeros likewise.
        DILATION: rows and columns between two taps.
        TAPS: rows and columns of the kernel of the convolution.
        PART: channels of a program.
        WIDTH: pixels of a program.
    """
    first, tap = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    image, c = xetile.program_id(2) % x.shape[0], xetile.program_id(2) // x.shape[0]
    down, right = place_of(tap, above, before, DILATION, TAPS)
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
    STRIDES: constexpr,
    DILATION: constexpr,
    TAPS: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """The same of any rows, one after the other: what is not named is as of `columns`.

    Args:
        out: (channels, taps, images, rows of the result, columns).
        STRIDES: rows and columns between two windows.
        WIDTH: columns of a program.
    """
    first, tap = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    image, c = xetile.program_id(2) % x.shape[0], xetile.program_id(2) // x.shape[0]
    down, right = place_of(tap, above, before, DILATION, TAPS)
    j = xetile.arange(WIDTH) * STRIDES[1] + (first * STRIDES[1] + right)
    seen = (j >= 0) & (j < width)
    for each in range(c * PART, min((c + 1) * PART, x.shape[1])):
        for row in range(out.shape[3]):
            i = row * STRIDES[0] + down
            v = x[image, each][i * width + j]
            v = xetile.where(seen & (i >= 0) & (i < height), v, 0.0)
            put(v[None, :], out[each, tap, image], [row, first])


@xetile.kernel
def shifted(
    x: Array, out: Array, top: int, left: int, BM: constexpr, BN: constexpr
) -> None:
    """``out[a, b, i, j] = x[a, b, i - top, j - left]``; what x does not have is 0."""
    m = xetile.program_id(0) * BM
    b, a = xetile.program_id(1), xetile.program_id(2)
    for n in range(0, out.shape[3], BN):
        tile = xetile.init_tile(x[a, b], [m - top, n - left], (BM, BN))
        to = xetile.init_tile(out[a, b], [m, n], (BM, BN))
        xetile.store_tile(xetile.load_tile(tile), to)


@xetile.kernel
def convolution_by_weight(
    windows: Array,
    grad: Array,
    out: Array,
    GROUPS: constexpr,
    IS_TURNED: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out[g, tap] = sum over images of windows[image of g, tap] @ grad[image]``.

    Args:
        windows: (images, taps, kj and channels, pixels of an image): what the taps of a
            row of the kernel see of each channel.
        grad: (1, batch * pixels, channels), or (images, channels, pixels) as it is.
        out: (GROUPS * taps, kj and channels, channels).
        GROUPS: of channels; an image is one group of one.
        IS_TURNED: which of its shapes ``grad`` has: packed once, it may be read often.
        BK: pixels of an image.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    g, tap = 0, xetile.program_id(2)
    if GROUPS > 1:
        g, tap = tap // windows.shape[1], tap % windows.shape[1]
    acc = xetile.zeros((BM, BN), ACC)
    for image in range(windows.shape[0] // GROUPS):
        a = xetile.init_tile(windows[image * GROUPS + g, tap], [m, 0], (BM, BK))
        if IS_TURNED:
            b = xetile.init_tile(grad[0], [image * BK, n], (BK, BN))
            acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        else:
            b = xetile.init_tile(grad[image * GROUPS + g], [n, 0], (BN, BK))
            acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b).T, acc)
    put(acc, out[xetile.program_id(2)], [m, n])
