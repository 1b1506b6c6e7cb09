"""09  int8 and fp8.  You will: quantize matrices, multiply, and scale the result.

Needs 03.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## The mathematics
# Weights of one byte instead of four take a quarter of the memory, and a quarter of the
# time to read it.  A *scale* is the size of one step:
#
#     Aq = round(A / sa)    with sa = max |A| / 127, one for each row of A
#     Bq = round(B / sb)    with sb = max |B| / 127, one for each column of B
#     A @ B  is nearly  (Aq @ Bq) * sa * sb
#
#                      sb  sb  sb
#                    +-----------+
#                    |    Bq     |  a scale for each column
#                    +-----------+
#     sa  +-------+  +-----------+
#     sa  |  Aq   |  | i32 sums  |  * sa * sb, once, behind the loop
#     sa  +-------+  +-----------+
#
# The scale of a row or a column is a factor of the whole sum over k, so the kernel can
# multiply by it once, at the end.  Products of bytes are summed exactly, as i32.

# %%
import os

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import ml_dtypes
import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# %% [markdown]
# ## The kernel
# One kernel is enough for both: SUMS is i32 for bytes, and f32 for 8-bit floats.


# %%
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)))
def scaled_gemm(
    A,
    B,
    SA,
    SB,
    C,
    SUMS: constexpr = f32,
    BM: constexpr = 128,
    BN: constexpr = 128,
    BK: constexpr = 64,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), SUMS)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    sa = xetile.load_tile(xetile.init_tile(SA, [m, 0], (BM, 1)))
    sb = xetile.load_tile(xetile.init_tile(SB, [0, n], (1, BN)))
    xetile.store_tile(acc.to(f32) * sa * sb, xetile.init_tile(C, [m, n], (BM, BN)))


# %% [markdown]
# ## Quantize
# Each program reads its row twice: to find the largest value, and to round.  B is
# quantized by columns, which are the rows of `B.T`.


# %%
@xetile.kernel(grid=lambda a: a.X.shape[0])
def quantize(X, Q, S, LARGEST: constexpr, N: constexpr):
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
    scale = xetile.maximum(xetile.abs(x).max(), 1e-30) / LARGEST
    q = x / scale
    if Q.dtype == xetile.i8:
        q = xetile.round(q)
    xetile.store_tile(q.to(Q.dtype), xetile.init_tile(Q, [row, 0], (1, N)))
    S[row] = scale.to(f32)


def quantized(X, dtype, largest):
    Q, S = np.empty(X.shape, dtype), np.empty(X.shape[0], np.float32)
    quantize(X, Q, S, LARGEST=largest, N=X.shape[1])
    return Q, S


# %% [markdown]
# ## Call it
# Weights of networks are nearly normal, with a few large ones.

# %%
rng = np.random.default_rng(0)
M, N, K = 512, 512, 1024
A = rng.standard_normal((M, K), np.float32)
B = rng.standard_normal((K, N), np.float32)
B[rng.integers(0, K, 20), rng.integers(0, N, 20)] *= 10
C, exact = np.empty((M, N), np.float32), A.astype(np.float64) @ B

Aq, sa = quantized(A, np.int8, 127)
Bq, sb = quantized(np.ascontiguousarray(B.T), np.int8, 127)
Bq = np.ascontiguousarray(Bq.T)
assert np.array_equal(Aq, np.round(A / sa[:, None]))

scaled_gemm(Aq, Bq, sa[:, None], sb[None, :], C, SUMS=xetile.i32)
sums = Aq.astype(np.int32) @ Bq.astype(np.int32)
np.testing.assert_allclose(C, sums * sa[:, None] * sb, rtol=1e-5, atol=1e-6)


def error():
    return np.sqrt(((C - exact) ** 2).mean() / (exact**2).mean())


print(f"int8: sums equal to NumPy's; error of the result {error():.2%}")
int8_error = error()

# %% [markdown]
# ## Change one thing: 8-bit floats
# `float8_e4m3fn` has 4 bits of exponent and 3 of mantissa, and goes up to 448.  Where
# int8 has equal steps, fp8 has steps that grow with the number:
#
#     int8   |   |   |   |   |   |   |   |   |   |   |   |   |
#     fp8    |||||||| | | | | | | |   |   |   |       |      |
#            0                                            largest
#
# So one large weight in a column makes int8 less exact than fp8.  Without large
# weights, int8 is more exact.

# %%
Af, saf = quantized(A, ml_dtypes.float8_e4m3fn, 448)
Bf, sbf = quantized(np.ascontiguousarray(B.T), ml_dtypes.float8_e4m3fn, 448)
Bf = np.ascontiguousarray(Bf.T)

scaled_gemm(Af, Bf, saf[:, None], sbf[None, :], C)
wide = Af.astype(np.float32) @ Bf.astype(np.float32)
np.testing.assert_allclose(C, wide * saf[:, None] * sbf, rtol=1e-3, atol=1e-2)
print(f"fp8:  error of the result {error():.2%}")
assert int8_error < 0.03
assert error() < 0.06

# %% [markdown]
# ## Look inside
# `explain` says what a product of bytes became on this CPU: AVX512-VNNI and AMX have an
# instruction that multiplies groups of four bytes.

# %%
print(scaled_gemm.explain(Aq, Bq, sa[:, None], sb[None, :], C, SUMS=xetile.i32))

# %% [markdown]
# ## Measure
# NumPy has no fast product of bytes: it uses no BLAS for integers.

# %%
ones_a, ones_b = np.ones((M, 1), np.float32), np.ones((1, N), np.float32)
print(xetl.do_bench({
    "int8": lambda: scaled_gemm(Aq, Bq, sa[:, None], sb[None, :], C, SUMS=xetile.i32),
    "fp8": lambda: scaled_gemm(Af, Bf, saf[:, None], sbf[None, :], C),
    "f32": lambda: scaled_gemm(A, B, ones_a, ones_b, C),
    "NumPy f32": lambda: np.matmul(A, B, out=C),
}))  # fmt: skip
print(f"bytes of the weights: f32 {B.nbytes:,}, int8 and fp8 {Bq.nbytes:,}")

# %% [markdown]
# Newer formats have a scale for each 32 numbers along k (*microscaling*, MX).  Such a
# scale cannot wait until the end: `xetile.dot_scaled` multiplies by it inside.
#
# **Try it:** one scale for all of A and one for all of B.  How much larger is
# the error?
