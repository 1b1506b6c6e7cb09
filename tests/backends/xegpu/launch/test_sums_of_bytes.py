"""Both sums of a matrix of narrow numbers.

The driver for CPUs ended the process over bytes, where a word of four of them was
seen as a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.xetile import constexpr


@xetile.kernel
def both_sums(X, ROWS, COLUMNS, M: constexpr, N: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    rows = xetile.tile_reduce("add", v, [1])
    columns = xetile.tile_reduce("add", v, [0])
    xetile.store_tile(rows, xetile.init_tile(ROWS, [0, 0], (M, 1)))
    xetile.store_tile(columns, xetile.init_tile(COLUMNS, [0, 0], (1, N)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("shape", [(5, 17), (8, 33), (9, 17), (4, 32)])
def test_sums(shape: tuple[int, int], dtype: Any) -> None:
    device.require()
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    rows = np.zeros((shape[0], 1), dtype)
    columns = np.zeros((1, shape[1]), dtype)
    m, n = shape
    both_sums[1](x, rows, columns, M=m, N=n, backend="xegpu")
    assert (rows == x.sum(1, keepdims=True, dtype=dtype)).all()
    assert (columns == x.sum(0, keepdims=True, dtype=dtype)).all()
