"""The kernels behind `xetl.ops.conv1d` and ``conv2d``: products of windows and weights.

A *window* is what one pixel of the result is made of in one row of the input: the
channels of some neighbouring pixels, which are neighbours in memory where channels come
last. So an array of windows is a view, whose rows overlap (an implicit GEMM).
"""

from __future__ import annotations

from xetl import xetile
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
def copied_windows(
    windows: Array,
    out: Array,
    TAPS: constexpr,
    ROWS: constexpr,
    STRIDE: constexpr,
    DILATION: constexpr,
    BM: constexpr,
    BK: constexpr,
) -> None:
    """The matrix of which a small convolution is a product (im2col).

    Args:
        windows: see `convolution`.
        out: (images * rows of the result, TAPS * kj, pixels, k).
        TAPS: see `convolution`; so are the next ones.
        ROWS: rows of an image.
        STRIDE: rows between two of the result.
        DILATION: rows between two taps.
        BM: pixels of a tile.
        BK: its columns.
    """
    i, image = xetile.program_id(0), xetile.program_id(1)
    for ki in range(TAPS):
        row = image * ROWS + i * STRIDE + ki * DILATION
        for kj in range(windows.shape[1]):
            to = out[image * xetile.num_programs(0) + i, ki * windows.shape[1] + kj]
            for m in range(0, windows.shape[2], BM):
                for k in range(0, windows.shape[3], BK):
                    tile = xetile.init_tile(windows[row, kj], [m, k], (BM, BK))
                    v = xetile.load_tile(tile)
                    xetile.store_tile(v, xetile.init_tile(to, [m, k], (BM, BK)))


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

    Args:
        windows: (images * ROWS, kj, pixels, k): of each row of the input a matrix with
            a row for each pixel of a row of the result.
        weight: (GROUPS * TAPS, kj, k, channels).
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
        BN: its channels.
        BK: steps of k between two loads.
    """
    first, n = xetile.program_id(0) * PART, xetile.program_id(1) * BN
    image = xetile.program_id(2)
    g = image % GROUPS
    for i in range(first, min(first + PART, out.shape[1])):
        for m in range(0, out.shape[3], BM):
            acc = xetile.zeros((BM, BN), ACC)
            for ki in range(TAPS):
                row = image * ROWS + i * STRIDE + ki * DILATION
                for kj in range(windows.shape[1]):
                    a = xetile.init_tile(windows[row, kj], [m, 0], (BM, BK))
                    b = xetile.init_tile(weight[g * TAPS + ki, kj], [0, n], (BK, BN))
                    for _ in range(0, windows.shape[3], BK):
                        one, two = xetile.load_tile(a), xetile.load_tile(b)
                        acc = xetile.tile_mma(one, two, acc)
                        a = xetile.update_tile_offset(a, [0, BK])
                        b = xetile.update_tile_offset(b, [BK, 0])
            if bias is not None:
                at = g * out.shape[2] + n
                added = xetile.load_tile(xetile.init_tile(bias, [at], (BN,)))
                acc = acc + added.to(ACC)
            to = xetile.init_tile(out[image, i], [n, m], (BN, BM))
            xetile.store_tile(acc.T.to(out.dtype), to)


@xetile.kernel
def depthwise(
    x: Array,
    weight: Array,
    bias: Array | None,
    out: Array,
    CHANNELS: constexpr,
    TOP: constexpr,
    LEFT: constexpr,
    DOWN: constexpr,
    ACROSS: constexpr,
    IS_FLIPPED: constexpr,
    ACC: constexpr,
    PART: constexpr,
    WIDTH: constexpr,
) -> None:
    """A convolution of each channel with a kernel of its own, with a stride of 1.

    Args:
        x: (images, rows, columns), an image is a channel of one.
        weight: (CHANNELS, kernel rows, kernel columns).
        bias: (CHANNELS,) or None.
        out: (images, rows, columns).
        CHANNELS: of an image.
        TOP: rows of zeros above.
        LEFT: columns of zeros before.
        DOWN: rows between two taps.
        ACROSS: columns between two taps.
        IS_FLIPPED: whether the kernel is turned around.
        ACC: the dtype that is summed in.
        PART: rows of the result that a program makes.
        WIDTH: columns of a tile.
    """
    first, image = xetile.program_id(0) * PART, xetile.program_id(1)
    c = image % CHANNELS
    kh, kw = weight.shape[1], weight.shape[2]
    for i in range(first, min(first + PART, out.shape[1])):
        for j in range(0, out.shape[2], WIDTH):
            acc = xetile.zeros((1, WIDTH), ACC)
            for ki in range(kh):
                row = i + ki * DOWN - TOP
                if row >= 0 and row < x.shape[1]:
                    for kj in range(kw):
                        at = [row, j + kj * ACROSS - LEFT]
                        v = xetile.load_tile(xetile.init_tile(x[image], at, (1, WIDTH)))
                        w = weight[c, ki, kj]
                        if IS_FLIPPED:
                            w = weight[c, kh - 1 - ki, kw - 1 - kj]
                        acc = acc + v.to(ACC) * w.to(ACC)
            if bias is not None:
                acc = acc + bias[c].to(ACC)
            to = xetile.init_tile(out[image], [i, j], (1, WIDTH))
            xetile.store_tile(acc.to(out.dtype), to)


@xetile.kernel
def convolution_by_weight(
    windows: Array,
    grad: Array,
    out: Array,
    TAPS: constexpr,
    ROWS: constexpr,
    STRIDE: constexpr,
    DILATION: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out[tap] = sum of grad[image, i] @ windows[row of i and tap]``.

    Args:
        windows: see `convolution`; so is what is not named here.
        grad: (images, rows, channels, pixels).
        out: (GROUPS * TAPS, kj, channels, k).
        TAPS: rows of the kernel of the convolution.
        ROWS: rows of an image.
        STRIDE: rows between two of the result.
        DILATION: rows between two taps.
        GROUPS: of channels.
        ACC: the dtype that is summed in.
        BM: channels of a tile.
        BN: its columns of k.
        BK: pixels between two loads.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    tap = xetile.program_id(2)
    kj, ki = tap % windows.shape[1], tap // windows.shape[1] % TAPS
    g = tap // windows.shape[1] // TAPS
    acc = xetile.zeros((BM, BN), ACC)
    for image in range(g, grad.shape[0], GROUPS):
        for i in range(grad.shape[1]):
            row = image * ROWS + i * STRIDE + ki * DILATION
            a = xetile.init_tile(grad[image, i], [m, 0], (BM, BK))
            b = xetile.init_tile(windows[row, kj], [0, n], (BK, BN))
            for _ in range(0, grad.shape[3], BK):
                acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
                a = xetile.update_tile_offset(a, [0, BK])
                b = xetile.update_tile_offset(b, [BK, 0])
    to = xetile.init_tile(out[g * TAPS + ki, kj], [m, n], (BM, BN))
    xetile.store_tile(acc.to(out.dtype), to)
