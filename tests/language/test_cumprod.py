"""`cumprod`, a scan, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import computed, matrix
from xetl import xetile
from xetl.errors import TileTypeError

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@ALL
@pytest.mark.parametrize("dtype", ["i8", "i64", "f16", "f32"])
@pytest.mark.parametrize("axis", [0, -1])
def test_along_an_axis(axis: int, dtype: str, backend: str) -> None:
    a = matrix(dtype, (4, 16), low=-1, high=3)
    found = computed(lambda a, b: xetile.cumprod(a, axis), a, a, dtype, backend)
    np.testing.assert_array_equal(found, np.cumprod(a, axis, dtype=a.dtype))


@ALL
def test_of_all_elements_and_as_a_method(backend: str) -> None:
    a = matrix("i32", (4, 16), low=1, high=3)
    products = lambda a, b: a.cumprod().reshape(4, 16)
    found = computed(products, a, a, "i32", backend)
    np.testing.assert_array_equal(found.ravel(), np.cumprod(a, dtype=np.int32))


def test_of_a_mask_is_refused() -> None:
    a = matrix("i1", (4, 16))
    with pytest.raises(TileTypeError, match="has no meaning"):
        computed(lambda a, b: a.cumprod(0), a, a, "i1", "reference")
