"""Kernels of the usual collections agree with NumPy on each backend."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import ported_kernels as kernels
import pytest

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


@ALL
def test_layer_norm_backward(backend: str) -> None:
    x, dy, w = normal(5, 40), normal(5, 40), normal(40)
    dx, dw, db = np.empty_like(x), np.zeros((1, 40), "f4"), np.zeros((1, 40), "f4")
    kernels.layer_norm_backward(x, w, dy, dx, dw, db, WIDTH=64, backend=backend)
    centred = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    hat, g = centred * scale, dy * w
    mean = g.mean(1, keepdims=True)
    close(dx, (g - mean - hat * (g * hat).mean(1, keepdims=True)) * scale)
    close(dw[0], (dy * hat).sum(0))
    close(db[0], dy.sum(0))


@ALL
def test_rope(backend: str) -> None:
    x, angles = normal(6, 32), normal(6, 16)
    y = np.empty_like(x)
    kernels.rope(x, np.cos(angles), np.sin(angles), y, HALF=16, backend=backend)
    turned = (x[:, :16] + 1j * x[:, 16:]) * np.exp(1j * angles)
    close(y, np.concatenate([turned.real, turned.imag], 1))


@ALL
def test_cross_entropy(backend: str) -> None:
    x, labels = normal(6, 50), np.array([3, 49, -100, 0, 7, 3], np.int64)
    loss = np.empty(6, np.float32)
    kernels.cross_entropy(x, labels, loss, -100, WIDTH=64, backend=backend)
    wanted = np.log(np.exp(x).sum(1)) - x[np.arange(6), np.maximum(labels, 0)]
    close(loss, np.where(labels == -100, 0, wanted))


@ALL
def test_segmented_sums(backend: str) -> None:
    x, starts = normal(32), (RNG.random(32) < 0.2).astype(np.int32)
    y = np.empty_like(x)
    kernels.segmented_sums(x, starts, y, N=32, backend=backend)
    pieces = np.split(x, np.flatnonzero(starts))
    close(y, np.concatenate([np.cumsum(piece) for piece in pieces]))


@ALL
def test_int4_gemm(backend: str) -> None:
    a, packed = normal(32, 64), RNG.integers(0, 256, (32, 16)).astype(np.uint8)
    scales, c = RNG.random((2, 16), np.float32), np.empty((32, 16), np.float32)
    kernels.int4_gemm(a, packed, scales, c, BK=32, backend=backend)
    b = np.stack([packed & 15, packed >> 4], 1).reshape(64, 16).astype(np.float32) - 8
    close(c, a @ (b * np.repeat(scales, 32, 0)))


@ALL
def test_convolution(backend: str) -> None:
    x, w = normal(7, 5, 16), normal(9 * 16, 16)
    y = np.zeros((7, 5, 16), np.float32)
    kernels.convolution(x, w, y, OUT=16, IN=16, backend=backend)
    wide = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    taps = [wide[i : i + 7, j : j + 5] for i in range(3) for j in range(3)]
    close(y, np.concatenate(taps, 2) @ w)


@ALL
def test_paged_attention(backend: str) -> None:
    q, k, v = normal(3, 32), normal(64, 32), normal(64, 32)
    table = np.array([[3, 0], [1, 2], [2, 3]], np.int32)
    lengths = np.array([20, 16, 5], np.int32)
    out = np.empty_like(q)
    sizes = {"PAGE": 16, "D": 32}
    kernels.paged_attention(q, k, v, table, lengths, out, **sizes, backend=backend)
    for row in range(3):
        at = (table[row][:, None] * 16 + np.arange(16)).ravel()[: lengths[row]]
        scores = np.exp(k[at] @ q[row] / np.sqrt(32))
        close(out[row], scores / scores.sum() @ v[at])


@ALL
def test_selective_scan(backend: str) -> None:
    x, delta, a = normal(3, 9), RNG.random((3, 9), np.float32), -RNG.random((3, 16))
    a, b, c = a.astype(np.float32), normal(9, 16), normal(9, 16)
    y = np.empty_like(x)
    kernels.selective_scan(x, delta, a, b, c, y, STATE=16, backend=backend)
    h, wanted = np.zeros((3, 16)), np.empty((3, 9))
    for t in range(9):
        d = delta[:, t : t + 1]
        h = np.exp(a * d) * h + b[t] * d * x[:, t : t + 1]
        wanted[:, t] = h @ c[t]
    close(y, wanted)


@ALL
def test_experts(backend: str) -> None:
    x, w = normal(40, 32), normal(3, 32, 16)
    chosen = RNG.integers(0, 3, 40)
    order = np.argsort(chosen, kind="stable").astype(np.int32)
    starts = np.searchsorted(np.sort(chosen), np.arange(4)).astype(np.int64)
    y = np.empty((40, 16), np.float32)
    kernels.experts(x, w, order, starts, y, D=32, OUT=16, backend=backend)
    close(y, np.einsum("nd,ndo->no", x, w[chosen]))


@ALL
def test_sparse_times_vector(backend: str) -> None:
    dense = normal(9, 50) * (RNG.random((9, 50)) < 0.3)
    dense[4] = 0
    rows, columns = np.nonzero(dense)
    begins = np.searchsorted(rows, np.arange(10)).astype(np.int64)
    x, y = normal(50), np.empty(9, np.float32)
    values = dense[rows, columns].astype(np.float32)
    arrays = (values, columns.astype(np.int32), begins, x, y)
    kernels.sparse_times_vector(*arrays, STEP=16, backend=backend)
    close(y, dense @ x)


@ALL
def test_split_k(backend: str) -> None:
    a, b = normal(32, 96), normal(96, 16)
    c = np.zeros((32, 16), np.float32)
    kernels.split_k(a, b, c, SPLITS=2, BK=16, backend=backend)
    close(c, a @ b)


@ALL
def test_sampled(backend: str) -> None:
    x, draws = normal(4, 50), np.array([0.0, 0.4, 0.8, 0.999], np.float32)
    tokens = np.empty(4, np.int32)
    kernels.sampled(x, draws, tokens, WIDTH=64, K=8, backend=backend)
    best = np.argsort(-x, 1)[:, :8]
    shares = np.exp(np.take_along_axis(x, best, 1).astype(np.float64))
    sums = np.cumsum(shares, 1) / shares.sum(1, keepdims=True)
    at = (sums < draws[:, None]).sum(1)
    assert np.array_equal(tokens, best[np.arange(4), at])


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_quantised_norm(dtype: type, backend: str) -> None:
    """The residual is stored, and read again, where it was loaded."""
    x, r, w = (normal(*shape).astype(dtype) for shape in ((4, 75), (4, 75), (75,)))
    wide = x.astype(np.float64) + r
    y, scales = np.empty((4, 75), np.int8), np.empty(4, np.float32)
    kernels.quantised_norm(x, r, w, y, scales, 1e-5, WIDTH=128, backend=backend)
    assert np.array_equal(r, wide.astype(dtype))
    wide *= w.astype(np.float64) / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    close(scales, np.abs(wide).max(1) / 127)
    exact = wide / scales[:, None].astype(np.float64)
    assert np.abs(y - exact).max() < 0.501


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gptq_gemm(dtype: type, backend: str) -> None:
    a = RNG.integers(-3, 4, (5, 48)).astype(dtype)
    words = RNG.integers(-(2**31), 2**31, (6, 24)).astype(np.int32)
    zeros = RNG.integers(-(2**31), 2**31, (3, 3)).astype(np.int32)
    scales = RNG.choice([0.5, 1.0, 2.0], (3, 24)).astype(np.float32)
    c, k, n = np.empty((5, 24), np.float32), np.arange(48), np.arange(24)
    arrays = (a, words, zeros, scales, c)
    kernels.gptq_gemm[2](*arrays, GROUP=16, N=16, K=16, backend=backend)
    weights = words[k // 8] >> (k % 8 * 4)[:, None] & 15
    weights = weights - (zeros[:, n // 8] >> n % 8 * 4 & 15)[k // 16]
    assert np.array_equal(c, a.astype(np.float64) @ (weights * scales[k // 16]))


@ALL
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_suppressed(dtype: type, backend: str) -> None:
    low, size = RNG.random((23, 2)) * 10, RNG.random((23, 2)) * 4 + 1
    boxes = np.concatenate([low, low + size], 1).astype(np.float32)
    scores, kept = RNG.random(23, np.float32), np.ones(23, dtype)
    kernels.suppressed(boxes, scores, kept, 0.3, N=32, backend=backend)
    wanted, left = np.zeros(23), np.ones(23, bool)
    x0, y0, x1, y1 = boxes.T
    for b in np.argsort(-scores):
        if left[b]:
            wanted[b] = 1
            wide = np.minimum(x1, x1[b]) - np.maximum(x0, x0[b])
            high = np.minimum(y1, y1[b]) - np.maximum(y0, y0[b])
            both = np.maximum(wide, 0) * np.maximum(high, 0)
            area = (x1 - x0) * (y1 - y0)
            left &= both <= 0.3 * (area + area[b] - both)
    assert 0 < wanted.sum() < 23
    assert np.array_equal(kept, wanted)


@ALL
def test_viterbi(backend: str) -> None:
    emitted, steps = normal(9, 5), normal(5, 5)
    back, path = np.zeros((9, 5), np.int32), np.empty(9, np.int64)
    kernels.viterbi(emitted, steps, back, path, N=8, backend=backend)
    score, found = emitted[0].astype(np.float64), np.zeros((9, 5), int)
    for t in range(1, 9):
        found[t] = (score[:, None] + steps).argmax(0)
        score = (score[:, None] + steps).max(0) + emitted[t]
    last = int(score.argmax())
    for t in range(8, -1, -1):
        assert path[t] == last
        last = found[t, last]
