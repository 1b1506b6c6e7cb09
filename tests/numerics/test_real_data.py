"""Real data on all backends against f64, within bounds that are derived.

u is half an ulp of 1 in the type: 2**-24 for f32, 2**-11 for f16, 2**-8 for bf16.
A sum of n terms in f32, in any order, is off by less than n * u * sum(|terms|)
(Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2); products of
f16 and bf16 are exact in f32.
"""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.xegpu import device
from xetl import xetile
from xetl.xetile import constexpr, f32

BACKENDS = ["reference", "cpu", pytest.param("xegpu", marks=pytest.mark.slow)]
UNIT = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8, np.float32: 2.0**-24}
few = settings(max_examples=10, deadline=None)
sizes = st.integers(1, 70)


def cdiv(a, b):
    return -(-a // b)


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 32, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", UNIT)
@few
@given(m=sizes, n=sizes, k=sizes, seed=st.integers(0, 99))
def test_gemm(backend, dtype, m, n, k, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), dtype)
    gemm[cdiv(m, 32), cdiv(n, 32)](a, b, c, backend=backend)
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact, size = x @ y, np.abs(x) @ np.abs(y)
    # k products and k sums in f32, then the type of c.
    bound = (2 * k + 1) * 2.0**-24 * size + UNIT[dtype] * np.abs(exact) * 1.01
    assert (np.abs(c.astype(np.float64) - exact) <= bound + 1e-7).all()


@xetile.kernel
def softmax(X, Y, N: constexpr, BM: constexpr = 4):
    row = xetile.program_id(0) * BM
    tile = xetile.init_tile(X, [row, 0], (BM, N))
    x = xetile.load_tile(tile, padding=-xetile.inf).to(f32)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(axis=-1)[:, None]
    xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, [row, 0], (BM, N)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", UNIT)
@few
@given(m=sizes, n=sizes, seed=st.integers(0, 99))
def test_softmax(backend, dtype, m, n, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    x = (3 * rng.standard_normal((m, n))).astype(dtype)
    y = np.zeros((m, n), dtype)
    softmax[cdiv(m, 4)](x, y, N=64 if n <= 64 else 128, backend=backend)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    exact = e / e.sum(1, keepdims=True)
    # x - max is off by u * |x - max| <= 20 u, exp by 4 ulp, the sum by n u, / by 2 ulp.
    bound = (20 + 8 + n + 20 + 8 + 4) * 2.0**-24 * exact
    bound += UNIT[dtype] * exact * 1.01 + 6e-8
    assert (np.abs(y.astype(np.float64) - exact) <= bound).all()


@xetile.kernel
def layer_norm(X, W, B, Y, eps, N: constexpr = 128):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[i], [0], (N,)))
    inside = xetile.arange(N) < X.shape[1]
    d = xetile.where(inside, x - x.sum(0) / X.shape[1], 0.0)
    y = d * xetile.rsqrt((d**2).sum() / X.shape[1] + eps)
    y *= xetile.load_tile(xetile.init_tile(W, [0], (N,)))
    y += xetile.load_tile(xetile.init_tile(B, [0], [N]))
    xetile.store_tile(y, xetile.init_tile(Y[i], [0], (N,)))


@pytest.mark.parametrize("backend", BACKENDS)
@few
@given(m=st.integers(1, 9), n=st.integers(2, 128), seed=st.integers(0, 99))
def test_layer_norm(backend, m, n, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, n), n, n))
    y = np.zeros((m, n), np.float32)
    layer_norm[m](x, w, b, y, 1e-2, backend=backend)
    wide = x.astype(np.float64)
    d = wide - wide.mean(1, keepdims=True)
    scale = 1 / np.sqrt((d**2).mean(1, keepdims=True) + 1e-2)
    exact = d * scale * w + b
    # The mean is off by n u times the mean of |x|, the variance by twice as much;
    # eps keeps the scale below 10.
    mean_error = (n + 4) * 2.0**-24 * np.abs(wide).max()
    bound = mean_error * 10 * np.abs(w) + (2 * n + 30) * 2.0**-24 * np.abs(
        d * scale * w
    )
    assert (np.abs(y - exact) <= bound + 2.0**-22 * (1 + np.abs(exact))).all()


@xetile.kernel
def attention(Q, K, V, OUT, scale, B: constexpr = 16, D: constexpr = 64):
    b, h = xetile.program_id(0), xetile.program_id(1)
    row = xetile.program_id(2) * B
    q = xetile.load_tile(xetile.init_tile(Q[b, h], [row, 0], (B, D)))
    k = xetile.init_tile(K[b, h].T, [0, 0], (D, B))
    v = xetile.init_tile(V[b, h], [0, 0], (B, D))
    m, s = xetile.full((B, 1), -xetile.inf, f32), xetile.zeros((B, 1))
    acc = xetile.zeros((B, D))
    for start in range(0, K.shape[2], B):
        p = xetile.tile_mma(q, xetile.load_tile(k)) * scale
        p = xetile.where(xetile.arange(B) + start < K.shape[2], p, -xetile.inf)
        new = xetile.maximum(m, p.max(1, keepdims=True))
        p, old = xetile.exp(p - new), xetile.exp(m - new)
        s = s * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(V.dtype), xetile.load_tile(v), acc * old)
        m = new
        k = xetile.update_tile_offset(k, [0, B])
        v = xetile.update_tile_offset(v, [B, 0])
    out = xetile.init_tile(OUT[b, h], [row, 0], (B, D))
    xetile.store_tile((acc / s).to(OUT.dtype), out)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@few
@given(n=sizes, d=st.integers(1, 64), seed=st.integers(0, 99))
def test_attention(backend, dtype, n, d, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((2, 3, n, d)).astype(dtype) for _ in range(3))
    out = np.zeros((2, 3, n, d), np.float32)
    attention[2, 3, cdiv(n, 16)](q, k, v, out, d**-0.5, backend=backend)
    x, y, z = (a.astype(np.float64) for a in (q, k, v))
    logits = np.einsum("bhid,bhjd->bhij", x, y) * d**-0.5
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    exact = p @ z
    # Weights are off by the rounding of p, and by that of the logits (|logit| < 40).
    bound = (UNIT[dtype] + (2 * d + n + 120) * 2.0**-24) * (p @ np.abs(z)) * 1.1
    assert (np.abs(out - exact) <= bound + 1e-6).all()
