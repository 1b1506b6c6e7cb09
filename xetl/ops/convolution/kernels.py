"""The kernels behind `xetl.ops.conv1d` and ``conv2d``: products of windows and weights.

A *window* is the part of one row of the input that one pixel of the result depends on:
the channels of some neighbouring pixels. They are contiguous if channels are last. So
an array of windows is a view whose rows overlap (an implicit GEMM).
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import put, take
from xetl.xetile import Array, cdiv, constexpr


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
    """``out[a, b, i, j] = x[a, b - TOP, j, i - LEFT]``; outside of x it is 0.

    A program computes BM columns of PART matrices.
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
    ABOVE: constexpr,
    HEIGHT: constexpr,
    GROUPS: constexpr,
    IS_LAST: constexpr,
    ACC: constexpr,
    PART: constexpr,
    ACROSS: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
    COPIED: constexpr,
) -> None:
    """``out[image, i] = sum over taps of windows[row of i, tap] @ weight[tap] + bias``.

    A batch-reduce GEMM: each tap is one element of the batch, with all of its k. The
    weights of all taps are one operand, which is packed once for a launch.

    Args:
        windows: (images * GROUPS * ROWS, kj, pixels, k): for each row of the input, a
            matrix with a row for each pixel of a row of the result.
        weight: (GROUPS, TAPS * kj * k, channels).
        bias: (GROUPS * channels,) or None.
        out: (images * GROUPS, rows, channels, pixels).
        TAPS: rows of the kernel of the convolution.
        ROWS: rows of an image.
        STRIDE: rows of the input between two rows of the result.
        DILATION: rows between two taps.
        ABOVE: rows of zeros before the rows of an image; rows of the kernel that only
            meet zeros are left out.
        HEIGHT: rows of an image without the zeros around it.
        GROUPS: the number of groups of channels.
        IS_LAST: whether ``out`` is (images, rows, pixels, channels); GROUPS is 1.
        ACC: the dtype of the sums.
        PART: rows of the result of a program, which share the weights.
        ACROSS: programs that share these rows.
        BM: pixels of a tile.
        BN: channels of a tile; with several groups, all channels of a group.
        BK: k.
        COPIED: rows and columns of a copy of the windows of all taps, side by side; 0:
            they are multiplied in place.
    """
    first, image = xetile.program_id(0) // ACROSS * PART, xetile.program_id(2) * GROUPS
    g, n = 0, xetile.program_id(1) * BN
    if GROUPS > 1:
        g, n = xetile.program_id(1), 0
        image = image + g
    kj, pixels = windows.shape[1], out.shape[2] if IS_LAST else out.shape[3]
    width = cdiv(cdiv(pixels, BM), ACROSS) * BM
    left = xetile.program_id(0) % ACROSS * width
    copied = xetile.slm(COPIED, windows.dtype) if COPIED else windows
    if COPIED:
        put(xetile.zeros(COPIED, windows.dtype), copied, [0, 0])
    for i in range(first, min(first + PART, out.shape[1])):
        top = image * ROWS + i * STRIDE
        begin = max(0, cdiv(ABOVE - i * STRIDE, DILATION))
        end = min(TAPS, cdiv(ABOVE + HEIGHT - i * STRIDE, DILATION))
        for m in range(left, min(left + width, pixels), BM):
            acc = xetile.zeros((BM, BN), ACC)
            if COPIED:
                xetile.barrier()
                for tap in range(TAPS * kj):
                    row, to = top + tap // kj * DILATION, [0, tap * BK]
                    window = xetile.init_tile(windows[row, tap % kj], [m, 0], (BM, BK))
                    put(xetile.load_tile(window), copied, to)
                xetile.barrier()
                a = xetile.init_tile(copied, [0, 0], (BM, COPIED[1]))
                b = xetile.init_tile(weight[g], [0, n], (COPIED[1], BN))
                acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
            else:
                # The loop counts k, so the compiler knows the packed part of B.
                for k in range(begin * kj * BK, end * kj * BK, BK):
                    tap = k // BK
                    row = top + tap // kj * DILATION
                    a = xetile.init_tile(windows[row, tap % kj], [m, 0], (BM, BK))
                    b = xetile.init_tile(weight[g], [k, n], (BK, BN))
                    acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
            if bias is not None:
                at = g * out.shape[2] + n
                added = xetile.load_tile(xetile.init_tile(bias, [at], (BN,)))
                acc = acc + added.to(ACC)
            if IS_LAST:
                put(acc, out[image, i], [m, n])
            else:
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
    IS_APART: constexpr,
) -> None:
    """Copy the pixels from (top, left) on to planes, one for each remainder by STRIDES.

    Pixels outside of the image are 0. Neighbouring windows then read neighbouring
    elements of a plane, without masks.

    Args:
        image: (rows, columns).
        planes: (rows of all planes, width), shared memory.
        at: the first of STRIDES[0] * STRIDES[1] * ROWS rows of it that are written.
        top: the first row of the image; may be negative, as ``left``.
        left: the first column of the image.
        ROWS: rows of a plane.
        STRIDES: rows and columns between two windows.
        IS_APART: whether to put zeros between the pixels: (i, j) is at (2 * i, 2 * j).
    """
    down, across, width = STRIDES[0], STRIDES[1], planes.shape[1]
    if IS_APART:
        zeros = xetile.zeros((1, width // 2), planes.dtype)
        for i in range(ROWS):
            v, place = zeros, [(top + i) // 2, (left + 1) // 2]
            if (top + i) % 2 == 0:
                v = take(image, place, (1, width // 2), planes.dtype)
            if left % 2 == 0:
                put(xetile.interleave(v, zeros), planes, [at + i, 0])
            else:
                put(xetile.interleave(zeros, v), planes, [at + i, 0])
        return
    tile = ROWS if down * across == 1 else 1, width * across
    for i in range(0, ROWS * down, tile[0]):
        to, place = at + i % down * (across * ROWS) + i // down, [top + i, left]
        v = take(image, place, tile, planes.dtype)
        for j in xetile.static_range(across):
            put(v[:, j::across], planes, [to + j * ROWS, 0])


@xetile.function
def copy_taps(weight: Array, taps: Array, BLOCK: constexpr) -> None:
    """Copy the matrices of ``weight`` to shared memory, side by side."""
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
    STENCIL: constexpr,
    CHANNELS: constexpr,
    IS_BY_INPUT: constexpr,
    IS_APART: constexpr,
    ACC: constexpr,
    PART: constexpr,
    UNROLLED: constexpr,
    SUMS: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
) -> None:
    """A convolution with few channels in a group: sums of rows, without a product.

    A program computes some rows of all channels of one group of one image.

    Args:
        x: (images * groups * CHANNELS[0], rows, columns).
        weight: (groups, 1, CHANNELS[1], CHANNELS[0] * taps); for a gradient of the
            input (groups, CHANNELS[0], CHANNELS[1], taps).
        bias: (groups * CHANNELS[1],) or None.
        out: (images * groups * CHANNELS[1], rows, columns).
        above: rows of zeros above the input.
        before: columns of zeros before the input.
        STENCIL: taps, stride and dilation, each of rows and of columns.
        CHANNELS: channels of a group, of the input and of the result.
        IS_BY_INPUT: whether it is a gradient of the input: the taps are in reverse.
        IS_APART: see `copy_planes`.
        ACC: the dtype of the sums.
        PART: rows of the result of a program.
        UNROLLED: rows of the kernel in an unrolled loop, a divisor of all its rows:
            rows of a plane that several of them read are loaded once.
        SUMS: channels of the result that are summed at once, a divisor of CHANNELS[1].
        ROWS: rows of a tile, a divisor of PART.
        WIDTH: columns of a tile.
        COLUMNS: columns of the planes: at least those that a tile reads.
    """
    first, image = xetile.program_id(0) * PART, xetile.program_id(1)
    g = image % weight.shape[0]
    (kh, kw), (down, across), dilation = STENCIL
    (inner, outer), count = CHANNELS, kh * kw
    rows = PART + (kh - 1) * dilation[0] // down
    height, parts = down * across * rows, count // UNROLLED
    planes = xetile.slm((inner * height, COLUMNS), ACC)
    taps = xetile.slm((outer, inner * count), ACC)
    copy_taps(weight[g], taps, count if IS_BY_INPUT else inner * count)
    for j in range(0, out.shape[2], WIDTH):
        top, left = first * down - above, j * across - before
        xetile.barrier()
        for c in range(inner):
            one, at = image * inner + c, c * height
            copy_planes(x[one], planes, at, top, left, rows, (down, across), IS_APART)
        xetile.barrier()
        for tile in range(PART // ROWS * (outer // SUMS)):
            i, o = tile // (outer // SUMS) * ROWS, tile % (outer // SUMS) * SUMS
            accs = (xetile.zeros((ROWS, WIDTH), ACC),) * SUMS
            for part in range(inner * parts):
                c, tap = part // parts, part % parts
                kj = tap // (kh // UNROLLED)
                column = kj * dilation[1]
                plane = c * down * across + column % across
                for each in xetile.static_range(UNROLLED):
                    ki = tap % (kh // UNROLLED) * UNROLLED + each
                    row = ki * dilation[0]
                    at = (plane + row % down * across) * rows + i + row // down
                    place = [at, column // across]
                    v = xetile.load_tile(xetile.init_tile(planes, place, (ROWS, WIDTH)))
                    k = ki * kw + kj
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
def shifted(
    x: Array, out: Array, top: int, left: int, BM: constexpr, BN: constexpr
) -> None:
    """``out[a, b, i, j] = x[a, b, i - top, j - left]``; outside of x it is 0."""
    m = xetile.program_id(0) * BM
    b, a = xetile.program_id(1), xetile.program_id(2)
    for n in range(0, out.shape[3], BN):
        tile = xetile.init_tile(x[a, b], [m - top, n - left], (BM, BN))
        to = xetile.init_tile(out[a, b], [m, n], (BM, BN))
        xetile.store_tile(xetile.load_tile(tile), to)
