"""Weights of four bits, two rows of B in each byte of a row, as users write them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from xetl import xetile
from xetl.xetile import Array, bf16, constexpr, f32, i32


@xetile.kernel
def weights(
    X: Array,
    W: Array,
    Y: Array,
    BM: constexpr = 16,
    BN: constexpr = 64,
    BK: constexpr = 32,
) -> None:
    """``Y = X @ B``; byte (k, n) of W has rows 2k and 2k + 1 of B, each plus 8."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, X.shape[1], BK):
        x = xetile.load_tile(xetile.init_tile(X, [m, k], (BM, BK)))
        w = xetile.load_tile(xetile.init_tile(W, [k // 2, n], (BK // 2, BN)))
        low, high = (w & 15).to(i32) - 8, (w >> 4).to(i32) - 8
        both = xetile.interleave(low.T, high.T).T
        acc = xetile.tile_mma(x, both.to(bf16), acc)
    xetile.store_tile(acc, xetile.init_tile(Y, [m, n], (BM, BN)))


def test_rows_of_both_halves_alternate() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(-4, 5, (16, 64)).astype(ml_dtypes.bfloat16)
    w = rng.integers(0, 256, (32, 64)).astype(np.uint8)
    y = np.zeros((16, 64), np.float32)
    weights[1, 1](x, w, y)
    b = np.stack([w & 15, w >> 4], 1).reshape(64, 64).astype(np.int64) - 8
    assert np.array_equal(y, x.astype(np.float64) @ b)
