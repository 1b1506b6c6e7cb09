"""02  Softmax.  You will: reduce the rows of a tile, and choose what it is padded with.

Needs 01.  Runs on any CPU in a few seconds.  `--plot` as well draws 02_softmax.png.
"""

# %% [markdown]
# ## The mathematics
# softmax(x)[j] = exp(x[j] - m) / sum_k exp(x[k] - m)     with m = max(x)
#
# Without m, exp could overflow; m does not change the result.  Each element needs two
# numbers about its whole row, the maximum and the sum, so NumPy goes through memory
# five times.  But one row fits into the cache of a core, so it is enough to read it
# once and to write it once.
#
#     a row of x    1   3   2   0        maximum 3
#     exp(x - 3)   .14  1  .37 .05       sum 1.55
#     softmax(x)   .09 .64 .24 .03

# %%
import os
import re
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

from time import perf_counter

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr

# %% [markdown]
# ## The kernel
# One program computes one row.  Tiles have two dimensions here: 1 row of WIDTH columns,
# whose corner is at [row, 0].
#
# WIDTH may be larger than the row.  Columns outside of the array would load as 0, and
# exp(0) = 1 would be added to the sum.  With `padding=-inf` they load as -inf, and
# exp(-inf) = 0; the maximum is right as well.  Storing leaves them out.
#
# `x.max(1)` reduces along dimension 1 and drops it; `keepdims=True` keeps it with size
# 1, so that the result broadcasts against `x`, all as in NumPy.


# %%
@xetile.kernel(grid=lambda args: args.X.shape[0])
def softmax(X, Y, WIDTH: constexpr):
    row = xetile.program_id(0)
    tile = xetile.init_tile(X, [row, 0], (1, WIDTH))
    x = xetile.load_tile(tile, padding=-xetile.inf)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [row, 0], (1, WIDTH)))


# %% [markdown]
# ## Call it
# The decorator declares the grid, as a function of the arguments, so you call the
# kernel like any function.  One compiled kernel is used for any number of rows.


# %%
def numpy_softmax(x, y):
    """The same in NumPy, without an array more than it needs."""
    np.subtract(x, x.max(1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(1, keepdims=True)


rng = np.random.default_rng(0)
x = 10 * rng.standard_normal((1823, 781), np.float32)
y, expected = np.empty_like(x), np.empty(x.shape)

softmax(x, y, WIDTH=1024)

numpy_softmax(x.astype(np.float64), expected)
np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-7)
print(f"{len(x)} rows agree with NumPy's; sums are 1 to {abs(y.sum(1) - 1).max():.0e}")

# %% [markdown]
# ## Look inside
# In the IR a reduction is a `tile_reduce`.  In Python, (1, 1) broadcasts to (1, WIDTH)
# implicitly; the IR has an operation for this, `tile_broadcast`.

# %%
for line in softmax.ir("xetile", x, y, WIDTH=1024).splitlines():
    if any(name in line for name in ("load_tile", "tile_reduce", "broadcast", "math.")):
        print(re.split(" : | {", line.strip())[0])

# %% [markdown]
# ## Change one thing
# What does the padding cost?  A tile may be exactly 781 columns wide, although 781 is
# no multiple of the width of a processor's vectors.


# %%
def best_ms(function, *arguments, repeat=30, **constants):
    """The best of many runs; the first, which compiles, is not counted."""
    function(*arguments, **constants)
    times = []
    for _ in range(repeat):
        start = perf_counter()
        function(*arguments, **constants)
        times.append(perf_counter() - start)
    return min(times) * 1e3


padded = best_ms(softmax, x, y, WIDTH=1024)
exact = best_ms(softmax, x, y, WIDTH=781)
theirs = best_ms(numpy_softmax, x, y)
print(f"width 1024: {padded:.3f} ms; width 781: {exact:.3f} ms ({padded / exact:.2f})")
print(f"NumPy / xetl {theirs / exact:.2f}")

# %% [markdown]
# ## A picture

# %%
if __name__ == "__main__" and "--plot" in sys.argv:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    widths = [128, 256, 384, 512, 781, 1024, 1536, 2048, 4096]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name in ("xetl", "NumPy"):
        speeds = []
        for width in widths:
            a = rng.standard_normal((2048, width), np.float32)
            b = np.empty_like(a)
            if name == "xetl":
                ms = best_ms(softmax, a, b, WIDTH=width)
            else:
                ms = best_ms(numpy_softmax, a, b)
            speeds.append(2e-6 * a.nbytes / ms)
        axes.plot(widths, speeds, "o-", label=name)
    axes.set(xlabel="columns", ylabel="GB/s", title="softmax, 2048 rows", ylim=0)
    axes.legend()
    figure.savefig("02_softmax.png", dpi=120)

# %% [markdown]
# **Try it:** leave out `padding`, and the factor 10 of `x`.  The assert fails: by how
# much, and why?  (With the factor, the maximum of a row is near 30, and exp(0 - 30) is
# too small to be noticed.)  Next: 03, which multiplies matrices.
