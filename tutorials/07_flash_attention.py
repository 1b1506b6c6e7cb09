"""07  Flash attention.  You will: compute a softmax of rows that are never stored.

Needs 02 and 03.  Runs on any CPU in a few seconds.  `--plot` as well draws
07_flash_attention.png.
"""

# %% [markdown]
# ## The mathematics
# Attention is softmax(Q @ K.T * scale) @ V.  For a sequence of length n the scores are
# n x n: 64 MB at n = 4096, for each head.  The result is small, and so are Q, K and V.
#
# The kernel walks along K and V in blocks and keeps three things for each row of Q:
# the largest score so far `m`, the sum of exponentials so far `s`, and the weighted sum
# of V so far `acc`.  When a block has a larger maximum, everything before it was
# computed with the wrong maximum.  One factor, exp(m_old - m_new), corrects `s` and
# `acc`:
#
#               K.T   block 0     block 1     block 2
#                   +-----------+-----------+-----------+
#     Q  64 rows -> | scores    | scores    | scores    |   one block at a time
#                   +-----------+-----------+-----------+
#     m of a row        3.1         3.1         4.0         largest so far
#     factor                        1.0         exp(3.1 - 4.0)
#     s, acc  =  (s, acc) * factor  +  what this block adds
#
# At the end, acc / s is the result.  This is called an *online softmax*.

# %%
import os
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# * `K[b, h]` is the matrix of one head, a view.  `.T` turns it without a copy.
# * Keys behind the end load as zeros, and their score would be 0.  `where` makes it
#   -inf, so that its exponential is 0.
# * With CAUSAL, row i sees the keys up to i only.  The loop ends at the last row of
#   this program, and leaves out the blocks behind it.


# %%
@xetile.kernel(grid=lambda a: (*a.Q.shape[:2], cdiv(a.Q.shape[2], a.BM)))
def attention(
    Q,
    K,
    V,
    OUT,
    scale,
    D: constexpr,
    CAUSAL: constexpr = False,
    BM: constexpr = 64,
    BN: constexpr = 64,
):
    b, h = xetile.program_id(0), xetile.program_id(1)
    row = xetile.program_id(2) * BM
    n = K.shape[2]
    end = xetile.minimum(row + BM, n) if CAUSAL else n
    q = xetile.load_tile(xetile.init_tile(Q[b, h], [row, 0], (BM, D)))
    m, s = xetile.full((BM, 1), -xetile.inf, f32), xetile.zeros((BM, 1))
    acc = xetile.zeros((BM, D))
    for start in range(0, end, BN):
        k = xetile.load_tile(xetile.init_tile(K[b, h].T, [0, start], (D, BN)))
        v = xetile.load_tile(xetile.init_tile(V[b, h], [start, 0], (BN, D)))
        scores = xetile.tile_mma(q, k) * scale
        key = start + xetile.arange(BN)[None, :]
        seen = key < n
        if CAUSAL:
            seen = seen & (key <= row + xetile.arange(BM)[:, None])
        scores = xetile.where(seen, scores, -xetile.inf)
        m_new = xetile.maximum(m, scores.max(1, keepdims=True))
        factor, p = xetile.exp(m - m_new), xetile.exp(scores - m_new)
        s = s * factor + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(V.dtype), v, acc * factor)
        m = m_new
    xetile.store_tile(
        (acc / s).to(OUT.dtype), xetile.init_tile(OUT[b, h], [row, 0], (BM, D))
    )


# %% [markdown]
# ## Call it


# %%
def numpy_attention(q, k, v, scale, causal):
    scores = q @ np.swapaxes(k, 2, 3) * np.asarray(scale, q.dtype)
    if causal:
        length = q.shape[2]
        scores[..., ~np.tri(length, dtype=bool)] = -np.inf
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores @ v


rng = np.random.default_rng(0)


def operands(batch, heads, length, depth):
    made = rng.standard_normal((3, batch, heads, length, depth), np.float32)
    return (*made, np.empty(made.shape[1:], np.float32), depth**-0.5)


q, k, v, out, scale = operands(2, 3, 333, 64)
for causal in (False, True):
    attention(q, k, v, out, scale, D=64, CAUSAL=causal)
    wide = (each.astype(np.float64) for each in (q, k, v))
    expected = numpy_attention(*wide, scale, causal)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
print("2 x 3 heads, 333 long: equal to NumPy's, with and without a causal mask")

# %% [markdown]
# ## Look inside
# Both products are `xsmm.brgemm`.  The scores of a block are 64 x 64 numbers, 16 KB:
# they stay in cache.  No array of length x length is ever made.

# %%
text = attention.ir("raise-to-brgemm", q, k, v, out, scale, D=64)
print(text.count("xsmm.brgemm"), "products in the loop")
assert "333x333" not in text

# %% [markdown]
# ## Change one thing: the mask
# A causal mask leaves half of the scores.  NumPy computes all of them and then hides
# half.  The kernel does not visit blocks that are hidden.  `xetl.ops` has the same
# function ready-made, with torch's name, and with more care for odd shapes.

# %%
q, k, v, out, scale = operands(1, 2, 1024, 64)
times = {}
for causal in (False, True):
    times[causal] = xetl.do_bench({
        "this kernel": lambda: attention(q, k, v, out, scale, D=64, CAUSAL=causal),
        "xetl.ops": lambda: ops.scaled_dot_product_attention(q, k, v, is_causal=causal),
        "NumPy": lambda: numpy_attention(q, k, v, scale, causal),
    })  # fmt: skip
    print(f"2 heads, 1024 long, causal={causal}")
    print(times[causal])

# %% [markdown]
# ## A picture
# Twice the length is four times the work, for both.  NumPy's scores
# leave the cache.

# %%
if __name__ == "__main__" and "--plot" in sys.argv:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    lengths = [128, 256, 512, 1024, 2048]
    lines = {"xetl": [], "xetl, causal": [], "NumPy": []}
    for length in lengths:
        q, k, v, out, scale = operands(1, 2, length, 64)
        calls = (
            lambda: attention(q, k, v, out, scale, D=64),
            lambda: attention(q, k, v, out, scale, D=64, CAUSAL=True),
            lambda: numpy_attention(q, k, v, scale, causal=False),
        )
        for line, call in zip(lines.values(), calls):
            line.append(xetl.do_bench(call, return_mode="min"))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, line in lines.items():
        axes.loglog(lengths, line, "o-", base=2, label=name)
    axes.set(xlabel="length", ylabel="ms", title="attention, 2 heads, depth 64")
    axes.legend()
    figure.savefig("07_flash_attention.png", dpi=120)

# %% [markdown]
# **Try it:** bf16 operands (`ml_dtypes.bfloat16`): the scores stay f32, and `p` is
# rounded for the second product.  How far is the result from that of f32?
