"""10  Split-K, stream-K and atomics.  You will: let programs share one sum.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# A product with small M and N and a large K has few tiles of C, and so few programs:
# with one tile, one core works.  But the sum over k can be cut, too:
#
#     one program a tile       split-K, 3 parts          stream-K, 4 programs
#     tile 0  0000000000       tile 0  000 111 222       tile 0  0000000 111
#     tile 1  1111111111       tile 1  333 444 555       tile 1  1111 222222
#     tile 2  2222222222       tile 2  666 777 888       tile 2  2 333333333
#
#     (a digit is a step along k; its value is the program that computes it)
#
# * *Split-K* cuts each sum into equal parts.
# * *Stream-K* cuts all steps of all tiles into as many equal parts as there are cores.
#   No core waits, whatever the number of tiles.
#
# Then several programs compute parts of the same tile of C.  They add it up in memory
# with an *atomic*: it reads, adds and writes, and no other program comes in between.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import errors, xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## Split-K
# Program (m, n, part) takes the steps of its part, and adds its sum to C, which must be
# zero before.


# %%
@xetile.kernel(
    grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN), a.PARTS)
)
def split_k(
    A,
    B,
    C,
    PARTS: constexpr,
    BM: constexpr = 32,
    BN: constexpr = 64,
    BK: constexpr = 64,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    size = cdiv(cdiv(A.shape[1], PARTS), BK) * BK  # of a part, a multiple of BK
    begin = xetile.program_id(2) * size
    acc = xetile.zeros((BM, BN), f32)
    for k in range(begin, xetile.minimum(begin + size, A.shape[1]), BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    c = xetile.init_tile(C, [m, n], (BM, BN))
    if PARTS == 1:
        xetile.store_tile(acc, c)
    else:
        xetile.atomic_rmw_tile("add", acc, c)


# %% [markdown]
# ## Call it
# Small integers make each sum exact, in any order.

# %%
rng = np.random.default_rng(0)


def integers(*shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


A, B = integers(40, 20_000), integers(20_000, 50)
expected = A @ B
for parts in (1, 2, 5, 16):
    C = np.zeros((40, 50), np.float32)
    split_k(A, B, C, PARTS=parts)
    assert np.array_equal(C, expected)
print("split-K: 1, 2, 5 and 16 parts, all equal to NumPy's")

# %% [markdown]
# ## Stream-K
# The steps of all tiles are numbered from 0 to TOTAL.  Of P programs, program p takes
# the steps from p * TOTAL / P on.  At the end of a tile it goes on with the next tile.


# %%
@xetile.kernel
def stream_k(A, B, C, BM: constexpr = 32, BN: constexpr = 64, BK: constexpr = 64):
    steps = cdiv(A.shape[1], BK)
    across = cdiv(C.shape[1], BN)
    total = cdiv(C.shape[0], BM) * across * steps
    programs = xetile.num_programs(0)
    at = xetile.program_id(0) * total // programs
    end = (xetile.program_id(0) + 1) * total // programs
    while at < end:
        tile, first = at // steps, at % steps
        last = xetile.minimum(first + end - at, steps)
        m, n = tile // across * BM, tile % across * BN
        acc = xetile.zeros((BM, BN), f32)
        for step in range(first, last):
            a = xetile.load_tile(xetile.init_tile(A, [m, step * BK], (BM, BK)))
            b = xetile.load_tile(xetile.init_tile(B, [step * BK, n], (BK, BN)))
            acc = xetile.tile_mma(a, b, acc)
        xetile.atomic_rmw_tile("add", acc, xetile.init_tile(C, [m, n], (BM, BN)))
        at += last - first


for programs in (1, 2, 3, 7):
    C = np.zeros((40, 50), np.float32)
    stream_k[programs](A, B, C)
    assert np.array_equal(C, expected)
print("stream-K: 1, 2, 3 and 7 programs, all equal to NumPy's")

# %% [markdown]
# ## Look inside
# The atomic is one operation in the IR.  `kind` may be add, mul, max, min, and, or, xor
# or xchg; `atomic_cas` compares and swaps.  They return the old values, unused here.

# %%
text = split_k.ir("xetile", A, B, C, PARTS=4)
(line,) = (line for line in text.splitlines() if "atomic" in line)
print(line.strip().split(" : ")[0])

# %% [markdown]
# ## Make a mistake
# With a plain store in place of the atomic, the last program wins and the sums of the
# others are lost.  A test with one core may not show this.  The interpreter does: it
# knows which program wrote which element.


# %%
@xetile.kernel
def wrong(X, SUM):
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 16], (16,)))
    SUM[0] = SUM[0] + x.sum()


try:
    wrong.interpret(np.ones(64, np.float32), np.zeros(1, np.float32), grid=4)
except errors.CheckError as error:
    print(error)
else:
    raise AssertionError("the race was not found")

# %% [markdown]
# ## Change one thing: the order
# Floating-point sums depend on their order, and atomics come in any order.  So two
# runs may differ in the last bits.  To have the same bits each time, give each part an
# array of its own, and add the parts afterwards, as in 06.

# %%
A = rng.standard_normal((40, 20_000), np.float32)
B = rng.standard_normal((20_000, 50), np.float32)
results = []
for _ in range(20):
    C = np.zeros((40, 50), np.float32)
    split_k(A, B, C, PARTS=8)
    results.append(C)
spread = np.ptp(results, axis=0).max()
error = abs(C - A.astype(np.float64) @ B).max()
print(f"20 runs differ by up to {spread:.1e}; the error is {error:.1e}")
assert error < 1e-2

# %% [markdown]
# ## Measure
# C has one tile, so without parts one core computes all of it.  One part for each core
# is enough: more parts only add more often.  With few cores there is little or no gain,
# because all cores pack B first in any case.  Split-K was made for GPUs, where one tile
# would leave hundreds of cores idle.


# %%
A, B = integers(32, 30_000), integers(30_000, 64)
C = np.empty((32, 64), np.float32)


def with_zeros(kernel, **constants):
    C[...] = 0
    kernel(A, B, C, **constants)


for parts in (1, 2, 4, 16):
    ms = xetl.do_bench(lambda: with_zeros(split_k, PARTS=parts), return_mode="min")
    print(f"split-K, {parts:2} parts {ms:8.3f} ms")
cores = len(os.sched_getaffinity(0))
ms = xetl.do_bench(lambda: with_zeros(stream_k[cores]), return_mode="min")
print(f"stream-K, {cores:2} cores {ms:8.3f} ms")
ms = xetl.do_bench(lambda: np.matmul(A, B, out=C), return_mode="min")
print(f"NumPy              {ms:8.3f} ms")

# %% [markdown]
# **Try it:** count the programs that have touched each tile of C, with an array of i32
# and `atomic_rmw_tile("add", ...)`.  Which tiles of stream-K are touched only once?
# They could be stored without an atomic.
