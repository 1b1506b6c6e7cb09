"""Any shape, any tile: cpu == reference == NumPy, exactly."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from launching import agree, laid_out, same, small_integers

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")

# Each tile is a compilation: few of them, with many shapes each.
every = settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
sizes = st.integers(1, 70)
seeds = st.integers(0, 2**32)
layouts = st.sampled_from(["rows", "columns", "neither"])
dtypes = st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16])
extents = st.sampled_from([1, 17, 64])


@xetile.kernel
def gemm(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    acc = acc + 1.0
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@every
@given(sizes, sizes, sizes, extents, extents, extents, dtypes, layouts, layouts, seeds)
def test_gemm(
    m: int,
    n: int,
    k: int,
    bm: int,
    bn: int,
    bk: int,
    dtype: Any,
    of_a: str,
    of_b: str,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (
        small_integers(rng, m, k, dtype=dtype),
        small_integers(rng, k, n, dtype=dtype),
    )
    c = np.zeros((m, n), np.float32)
    args = laid_out(a, of_a), laid_out(b, of_b), c
    out = agree(gemm, (cdiv(m, bm), cdiv(n, bn)), *args, BM=bm, BN=bn, BK=bk)
    same(out[2], a.astype(np.float32) @ b.astype(np.float32) + 1)


@xetile.kernel
def by_rows(X, W, Y, Total, R: constexpr, C: constexpr):
    r = xetile.program_id(0) * R
    x = xetile.load_tile(xetile.init_tile(X, [r, 0], (R, C)))
    w = xetile.load_tile(xetile.init_tile(W, [0], (C,)))
    top = x.max(1, keepdims=True)
    d = xetile.where(xetile.arange(C)[None, :] < X.shape[1], x - top, 0.0)
    y = d * w + xetile.abs(d).sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [r, 0], (R, C)))
    xetile.store_tile(y.sum(1), xetile.init_tile(Total, [r], (R,)))


@every
@given(sizes, sizes, st.sampled_from([1, 3, 16]), layouts, layouts, seeds)
def test_rows(m: int, n: int, r: int, of_x: str, of_y: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = abs(small_integers(rng, m, n))
    w = small_integers(rng, n)
    out = agree(
        by_rows,
        cdiv(m, r),
        laid_out(x, of_x),
        w,
        laid_out(0 * x, of_y),
        np.zeros(m, np.float32),
        R=r,
        C=70,
    )
    d = x - x.max(1, keepdims=True)
    y = d * w + abs(d).sum(1, keepdims=True)
    same(out[2], y)
    outside = (70 - n) * abs(d).sum(1)
    same(out[3], y.sum(1) + outside)


@xetile.kernel
def moved(X, Y, row, col, R: constexpr, C: constexpr):
    r, c = xetile.program_id(0) * R, xetile.program_id(1) * C
    t = xetile.init_tile(X, [r + row, c + col], (R, C))
    v = xetile.load_tile(t, padding=3)
    xetile.store_tile(v.T, xetile.init_tile(Y, [c, r], (C, R)))


@every
@given(
    sizes,
    sizes,
    extents,
    extents,
    st.integers(-9, 9),
    st.integers(-9, 9),
    layouts,
    layouts,
    seeds,
)
def test_shifted_transposes(
    m: int, n: int, r: int, c: int, row: int, col: int, of_x: str, of_y: str, seed: int
) -> None:
    x = small_integers(np.random.default_rng(seed), m, n)
    padded = np.full((m + 20, n + 20), 3, np.float32)
    padded[10 : 10 + m, 10 : 10 + n] = x
    y = laid_out(np.zeros((n, m), np.float32), of_y)
    grid = (cdiv(m, r), cdiv(n, c))
    out = agree(moved, grid, laid_out(x, of_x), y, row, col, R=r, C=c)
    same(out[1], padded[10 + row : 10 + row + m, 10 + col : 10 + col + n].T)
