"""03  GEMM.  You will: multiply matrices by tiles, fuse an epilogue, and read maps.

Needs 01.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# C = A @ B in tiles: the tile of C at (m, n) is the sum over k of a tile of A at (m, k)
# times a tile of B at (k, n).
#
#                          B     n
#                          +---+---+---+
#                          |   | b |   | k     acc += a @ b, for each k
#                          |   | b |   | k
#          A               +---+---+---+
#          +---+---+       +---+---+---+
#        m | a | a |     m |   |acc|   |       one program: one tile of C
#          +---+---+       +---+---+---+
#          |   |   |       |   |   |   |
#          +---+---+       +---+---+---+
#            k   k           C
#
# Each number that is loaded is used in many products.  That is why a matrix product is
# limited by arithmetic, and not by memory.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

from time import perf_counter

import ml_dtypes
import numpy as np

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# * `update_tile_offset` moves the tiles by one step in k.  (You may as well call
#   `init_tile` inside of the loop, with `k` as an offset.)
# * `tile_mma(a, b, acc)` is acc + a @ b.  16-bit operands are summed in f32.
# * `prefetch_tile` asks a GPU to read a tile that is needed three steps later.  On a
#   CPU it does nothing.
# * `WG` is a *map* for GPUs, where a program consists of subgroups: here 8 x 4 of them,
#   and each computes 32 x 64 elements of the tile.  Without a map xetl chooses one.
#   A CPU does not need it.
# * `EPILOGUE` is a function or None, and `bias` an array or None.  The compiler knows
#   whether they are None, so an `if` on them costs nothing when the kernel runs.


# %%
@xetile.function
def gelu(v):
    return 0.5 * v * (1.0 + xetile.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


WG = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])
WG.show((256, 256))  # the owner of each part of a tile of C; path="map.svg" draws it


@xetile.kernel(
    grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)),
)
def gemm(
    A,
    B,
    C,
    bias=None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    WG: constexpr = WG,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


# %% [markdown]
# ## Call it
# No tile size divides these sizes.  Elements outside load as zero, and zeros do not
# change a sum.  The matrices have small integers, whose sums are exact in f32, so the
# results must be equal, and not only close.

# %%
rng = np.random.default_rng(0)


def integers(*shape, dtype=np.float32):
    return rng.integers(-4, 5, shape).astype(dtype)


A, B = integers(1000, 700), integers(700, 900)
C = np.empty((1000, 900), np.float32)

gemm(A, B, C)
assert np.array_equal(C, A @ B)

gemm(A, B, C, EPILOGUE=lambda v: xetile.maximum(v, 0.0))
assert np.array_equal(C, np.maximum(A @ B, 0))
print("1000 x 700 x 900: equal to NumPy's, with and without ReLU")

# %% [markdown]
# ## Look inside
# The whole loop over k has become one operation, `xsmm.brgemm`: a *batch-reduce GEMM*,
# the sum of a batch of small products.  The CPU backend *packs* the operands: it copies
# them into the order in which it reads them.  It cuts the operation into blocks that
# fit into its registers, and applies the epilogue to a block while that is in cache.
# It removes the prefetches and the map.

# %%
before, after = gemm.ir("xetile", A, B, C), gemm.ir("raise-to-brgemm", A, B, C)
assert "scf.for" in before
assert "xetile.tile_mma" in before
assert "xetile.tile_mma" not in after
brgemm = next(line for line in after.splitlines() if "xsmm.brgemm" in line)
print(brgemm.strip().split(" <{")[0])

# %% [markdown]
# `explain` says the same without IR: what the compiler did with each of your lines, or
# why it could not do it.

# %%
report = str(gemm.explain(A, B, C))
assert "brgemm" in report
print(report)

# %% [markdown]
# ## Change one thing: the order
# `B.T` of NumPy is a view: the same memory with rows and columns exchanged.  A tile
# uses the strides of its array, so the kernel need not change; xetl compiles another
# version of it.


# %%
def best_ms(function, *arguments, repeat=10, **constants):
    """The best of many runs; the first, which compiles, is not counted."""
    function(*arguments, **constants)
    times = []
    for _ in range(repeat):
        start = perf_counter()
        function(*arguments, **constants)
        times.append(perf_counter() - start)
    return min(times) * 1e3


n = 1024
A, B, C = integers(n, n), integers(n, n), np.empty((n, n), np.float32)
gemm(A, B.T, C)
assert np.array_equal(C, A @ B.T)

rows, columns = best_ms(gemm, A, B, C), best_ms(gemm, A, B.T, C)
numpy_ms = best_ms(lambda: np.matmul(A, B, out=C))
print(f"{n} x {n} x {n}: {rows:.2f} ms, {2e-6 * n**3 / rows:.0f} GFLOP/s")
print(f"NumPy / xetl {numpy_ms / rows:.2f}")
print(f"B by columns takes {columns / rows:.2f} of the time of B by rows")

# %% [markdown]
# ## Change another: what follows the product
# GELU(A @ B + bias) in NumPy is a product and then several operations, each of which
# reads and writes all of C.  The kernel finishes a block of C before it begins another.

# %%
bias = integers(n)


def numpy_gelu():
    np.matmul(A, B, out=C)
    np.add(C, bias, out=C)
    C[:] = 0.5 * C * (1 + np.tanh(0.7978845608 * (C + 0.044715 * C * C * C)))


numpy_gelu()
expected = C.copy()
gemm(A, B, C, bias, EPILOGUE=gelu)
np.testing.assert_allclose(C, expected, rtol=1e-5, atol=1e-6)

fused, separate = best_ms(gemm, A, B, C, bias, EPILOGUE=gelu), best_ms(numpy_gelu)
print(f"bias and GELU add {fused - rows:.2f} ms; NumPy / xetl {separate / fused:.2f}")

# %% [markdown]
# ## And the dtype
# bf16 is f32 without its last 16 bits.  The sums are still f32.  A CPU that multiplies
# pairs of bf16 is faster: up to two times with AVX512-BF16, and more with AMX.  Other
# CPUs only save memory.

# %%
A16, B16 = (integers(n, n, dtype=ml_dtypes.bfloat16) for _ in range(2))
gemm(A16, B16, C)
assert np.array_equal(C, A16.astype(np.float32) @ B16.astype(np.float32))

half = best_ms(gemm, A16, B16, C)
print(f"bf16: {half:.2f} ms, {rows / half:.2f} times the speed of f32")

# %% [markdown]
# **Try it:** other tiles: `gemm(A, B, C, BM=128, BN=128, WG=None)`.  On a CPU the time
# hardly changes, because xetl chooses the blocks for registers and caches itself.
