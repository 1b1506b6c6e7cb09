"""Solutions of `puzzles.py`.  Look here when you are right, or after half an hour."""

from puzzles_checker import check

from xetl import xetile
from xetl.xetile import cdiv, f32, i32


# %% 1: program 1 begins where program 0 ends
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 128))
def scale_and_shift(X, Y):
    first = xetile.program_id(0) * 128
    x = xetile.load_tile(xetile.init_tile(X, [first], (128,)))
    xetile.store_tile(2 * x + 1, xetile.init_tile(Y, [first], (128,)))


check(scale_and_shift)


# %% 2: (16, 1) and (1, 32) broadcast to (16, 32)
@xetile.kernel(grid=lambda a: (cdiv(a.X.shape[0], 16), cdiv(a.Y.shape[0], 32)))
def outer_sum(X, Y, Z):
    i, j = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    x = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    y = xetile.load_tile(xetile.init_tile(Y, [j], (32,)))
    z = x[:, None] + y[None, :]
    xetile.store_tile(z, xetile.init_tile(Z, [i, j], (16, 32)))


check(outer_sum)


# %% 3: axis 1 goes away
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 16))
def row_means(X, Y):
    row = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (16, 64)))
    mean = x.sum(1) / 64
    xetile.store_tile(mean, xetile.init_tile(Y, [row], (16,)))


check(row_means)


# %% 4: offsets change places, and shapes as well
@xetile.kernel(grid=lambda a: (cdiv(a.X.shape[0], 16), cdiv(a.X.shape[1], 32)))
def transpose(X, Y):
    i, j = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (16, 32)))
    xetile.store_tile(x.T, xetile.init_tile(Y, [j, i], (32, 16)))


check(transpose)


# %% 5: the same tile, moved by one; outside is 0
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 64))
def second_difference(X, Y):
    first = xetile.program_id(0) * 64
    x = xetile.load_tile(xetile.init_tile(X, [first], (64,)))
    left = xetile.load_tile(xetile.init_tile(X, [first - 1], (64,)))
    right = xetile.load_tile(xetile.init_tile(X, [first + 1], (64,)))
    xetile.store_tile(left - 2 * x + right, xetile.init_tile(Y, [first], (64,)))


check(second_difference)


# %% 6: A moves to the right, B moves down
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 32), cdiv(a.C.shape[1], 32)))
def product(A, B, C):
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    acc = xetile.zeros((32, 32), f32)
    for k in range(0, A.shape[1], 16):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 16)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (16, 32)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (32, 32)))


check(product)


# %% 7: -inf is no maximum, and exp(-inf) is 0
@xetile.kernel(grid=lambda a: a.X.shape[0])
def softmax(X, Y):
    row = xetile.program_id(0)
    tile = xetile.init_tile(X, [row, 0], (1, 128))
    x = xetile.load_tile(tile, padding=-xetile.inf)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [row, 0], (1, 128)))


check(softmax)


# %% 8: what came before is a number that the loop carries
@xetile.kernel(grid=1)
def running_sums(X, Y):
    before = xetile.zeros((1,), f32)
    for first in range(0, X.shape[0], 128):
        x = xetile.load_tile(xetile.init_tile(X, [first], (128,)))
        y = xetile.cumsum(x, 0) + before
        before = before + x.sum(0, keepdims=True)
        xetile.store_tile(y, xetile.init_tile(Y, [first], (128,)))


check(running_sums)


# %% 9: rows is a column of indices, columns a row of them
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 8))
def permute_rows(X, ORDER, Y):
    place = xetile.program_id(0) * 8 + xetile.arange(8)
    columns = xetile.arange(40)[None, :]
    rows = ORDER[place][:, None]
    Y[place[:, None], columns] = X[rows, columns]


check(permute_rows)


# %% 10: many programs, one array: an atomic
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 100))
def count_values(X, BINS):
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 100], (100,)))
    ones = xetile.full((100,), 1, i32)
    xetile.atomic_rmw_tile("add", ones, xetile.init_tile(BINS, [x]))


check(count_values)


# %% 11: two steps (a1, b1), (a2, b2) are one: h -> a2 * (a1 * h + b1) + b2
@xetile.kernel(grid=1)
def moving_average(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0], (256,)))
    a, b = xetile.full((256,), 0.5, f32), 0.5 * x
    _, y = xetile.associative_scan(
        (a, b), 0, lambda a1, b1, a2, b2: (a1 * a2, a2 * b1 + b2)
    )
    xetile.store_tile(y, xetile.init_tile(Y, [0], (256,)))


check(moving_average)


# %% 12: what was computed with the old maximum is made right by exp(old - new)
@xetile.kernel(grid=1)
def attention(Q, K, V, OUT):
    q = xetile.load_tile(xetile.init_tile(Q, [0, 0], (1, 32)))
    top, s = xetile.full((1, 1), -xetile.inf, f32), xetile.zeros((1, 1), f32)
    acc = xetile.zeros((1, 16), f32)
    for start in range(0, K.shape[0], 64):
        k = xetile.load_tile(xetile.init_tile(K, [start, 0], (64, 32)))
        v = xetile.load_tile(xetile.init_tile(V, [start, 0], (64, 16)))
        seen = start + xetile.arange(64)[None, :] < K.shape[0]
        scores = xetile.where(seen, xetile.tile_mma(q, k.T), -xetile.inf)
        new = xetile.maximum(top, scores.max(1, keepdims=True))
        p, factor = xetile.exp(scores - new), xetile.exp(top - new)
        s = s * factor + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p, v, acc * factor)
        top = new
    xetile.store_tile(acc / s, xetile.init_tile(OUT, [0, 0], (1, 16)))


check(attention)
