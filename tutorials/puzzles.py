"""Puzzles.  You will: fill the holes of twelve kernels."""

# %% [markdown]
# Each kernel has one or more holes, written `...`.  Fill them, and run the cell, or
# the file: `python tutorials/puzzles.py`.  One line for each puzzle says whether it is
# right, or what is wrong.  docs/language.md has all operations that you need, and
# `puzzles_solutions.py` has a solution of each puzzle.  If you are stuck, print in the
# kernel, or stop in it with `kernel.interpret(...)`: see tutorial 20.

# %%
from puzzles_checker import check

from xetl import xetile
from xetl.xetile import cdiv, f32, i32


# %% [markdown]
# ## 1 Scale and shift
# Y = 2 X + 1, for 1000 numbers, 128 for each program.  Where does program p begin?
#
#     X  | program 0 | program 1 | ... | program 7 |
#           first = ?


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 128))
def scale_and_shift(X, Y):
    first = ...
    x = xetile.load_tile(xetile.init_tile(X, [first], (128,)))
    xetile.store_tile(2 * x + 1, xetile.init_tile(Y, [first], (128,)))


check(scale_and_shift)

# %% [markdown]
# ## 2 Outer sum
# Z[i, j] = X[i] + Y[j].  Both are vectors of rank 1; the result is a matrix.
#
#              Y   1  2  3
#     X  10       11 12 13
#        20       21 22 23


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.X.shape[0], 16), cdiv(a.Y.shape[0], 32)))
def outer_sum(X, Y, Z):
    i, j = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    x = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    y = xetile.load_tile(xetile.init_tile(Y, [j], (32,)))
    z = ...
    xetile.store_tile(z, xetile.init_tile(Z, [i, j], (16, 32)))


check(outer_sum)

# %% [markdown]
# ## 3 Row means
# The mean of each row, of 64 numbers.  The result has rank 1.
#
#     1 2 3        2
#     4 5 6  --->  5


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 16))
def row_means(X, Y):
    row = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (16, 64)))
    mean = ...
    xetile.store_tile(mean, xetile.init_tile(Y, [row], (16,)))


check(row_means)

# %% [markdown]
# ## 4 Transpose
# Y = X.T.  Which part of Y is program (i, j) responsible for, and of what shape?
#
#     . . # #        . . .
#     . . # #  --->  . . .
#     . . . .        # # .
#                    # # .


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.X.shape[0], 16), cdiv(a.X.shape[1], 32)))
def transpose(X, Y):
    i, j = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (16, 32)))
    xetile.store_tile(..., xetile.init_tile(Y, ..., ...))


check(transpose)

# %% [markdown]
# ## 5 Second difference
# Y[i] = X[i-1] - 2 X[i] + X[i+1], and X is 0 outside.
#
#     X   . a b c .
#     Y     a - 2b + c


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 64))
def second_difference(X, Y):
    first = xetile.program_id(0) * 64
    x = xetile.load_tile(xetile.init_tile(X, [first], (64,)))
    left = xetile.load_tile(...)
    right = xetile.load_tile(...)
    xetile.store_tile(left - 2 * x + right, xetile.init_tile(Y, [first], (64,)))


check(second_difference)

# %% [markdown]
# ## 6 Product
# C = A @ B.  Which tiles does step k need, and what happens to them?
#
#               B    [k]
#                    [ ]
#     A [k][ ]   C   acc


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 32), cdiv(a.C.shape[1], 32)))
def product(A, B, C):
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    acc = xetile.zeros((32, 32), f32)
    for k in range(0, A.shape[1], 16):
        a = xetile.load_tile(xetile.init_tile(A, ..., (32, 16)))
        b = xetile.load_tile(xetile.init_tile(B, ..., (16, 32)))
        acc = ...
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (32, 32)))


check(product)

# %% [markdown]
# ## 7 Softmax
# Rows have 100 numbers, the tile 128.  What should the other 28 be, so that they
# change neither the maximum nor the sum?  The numbers are large: do not overflow.
#
#     | 100 numbers ... | 28 x ? |


# %%
@xetile.kernel(grid=lambda a: a.X.shape[0])
def softmax(X, Y):
    row = xetile.program_id(0)
    tile = xetile.init_tile(X, [row, 0], (1, 128))
    x = xetile.load_tile(tile, padding=...)
    e = ...
    y = e / e.sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [row, 0], (1, 128)))


check(softmax)

# %% [markdown]
# ## 8 Running sums
# Y[i] = X[0] + ... + X[i], by one program, 128 at a time.  What does the loop carry?
#
#     X   1 2 3 | 4 5 6 | 7
#     Y   1 3 6 |10 ...


# %%
@xetile.kernel(grid=1)
def running_sums(X, Y):
    before = xetile.zeros((1,), f32)
    for first in range(0, X.shape[0], 128):
        x = xetile.load_tile(xetile.init_tile(X, [first], (128,)))
        y = ...
        before = ...
        xetile.store_tile(y, xetile.init_tile(Y, [first], (128,)))


check(running_sums)

# %% [markdown]
# ## 9 Permute rows
# Y[i] = X[ORDER[i]], for whole rows.  Indices broadcast: a column of rows and a row of
# columns are a rectangle.
#
#     ORDER  2 0 1
#     X      a b c   --->   Y   c a b     (rows)


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 8))
def permute_rows(X, ORDER, Y):
    place = xetile.program_id(0) * 8 + xetile.arange(8)
    columns = xetile.arange(40)[None, :]
    rows = ...
    Y[place[:, None], columns] = ...


check(permute_rows)

# %% [markdown]
# ## 10 Count values
# BINS[v] = how often v is in X.  Ten programs write to the same 16 counters.
#
#     X     3 1 3 3 0
#     BINS  1 1 0 3 0 ...


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 100))
def count_values(X, BINS):
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 100], (100,)))
    ones = xetile.full((100,), 1, i32)
    ...


check(count_values)

# %% [markdown]
# ## 11 Moving average
# Y[i] = 0.5 Y[i-1] + 0.5 X[i], with Y[-1] = 0.  As a scan of steps h -> a h + b: which
# step is the same as the step (a1, b1) and then the step (a2, b2)?
#
#     h --(a1, b1)--> h' --(a2, b2)--> h''


# %%
@xetile.kernel(grid=1)
def moving_average(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0], (256,)))
    a, b = xetile.full((256,), 0.5, f32), 0.5 * x
    _, y = xetile.associative_scan((a, b), 0, lambda a1, b1, a2, b2: ...)
    xetile.store_tile(y, xetile.init_tile(Y, [0], (256,)))


check(moving_average)

# %% [markdown]
# ## 12 Attention
# One query, 200 keys, 64 at a time.  `top` is the largest score so far.  How do `s`,
# the sum of exponentials, and `acc`, the weighted sum of V, follow when `top` grows?
#
#     scores   1 3 2 | 5 4 1 | ...
#     top      3     | 5
#     factor         | exp(3 - 5)


# %%
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
        s = ...
        acc = ...
        top = new
    xetile.store_tile(acc / s, xetile.init_tile(OUT, [0, 0], (1, 16)))


check(attention)

# %% [markdown]
# All twelve are right?  Then take a kernel that you know from elsewhere, and write it.
