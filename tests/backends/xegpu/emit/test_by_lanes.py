"""What GPUs do for blocks that no message may move, run where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.settings import config
from xetl.xetile import cdiv, constexpr, f32
from xetl_xegpu.emit import block_io

pytest.importorskip("dpctl", reason="dpctl is not installed: pip install dpctl")

BF16 = ml_dtypes.bfloat16
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def in_a_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Elements are moved as on GPUs; the modes of the blocks that were."""
    seen: list[str] = []

    def always(em, op) -> bool:
        if op.by_lanes is None or not block_io.is_straight(op):
            return False
        seen.append(op.shape.mode)
        return True

    monkeypatch.setattr(block_io, "_in_a_line", always)
    config.cache = False
    yield seen
    del config.cache


def product_kernel():
    """C = A @ B, not compiled yet."""

    @xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 16), cdiv(a.C.shape[1], 32)))
    def product(A, B, C, TURNED: constexpr):
        m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 32
        acc = xetile.zeros((16, 32), f32)
        for k in range(0, A.shape[1], 32):
            a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, 32)))
            if TURNED:
                b = xetile.load_tile(xetile.init_tile(B, [n, k], (32, 32))).T
            else:
                b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, 32)))
            acc = xetile.tile_mma(a, b, acc)
        xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (16, 32)))

    return product


def numbers(rows: int, columns: int, dtype) -> Array:
    """Small integers, in rows that no message moves: their pitch is odd."""
    rng = np.random.default_rng(rows)
    wide = rng.integers(-4, 5, (rows, columns + 2 | 1)).astype(dtype)
    return wide[:, 1 : columns + 1]


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(16, 32, 32), (21, 45, 37)])
def test_products_of_unaligned_arrays(in_a_line, dtype, turned, shape) -> None:
    m, n, k = shape
    a = numbers(m, k, dtype)
    b = numbers(*((n, k) if turned else (k, n)), dtype)
    c = numbers(m, n, np.float32)
    around = c.base.copy()
    product_kernel()(a, b, c, turned, backend="xegpu")
    right = b.T if turned else b
    assert np.array_equal(c, a.astype(np.float64) @ right.astype(np.float64))
    around[:, 1 : n + 1] = c
    assert np.array_equal(c.base, around)
    assert in_a_line


def copy_kernel():
    """A tile that begins before the array, or behind it, to where it belongs."""

    @xetile.kernel(grid=(1, 1))
    def copy(X, Y, ROW, COLUMN, BM: constexpr, BN: constexpr):
        x = xetile.load_tile(xetile.init_tile(X, [ROW, COLUMN], (BM, BN)))
        xetile.store_tile(x, xetile.init_tile(Y, [0, 0], (BM, BN)))
        xetile.store_tile(x + x, xetile.init_tile(X, [ROW, COLUMN], (BM, BN)))

    return copy


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("row", [-40, -3, 0, 7, 40])
@pytest.mark.parametrize("column", [-40, -4, 0, 8, 40])
def test_what_lies_outside_is_zero_and_stays(in_a_line, dtype, row, column) -> None:
    x, y = numbers(20, 40, dtype), numbers(16, 32, dtype)
    expected = np.zeros_like(y)
    wanted = x.base.copy()
    for i in range(16):
        for j in range(32):
            if 0 <= i + row < 20 and 0 <= j + column < 40:
                expected[i, j] = x[i + row, j + column]
                wanted[i + row, j + column + 1] *= 2
    copy_kernel()(x, y, row, column, 16, 32, backend="xegpu")
    assert np.array_equal(y, expected)
    assert np.array_equal(x.base, wanted)
    assert in_a_line


def test_rows_without_elements_are_not_read(in_a_line) -> None:
    """So far apart that there is no memory where they would be."""
    x = np.lib.stride_tricks.as_strided(np.zeros(0, np.float32), (20, 0), (1 << 40, 4))
    y = np.ones((16, 32), np.float32)
    copy_kernel()(x, y, 0, 0, 16, 32, backend="xegpu")
    assert not y.any()
    assert in_a_line
