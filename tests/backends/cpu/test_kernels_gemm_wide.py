"""GEMM of doubles and bytes, against NumPy: these are never calls of a library."""

from typing import Any

import numpy as np
import pytest
from launching import laid_out, launch, same
from test_kernels_gemm import LAYOUTS, own_accumulator, product

pytestmark = pytest.mark.usefixtures("anywhere")

WIDE_TYPES = [
    (np.float64, np.float64, np.float64),
    (np.int8, np.int8, np.int32),
    (np.uint8, np.uint8, np.int32),
    (np.uint8, np.int8, np.int32),
    (np.int8, np.uint8, np.int32),
]
"""Of A, B and C; bytes of any sign, over their whole range."""


def any_numbers(rng: Any, dtype: Any, *shape: int) -> Any:
    low = {np.int8: -128, np.uint8: 0, np.float64: -1000}[dtype]
    high = {np.int8: 128, np.uint8: 256, np.float64: 1000}[dtype]
    return rng.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize(("one", "other", "to"), WIDE_TYPES)
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize("b_layout", LAYOUTS)
def test_doubles_and_bytes(
    one: Any, other: Any, to: Any, a_layout: str, b_layout: str
) -> None:
    rng = np.random.default_rng(0)
    # No multiple of 4: the last bytes of a row fill no word.
    a, b = any_numbers(rng, one, 70, 549), any_numbers(rng, other, 549, 75)
    c = np.zeros((70, 75), to)
    tiles = {"BM": 64, "BN": 64, "BK": 64}
    laid = laid_out(a, a_layout), laid_out(b, b_layout)
    out = launch(own_accumulator, (2, 2), *laid, c, **tiles)[2]
    same(out, product(a, b).astype(to))


@pytest.mark.parametrize(("one", "other", "to"), WIDE_TYPES)
@pytest.mark.parametrize("n", [1, 2, 19])
def test_narrow_products_of_doubles_and_bytes(
    one: Any, other: Any, to: Any, n: int
) -> None:
    rng = np.random.default_rng(0)
    a, b = any_numbers(rng, one, 15, 22), any_numbers(rng, other, 22, n)
    tiles = {"BM": 16, "BN": n if n < 3 else 20, "BK": 24}
    out = launch(own_accumulator, (1, 1), a, b, np.zeros((15, n), to), **tiles)[2]
    same(out, product(a, b).astype(to))


def test_sums_of_bytes_wrap() -> None:
    a, b = np.full((1, 2**17), 255, np.uint8), np.full((2**17, 1), 255, np.uint8)
    c = np.zeros((1, 1), np.int32)
    out = launch(own_accumulator, (1, 1), a, b, c, BM=1, BN=1, BK=64)[2]
    assert out[0, 0] == np.int64(255 * 255 * 2**17).astype(np.int32)
