"""01  Vector add.  You will: write a kernel, choose a grid, and check the result.

Runs on any CPU in a few seconds.  The cells (# %%) open as a notebook in VS Code,
PyCharm, Spyder or Jupytext; `python tutorials/01_vector_add.py` runs them all, and
`--plot` as well draws 01_vector_add.png.
"""

# %% [markdown]
# ## The mathematics
# z[i] = x[i] + y[i].  This is simple, so that you can look at the form of a kernel.

# %%
import os
import re
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

from time import perf_counter

import numpy as np

from xetl import errors, xetile
from xetl.xetile import cdiv, constexpr

# %% [markdown]
# ## The kernel
# xetl runs a kernel many times.  Each run is called a *program* and has a number.  A
# program of this kernel adds 1000 neighbouring elements:
#
#     x     |<---- 1000 ---->|<---- 1000 ---->|  ...  |<---- 1000 ---->|
#                program 0        program 1              program 1000
#                                                       |<3>|  outside: 0
#
# * `init_tile` makes a *tile*: it says which elements are meant, and reads nothing.
# * `load_tile` reads these elements.  The result is a *vector*, a value of fixed shape;
#   you calculate with it as with an array of NumPy.
# * `store_tile` writes a vector to the elements of a tile.
#
# `SIZE: constexpr` is a number that is known when the kernel is compiled.  The shape of
# a tile must be known then.  It need not be a power of two, and need not divide the
# length of the array.


# %%
@xetile.kernel
def add(X, Y, Z, SIZE: constexpr = 1000):
    start = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [start], (SIZE,)))
    y = xetile.load_tile(xetile.init_tile(Y, [start], (SIZE,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [start], (SIZE,)))


# %% [markdown]
# ## Call it
# The *grid* in brackets is the number of programs.  `cdiv` divides and rounds up, so
# the programs cover the whole array.  The last program has only 3 elements left.  Other
# kernel languages need a mask here.  In xetl a tile knows its array: elements outside
# of it load as zero, and are not stored.

# %%
rng = np.random.default_rng(0)
x, y = rng.random(1_000_003, np.float32), rng.random(1_000_003, np.float32)
z = np.empty_like(x)

add[cdiv(len(z), 1000)](x, y, z)

assert np.array_equal(z, x + y)
print("1 000 003 sums, equal to NumPy's")

# %% [markdown]
# ## Look inside
# `ir` shows the kernel after any step of the compiler, as text: this is its
# *intermediate representation* (IR).  At the first stage, `xetile`, each operation that
# you wrote has a line; we leave out the types at the end of the lines.  An array of one
# dimension appears as a matrix with one row.

# %%
for line in add.ir("xetile", x, y, z).splitlines():
    if re.search("xetile.*_tile|arith.addf", line):
        print(line.strip().split(" : ")[0])

# %% [markdown]
# ## Make a mistake
# An error points at your own line, long before any machine code is made.


# %%
@xetile.kernel
def wrong(X, Y, Z):
    x = xetile.load_tile(xetile.init_tile(X, [0], (1000,)))
    y = xetile.load_tile(xetile.init_tile(Y, [0], (100,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [0], (1000,)))


try:
    wrong[1](x, y, z)
except errors.CompileError as error:
    print(error)

# %% [markdown]
# ## Change one thing
# Adding takes as long as memory needs to deliver the numbers, in xetl and in NumPy.
# But a kernel can do more with the numbers that it has loaded.  For sqrt(x*x + y*y)
# NumPy reads and writes memory for each operation; the kernel does it once in all.


# %%
@xetile.kernel
def length(X, Y, Z, SIZE: constexpr = 1000):
    start = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [start], (SIZE,)))
    y = xetile.load_tile(xetile.init_tile(Y, [start], (SIZE,)))
    z = xetile.sqrt(x * x + y * y)
    xetile.store_tile(z, xetile.init_tile(Z, [start], (SIZE,)))


def numpy_length(x, y, z):
    np.multiply(x, x, out=z)
    z += y * y
    np.sqrt(z, out=z)


def best_ms(function, *arguments, repeat=50):
    """The best of many runs; the first, which compiles, is not counted."""
    function(*arguments)
    times = []
    for _ in range(repeat):
        start = perf_counter()
        function(*arguments)
        times.append(perf_counter() - start)
    return min(times) * 1e3


grid = cdiv(len(z), 1000)
length[grid](x, y, z)
np.testing.assert_allclose(z, np.hypot(x, y), rtol=1e-6)

for name, kernel, peer in (
    ("x + y", add[grid], lambda x, y, z: np.add(x, y, out=z)),
    ("sqrt(x*x + y*y)", length[grid], numpy_length),
):
    ours, theirs = best_ms(kernel, x, y, z), best_ms(peer, x, y, z)
    print(f"{name:16} xetl {ours:.3f} ms, NumPy / xetl {theirs / ours:.2f}")

# %% [markdown]
# ## A picture
# Bytes read and written per second, for arrays of each size.  Small arrays are in the
# cache, and the time of a call dominates; large ones show the speed of memory.

# %%
if __name__ == "__main__" and "--plot" in sys.argv:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [2**n for n in range(10, 25)]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, run in (("xetl", length), ("NumPy", None)):
        speeds = []
        for size in sizes:
            a, b, c = (np.ones(size, np.float32) for _ in range(3))
            call = numpy_length if run is None else run[cdiv(size, 1000)]
            speeds.append(12e-6 * size / best_ms(call, a, b, c))
        axes.semilogx(sizes, speeds, "o-", base=2, label=name)
    axes.set(xlabel="elements", ylabel="GB/s", title="sqrt(x*x + y*y)", ylim=0)
    axes.legend()
    figure.savefig("01_vector_add.png", dpi=120)

# %% [markdown]
# **Try it:** change 1000 to 10 and to 100 000, in SIZE and in the grids, and measure
# again.  Next: 02, which reduces the elements of a tile to one number.
