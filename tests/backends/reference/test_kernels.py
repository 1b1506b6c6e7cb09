"""Kernels of the language page, through the runtime, on ragged shapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xetl import xetile
from xetl.xetile import constexpr

sizes = st.integers(1, 70)
few = settings(max_examples=30)


@xetile.kernel
def add(A, B, C, N: constexpr = 64):
    i = xetile.program_id(0) * N
    a = xetile.load_tile(xetile.init_tile(A, [i], (N,)))
    b = xetile.load_tile(xetile.init_tile(B, [i], (N,)))
    xetile.store_tile(a + b, xetile.init_tile(C, [i], (N,)))


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 16, BK: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), xetile.f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def run(kernel, grid, *args, **options):
    kernel[grid](*args, backend="reference", **options)


def cdiv(a, b):
    return -(-a // b)


@few
@given(n=st.integers(1, 300))
def test_vector_add(n):
    a = np.arange(n, dtype=np.float32)
    c = np.full(n, -1, np.float32)
    run(add, cdiv(n, 64), a, 2 * a, c)
    assert np.array_equal(c, 3 * a)


@few
@given(m=sizes, n=sizes, k=sizes, seed=st.integers(0, 99))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_gemm_of_any_shape_and_layout(dtype, m, n, k, seed):
    rng = np.random.default_rng(seed)
    # Small integers: sums are exact, so equality needs no tolerance.
    a = rng.integers(-4, 5, (m, k)).astype(dtype)
    b = rng.integers(-4, 5, (k, n)).astype(dtype)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    if seed % 2:
        a, b = np.asfortranarray(a), b[::-1, ::-1].copy()[::-1, ::-1]
    c = np.full((m, n), 99, np.float32)
    run(gemm, (cdiv(m, 32), cdiv(n, 16)), a, b, c)
    assert np.array_equal(c, wanted)


def test_nothing_outside_is_written():
    whole = np.full((40, 40), 7, np.float32)
    inner = whole[3:30, 5:33]
    a = np.ones((27, 9), np.float32)
    run(gemm, (2, 3), a, np.ones((9, 28), np.float32), inner)
    assert (inner == 9).all()
    assert (whole == 7).sum() == 40 * 40 - inner.size


def test_empty_arrays():
    c = np.full((5, 6), 3, np.float32)
    run(gemm, (1, 1), np.ones((5, 0), np.float32), np.ones((0, 6), np.float32), c)
    assert (c == 0).all()
    run(gemm, (1, 1), np.ones((0, 4), np.float32), np.ones((4, 6), np.float32), c[:0])
