"""Rows by a vector of numbers: messages load them, one each."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched import aligned

from xetl import xetile
from xetl.settings import config
from xetl.xetile import constexpr, f32


@pytest.fixture(autouse=True)
def _say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.assigned, "log", True)


@xetile.kernel
def product_of_rows(X, ROWS, W, Y, K: constexpr):
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0], (16,)))
    acc = xetile.zeros((16, 32), f32)
    for k in range(0, X.shape[1], K):
        x = X[rows[:, None], k + xetile.arange(K)]
        acc += x @ xetile.load_tile(xetile.init_tile(W, [k, 0], (K, 32)))
    xetile.store_tile(acc, xetile.init_tile(Y, [0, 0], (16, 32)))


@xetile.kernel
def rows_alone(X, ROWS, Y, first, C: constexpr):
    """No other operation of the kernel can move a block by messages."""
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0, 0], (16, 1)))
    x = X[rows, first + xetile.arange(C)]
    Y[xetile.arange(16)[:, None], xetile.arange(C)] = x


def picked(rows: Any, count: int) -> Any:
    """Numbers of rows, of which some are outside."""
    rows[...] = np.random.default_rng(0).integers(0, count, rows.shape)
    rows.ravel()[[1, 4, 9]] = [-1, count, 1 << 30]
    return rows


@pytest.mark.parametrize("depth", [96, 72, 33])
def test_rows_of_a_product(depth: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Also of rows that end in a step, and where lanes move the elements."""
    bf16 = ml_dtypes.bfloat16
    x, w = aligned((40, depth), bf16), aligned((depth, 32), bf16)
    for each in (x, w):
        each[...] = np.random.default_rng(1).integers(-4, 5, each.shape)
    y, rows = aligned((16, 32)), picked(aligned((16,), np.int32), 40)
    product_of_rows[1](x, rows, w, y, K=32)
    there = ((rows >= 0) & (rows < 40))[:, None] * x.astype(np.float32)[rows % 40]
    assert np.array_equal(y, there @ w.astype(np.float32))
    by_lanes = "without block messages" in capfd.readouterr().err
    assert by_lanes == (depth == 33)


@xetile.kernel
def columns_alone(X, ROWS, Y):
    """The rows are the columns of the result."""
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0, 0], (1, 16)))
    x = X[rows, 16 + xetile.arange(16)[:, None]]
    xetile.store_tile(x, xetile.init_tile(Y, [0, 0], (16, 16)))


def test_rows_as_columns() -> None:
    x, rows = aligned((40, 64)), picked(aligned((1, 16), np.int32), 40)
    x[...] = np.arange(x.size).reshape(x.shape)
    y = aligned((16, 16))
    columns_alone[1](x, rows, y)
    there = (rows[0] >= 0) & (rows[0] < 40)
    assert np.array_equal(y, there * x[rows[0] % 40, 16:32].T)


@pytest.mark.parametrize("width", [64, 61])
@pytest.mark.parametrize("first", [0, 3, 48, -16])
def test_rows_alone(first: int, width: int) -> None:
    x, rows = aligned((40, width)), picked(aligned((16, 1), np.int64), 40)
    x[...] = np.random.default_rng(2).integers(-9, 9, x.shape)
    y = aligned((16, 32))
    rows_alone[1](x, rows, y, first, C=32)
    expected = np.zeros((16, 32), np.float32)
    for number, row in enumerate(rows.ravel()):
        for column in range(32):
            if 0 <= row < 40 and 0 <= first + column < width:
                expected[number, column] = x[row, first + column]
    assert np.array_equal(y, expected)
