"""05  Ready-made products.  You will: call `xetl.ops.matmul`, and pack weights once.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# A network of two layers: y = gelu(x @ W1 + b1) @ W2.  The kernel of tutorial 03 could
# compute it, but products are so common that xetl has a function for them.
# `xetl.ops.matmul` is torch's matmul, on arrays of any library, with a bias and an
# activation that are computed while a block of the result is in cache.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

from math import erf
from time import perf_counter

import numpy as np

from xetl import ops, xetile
from xetl.errors import LaunchError
from xetl.xetile import cdiv, f32

rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


x, w1, b1, w2 = numbers(300, 200), numbers(200, 800), numbers(800), numbers(800, 100)

# %% [markdown]
# ## Call it

# %%
y = ops.matmul(ops.matmul(x, w1, bias=b1, activation="gelu"), w2)

hidden = x.astype(np.float64) @ w1 + b1
hidden = 0.5 * hidden * (1 + np.vectorize(erf)(hidden / np.sqrt(2)))
np.testing.assert_allclose(y, hidden @ w2, rtol=1e-4, atol=1e-3)
print("two layers agree with NumPy's in float64")

# %% [markdown]
# Shapes are torch's.  Batches broadcast, vectors lose their dimension, and a transposed
# array is read where it is: here `keys` of attention, stored as (batch, length, heads,
# depth), without one copy.

# %%
queries, keys = numbers(2, 50, 4, 64), numbers(2, 70, 4, 64)
scores = ops.matmul(queries.transpose(0, 2, 1, 3), keys.transpose(0, 2, 3, 1))
assert scores.shape == (2, 4, 50, 70)
expected = np.einsum("bqhd,bkhd->bhqk", queries, keys)
np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
assert ops.matmul(x[0], w1).shape == (800,)

# %% [markdown]
# Shapes that do not fit are refused before anything runs.  The error names both shapes.

# %%
code = None
try:
    ops.matmul(x, w1.T)
except LaunchError as error:
    print(error)
    code = error.code
assert code == "X0827"

# %% [markdown]
# ## Look inside: packing
# Before a CPU multiplies, it *packs* B: it copies B into panels, narrow stripes that
# it then reads one number after the other.
#
#     B, row by row              panels of 2 columns
#     0 1 2 3                    0 1 4 5 8 9     2 3 6 7 10 11
#     4 5 6 7        ---->       '---------'     '-----------'
#     8 9 10 11                   first panel     second panel
#
# If A has many rows, this is little work beside the product; if it has few, it is most
# of the work.  But weights do not change: `prepack` says so, and the copy is made
# once.  (So you must not change the weights afterwards.)

# %%
weights = ops.prepack(w1)
assert np.array_equal(ops.matmul(x, weights), ops.matmul(x, w1))


# %% [markdown]
# Your own kernels can use prepacked weights as well.  For the kernel below, `explain`
# says that B is packed before the programs run; so it can use the packed copy.


# %%
@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 64), cdiv(m.C.shape[1], 256)))
def gemm(A, B, C):
    m, n = xetile.program_id(0) * 64, xetile.program_id(1) * 256
    acc = xetile.zeros((64, 256), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (64, 32)))
        acc += a @ xetile.load_tile(xetile.init_tile(B, [k, n], (32, 256)))
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (64, 256)))


C = np.empty((300, 800), np.float32)
gemm(x, weights, C)
np.testing.assert_allclose(C, x @ w1, rtol=1e-4, atol=1e-4)
assert "packed once" in str(gemm.explain(x, w1, C))

# %% [markdown]
# ## Change one thing, and measure
# The same weights for 8, 64 and 512 rows: the fewer rows, the more packing once helps.


# %%
def best_ms(function, *arguments, repeat=10):
    """The best of many runs; the first, which compiles, is not counted."""
    function(*arguments)
    times = []
    for _ in range(repeat):
        start = perf_counter()
        function(*arguments)
        times.append(perf_counter() - start)
    return min(times) * 1e3


large = numbers(2048, 2048)
weights = ops.prepack(large)
for rows in (8, 64, 512):
    a, out = numbers(rows, 2048), np.empty((rows, 2048), np.float32)
    plain, packed = (
        best_ms(ops.matmul, a, large, out),
        best_ms(ops.matmul, a, weights, out),
    )
    print(f"{rows:4} rows: {plain:.2f} ms, prepacked {packed:.2f} ms")

# %% [markdown]
# **Try it:** `activation="silu"`, or operands of bf16 with `out=` an f32 array: sums
# are f32 in any case, and are rounded once, at the end.
