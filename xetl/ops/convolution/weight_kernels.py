"""The kernels behind the gradient of a convolution by its weight."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.convolution.kernels import copy_planes
from xetl.ops.matrices import put, take
from xetl.xetile import Array, Vector, cdiv, constexpr


@xetile.function
def place_of_term(term: int, STENCIL: constexpr, ROWS: constexpr) -> tuple[int, int]:
    """Return the row and column of planes that a tap of a channel reads first.

    Args:
        term: the number of the tap among those of all channels.
        STENCIL: see `direct`.
        ROWS: rows of a plane; see `copy_planes`.
    """
    (kh, kw), (down, across), dilation = STENCIL
    c, tap = term // (kh * kw), term % (kh * kw)
    row, column = tap // kw * dilation[0], tap % kw * dilation[1]
    plane = (c * down + row % down) * across + column % across
    return plane * ROWS + row // down, column // across


@xetile.function
def products_of_rows(
    planes: Array,
    copied: Array,
    places: tuple[tuple[int, int], ...],
    col: int,
    count: int,
    SUMS: constexpr,
    TILE: constexpr,
) -> tuple[Vector, ...]:
    """Return sums over ``count`` rows: each plane times each of SUMS gradients.

    ``places`` are the first rows and the columns in the planes; of all, the TILE
    columns from ``col`` on.
    """
    sums: tuple[Vector, ...] = (xetile.zeros((1, TILE), planes.dtype),)
    accs, part = sums * (SUMS * len(places)), copied.shape[0] // SUMS
    for i in range(count):
        others: tuple[Vector, ...] = ()
        found: tuple[Vector, ...] = ()
        for n in xetile.static_range(SUMS):
            other = take(copied, [n * part + i, col], (1, TILE), planes.dtype)
            others = (*others, other)
        for each in xetile.static_range(len(places)):
            row, column = places[each]
            v = take(planes, [row + i, column + col], (1, TILE), planes.dtype)
            for n in xetile.static_range(SUMS):
                found = (*found, accs[len(found)] + v * others[n])
        accs = found
    return accs


@xetile.kernel
def direct_by_weight(
    x: Array,
    grad: Array,
    out: Array,
    above: int,
    before: int,
    STENCIL: constexpr,
    CHANNELS: constexpr,
    ACC: constexpr,
    PART: constexpr,
    UNROLLED: constexpr,
    BLOCK: constexpr,
    SUMS: constexpr,
    TILE: constexpr,
    WIDTH: constexpr,
    COLUMNS: constexpr,
) -> None:
    """The gradient of the weight as sums over rows, without a product.

    PART rows of the gradient are copied at a time, with the pixels that they meet. A
    program has BLOCK channels of the result, and a part of the images. SUMS channels
    and UNROLLED taps are summed together, so that each vector is loaded once
    for several products. Sums of a vector's lanes are made at the end. See `direct` for
    arguments that are not named here.

    Args:
        x: (images * groups * CHANNELS[0], rows, columns).
        grad: (images, groups * CHANNELS[1], rows, columns).
        out: (programs, groups * CHANNELS[1], CHANNELS[0] * taps).
        UNROLLED: a divisor of CHANNELS[0] * taps.
        BLOCK: a divisor of CHANNELS[1].
        SUMS: a divisor of BLOCK.
        TILE: columns that are summed at once, a divisor of WIDTH.
    """
    o, inner = xetile.program_id(0) * BLOCK, CHANNELS[0]
    (kh, kw), (down, across), dilation = STENCIL
    groups, terms = out.shape[1] // CHANNELS[1], inner * kh * kw
    rows = PART + (kh - 1) * dilation[0] // down
    height = down * across * rows
    planes = xetile.slm((inner * height, COLUMNS), ACC)
    copied = xetile.slm((SUMS * PART, WIDTH), ACC)
    sums = xetile.slm((BLOCK * terms, TILE), ACC)
    put(xetile.zeros((BLOCK * terms, TILE), ACC), sums, [0, 0])
    parts, pieces = cdiv(grad.shape[2], PART), cdiv(grad.shape[3], WIDTH)
    images = cdiv(grad.shape[0], out.shape[0])
    start = xetile.program_id(1) * images
    end = min(start + images, grad.shape[0])
    for number in range(start * parts * pieces, end * parts * pieces):
        image = number // (parts * pieces)
        first, j = number // pieces % parts * PART, number % pieces * WIDTH
        top, left = first * down - above, j * across - before
        seen = min(PART, grad.shape[2] - first)
        xetile.barrier()
        for c in range(inner):
            one = (image * groups + o // CHANNELS[1]) * inner + c
            copy_planes(
                x[one], planes, c * height, top, left, rows, (down, across), False
            )
        for block in range(BLOCK // SUMS):
            xetile.barrier()
            for n in range(SUMS):
                one = grad[image, o + block * SUMS + n]
                copy_planes(one, copied, n * PART, first, j, PART, (1, 1), False)
            xetile.barrier()
            for k in range(0, terms, UNROLLED):
                places: tuple[tuple[int, int], ...] = ()
                for each in xetile.static_range(UNROLLED):
                    at = place_of_term(k + each, STENCIL, rows)
                    places = (*places, at)
                for col in range(0, WIDTH, TILE):
                    accs = products_of_rows(
                        planes, copied, places, col, seen, SUMS, TILE
                    )
                    # Pixels behind the row must not count: they may be infinite.
                    inside = xetile.arange(TILE)[None, :] < grad.shape[3] - j - col
                    for n in xetile.static_range(UNROLLED * SUMS):
                        at = [(block * SUMS + n % SUMS) * terms + k + n // SUMS, 0]
                        acc = xetile.where(inside, accs[n], 0.0)
                        put(take(sums, at, (1, TILE), ACC) + acc, sums, at)
    xetile.barrier()
    for n in range(BLOCK):
        totals = take(sums, [n * terms, 0], (terms, TILE), ACC).sum(1)
        put(totals[None, :], out[xetile.program_id(1)], [o + n, 0])


@xetile.kernel
def convolution_by_weight(
    windows: Array,
    grad: Array,
    out: Array,
    GROUPS: constexpr,
    IMAGES: constexpr,
    TAPS: constexpr,
    IS_TURNED: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out[part, g, tap] = sum of windows[image of g, tap] @ grad[image]``.

    Args:
        windows: (images * GROUPS, TAPS, kj * channels, pixels of an image).
        grad: (parts, IMAGES * pixels, channels), or (images * GROUPS, channels,
            pixels).
        out: (parts * GROUPS, TAPS, kj * channels, channels).
        GROUPS: the number of groups of channels.
        IS_TURNED: whether ``grad`` has the first shape, and is packed for all taps.
        BK: pixels of an image.
    """
    tap, m = xetile.program_id(0) % TAPS, xetile.program_id(0) // TAPS * BM
    n, each = xetile.program_id(1) * BN, xetile.program_id(2)
    part, g = each // GROUPS, each % GROUPS
    acc = xetile.zeros((BM, BN), ACC)
    for k in range(0, IMAGES * BK, BK):
        image = part * IMAGES + k // BK
        a = xetile.init_tile(windows[image * GROUPS + g, tap], [m, 0], (BM, BK))
        if IS_TURNED:
            b = xetile.init_tile(grad[part], [k, n], (BK, BN))
            acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        else:
            b = xetile.init_tile(grad[image * GROUPS + g], [n, 0], (BN, BK))
            acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b).T, acc)
    put(acc, out[each, tap], [m, n])


@xetile.kernel
def convolution_by_windows(
    windows: Array,
    grad: Array,
    out: Array,
    TAPS: constexpr,
    ROWS: constexpr,
    STRIDE: constexpr,
    DILATION: constexpr,
    GROUPS: constexpr,
    COUNT: constexpr,
    ACC: constexpr,
    SEEN: constexpr,
    PRODUCTS: constexpr,
    PART: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out[part, g, taps] = sum over rows of grad[image of g, row] @ windows[taps]``.

    The windows of several rows and taps are copied side by side: products with the
    pixels of one row would be short, and read the gradient for each tap.

    Args:
        windows: see `convolution`, as for TAPS to GROUPS.
        grad: (images * GROUPS, channels, COUNT * BK).
        out: (parts * GROUPS * TAPS * kj / SEEN, channels, SEEN * k).
        COUNT: rows of an image of the gradient.
        SEEN: taps of a program; BN is then all of k, unless SEEN is 1.
        PRODUCTS: products of a program.
        PART: rows of the gradient of a product.
        BM: channels of a program.
        BN: columns of windows of a program.
        BK: pixels of a row of the gradient.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    kj, pieces = windows.shape[1], cdiv(COUNT, PART)
    seen = xetile.program_id(2) * SEEN
    part, first = seen // (GROUPS * TAPS * kj), seen % (GROUPS * TAPS * kj)
    g, begin = first // (TAPS * kj), part * PRODUCTS
    copied = xetile.slm((PART * BK, SEEN * BN), windows.dtype)
    acc = xetile.zeros((BM, SEEN * BN), ACC)
    end = min(begin + PRODUCTS, grad.shape[0] // GROUPS * pieces)
    for number in range(begin, end):
        image, row = number // pieces * GROUPS + g, number % pieces * PART
        xetile.barrier()
        for each in range(SEEN * PART):
            tap, i = first + each // PART, row + each % PART
            top = image * ROWS + i * STRIDE + tap // kj % TAPS * DILATION
            to = [each % PART * BK, each // PART * BN]
            if COUNT % PART == 0 or i < COUNT:
                window = take(windows[top, tap % kj], [0, n], (BK, BN), windows.dtype)
                put(window, copied, to)
            else:
                put(xetile.zeros((BK, BN), windows.dtype), copied, to)
        xetile.barrier()
        pixels = xetile.init_tile(grad[image], [m, row * BK], (BM, PART * BK))
        b = xetile.load_tile(xetile.init_tile(copied, [0, 0], copied.shape))
        acc = xetile.tile_mma(xetile.load_tile(pixels), b, acc)
    put(acc, out[xetile.program_id(2)], [m, n])
