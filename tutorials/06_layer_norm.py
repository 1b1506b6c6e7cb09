"""06  Layer norm.  You will: write a function and its derivative, summing over rows.

Needs 02.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# Forward, for each row x of n elements:
#
#     mean = sum(x) / n        rstd = 1 / sqrt(sum((x - mean)^2) / n + eps)
#     xhat = (x - mean) * rstd              y = xhat * w + b
#
# Backward, from dy = dL/dy, with g = dy * w:
#
#     dx = (g - sum(g) / n - xhat * sum(g * xhat) / n) * rstd
#     dw = sum of dy * xhat over all rows       db = sum of dy over all rows
#
# dx needs one row.  dw and db need every row, and rows belong to different programs:
#
#                 dy, x                      parts             dw
#              +----------+
#     program 0|  row  0  |--+
#              |  row  1  |  +-->  sum of rows 0 and 1  --+
#              +----------+                               |
#     program 1|  row  2  |--+                            +-->  one row
#              |  row  3  |  +-->  sum of rows 2 and 3  --+
#              +----------+
#
# So each program adds up its own rows and writes one row of `parts`.  A second, small
# sum adds the parts.  The order of all sums is fixed: each run gives the same bits.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The forward kernel
# One program, one row.  N is the exact length of a row, so nothing is padded and the
# sums need no mask.  `MEAN[row] = ...` stores one number; backward will need both.


# %%
@xetile.function
def row_of(X, row, N):
    """The tile that is a whole row."""
    return xetile.init_tile(X, [row, 0], (1, N))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def forward(X, W, B, Y, MEAN, RSTD, eps, N: constexpr):
    row = xetile.program_id(0)
    x = xetile.load_tile(row_of(X, row, N))
    mean = x.sum() / N
    centred = x - mean
    rstd = xetile.rsqrt((centred * centred).sum() / N + eps)
    w = xetile.load_tile(xetile.init_tile(W, [0], (N,)))
    b = xetile.load_tile(xetile.init_tile(B, [0], (N,)))
    xetile.store_tile(centred * rstd * w + b, row_of(Y, row, N))
    MEAN[row] = mean
    RSTD[row] = rstd


# %% [markdown]
# ## The backward kernel
# One program, ROWS rows.  The last program may have rows that do not exist.  They load
# as zeros, add zeros to dw and db, and are not stored: no mask here either.


# %%
@xetile.kernel(grid=lambda a: a.DW.shape[0])
def backward(X, W, MEAN, RSTD, DY, DX, DW, DB, N: constexpr, ROWS: constexpr):
    part = xetile.program_id(0)
    w = xetile.load_tile(xetile.init_tile(W, [0], (N,)))
    dw, db = xetile.zeros((1, N), f32), xetile.zeros((1, N), f32)
    for row in range(part * ROWS, part * ROWS + ROWS):
        x, dy = (
            xetile.load_tile(row_of(X, row, N)),
            xetile.load_tile(row_of(DY, row, N)),
        )
        rstd = RSTD[row]
        xhat = (x - MEAN[row]) * rstd
        g = dy * w
        dx = (g - g.sum() / N - xhat * ((g * xhat).sum() / N)) * rstd
        xetile.store_tile(dx, row_of(DX, row, N))
        dw += dy * xhat
        db += dy
    xetile.store_tile(dw, row_of(DW, part, N))
    xetile.store_tile(db, row_of(DB, part, N))


# %% [markdown]
# ## Call them

# %%
rng = np.random.default_rng(0)
rows, n, eps = 3001, 768, 1e-5
x, dy = (rng.standard_normal((rows, n), np.float32) for _ in range(2))
w, b = rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)
y, dx = np.empty_like(x), np.empty_like(x)
mean, rstd = np.empty(rows, np.float32), np.empty(rows, np.float32)


def call_forward():
    forward(x, w, b, y, mean, rstd, eps, N=n)


def call_backward(rows_each=64):
    dw, db = (np.empty((cdiv(rows, rows_each), n), np.float32) for _ in range(2))
    backward(x, w, mean, rstd, dy, dx, dw, db, N=n, ROWS=rows_each)
    return dx, ops.sum(dw, 0), ops.sum(db, 0)


def numpy_forward(x, w, b):
    mean = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + eps)
    return (x - mean) * rstd * w + b, mean, rstd


def numpy_backward(x, w, dy, mean, rstd):
    xhat, g = (x - mean) * rstd, dy * w
    along = (g * xhat).mean(1, keepdims=True)
    dx = (g - g.mean(1, keepdims=True) - xhat * along) * rstd
    return dx, (dy * xhat).sum(0), dy.sum(0)


call_forward()
call_backward()
x64 = x.astype(np.float64)
expected, mean64, rstd64 = numpy_forward(x64, w, b)
np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
gradients = numpy_backward(x64, w, dy, mean64, rstd64)
for ours, theirs in zip(call_backward(), gradients):
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
print(f"layer norm of {rows} rows and its three gradients agree with NumPy's")

# %% [markdown]
# A formula for a derivative is easily wrong.  A check that needs no formula: move x a
# little in a direction d.  The loss sum(y * dy) must change by sum(dx * d).

# %%
d = rng.standard_normal(x.shape)
step = 1e-4
loss = [(numpy_forward(x64 + s * d, w, b)[0] * dy).sum() for s in (step, -step)]
slope = (loss[0] - loss[1]) / (2 * step)
assert abs((dx * d).sum() - slope) < 1e-3 * abs(slope)
print(f"slope {slope:.3f}, from dx {(dx * d).sum():.3f}")

# %% [markdown]
# ## Look inside
# The two sums along a row are `tile_reduce`.  The loop over rows passes dw and db from
# one iteration to the next as `iter_args`, so they stay in cache until the last row.

# %%
parts = np.empty((47, n), np.float32)
arguments = (x, w, mean, rstd, dy, dx, parts, parts.copy())
text = backward.ir("xetile", *arguments, N=n, ROWS=64)
assert text.count("xetile.tile_reduce") == 2
loop = next(line for line in text.splitlines() if "iter_args" in line)
print(loop.strip().split(" {")[0])

# %% [markdown]
# ## Change one thing: rows of a program
# With few rows there are many parts to add.  With many rows there are few programs, and
# at last fewer programs than cores.  The result is the same, except for rounding.

# %%
for rows_each in (4, 64, 1024):
    for ours, theirs in zip(call_backward(rows_each), gradients):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    ms = xetl.do_bench(lambda: call_backward(rows_each), return_mode="min")
    print(f"{rows_each:5} rows each, {cdiv(rows, rows_each):4} parts: {ms:.2f} ms")

# %% [markdown]
# ## Measure
# NumPy reads and writes memory for each operation, a kernel once for all of them.

# %%
both = {
    "xetl forward": call_forward,
    "NumPy forward": lambda: numpy_forward(x, w, b),
    "xetl backward": call_backward,
    "NumPy backward": lambda: numpy_backward(x, w, dy, mean[:, None], rstd[:, None]),
}
for name, call in both.items():
    print(f"{name:15} {xetl.do_bench(call, return_mode='min'):7.2f} ms")

# %% [markdown]
# **Try it:** do not store mean and rstd, and compute them again in backward.  The row
# is in cache anyway: is it slower?  Next: 07, where a softmax meets two products.
