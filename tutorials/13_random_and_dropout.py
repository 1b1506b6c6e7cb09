"""13  Random numbers and dropout.  You will: compute random numbers from their index.

Needs 01.  Runs on any CPU in a few seconds.  `--plot` as well draws
13_random_and_dropout.png.
"""

# %% [markdown]
# ## The mathematics
# Most generators have a state: the second number needs the first.  Thousands of
# programs cannot wait for each other.  Philox is a *counter-based* generator: it
# computes each number only from its index, the counter, and a seed.
#
#     usual:    state --> state --> state --> state       one after another
#                 |         |         |         |
#                r0        r1        r2        r3
#
#     counter:    0         1         2         3         in any order
#                 |         |         |         |
#              philox    philox    philox    philox  <-- seed
#                 |         |         |         |
#                r0        r1        r2        r3
#
# So a number depends only on seed and index.  It is the same for any tile size, any
# number of threads and any backend, and a kernel can draw it again instead of storing
# it.

# %%
import os
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr

# %% [markdown]
# ## The kernels
# Dropout sets each element to 0 with probability p, and divides the others by 1 - p.
# Backward needs to know which elements were kept.  A mask in memory would do.  But the
# kernel can draw the same numbers again, from the same seed.


# %%
@xetile.function
def kept(seed, first, p, SIZE):
    return xetile.rand(seed, first + xetile.arange(SIZE)) >= p


@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], a.SIZE))
def dropout(X, Y, seed, p, SIZE: constexpr = 1024):
    """Forward; backward as well, with dy for X and the same seed."""
    first = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [first], (SIZE,)))
    y = xetile.where(kept(seed, first, p, SIZE), x / (1 - p), 0.0)
    xetile.store_tile(y, xetile.init_tile(Y, [first], (SIZE,)))


# %% [markdown]
# ## Call it

# %%
n, p = 1_000_003, 0.25
x, y = np.ones(n, np.float32), np.empty(n, np.float32)
dropout(x, y, 7, p)

share = (y == 0).mean()
assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
assert abs(share - p) < 0.003
assert abs(y.mean() - 1) < 0.004
print(f"dropped {share:.4f} of {n}, asked for {p}")

# %% [markdown]
# Another tile size gives the same numbers; another seed gives other numbers.

# %%
again, other = np.empty_like(y), np.empty_like(y)
dropout(x, again, 7, p, SIZE=333)
dropout(x, other, 8, p)
assert np.array_equal(y, again)
both = ((y == 0) & (other == 0)).mean()
assert abs(both - p * p) < 0.003
print(f"dropped by both of two seeds: {both:.4f}, p * p is {p * p:.4f}")

dy, dx = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
dropout(dy, dx, 7, p)
np.testing.assert_allclose(dx, np.where(y == 0, 0, dy / (1 - p)), rtol=1e-6)
print("backward keeps what forward kept, and no mask was stored")

# %% [markdown]
# ## Look inside
# `philox` is ten rounds of two multiplications and some exclusive ors, here in NumPy.
# `rand` takes the upper bits of its first word.


# %%
def numpy_philox(seed, counter):
    """The first word of Philox4x32-10 at (counter, 0, 0, 0)."""
    zeros = np.zeros_like(counter, np.uint64)
    words = [counter.astype(np.uint64), zeros, zeros, zeros]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        one, two = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
        words = [
            (two >> high) ^ words[1] ^ np.uint64(keys[0]),
            two & low,
            (one >> high) ^ words[3] ^ np.uint64(keys[1]),
            one & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return words[0].astype(np.uint32)


@xetile.kernel(grid=lambda a: cdiv(a.OUT.shape[0], 256))
def bits(OUT, seed):
    first = xetile.program_id(0) * 256
    words = xetile.randint(seed, first + xetile.arange(256))
    xetile.store_tile(words, xetile.init_tile(OUT, [first], (256,)))


words = np.empty(1000, np.uint32)
bits(words, 7)
assert np.array_equal(words, numpy_philox(7, np.arange(1000)))
print("Philox4x32-10 in NumPy gives the same bits:", words[:3])

# %% [markdown]
# ## Change one thing: four for one
# Each Philox gives four words, and `rand` uses one.  `randint4x` returns all four.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.OUT.shape[0], 1024))
def bits4(OUT, seed):
    first = xetile.program_id(0) * 1024
    place = xetile.program_id(0) * 256 + xetile.arange(256)
    words = xetile.randint4x(seed, place)
    for part in xetile.static_range(4):
        tile = xetile.init_tile(OUT, [first + part * 256], (256,))
        xetile.store_tile(words[part], tile)


@xetile.kernel(grid=lambda a: cdiv(a.OUT.shape[0], 1024))
def normal(OUT, seed):
    first = xetile.program_id(0) * 1024
    z = xetile.randn(seed, first + xetile.arange(1024))
    xetile.store_tile(z, xetile.init_tile(OUT, [first], (1024,)))


z, words = np.empty(1 << 20, np.float32), np.empty(1 << 20, np.uint32)
normal(z, 3)
assert abs(z.mean()) < 0.01
assert abs(z.std() - 1) < 0.01

# %% [markdown]
# ## Measure

# %%
rng = np.random.default_rng(0)
for name, call in {
    "bits": lambda: bits(words, 7),
    "bits, 4 for 1": lambda: bits4(words, 7),
    "NumPy bits": lambda: rng.integers(0, 2**32, 1 << 20, np.uint32),
    "normal": lambda: normal(z, 3),
    "NumPy normal": lambda: rng.standard_normal(out=z, dtype=np.float32),
    "dropout": lambda: dropout(x, y, 7, p),
    "NumPy dropout": lambda: np.where(rng.random(n, np.float32) < p, 0, x / (1 - p)),
}.items():
    print(f"{name:14} {xetl.do_bench(call, return_mode='min'):7.3f} ms")

# %% [markdown]
# ## A picture

# %%
if __name__ == "__main__" and "--plot" in sys.argv:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    normal(z, 3)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.hist(
        z, bins=200, range=(-5, 5), density=True, label="a million draws of randn"
    )
    at = np.linspace(-5, 5, 201)
    axes.plot(at, np.exp(-at * at / 2) / np.sqrt(2 * np.pi), label="normal density")
    axes.set(xlabel="value", ylabel="density")
    axes.legend()
    figure.savefig("13_random_and_dropout.png", dpi=120)

# %% [markdown]
# **Try it:** drop whole rows of a matrix.  What is the counter then?
