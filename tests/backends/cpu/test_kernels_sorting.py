"""Sorted rows and columns of any length, on targets with vectors of two widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontend.page import NUMPY
from xetl import xetile
from xetl.xetile import constexpr

ROWS = 3
LENGTHS = [1, 7, 17, 33, 100, 129, 1000]
"""Of rows: around a vector, some vectors, and what is sorted in registers."""


@xetile.kernel
def in_order(X, Y, M: constexpr, N: constexpr, AXIS: constexpr, DOWN: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    s = xetile.sort(v, AXIS, DOWN)
    xetile.store_tile(s, xetile.init_tile(Y, [0, 0], (M, N)))


@xetile.kernel
def places(X, Y, M: constexpr, N: constexpr, AXIS: constexpr, DOWN: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (M, N)))
    s = xetile.argsort(v, AXIS, DOWN)
    xetile.store_tile(s, xetile.init_tile(Y, [0, 0], (M, N)))


def numbers(shape: tuple[int, int], dtype: str) -> Any:
    """Many equal ones; of floats all that is special."""
    rng = np.random.default_rng(shape[0] * 1000 + shape[1])
    if dtype.startswith(("i", "u")):
        info = np.iinfo(NUMPY[dtype])
        some = rng.integers(info.min, info.max, 20, NUMPY[dtype], endpoint=True)
        return rng.choice(np.array([*some, info.min, info.max], NUMPY[dtype]), shape)
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 65504, -1]
    some = np.array([*special, *rng.standard_normal(20)])
    return rng.choice(some.astype(NUMPY[dtype]), shape)


def wide(x: Any, down: bool) -> Any:
    """The elements as numbers that sort as `sort` does: NaN last in either order."""
    if x.dtype.kind in "iu":
        return ~x if down else x  # minus the least number is the least number
    return np.where(np.isnan(x), np.nan, -x if down else x).astype(np.float64)


def check(shape: tuple[int, int], axis: int, down: bool, dtype: str) -> None:
    x = numbers(shape, dtype)
    y = np.zeros_like(x)
    in_order[1](x, y, *shape, axis, down)
    order = np.argsort(wide(x, down), axis, kind="stable")
    expected = np.take_along_axis(x, order, axis)
    np.testing.assert_array_equal(y.astype("f8"), expected.astype("f8"))


@pytest.mark.parametrize("length", LENGTHS)
def test_rows(length: int, target: str) -> None:
    check((ROWS, length), 1, False, "f32")


@pytest.mark.parametrize("length", [2, 16, 40, 300])
def test_rows_of_64_bits(length: int, target: str) -> None:
    check((ROWS, length), 1, True, "i64")


@pytest.mark.parametrize("shape", [(7, 40), (33, 5), (100, 1), (1, 9), (300, 16)])
def test_columns(shape: tuple[int, int], target: str) -> None:
    check(shape, 0, True, "f32")
    check(shape, 0, False, "u64")


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u32", "f16", "bf16", "f64"])
def test_dtypes(dtype: str, target: str) -> None:
    for down in (False, True):
        check((2, 50), 1, down, dtype)


@pytest.mark.parametrize("length", [5, 260])
def test_places_of_equals(length: int, target: str) -> None:
    """Zeros of both signs have an order, as their bits have."""
    x = np.random.default_rng(length).integers(-3, 3, (2, length)).astype(np.float32)
    for down in (False, True):
        y = np.zeros(x.shape, np.int32)
        places[1](x, y, *x.shape, 1, down)
        np.testing.assert_array_equal(y, np.argsort(-x if down else x, 1, "stable"))


@pytest.mark.slow
@pytest.mark.parametrize("length", [*range(1, 36), 63, 65, 127, 255, 511, 513, 2049])
def test_all_lengths(length: int, target: str) -> None:
    check((1, length), 1, False, "f32")
    check((1, length), 1, False, "i64")
    check((length, 1), 0, False, "i32")
