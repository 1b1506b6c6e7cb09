"""12  Gather, embedding, sort and top-k.  You will: move elements by index.

Needs 02.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## Indices
# A tile is a window: its elements are neighbours.  For other elements, write indices as
# in NumPy: `X[rows, columns]` loads an element for each pair.
#
#     X[rows[:, None], columns[None, :]]         rows = [2, 0, 2]
#
#           X   row 0   a b c                    result:  g h i
#               row 1   d e f           ---->             a b c
#               row 2   g h i                             g h i
#
# An index outside of the array reads as 0 and stores nothing, as a tile does.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import errors, xetile
from xetl.xetile import cdiv, constexpr

# %% [markdown]
# ## Embedding
# Each program copies the rows of 8 tokens.  The compiler sees that the columns are
# neighbours, so it gathers whole pieces of rows.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.IDS.shape[0], 8))
def embedding(TABLE, IDS, OUT, WIDTH: constexpr):
    token = xetile.program_id(0) * 8 + xetile.arange(8)
    columns = xetile.arange(WIDTH)[None, :]
    rows = IDS[token]
    OUT[token[:, None], columns] = TABLE[rows[:, None], columns]


rng = np.random.default_rng(0)
table = rng.random((5000, 300), np.float32)
ids = rng.integers(0, 5000, 4001)
out = np.empty((4001, 300), np.float32)
embedding(table, ids, out, WIDTH=300)
assert np.array_equal(out, table[ids])
print("4001 rows of a table: equal to NumPy's")

# %% [markdown]
# ## Its derivative: a scatter
# Row r of the gradient is the sum over all tokens with id r.  Two programs may add to
# the same row, so they use atomics.  A *scatter tile* has vectors as offsets.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.IDS.shape[0], 8))
def embedding_backward(IDS, DOUT, DTABLE, WIDTH: constexpr):
    first = xetile.program_id(0) * 8
    token = first + xetile.arange(8)
    rows = xetile.where(token < IDS.shape[0], IDS[token], -1)  # -1: adds nothing
    d = xetile.load_tile(xetile.init_tile(DOUT, [first, 0], (8, WIDTH)))
    target = xetile.init_tile(DTABLE, [rows[:, None], xetile.arange(WIDTH)[None, :]])
    xetile.atomic_rmw_tile("add", d, target)


d_out = rng.integers(-4, 5, out.shape).astype(np.float32)
d_table = np.zeros_like(table)
embedding_backward(ids, d_out, d_table, WIDTH=300)
expected = np.zeros_like(table)
np.add.at(expected, ids, d_out)
assert np.array_equal(d_table, expected)
print("and its derivative: equal to np.add.at")

# %% [markdown]
# ## Sort and top-k
# `sort`, `argsort` and `topk` work along an axis of a vector.  A row longer than the
# data is padded with -inf, which comes last when the largest come first.
#
#     x            3  1  4  1  5  9  2  6
#     topk(x, 3)   9  6  5     at 5 7 4


# %%
@xetile.kernel(grid=lambda a: a.X.shape[0])
def largest(X, VALUES, PLACES, N: constexpr, K: constexpr):
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)), padding=-xetile.inf)
    values, places = xetile.topk(x, K, 1)
    xetile.store_tile(values, xetile.init_tile(VALUES, [row, 0], (1, K)))
    xetile.store_tile(places, xetile.init_tile(PLACES, [row, 0], (1, K)))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def sort_rows(X, Y, N: constexpr):
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)), padding=xetile.inf)
    xetile.store_tile(xetile.sort(x, 1), xetile.init_tile(Y, [row, 0], (1, N)))


x = rng.standard_normal((1000, 500), np.float32)
values, places = np.empty((1000, 8), np.float32), np.empty((1000, 8), np.int32)
largest(x, values, places, N=512, K=8)
assert np.array_equal(places, np.argsort(-x, 1)[:, :8])
assert np.array_equal(values, np.take_along_axis(x, places, 1))

y = np.empty_like(x)
sort_rows(x, y, N=512)
assert np.array_equal(y, np.sort(x, 1))
print("sort and top-k of 1000 rows: equal to NumPy's")

# %% [markdown]
# ## Look inside
# A gather is `xetile.load_gather` on a scatter tile.

# %%
text = embedding.ir("xetile", table, ids, out, WIDTH=300)
for line in text.splitlines():
    if "load_gather" in line or "store_scatter" in line:
        print(line.strip().split(" : ")[0])

# %% [markdown]
# ## Make a mistake
# An id that the table does not have reads as zeros, and you may not notice that for a
# long time.  The interpreter reports it.

# %%
bad = np.array([3, 1, 4, 5000, 9, 2, 6, 5])
code = None
try:
    embedding.interpret(table, bad, out[:8], WIDTH=300, check="oob")
except errors.CheckError as error:
    print(error)
    code = error.code
assert code is not None

# %% [markdown]
# ## Measure
# `topk` keeps only k elements of each row while it looks at the others.  `sort` is for
# kernels that need sorted rows in the middle of other work; for sorting alone, NumPy is
# faster.

# %%
for name, ours, theirs in (
    (
        "embedding",
        lambda: embedding(table, ids, out, WIDTH=300),
        lambda: np.take(table, ids, 0, out=out),
    ),
    (
        "derivative",
        lambda: embedding_backward(ids, d_out, d_table, WIDTH=300),
        lambda: np.add.at(expected, ids, d_out),
    ),
    (
        "top-k",
        lambda: largest(x, values, places, N=512, K=8),
        lambda: np.argpartition(-x, 8, 1)[:, :8],
    ),
    ("sort", lambda: sort_rows(x, y, N=512), lambda: np.sort(x, 1)),
):
    ms, numpy_ms = (xetl.do_bench(call, return_mode="min") for call in (ours, theirs))
    print(f"{name:11} xetl {ms:7.3f} ms, NumPy / xetl {numpy_ms / ms:.2f}")

# %% [markdown]
# **Try it:** `argsort` the ids, so that programs with the same row are neighbours.  Is
# the derivative faster?
