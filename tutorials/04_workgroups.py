"""04  Workgroups.  You will: spread tiles over subgroups, and see when data moves.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The machine
# A program is a *workgroup*.  On a GPU a workgroup consists of *subgroups*.  Each has
# registers of its own, and all share a small memory.  You write the kernel for the
# workgroup: `acc` below is 64 x 64.  A *map* says which subgroup computes which part:
# `sg_layout` arranges the subgroups in rows and columns, and `sg_data` is the block
# that a subgroup takes at a time.
#
# Subgroups are numbered along the rows of `sg_layout`.  If a tile has more blocks than
# there are subgroups, the first subgroup takes the next block, and so on.  If it has
# fewer, several subgroups hold the same block.

# %%
import re

import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32, wg_map

C_MAP = wg_map(sg_layout=[2, 2], sg_data=[32, 32])
ROW_MAP = wg_map(sg_layout=[2, 2], sg_data=[1, 32])
WHOLE_ROWS = wg_map(sg_layout=[4, 1], sg_data=[16, 64])

# %% [markdown]
# Which subgroup owns which part of a 64 x 64 tile?  With the first map each of four
# subgroups has a quarter; with the second each has 16 rows.  The third map is for a
# single row, and two subgroups hold each half of it.

# %%
C_MAP.show([64, 64])
WHOLE_ROWS.show([64, 64])
ROW_MAP.show([1, 64])

# %% [markdown]
# ## The mathematics
# s[i] = sum over j of (A @ B + bias)[i, j], where memory holds B transposed.  It is the
# second GEMM of the XeTile RFC, with four subgroups instead of 32:
# * a product, of which each subgroup computes a quarter;
# * a transpose in front of it, and a row that is repeated behind it;
# * a sum along rows, for which a subgroup wants whole rows, and not quarters.
#
# ## The kernel
# Only `tile_mma` is given a map, that of its result.  xetl derives the maps of its
# operands, and so on back to the loads.  `tile_conv_layout` changes the map of a
# value: it moves the same numbers to other subgroups.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.A.shape[0], 64))
def row_sums(A, BT, BIAS, SUMS, WG: constexpr = C_MAP):
    i = xetile.program_id(0) * 64
    sums = xetile.zeros((64, 1), f32)
    for j in range(0, BT.shape[0], 64):
        acc = xetile.zeros((64, 64), f32)
        for k in range(0, A.shape[1], 32):
            a = xetile.load_tile(xetile.init_tile(A, [i, k], (64, 32)))
            bt = xetile.load_tile(xetile.init_tile(BT, [j, k], (64, 32)))
            acc = xetile.tile_mma(a, xetile.tile_transpose(bt, [1, 0]), acc, wg_map=WG)
        bias = xetile.load_tile(xetile.init_tile(BIAS, [0, j], (1, 64)))
        c = acc + xetile.tile_broadcast(bias, [0], (64, 64))
        rows = xetile.tile_conv_layout(c, WHOLE_ROWS)
        sums = sums + xetile.tile_reduce("add", rows, [1])
    xetile.store_tile(sums, xetile.init_tile(SUMS, [i, 0], (64, 1)))


# %% [markdown]
# ## Call it
# A map changes the speed on a GPU, and never a result.  On a CPU a program is one
# thread, and a map changes nothing.

# %%
rng = np.random.default_rng(0)


def integers(*shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


A, BT, BIAS = integers(100, 70), integers(150, 70), integers(1, 150)
SUMS = np.empty((100, 1), np.float32)
expected = (A @ BT.T + BIAS).sum(1, keepdims=True)

for WG in (C_MAP, WHOLE_ROWS, None):
    SUMS[...] = 0
    row_sums(A, BT, BIAS, SUMS, WG=WG)
    assert np.array_equal(SUMS, expected)
print("100 row sums: equal to NumPy's, whatever the map")

# %% [markdown]
# ## Look inside
# The passes that split a kernel among subgroups run for any backend, so a CPU can show
# what a GPU gets.  At the stage `xetile-mapped` every value has a map.  BT is loaded as
# it lies in memory: its map is that of B with rows and columns swapped, and subgroups
# are numbered down the columns, so each subgroup loads what it then transposes.

# %%
arguments = (A, BT, BIAS, SUMS)


def ops(text, name):
    """The lines with an operation, without types."""
    found = [line.strip() for line in text.splitlines() if f" {name}" in line]
    return [line.split(" : ")[0] for line in found]


mapped = row_sums.ir("xetile-mapped", *arguments)
for name in ("xetile.tile_mma", "xetile.tile_conv_layout", "xetile.tile_reduce"):
    print(*ops(mapped, name))
assert "order = [0, 1]" in mapped

# %% [markdown]
# The stage `xetile-sg` is the code of one subgroup.  It asks for its number, and its
# tiles are parts: 32 x 32 of C.  The `tile_conv_layout` has become stores to shared
# memory, a barrier, loads of what others have stored, and a barrier.  The compiler has
# seen that a sum follows: each subgroup first adds up its part of a row, so shared
# memory holds two partial sums for each row, and not 64 x 64 elements.

# %%
quarters = row_sums.ir("xetile-sg", *arguments)
assert "vector<32x32xf32>" in quarters
assert "vector<64x64xf32>" not in quarters
(shared,) = re.findall(r"memref.alloc.* : memref<(\d+)xi8, 3", quarters)
assert int(shared) == 64 * 2 * 4
print(*ops(quarters, "gpu.subgroup_id"))
print(f"{shared} bytes of shared memory, {quarters.count('gpu.barrier')} barriers")

# %% [markdown]
# ## Change one thing
# Let each subgroup compute whole rows from the start.  Then no data moves between
# subgroups.  But each subgroup needs all of B for its 16 rows, so it loads more for
# each step in k.  That is why a product is split in both directions.

# %%
rows = row_sums.ir("xetile-sg", *arguments, WG=WHOLE_ROWS)
assert "gpu.barrier" not in rows


def loaded(text):
    """Elements of A and B that a subgroup loads for a step."""
    shapes = re.findall(r"xetile.load_tile .*-> vector<(\d+)x(\d+)xf32>", text)
    return sum(int(height) * int(width) for height, width in shapes[:2])


assert loaded(quarters) == 32 * 32 + 32 * 32
assert loaded(rows) == 16 * 32 + 32 * 64
print(f"a subgroup loads {loaded(quarters)} elements a step, or {loaded(rows)}")

# %% [markdown]
# ## Measure
# On a CPU both maps take the same time, and NumPy needs a product and a sum.

# %%
A, BT, BIAS = integers(1024, 512), integers(1024, 512), integers(1, 1024)
SUMS = np.empty((1024, 1), np.float32)
print(xetl.do_bench({
    "quarters": lambda: row_sums(A, BT, BIAS, SUMS, WG=C_MAP),
    "whole rows": lambda: row_sums(A, BT, BIAS, SUMS, WG=WHOLE_ROWS),
    "NumPy": lambda: (A @ BT.T + BIAS).sum(1, keepdims=True),
}))  # fmt: skip

# %% [markdown]
# **Try it:** `WG=None`.  Which map does xetl choose?  Print the stage `xetile-mapped`.
