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

from tests import example_kernels as family
from tests.backends.xegpu import device
from xetl import xetile

BACKENDS = ["reference", "cpu", pytest.param("xegpu", marks=pytest.mark.slow)]
UNIT = {np.float16: 2.0**-11, ml_dtypes.bfloat16: 2.0**-8, np.float32: 2.0**-24}
few = settings(max_examples=10)
sizes = st.integers(1, 70)


gemm, softmax = xetile.kernel(family.gemm), xetile.kernel(family.softmax)
layer_norm = xetile.kernel(family.layer_norm)
attention = xetile.kernel(family.attention_of_heads)


def cdiv(a, b):
    return -(-a // b)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", UNIT)
@few
@given(m=sizes, n=sizes, k=sizes, seed=st.integers(0, 99))
def test_gemm(backend, dtype, m, n, k, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), dtype)
    gemm[cdiv(m, 32), cdiv(n, 32)](a, b, c, BM=32, BN=32, BK=32, backend=backend)
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact, size = x @ y, np.abs(x) @ np.abs(y)
    # k products and k sums in f32, then the type of c.
    bound = (2 * k + 1) * 2.0**-24 * size + UNIT[dtype] * np.abs(exact) * 1.01
    assert (np.abs(c.astype(np.float64) - exact) <= bound + 1e-7).all()


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


@pytest.mark.parametrize("backend", BACKENDS)
@few
@given(m=st.integers(1, 9), n=st.integers(2, 128), seed=st.integers(0, 99))
def test_layer_norm(backend, m, n, seed):
    device.require(backend)
    rng = np.random.default_rng(seed)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, n), n, n))
    y = np.zeros((m, n), np.float32)
    layer_norm[m](x, w, b, y, 1e-2, N=128, backend=backend)
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
