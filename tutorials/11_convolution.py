"""11  Convolution.  You will: compute a convolution as a matrix product.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# Y[i, j, o] = sum over di, dj, c of X[i + di - 1, j + dj - 1, c] * W[di, dj, c, o]
#
# with 3 x 3 taps.  It is a product: a row for each pixel, a column for each output
# channel, and K = 9 * C.
#
#     X (h, w, c)         the matrix `im2col`              W (9 c, o)
#     . . . . .           tap 0   tap 1  ...  tap 8        +-------+
#     . # # # .   pixel   +-----+-----+-----+-----+        | tap 0 |
#     . # @ # .  ------>  | c   | c   | ... | c   |    @   | tap 1 |  = Y (pixels, o)
#     . # # # .           +-----+-----+-----+-----+        |  ...  |
#     . . . . .            the 9 pixels around it          | tap 8 |
#                                                          +-------+
#
# A library may build the left matrix in memory: nine times the size of X.  An
# *implicit* GEMM does not.  Tap (di, dj) is the image itself, moved by di and dj.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# A program computes BW neighbouring pixels of one row of the image.  For a tap they are
# BW neighbours of another row: a plain tile of the matrix X[row], of size (w, c).  What
# hangs over the left or right edge loads as zero, and that is the padding.  Rows above
# and below are left out by the loop's bounds.


# %%
@xetile.kernel(grid=lambda a: (a.Y.shape[0], cdiv(a.Y.shape[1], a.BW)))
def convolution(X, W, Y, C: constexpr, OUT: constexpr, BW: constexpr = 32):
    i, j = xetile.program_id(0), xetile.program_id(1) * BW
    acc = xetile.zeros((BW, OUT), f32)
    for row in range(xetile.maximum(i - 1, 0), xetile.minimum(i + 2, X.shape[0])):
        for dj in range(3):
            a = xetile.load_tile(xetile.init_tile(X[row], [j + dj - 1, 0], (BW, C)))
            tap = (row - i + 1) * 3 + dj
            w = xetile.load_tile(xetile.init_tile(W, [tap * C, 0], (C, OUT)))
            acc = xetile.tile_mma(a, w, acc)
    xetile.store_tile(acc, xetile.init_tile(Y[i], [j, 0], (BW, OUT)))


# %% [markdown]
# ## Call it

# %%
rng = np.random.default_rng(0)
H, WIDTH, C, OUT = 61, 83, 64, 96
X = rng.integers(-4, 5, (H, WIDTH, C)).astype(np.float32)
W = rng.integers(-4, 5, (9 * C, OUT)).astype(np.float32)
Y = np.empty((H, WIDTH, OUT), np.float32)


def im2col(X):
    h, w, _ = X.shape
    wide = np.pad(X, ((1, 1), (1, 1), (0, 0)))
    taps = [wide[i : i + h, j : j + w] for i in range(3) for j in range(3)]
    return np.concatenate(taps, 2)


convolution(X, W, Y, C=C, OUT=OUT)
assert np.array_equal(Y, im2col(X) @ W)
print(f"{H} x {WIDTH} pixels, {C} to {OUT} channels: equal to NumPy's")

# %% [markdown]
# ## Look inside
# The product is an `xsmm.brgemm`.  `explain` says what happens with W.

# %%
text = convolution.ir("raise-to-brgemm", X, W, Y, C=C, OUT=OUT)
assert "xsmm.brgemm" in text
print(convolution.explain(X, W, Y, C=C, OUT=OUT))

# %% [markdown]
# ## Change one thing: stride and dilation
# With a stride of 2, neighbours in Y are not neighbours in X, and so no tile has them.
# Indices do: `X[rows, columns, channels]` gathers an element for each index, outside
# reads as 0 again, and stride and dilation are arithmetic.  Now a row of the product
# can be any pixel.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.Y.shape[0] * a.Y.shape[1], a.BM))
def strided(
    X,
    W,
    Y,
    C: constexpr,
    OUT: constexpr,
    STRIDE: constexpr,
    DILATION: constexpr = 1,
    BM: constexpr = 32,
):
    pixel = xetile.program_id(0) * BM + xetile.arange(BM)
    i, j = pixel // Y.shape[1], pixel % Y.shape[1]
    channel, out = xetile.arange(C)[None, :], xetile.arange(OUT)[None, :]
    acc = xetile.zeros((BM, OUT), f32)
    for tap in range(9):
        rows = i * STRIDE + (tap // 3 - 1) * DILATION
        columns = j * STRIDE + (tap % 3 - 1) * DILATION
        a = X[rows[:, None], columns[:, None], channel]
        w = xetile.load_tile(xetile.init_tile(W, [tap * C, 0], (C, OUT)))
        acc = xetile.tile_mma(a, w, acc)
    Y[i[:, None], j[:, None], out] = acc


half = np.zeros((cdiv(H, 2), cdiv(WIDTH, 2), OUT), np.float32)
strided(X, W, half, C=C, OUT=OUT, STRIDE=2)
assert np.array_equal(half, (im2col(X) @ W)[::2, ::2])
print("stride 2: equal to NumPy's")

# %% [markdown]
# ## Measure
# The same convolution by tiles, by gathers, and in NumPy.  NumPy's product is fast, but
# it needs the matrix `im2col` first.

# %%
Y2 = np.empty_like(Y)
print(xetl.do_bench({
    "tiles": lambda: convolution(X, W, Y, C=C, OUT=OUT),
    "gathers": lambda: strided(X, W, Y2, C=C, OUT=OUT, STRIDE=1),
    "NumPy": lambda: im2col(X) @ W,
}))  # fmt: skip
assert np.array_equal(Y, Y2)
print(f"X has {X.nbytes / 1e6:.1f} MB, the matrix {im2col(X).nbytes / 1e6:.1f} MB")

# %% [markdown]
# **Try it:** add a bias and a ReLU behind the loop.  Then 5 x 5 taps.
