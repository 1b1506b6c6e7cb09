"""``from xetl.xetile import *``: Python's own functions stay what they are."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import TileTypeError

NAMES = ("abs", "max", "min", "round", "sum")


def test_no_builtin_is_replaced() -> None:
    space: dict[str, Any] = {}
    exec("from xetl.xetile import *", space)
    for name in dir(builtins):
        assert name.startswith("_") or name not in space, name
    assert "load_tile" in space
    for name in NAMES:
        assert getattr(xetile, name) is not getattr(builtins, name)


@xetile.kernel
def by_python(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0], (16,)))
    limit = max(min(X.shape[0], 9), abs(-3))
    y = abs(x) - 2.0 + round(2.6) + limit + sum((x, x, x))
    xetile.store_tile(y, xetile.init_tile(Y, [0], (16,)))


@xetile.kernel
def largest_by_python(X):
    x = xetile.load_tile(xetile.init_tile(X, [0], (16,)))
    xetile.store_tile(max(x, x), xetile.init_tile(X, [0], (16,)))


def test_those_that_mean_numbers_name_the_operation() -> None:
    with pytest.raises(TileTypeError, match=r"use xetile\.maximum"):
        largest_by_python[1](np.ones(16, np.float32))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_in_kernels_they_mean_operations(backend: str) -> None:
    x = np.linspace(-6, 6, 16, dtype=np.float32)
    y = np.zeros_like(x)
    by_python[1](x, y, backend=backend)
    wanted = np.abs(x) - 2 + 3 + 9 + ((x + x) + x)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
