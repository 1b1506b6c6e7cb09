"""15  Under the hood on Intel GPUs.  You will: read what a GPU will run, without one.

Needs 03 and 04.  Runs on any CPU in about ten seconds.
"""

# %% [markdown]
# ## The machine
# A program is a workgroup of subgroups; a subgroup of a PVC ("Ponte Vecchio") has 16
# lanes, which share registers.  It loads *blocks*: one message brings a rectangle of a
# matrix.  It multiplies blocks with the instruction DPAS.
#
#     memory                     registers of a subgroup
#     +---------------+          +---------+
#     |   +---+       |  load_nd |  A 8x16 |---+     dpas: 8x16 += 8x16 @ 16x16
#     |   |///|       | -------> +---------+   |     for bf16, one instruction
#     |   +---+       |          | B 16x16 |---+---> sums, 8 x 16 of f32
#     +---------------+          +---------+
#
# Both are operations of XeGPU, a dialect of MLIR.  `ir("xegpu", target="pvc")` shows
# them, on any machine.

# %%
import re
from collections import Counter

import ml_dtypes
import numpy as np

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# A tile of 256 x 256.  32 subgroups share it, 8 x 4, each with 32 x 64.


# %%
@xetile.kernel(
    grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)),
)
def gemm(A, B, C, BM: constexpr = 256, BN: constexpr = 256, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def matrices(size):
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-4, 5, (size, size)).astype(ml_dtypes.bfloat16) for _ in range(2)
    )
    return a, b, np.empty((size, size), np.float32)


A, B, C = matrices(256)
gemm(A, B, C)  # on the CPU
assert np.array_equal(C, A.astype(np.float32) @ B.astype(np.float32))
print("256 x 256 x 256: equal to NumPy's on the CPU")

# %% [markdown]
# ## Look inside: XeGPU
# This is the code of one subgroup.  For its 32 x 64 part and a step of 32 along k it
# needs 4 x 4 x 2 = 32 products of 8 x 16 x 16.

# %%
PVC = {"backend": "xegpu", "target": "pvc"}


def loop_of(text):
    """How often each operation stands in the first loop."""
    loop = text.split(" scf.for ")[1].split("scf.yield")[0]
    return dict(Counter(re.findall(r"\b(?:xegpu|gpu|xetile)\.\w+(?= )", loop)))


text = gemm.ir("xegpu", A, B, C, **PVC)
(one, *_) = (line for line in text.splitlines() if "xegpu.load_nd" in line)
print(one.strip())
print(next(line for line in text.splitlines() if "xegpu.dpas" in line).strip())
loop = loop_of(text)
print(loop)
assert loop["xegpu.dpas"] == 32

# %% [markdown]
# ## Prefetch
# Memory needs hundreds of cycles to answer.  So the loop asks for the tiles of a later
# step now, and they are in the cache when they are loaded.  The kernel does not contain
# prefetches: the compiler inserts them, and each subgroup prefetches a share of the
# tiles of A and B, because all subgroups need them.
#
#     step          0     1     2     3     4
#     prefetch      3     4     5     6     7       three steps ahead
#     load, dpas    0     1     2     3     4
#
# `explain` says the distance and why.

# %%
assert loop["xegpu.prefetch_nd"] > 0
print(gemm.explain(A, B, C, **PVC))

# %% [markdown]
# ## Change one thing: shared memory (SLM)
# Subgroups in a row of the map load the same part of A.  They could copy it to the
# memory that a workgroup shares, and read it from there.  With `subgroups=[r, c]`, a
# kernel describes the work of *one subgroup*: load a share, store it, wait for all,
# multiply from shared memory.
#
#      global A          SLM                  each subgroup
#     +--+--+       s0 s1 +--+--+       reads the rows of A that it needs,
#     |  |  |  -->  s2 s3 |  |  |  -->  whoever has brought them
#     +--+--+             +--+--+


# %%
@xetile.kernel(subgroups=[2, 2], grid=lambda a: (cdiv(a.C.shape[0], 32), 1))
def slm_gemm(A, B, C):
    me, m = xetile.subgroup_id(), xetile.program_id(0) * 32
    i, j = me // 2 * 16, me % 2 * 16
    shared_a, shared_b = (
        xetile.slm((32, 32), A.dtype),
        xetile.slm((32, 32), B.dtype),
    )
    acc = xetile.zeros((16, 16), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m + i, k + j], (16, 16)))
        b = xetile.load_tile(xetile.init_tile(B, [k + i, j], (16, 16)))
        xetile.barrier()  # all have read the last step
        xetile.store_tile(a, xetile.init_tile(shared_a, [i, j], (16, 16)))
        xetile.store_tile(b, xetile.init_tile(shared_b, [i, j], (16, 16)))
        xetile.barrier()  # all have written this one
        a = xetile.load_tile(xetile.init_tile(shared_a, [i, 0], (16, 32)))
        b = xetile.load_tile(xetile.init_tile(shared_b, [0, j], (32, 16)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m + i, j], (16, 16)))


B, C = B[:, :32].copy(), np.empty((256, 32), np.float32)
slm_gemm(A, B, C)
assert np.array_equal(C, A.astype(np.float32) @ B.astype(np.float32))
slm_bytes = slm_gemm.stats(A, B, C, **PVC).slm_bytes
assert slm_bytes == 2 * 32 * 32 * 2
print(f"shared memory: equal to NumPy's; {slm_bytes} bytes of SLM")
print(loop_of(slm_gemm.ir("xegpu", A, B, C, **PVC)))

# %% [markdown]
# Is it faster?  That has to be measured on a GPU.  The cache does the same for tiles
# that were prefetched, without barriers; shared memory surely pays where a value is
# *computed* once and used by many, as in 04.
#
# ## Measure, without a GPU
# `stats` tells what can be known before a launch.  Where Intel's offline compiler
# `ocloc` is at hand (`xetl doctor` says so), that includes machine code: its length,
# the registers of a thread (`grf`), and bytes *spilled*, which were too many for the
# registers.  A GEMM that spills is slow.

# %%
A, B, C = matrices(256)
for size in (64, 256):
    stats = gemm.stats(A, B, C, BM=size, BN=size, **PVC)
    print(f"tiles of {size} x {size}:")
    print(stats)
    assert not stats.spill_bytes

# %% [markdown]
# **Try it:** `XETL_PREFETCH=5`, and look at the loop again.  (`XETL_PREFETCH=0` leaves
# out prefetches, so the assert on them stops the script.)  Then `target="bmg"`, another
# GPU.
