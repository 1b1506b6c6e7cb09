"""08  Grouped GEMM.  You will: multiply groups of rows, each by its own matrix.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# In a *mixture of experts* each token is sent to one of several networks.  Sorted by
# expert, tokens form groups; expert e has a matrix W[e], and
# Y[first[e]:first[e+1]] = X[first[e]:first[e+1]] @ W[e].  Groups have any size, also 0:
#
#     X sorted           W            programs, 4 rows each
#     +-----+ first[0]   +------+
#     | e 0 |            | W[0] |     expert 0: rows 0-3, rows 4-5
#     |     |            +------+
#     +-----+ first[1]   | W[1] |     expert 1: rows 6-8
#     | e 1 |            +------+
#     +-----+ first[2]   | W[2] |     expert 2: none
#     +-----+ first[3]   +------+
#     | e 3 |            | W[3] |     expert 3: rows 9-12, rows 13-14
#     +-----+            +------+
#
# With one launch for each expert, cores would be idle in each small group.  With one
# launch for all, each program must know its expert and its rows.  The host makes a
# short list of them.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# `WORK[p, 0]` is the expert of program p and `WORK[p, 1]` its first row within the
# group.  `X[begin:end]` is a *slice*: an array of the group's rows, whose end is an
# edge like any other.  A tile that hangs over it loads zeros and stores nothing there,
# so no program touches the rows of the next group.  No mask is needed.


# %%
@xetile.kernel(grid=lambda a: (a.WORK.shape[0], cdiv(a.Y.shape[1], a.BN)))
def grouped(
    X,
    W,
    FIRST,
    WORK,
    Y,
    BM: constexpr = 64,
    BN: constexpr = 128,
    BK: constexpr = 32,
):
    p, n = xetile.program_id(0), xetile.program_id(1) * BN
    expert, m = WORK[p, 0], WORK[p, 1]
    begin, end = FIRST[expert], FIRST[expert + 1]
    group, out = X[begin:end], Y[begin:end]
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, X.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(group, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(W[expert], [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(Y.dtype), xetile.init_tile(out, [m, n], (BM, BN)))


def work_of(first, rows=64):
    """For each program, its expert and its first row within the group."""
    pairs = [
        (expert, row)
        for expert, size in enumerate(np.diff(first))
        for row in range(0, size, rows)
    ]
    return np.array(pairs, np.int64)


# %% [markdown]
# ## Call it
# As in real networks, a few experts get many tokens; one expert gets none.

# %%
rng = np.random.default_rng(0)
experts, tokens, width, out_width = 16, 1000, 256, 384
shares = 1 / np.arange(1.0, experts + 1)
shares[5] = 0
chosen = rng.choice(experts, tokens, p=shares / shares.sum())
order = np.argsort(chosen, kind="stable")
first = np.searchsorted(chosen[order], np.arange(experts + 1)).astype(np.int64)

tokens_in = rng.integers(-4, 5, (tokens, width)).astype(np.float32)
W = rng.integers(-4, 5, (experts, width, out_width)).astype(np.float32)
X, Y = tokens_in[order], np.empty((tokens, out_width), np.float32)
work = work_of(first)

grouped(X, W, first, work, Y)


def numpy_groups():
    for e in range(experts):
        np.matmul(
            X[first[e] : first[e + 1]], W[e], out=expected[first[e] : first[e + 1]]
        )


expected = np.empty_like(Y)
numpy_groups()
assert np.array_equal(Y, expected)
print(f"{experts} groups of {np.diff(first).tolist()} rows: equal to NumPy's")
print(f"{len(work)} pieces of work in one launch")

# %% [markdown]
# ## Look inside
# The loop over k is one `xsmm.brgemm`, as in a plain product, although its rows are
# known only when the kernel runs.

# %%
text = grouped.ir("raise-to-brgemm", X, W, first, work, Y)
assert "xsmm.brgemm" in text
assert "xetile.tile_mma" not in text
print(next(line for line in text.splitlines() if "xsmm.brgemm" in line).split("<{")[0])

# %% [markdown]
# ## Change one thing: the order of the work
# Programs start in the order of the list.  If a large piece starts last, one core works
# on it while the others wait.  Here all pieces cost the same, except for the last piece
# of each group, which is smaller; so these go to the end of the list.

# %%
rows_of = np.minimum(first[work[:, 0] + 1] - first[work[:, 0]] - work[:, 1], 64)
sorted_work = work[np.argsort(-rows_of, kind="stable")]
Y[...] = 0
grouped(X, W, first, sorted_work, Y)
assert np.array_equal(Y, expected)


# %% [markdown]
# ## Measure
# We compare one launch with a loop of launches, one for each expert, and with NumPy's
# loop.


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 64), cdiv(a.C.shape[1], 128)))
def gemm(A, B, C):
    m, n = xetile.program_id(0) * 64, xetile.program_id(1) * 128
    acc = xetile.zeros((64, 128), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (64, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, 128)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (64, 128)))


def one_by_one():
    for e in range(experts):
        if first[e] < first[e + 1]:
            gemm(X[first[e] : first[e + 1]], W[e], Y[first[e] : first[e + 1]])


Y[...] = 0
one_by_one()
assert np.array_equal(Y, expected)

print(xetl.do_bench({
    "one launch": lambda: grouped(X, W, first, work, Y),
    "largest first": lambda: grouped(X, W, first, sorted_work, Y),
    "one each": one_by_one,
    "NumPy": numpy_groups,
}))  # fmt: skip

# %% [markdown]
# **Try it:** leave the tokens where they are, and let the kernel gather its rows:
# `tokens_in[rows[:, None], columns]`, with `rows` from `order`.  (12 is about gathers.)
