"""19  Dask.  You will: run a kernel on the blocks of an array, in several processes.

Needs 03.  Runs in about ten seconds if Dask is installed (the extra `dask` of xetl);
otherwise it says how to install it.
"""

# %% [markdown]
# ## The mathematics
# A Dask array is a grid of blocks, each a NumPy array.  Blocks may be made, and lie, in
# different processes or on different machines.  C = A @ B in blocks:
#
#              B00 B01                 tasks of C01:
#              B10 B11
#                                      A00 B01    A01 B11
#     A00 A01  C00 C01                     \  /      \  /
#     A10 A11  C10 C11                    gemm  --->  gemm  ---> C01
#
# One task is one launch of a kernel: `acc + a @ b` for three blocks.  Dask decides when
# and where; the kernel computes.

# %%
import os
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

from functools import reduce
from time import perf_counter

import numpy as np

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

try:
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster
except ImportError:
    command = f"{sys.executable} -m pip install -e '.[dask]'"
    print(f"Dask is not installed: this tutorial needs it (in the clone: {command})")
    sys.exit(0)

# %% [markdown]
# ## The kernel
# Dask sends the kernel to other processes.  A kernel is pickled by the name of its
# module or, as here in a script, with its source.  The first process compiles the
# kernel; the others find the code on disk.


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)))
def gemm(
    A,
    B,
    C,
    BM: constexpr = 64,
    BN: constexpr = 128,
    BK: constexpr = 32,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    c = xetile.init_tile(C, [m, n], (BM, BN))
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(xetile.load_tile(c) + acc, c)


@xetile.kernel(grid=lambda a: a.X.shape[0])
def softmax(X, Y, N: constexpr):
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [row, 0], (1, N)))


# %% [markdown]
# ## A function of blocks
# `map_blocks` calls a function for each block: here a softmax of whole rows.  A block
# that Dask gives may not be changed, so the result is a new array.


# %%
def softmax_block(x):
    y = np.empty_like(x)
    softmax(x, y, N=x.shape[1])
    return y


def multiply(c, a, b):
    """Three blocks give one: c + a @ b; c may be None."""
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype) if c is None else c.copy()
    gemm(a, b, c)
    return c


def matmul(a, b):
    """The product of two Dask arrays: a chain of tasks for each block of the result."""
    left, right = a.to_delayed(), b.to_delayed()
    step = dask.delayed(multiply)
    rows = []
    for i, heights in enumerate(a.chunks[0]):
        row = []
        for j, widths in enumerate(b.chunks[1]):
            pairs = zip(left[i], right[:, j])
            block = reduce(lambda c, pair: step(c, *pair), pairs, None)
            row.append(da.from_delayed(block, (heights, widths), a.dtype))
        rows.append(row)
    return da.block(rows)


# %% [markdown]
# ## Call it
# A cluster of two processes on this machine.  `__main__` guards it, because each
# process begins by importing this file.


# %%
def integers(*shape):
    rng = np.random.default_rng(0)
    return rng.integers(-4, 5, shape).astype(np.float32)


def seconds(call):
    call()
    start = perf_counter()
    call()
    return perf_counter() - start


def main():
    A, B = integers(1100, 900), integers(900, 1000)
    a, b = da.from_array(A, (400, 300)), da.from_array(B, (300, 500))
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        processes = set(client.run(os.getpid).values())
        assert os.getpid() not in processes

        c = matmul(a, b)
        assert np.array_equal(c.compute(), A @ B)
        print(f"{c.numblocks} blocks by {len(processes)} processes: equal to NumPy's")

        x = a.rechunk((275, -1))  # whole rows
        y = x.map_blocks(softmax_block, dtype=np.float32).compute()
        e = np.exp(A - A.max(1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-4)
        print("softmax of blocks: equal to NumPy's")

        # Change one thing: Dask's own product, of NumPy's blocks.  Both send blocks.
        for name, product in (("xetl", c), ("NumPy", a @ b)):
            print(f"{name:5} blocks {seconds(product.compute):.3f} s")
    C = np.zeros((1100, 1000), np.float32)
    print(f"one launch   {seconds(lambda: gemm(A, B, C)):.3f} s")


if __name__ == "__main__":
    main()

# %% [markdown]
# Sending blocks to processes takes longer than the products of matrices as small as
# these: Dask is for arrays that fit no single memory, or for many machines.  Rules that
# help: blocks of 10 to 100 MB; `threads_per_worker=1` for kernels, which use all cores
# that their process may use, or one process with threads; and as few rechunks as
# possible.
#
# ## Look inside
# Threads: a worker is given its share of the cores, which xetl takes as its own.
# `NUMBA_NUM_THREADS` sets it by hand.
#
# **Try it:** `c.visualize("tasks.png")`, which needs Graphviz.
