"""Products in the loops people write: several, scaled, computed, batched, split."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("target")

DTYPES = (np.float32, ml_dtypes.bfloat16)


def exact(a: Any, b: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


def matrices(count: int, m: int, k: int, n: int, dtype: Any = np.float32) -> list[Any]:
    """A (m, k) and ``count`` of B (k, n)."""
    rng = np.random.default_rng(0)
    a = small_integers(rng, m, k, dtype=dtype)
    return [a, *(small_integers(rng, k, n, dtype=dtype) for _ in range(count))]


@xetile.kernel
def gated(A, B, G, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    value, gate = xetile.zeros((BM, BN), f32), xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        g = xetile.load_tile(xetile.init_tile(G, [k, n], (BK, BN)))
        value = xetile.tile_mma(a, b, value)
        gate = xetile.tile_mma(a, g, gate)
    out = value * xetile.maximum(gate, 0.0)
    xetile.store_tile(out, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_accumulators(dtype: Any) -> None:
    a, b, g = matrices(2, 70, 45, 75, dtype)
    c = np.zeros((70, 75), np.float32)
    out = launch(gated, (3, 2), a, b, g, c, BM=32, BN=48, BK=32)[3]
    same(out, (exact(a, b) * np.maximum(exact(a, g), 0)).astype(np.float32))


@xetile.kernel
def two_pairs(A, B, D, E, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        d = xetile.load_tile(xetile.init_tile(D, [m, k], (BM, BK)))
        e = xetile.load_tile(xetile.init_tile(E, [k, n], (BK, BN)))
        acc = xetile.tile_mma(d, e, xetile.tile_mma(a, b, acc))
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_two_products_into_one_accumulator(dtype: Any) -> None:
    a, b, e = matrices(2, 70, 45, 75, dtype)
    d = small_integers(np.random.default_rng(1), 70, 45, dtype=dtype)
    c = np.zeros((70, 75), np.float32)
    out = launch(two_pairs, (3, 2), a, b, d, e, c, BM=32, BN=48, BK=32)[4]
    same(out, (exact(a, b) + exact(d, e)).astype(np.float32))


@xetile.kernel
def with_row_sums(A, B, C, S, STEPS, BM: constexpr, BN: constexpr, BK: constexpr):
    m = xetile.program_id(0) * BM
    acc, sums = xetile.zeros((BM, BN), f32), xetile.zeros((BM, 1), f32)
    steps = 0
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
        sums = sums + a.to(f32).sum(1, keepdims=True)
        xetile.store_tile(sums, xetile.init_tile(S, [m, k // BK], (BM, 1)))
        steps += 1
    xetile.store_tile(acc, xetile.init_tile(C, [m, 0], (BM, BN)))
    xetile.store_tile(
        xetile.full((1, 1), steps, f32), xetile.init_tile(STEPS, [0, 0], (1, 1))
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_else_the_loop_does_is_done(dtype: Any) -> None:
    a, b = matrices(1, 50, 70, 40, dtype)
    c, s = np.zeros((50, 40), np.float32), np.zeros((50, 3), np.float32)
    steps = np.zeros((1, 1), np.float32)
    arrays = (a, b, c, s, steps)
    out = agree(with_row_sums, (2, 1), *arrays, BM=32, BN=40, BK=32)
    same(out[2], exact(a, b).astype(np.float32))
    ends = [a[:, :stop].astype(np.float64).sum(1) for stop in (32, 64, 70)]
    same(out[3], np.stack(ends, 1).astype(np.float32))
    assert out[4][0, 0] == 3


@xetile.kernel
def overwriting(A, B, C, BM: constexpr):
    acc = xetile.zeros((BM, BM), f32)
    for k in range(0, A.shape[1], BM):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (BM, BM)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BM, BM)))
        acc = xetile.tile_mma(a, b, acc)
        # The next step multiplies by this.
        xetile.store_tile(acc, xetile.init_tile(B, [k + BM, 0], (BM, BM)))
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (BM, BM)))


def test_a_loop_that_writes_its_operand() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 8, 24), small_integers(rng, 24, 8)
    agree(overwriting, 1, a, b, np.zeros((8, 8), np.float32), BM=8)
