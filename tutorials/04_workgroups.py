"""04  Workgroups.  You will: spread tiles over subgroups, and see when data moves.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The machine
# A program is a *workgroup*.  On a GPU that is a team of *subgroups*, each with
# registers of its own, and with a small memory that they share.  A kernel is written
# for the workgroup: `acc` below is 64 x 64, and nobody says who computes what.  A *map*
# says it: `sg_layout` is how the subgroups stand, `sg_data` what each takes at a time.
#
# Ids count along the rows of `sg_layout`.  If data is left when everyone has some, it
# goes round again; if it ends before, the rest share it.

# %%
import re

import numpy as np

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32, wg_map

C_MAP = wg_map(sg_layout=[2, 2], sg_data=[32, 32])
ROW_MAP = wg_map(sg_layout=[2, 2], sg_data=[1, 32])
WHOLE_ROWS = wg_map(sg_layout=[4, 1], sg_data=[16, 64])

# %% [markdown]
# Who owns what of a 64 x 64 tile?  With the first map each of four subgroups has a
# quarter; with the second, rows; and the third is for a single row, which two share.

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
# Only `tile_mma` is told its map: what its operands need follows from that of its
# result, and so on backwards to the loads.  Where a value is wanted under another map
# than it has, stands a `tile_conv_layout`: the same numbers, in other subgroups.


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
# A map is about speed and never changes a result.  On a CPU a program is one thread,
# and maps do nothing at all.

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
# it lies in memory: its map is that of B with rows and columns swapped, and with ids
# that count down the columns, so that each subgroup loads just what it will transpose.

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
# At the stage `xetile-sg` one subgroup is left.  It asks which one it is, and its tiles
# are parts: 32 x 32 of C.  The `tile_conv_layout` has become stores to shared memory, a
# barrier, loads of what others have stored, a barrier.  But not of 64 x 64 elements:
# the sum behind it was seen.  Each subgroup adds up what it has of a row, and what
# changes hands are two partial sums a row.

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
# Let each subgroup compute whole rows from the start.  Nothing changes hands any more.
# But it needs all of B for its 16 rows, and so it loads more for every step in k: that
# is why a product is split in both directions.

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
# **Try it:** `WG=None`.  Which map does xetl choose?  Print the stage `xetile-mapped`.
