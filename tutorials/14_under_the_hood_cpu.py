"""14  Under the hood on CPUs.  You will: follow a product to machine code.

Needs 03 and 05.  Runs on any CPU in a few seconds: code for another CPU can be made and
read here, though not run.
"""

# %% [markdown]
# ## Four steps
#
#     loop over k of tile_mma
#          |  raise-to-brgemm     the loop becomes one operation
#     xsmm.brgemm
#          |  a plan               block sizes and instruction, for the target
#     xsmm.pack  +  xsmm.brgemm.tile
#          |  loops                blocks that fit the caches
#     xsmm.block_gemm
#          |  micro-kernel         mr x nr sums in registers
#     vfmadd, vdpbf16ps, tdpbf16ps

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import re
from collections import Counter

import ml_dtypes
import numpy as np

import xetl
from xetl import errors, xetile
from xetl.xetile import cdiv, f32


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 128), cdiv(a.C.shape[1], 128)))
def gemm(A, B, C):
    m, n = xetile.program_id(0) * 128, xetile.program_id(1) * 128
    acc = xetile.zeros((128, 128), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (128, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, 128)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (128, 128)))


rng = np.random.default_rng(0)


def matrices(size, dtype):
    a, b = (rng.integers(-4, 5, (size, size)).astype(dtype) for _ in range(2))
    return a, b, np.empty((size, size), np.float32)


bf16, single = matrices(512, ml_dtypes.bfloat16), matrices(512, np.float32)
for a, b, c in (bf16, single):
    gemm(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
print("bf16 and f32: equal to NumPy's")

# %% [markdown]
# ## The plan
# `ir` takes a target: `avx2`, `avx512`, `avx512_bf16` or `amx`.  At the stage `xsmm`
# the product has its *plan*.  The core of it is the micro-kernel: mr x nr sums that
# stay in registers while k runs.
#
#                 one row of B's panel: nr numbers
#                 +----+----+
#                 | b0 | b1 |              for each k:
#         +---+   +----+----+                load nr of B
#      mr | a |   | mr * nr |                for each of mr: broadcast a,
#         | a |   |  sums   |                   sums += a * b
#         +---+   +---------+
#
# More sums for each load are better, until registers run out: AVX2 has 16 registers of
# 8 numbers, AVX-512 has 32 of 16.  (Some registers must stay free for a and b.)

# %%
FACTS = ("instruction", "mr", "nr", "k_pack")


def plan(target, a, b, c):
    (text,) = set(
        re.findall(r"#xsmm\.plan<(.*?)>", gemm.ir("xsmm", a, b, c, target=target))
    )
    facts = dict(fact.split(" = ") for fact in text.split(", "))
    return [facts[name] for name in FACTS]


TARGETS = ("avx2", "avx512", "avx512_bf16", "amx")
print(f"{'dtype':5} {'target':12}", *(f"{name:11}" for name in FACTS))
for name, arrays in (("f32", single), ("bf16", bf16)):
    for target in TARGETS:
        print(
            f"{name:5} {target:12}", *(f"{fact:11}" for fact in plan(target, *arrays))
        )

# %% [markdown]
# ## Packing
# The micro-kernel reads B in the order of its loop.  So B is copied into *panels* of nr
# columns, once before the programs run.  Where an instruction multiplies pairs
# (`k_pack` 2), the two numbers of a pair are neighbours: that is the VNNI order.
# Here it is in NumPy, with nr = 4:


# %%
def packed(B, nr, k_pack):
    k, n = B.shape
    groups = B.reshape(k // k_pack, k_pack, n // nr, nr)
    return groups.transpose(2, 0, 3, 1).reshape(n // nr, k // k_pack, nr * k_pack)


small = np.arange(4)[:, None] * 10 + np.arange(8)
print("B:", *small, sep="\n")
for k_pack in (1, 2):
    print(f"packed, k_pack = {k_pack}:")
    for panel in packed(small, 4, k_pack):
        print(*panel, "", sep="\n")
assert packed(small, 4, 2)[0, 0].tolist() == [0, 10, 1, 11, 2, 12, 3, 13]

# %% [markdown]
# `explain` says for each product what is packed, and when.

# %%
report = str(gemm.explain(*bf16))
assert "packed once" in report
print(report)

# %% [markdown]
# ## Machine code
# Count the instructions that multiply.  The loop of a micro-kernel has one for each
# vector of its sums (8 x 32 sums are 16 vectors of 16) and each unrolled step of k.
# There are more for the smaller blocks at the edges.

# %%
MULTIPLY = r"\b(vfmadd\w+ps|vdpbf16ps|tdpbf16ps)\b"
for target in TARGETS:
    found = Counter(re.findall(MULTIPLY, gemm.ir("asm", *bf16, target=target)))
    print(f"bf16, {target:12}", dict(found))

# %% [markdown]
# ## AMX
# AMX has eight *tile registers* of 16 rows x 64 bytes, and `tdpbf16ps` multiplies two
# of them: 16 x 32 by 32 x 16 bf16 into 16 x 16 f32.  mr = nr = 32 are four tiles of
# sums, two of A and two of B:
#
#                        B0 (16)  B1 (16)        4 products for 4 loads;
#              A0 (16)    C00      C01           one tile of sums alone would
#              A1 (16)    C10      C11           need 2 loads for 1 product
#
# There are two such loops.  In one, A streams through the L1 cache (`tileloaddt1`); in
# the other, A has few short rows, which stay in L1 (`tileloadd`, as for B).
#
# The shapes of the tiles are set by `ldtilecfg`, which takes 64 bytes and is slow.  So
# it stands once, in front of all programs of a thread, and `tilerelease` behind them.

# %%
words = Counter(re.findall(r"\w+", gemm.ir("asm", *bf16, target="amx")))
for name in ("ldtilecfg", "tileloadd", "tileloaddt1", "tdpbf16ps", "tilerelease"):
    print(f"{name:12} {words[name]}")
assert words["ldtilecfg"] == 1
assert words["tdpbf16ps"] == 2 * 4

# %% [markdown]
# ## Change one thing: the target
# Code for an older CPU runs here, too: how much do the newer instructions gain?  A
# target that this CPU cannot run is refused before anything runs.


# %%
def try_target(target, name, arrays):
    xetl.config.target = target
    try:
        ms = xetl.do_bench(lambda: gemm(*arrays), return_mode="min")
    except errors.LaunchError as error:
        return print(f"{name:5} {target:12} {str(error).splitlines()[0]}")
    finally:
        xetl.config.target = None
    return print(
        f"{name:5} {target:12} {ms:7.3f} ms, {2e-6 * 512**3 / ms:7.1f} GFLOP/s"
    )


for name, arrays in (("f32", single), ("bf16", bf16)):
    for target in TARGETS:
        try_target(target, name, arrays)
a, b, c = single
ms = xetl.do_bench(lambda: np.matmul(a, b, out=c), return_mode="min")
print(f"NumPy f32          {ms:7.3f} ms, {2e-6 * 512**3 / ms:7.1f} GFLOP/s")

# %% [markdown]
# **Try it:** `gemm.ir("NAME", ...)` shows the IR after any pass; docs/architecture.md
# has their names.  Next: 15, the same for GPUs.
