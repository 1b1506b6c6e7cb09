"""The kernels behind `xetl.ops.conv1d` and ``conv2d``: products of windows and weights.

A *window* is what one pixel of the result is made of in one row of the input: the
channels of some neighbouring pixels, which are neighbours in memory where channels come
last. So an array of windows is a view, whose rows overlap (an implicit GEMM).
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.product import put
from xetl.xetile import Array, constexpr


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


@xetile.kernel
def depthwise(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    ROW_STRIDE: constexpr,
    COLUMN_STRIDE: constexpr,
    CHANNELS: constexpr,
    TOP: constexpr,
    LEFT: constexpr,
    DOWN: constexpr,
    ACROSS: constexpr,
    IS_FLIPPED: constexpr,
    ACC: constexpr,
    PART: constexpr,
    TAPS: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """A convolution of each channel with a kernel of its own.

    Args:
        x: (images, ROW_STRIDE, COLUMN_STRIDE, rows, columns): of each remainder by the
            strides the pixels that have it; an image is a channel of one.
        weight: (CHANNELS, kernel rows, kernel columns).
        bias: (CHANNELS,) or None.
        out: (images, rows, columns).
        ROW_STRIDE: rows between two windows.
        COLUMN_STRIDE: columns between them.
        CHANNELS: of an image.
        TOP: rows of zeros above.
        LEFT: columns of zeros before.
        DOWN: rows between two taps.
        ACROSS: columns between two taps.
        IS_FLIPPED: whether the kernel is turned around.
        ACC: the dtype that is summed in.
        PART: rows of the result that a program makes.
        TAPS: columns of the kernel that are added one after the other, a divisor.
        ROWS: of a tile.
        WIDTH: columns of a tile.
    """
    first, image = xetile.program_id(0) * PART, xetile.program_id(1)
    c = image % CHANNELS
    kh, kw = weight.shape[1], weight.shape[2]
    for i in range(first, min(first + PART, out.shape[1]), ROWS):
        for j in range(0, out.shape[2], WIDTH):
            acc = xetile.zeros((ROWS, WIDTH), ACC)
            for ki in range(kh):
                for first_kj in range(0, kw, TAPS):
                    for each in xetile.static_range(TAPS):
                        kj = first_kj + each
                        # Divided as numbers that are not negative.
                        row = ki * DOWN + (TOP * (ROW_STRIDE - 1))
                        column = kj * ACROSS + (LEFT * (COLUMN_STRIDE - 1))
                        part = x[image, row % ROW_STRIDE, column % COLUMN_STRIDE]
                        at = [
                            i + row // ROW_STRIDE - TOP,
                            j + column // COLUMN_STRIDE - LEFT,
                        ]
                        tile = xetile.init_tile(part, at, (ROWS, WIDTH))
                        w = weight[c, ki, kj]
                        if IS_FLIPPED:
                            w = weight[c, kh - 1 - ki, kw - 1 - kj]
                        acc = acc + xetile.load_tile(tile).to(ACC) * w.to(ACC)
            if bias is not None:
                acc = acc + bias[c].to(ACC)
            put(acc, out[image], [i, j])


@xetile.kernel
def depthwise_by_weight(
    x: Array,
    grad: Array,
    out: Array,
    ROW_STRIDE: constexpr,
    COLUMN_STRIDE: constexpr,
    CHANNELS: constexpr,
    TOP: constexpr,
    LEFT: constexpr,
    DOWN: constexpr,
    ACROSS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The gradient by the kernels of `depthwise`, one tap of a channel to a program.

    ``x`` and the constants are as there; ``grad`` is (images, rows, columns), ``out``
    (CHANNELS, kernel rows, kernel columns).
    """
    kj, ki, c = xetile.program_id(0), xetile.program_id(1), xetile.program_id(2)
    row = ki * DOWN + (TOP * (ROW_STRIDE - 1))
    column = kj * ACROSS + (LEFT * (COLUMN_STRIDE - 1))
    top, left = row // ROW_STRIDE - TOP, column // COLUMN_STRIDE - LEFT
    acc = xetile.zeros((1, WIDTH), ACC)
    for image in range(c, grad.shape[0], CHANNELS):
        part = x[image, row % ROW_STRIDE, column % COLUMN_STRIDE]
        for j in range(0, grad.shape[2], WIDTH):
            # Behind the row there may be pixels, which might be infinite.
            inside = xetile.arange(WIDTH)[None, :] < grad.shape[2] - j
            for i in range(0, grad.shape[1]):
                tile = xetile.init_tile(part, [i + top, j + left], (1, WIDTH))
                v = xetile.where(inside, xetile.load_tile(tile).to(ACC), 0.0)
                tile = xetile.init_tile(grad[image], [i, j], (1, WIDTH))
                acc = acc + v * xetile.load_tile(tile).to(ACC)
    put(acc.sum(1, keepdims=True), out[c], [ki, kj])


@xetile.kernel
def shifted(
    x: Array, out: Array, TOP: constexpr, LEFT: constexpr, BM: constexpr, BN: constexpr
) -> None:
    """``out[a, b, i, j] = x[a, b, i - TOP, j - LEFT]``; what x does not have is 0."""
    m = xetile.program_id(0) * BM
    b, a = xetile.program_id(1), xetile.program_id(2)
    for n in range(0, out.shape[3], BN):
        tile = xetile.init_tile(x[a, b], [m - TOP, n - LEFT], (BM, BN))
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
        ACC: the dtype that is summed in.
        BM: rows of a tile.
        BN: its columns.
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
