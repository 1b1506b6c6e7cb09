"""`clamp`, an operation made of others, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import NUMPY, computed, matrix
from xetl import xetile
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@ALL
@pytest.mark.parametrize("dtype", ["i8", "u16", "i64", "f16", "f32"])
def test_numbers_as_limits(dtype: str, backend: str) -> None:
    a = matrix(dtype, (4, 16))
    out = computed(lambda a, b: xetile.clamp(a, 2, 5), a, a, dtype, backend)
    np.testing.assert_array_equal(out, np.clip(a, 2, 5))


@ALL
def test_vectors_as_limits_broadcast(backend: str) -> None:
    a, low = matrix("f32", (4, 16)), matrix("f32", (4, 16), seed=1)
    limits = lambda a, b: xetile.clamp(a, b.min(1)[:, None], hi=b)
    out = computed(limits, a, low, "f32", backend)
    np.testing.assert_array_equal(out, np.clip(a, low.min(1)[:, None], low))


@ALL
def test_nan_stays_and_the_upper_limit_wins(backend: str) -> None:
    a = np.array([[np.nan, -np.inf, np.inf, 7.0] * 4], NUMPY["f32"])
    out = computed(lambda a, b: xetile.clamp(a, 3.0, 1.0), a, a, "f32", backend)
    np.testing.assert_array_equal(out, np.clip(a, 3.0, 1.0))


@xetile.kernel
def of_scalars(X, n, HIGH: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 16)))
    limit = xetile.clamp(n, 0, HIGH) + xetile.clamp(9, 0, 4)
    xetile.store_tile(x + limit, xetile.init_tile(X, [0, 0], (1, 16)))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("n", [-3, 5, 100])
def test_of_scalars(n: int, backend: str) -> None:
    x = np.zeros((1, 16), np.int32)
    of_scalars[1](x, n, HIGH=20, backend=backend)
    np.testing.assert_array_equal(x, np.clip(n, 0, 20) + 4)
