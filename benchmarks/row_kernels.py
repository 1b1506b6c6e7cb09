"""The kernels of `bench_rows.py`, as a user writes them."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import constexpr, f32


@xetile.function
def row_of(X, row, WIDTH):
    """A tile on a row."""
    return xetile.init_tile(X, [row, 0], (1, WIDTH))


@xetile.kernel
def rms_norm(X, Y, WIDTH: constexpr):
    """Rows divided by the root of the mean of their squares."""
    row = xetile.program_id(0)
    v = xetile.load_tile(row_of(X, row, WIDTH))
    mean = (v * v).sum(1, keepdims=True) / X.shape[1]
    xetile.store_tile(v * xetile.rsqrt(mean + 1e-5), row_of(Y, row, WIDTH))


@xetile.kernel
def row_sum(X, Sums, WIDTH: constexpr):
    """The sum of each row."""
    row = xetile.program_id(0)
    Sums[row] = xetile.load_tile(row_of(X, row, WIDTH)).sum()


@xetile.kernel
def column_sum(X, Sums, ROWS: constexpr, COLUMNS: constexpr):
    """The sums of some columns, in steps of some rows."""
    column = xetile.program_id(0) * COLUMNS
    sums = xetile.zeros((1, COLUMNS), f32)
    for row in range(0, X.shape[0], ROWS):
        v = xetile.load_tile(xetile.init_tile(X, [row, column], (ROWS, COLUMNS)))
        sums += v.sum(0, keepdims=True)
    xetile.store_tile(sums, xetile.init_tile(Sums, [0, column], (1, COLUMNS)))


@xetile.kernel
def part_sum(X, Parts, ROWS: constexpr, WIDTH: constexpr):
    """The sum of some rows."""
    part = xetile.program_id(0)
    rows = xetile.init_tile(X, [part * ROWS, 0], (ROWS, WIDTH))
    Parts[part] = xetile.load_tile(rows).sum()


@xetile.kernel
def transpose(X, Y, SIDE: constexpr):
    """By square tiles."""
    i, j = xetile.program_id(0) * SIDE, xetile.program_id(1) * SIDE
    v = xetile.load_tile(xetile.init_tile(X, [i, j], (SIDE, SIDE)))
    xetile.store_tile(v.T, xetile.init_tile(Y, [j, i], (SIDE, SIDE)))


@xetile.kernel
def cumsum(X, Y, WIDTH: constexpr):
    """Sums up to and with each element."""
    row = xetile.program_id(0)
    v = xetile.load_tile(row_of(X, row, WIDTH))
    xetile.store_tile(xetile.cumsum(v, 1), row_of(Y, row, WIDTH))


@xetile.kernel
def add(A, B, C, SIDE: constexpr):
    """By square tiles."""
    at = [xetile.program_id(0) * SIDE, xetile.program_id(1) * SIDE]
    a = xetile.load_tile(xetile.init_tile(A, at, (SIDE, SIDE)))
    b = xetile.load_tile(xetile.init_tile(B, at, (SIDE, SIDE)))
    xetile.store_tile(a + b, xetile.init_tile(C, at, (SIDE, SIDE)))


@xetile.kernel
def gelu(X, Y, SIDE: constexpr):
    """The exact one, by square tiles."""
    at = [xetile.program_id(0) * SIDE, xetile.program_id(1) * SIDE]
    v = xetile.load_tile(xetile.init_tile(X, at, (SIDE, SIDE)))
    y = 0.5 * v * (1.0 + xetile.erf(0.7071067811865476 * v))
    xetile.store_tile(y, xetile.init_tile(Y, at, (SIDE, SIDE)))


@xetile.kernel
def topk(X, Best, Places, WIDTH: constexpr, K: constexpr):
    """The largest of each row, and where they are."""
    row = xetile.program_id(0)
    v = xetile.load_tile(row_of(X, row, WIDTH), padding=-xetile.inf)
    best, places = xetile.topk(v, K, 1)
    xetile.store_tile(best, row_of(Best, row, K))
    xetile.store_tile(places, row_of(Places, row, K))


@xetile.kernel
def sort(X, Y, WIDTH: constexpr):
    """Each row in order."""
    row = xetile.program_id(0)
    v = xetile.load_tile(row_of(X, row, WIDTH), padding=xetile.inf)
    xetile.store_tile(xetile.sort(v, 1), row_of(Y, row, WIDTH))


@xetile.kernel
def dropout(X, Y, seed, p, SIZE: constexpr):
    """Four pieces a program, for a draw gives four numbers."""
    program = xetile.program_id(0)
    draws = xetile.randint4x(seed, program * SIZE + xetile.arange(SIZE))
    for part in xetile.static_range(4):
        at = [(program * 4 + part) * SIZE]
        kept = (draws[part] >> 8).to(f32) * (1 / (1 << 24)) >= p
        x = xetile.load_tile(xetile.init_tile(X, at, (SIZE,)))
        y = xetile.where(kept, x / (1 - p), 0.0)
        xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, at, (SIZE,)))


@xetile.kernel
def histogram(X, Bins, SIZE: constexpr, BINS: constexpr):
    """Counts of a piece, added to those of the others."""
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * SIZE], (SIZE,)))
    counts = xetile.histogram(v, BINS)
    xetile.atomic_rmw_tile("add", counts, xetile.init_tile(Bins, [0], (BINS,)))


@xetile.kernel
def embedding(Table, Ids, Y, WIDTH: constexpr):
    """Rows of a table."""
    row, columns = xetile.program_id(0), xetile.arange(WIDTH)
    Y[row, columns] = Table[Ids[row], columns]


@xetile.kernel
def convolution(X, W, Y, SIDE: constexpr, PIXELS: constexpr, CHANNELS: constexpr):
    """3 x 3, padded, as an implicit product: X (pixels, channels), W (9, ...)."""
    pixel = xetile.program_id(0) * PIXELS + xetile.arange(PIXELS)
    i, j = pixel // SIDE, pixel % SIDE
    channels = xetile.arange(CHANNELS)[None, :]
    acc = xetile.zeros((PIXELS, CHANNELS), f32)
    for tap in range(9):
        row, column = i + (tap // 3 - 1), j + (tap % 3 - 1)
        # A column beside the picture is one of the next row: no pixel at all.
        at = xetile.where((column >= 0) & (column < SIDE), row * SIDE + column, -1)
        w = xetile.load_tile(xetile.init_tile(W[tap], [0, 0], (CHANNELS, CHANNELS)))
        acc = xetile.tile_mma(X[at[:, None], channels], w, acc)
    Y[pixel[:, None], channels] = acc
