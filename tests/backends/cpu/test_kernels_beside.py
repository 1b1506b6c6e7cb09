"""Matrices that stand side by side in one: tiles at a number plus a distance."""

from typing import Any

import numpy as np
import pytest
from launching import agree, same, small_integers

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def gated(X, W, bias, C, first: int, B: constexpr = 16):
    """Both halves of W, and a part of k that begins at ``first``."""
    m, n = xetile.program_id(0) * B, xetile.program_id(1) * B
    width = C.shape[1]
    gate, up = xetile.zeros((B, B)), xetile.zeros((B, B))
    start = max(first, 0)
    for k in range(0, X.shape[1], B):
        x = xetile.load_tile(xetile.init_tile(X, [m, k], (B, B)))
        w = xetile.load_tile(xetile.init_tile(W, [k + start, n], (B, B)))
        v = xetile.load_tile(xetile.init_tile(W, [start + k, n + 2 * width], (B, B)))
        gate = xetile.tile_mma(x, w, gate)
        up = xetile.tile_mma(x, v, up)
    b = xetile.load_tile(xetile.init_tile(bias, [n + width + 1], (B,)))
    xetile.store_tile((gate + b) * up, xetile.init_tile(C, [m, n], (B, B)))


@pytest.mark.parametrize("first", [0, 1, 16, 1000, -3])
@pytest.mark.parametrize("columns", [64, 40, 37, 130])
def test_products_of_matrices_side_by_side(first: int, columns: int) -> None:
    rng = np.random.default_rng(first % 5)
    x, w = small_integers(rng, 50, 70), small_integers(rng, 90, 3 * columns - 5)
    bias = small_integers(rng, 2 * columns)
    c = np.zeros((50, columns), np.float32)
    grid = cdiv(50, 16), cdiv(columns, 16)
    found = agree(gated, grid, x, w, bias, c, first)[3]
    whole = np.zeros((1200, 3 * columns))
    whole[:90, : 3 * columns - 5] = w
    whole = whole[max(first, 0) :][:70]
    shifted = np.zeros(columns)
    shifted[:-1] = bias[columns + 1 :]
    gate = x @ whole[:, :columns] + shifted
    same(found, (gate * (x @ whole[:, 2 * columns :])).astype(np.float32))


def test_they_are_packed_once_for_all_programs() -> None:
    types = "f32[M,K] f32[K,N] f32[N] f32[M,N] i64"
    text = str(gated.explain(types, target="avx512"))
    assert text.count("b is packed once, before the programs run") == 2


@xetile.kernel
def beside(X, Y, d: int, H: constexpr, W: constexpr):
    """Reads beside what it stores, in the same array and in another."""
    r, c = xetile.program_id(0) * H, xetile.program_id(1) * W
    d = max(d, 0)
    right = xetile.load_tile(xetile.init_tile(X, [r, c + d], (H, W)), padding=3)
    below = xetile.load_tile(xetile.init_tile(X, [d + r + 1, c + d], (H, W)))
    here = xetile.init_tile(X, [r, c], (H, W))
    xetile.store_tile(right + below, xetile.init_tile(Y, [r + d, c + 1], (H, W)))
    xetile.store_tile(xetile.load_tile(here) * 2, here)
    back = xetile.init_tile(Y, [r + 4 * d, c + d], (H, W))
    for _ in range(3):
        back = xetile.update_tile_offset(back, [-d, 0])
    xetile.store_tile(xetile.load_tile(back) - 1, back)


@pytest.mark.parametrize("d", [0, 1, 3, 8, 200])
@pytest.mark.parametrize("columns", [1, 40, 130])
def test_tiles_beside_others(d: int, columns: int) -> None:
    x = small_integers(np.random.default_rng(d), 8, columns)
    agree(beside, (1, 1), x, np.zeros((8, columns), np.float32), d, H=8, W=128)


@xetile.kernel
def summed(X, Y, before: int, W: constexpr):
    """A part may be negative though the sum is not: the tile is in the matrix."""
    p = xetile.program_id(0)
    at = (p - 2) * W + max(before, 0)
    v = xetile.load_tile(xetile.init_tile(X, [0, at], (1, W)))
    xetile.store_tile(v.to(f32), xetile.init_tile(Y, [0, p * W], (1, W)))


@pytest.mark.parametrize("before", [0, 7, 32, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_a_number_that_may_be_negative(before: int, dtype: Any) -> None:
    x = small_integers(np.random.default_rng(0), 1, 100).astype(dtype)
    agree(summed, 6, x, np.zeros((1, 192), np.float32), before, W=32)


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.B), cdiv(m.C.shape[1], m.B)))
def right_half(A, W, C, B: constexpr = 16):
    m, n = xetile.program_id(0) * B, xetile.program_id(1) * B
    acc = xetile.zeros((B, B))
    for k in range(0, A.shape[1], B):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (B, B)))
        w = xetile.load_tile(xetile.init_tile(W, [k, n + C.shape[1]], (B, B)))
        acc = xetile.tile_mma(a, w, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (B, B)))


def test_an_operand_packed_by_an_earlier_launch() -> None:
    """Half of it, and the other half of a matrix of other width: packed anew."""
    rng = np.random.default_rng(3)
    a, w = small_integers(rng, 300, 64), small_integers(rng, 64, 200)
    held = xetl.ops.prepack(w)
    for columns in (100, 100, 60, 100):
        c = np.zeros((300, columns), np.float32)
        right_half(a, held, c)
        same(c, a @ w[:, columns : 2 * columns])
