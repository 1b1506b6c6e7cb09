"""Products of A transposed: in loops their rows stand in another order."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched import aligned

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

BF16 = ml_dtypes.bfloat16


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 32), cdiv(a.C.shape[1], 32)))
def turned(A, B, C):
    """C += A.T @ B."""
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    to = xetile.init_tile(C, [m, n], (32, 32))
    acc = xetile.load_tile(to)
    for k in range(0, A.shape[0], 32):
        a = xetile.load_tile(xetile.init_tile(A, [k, m], (32, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, 32)))
        acc = xetile.tile_mma(a.T, b, acc)
    xetile.store_tile(acc, to)


@xetile.kernel(grid=1)
def several(A, B, C, D, KEEPS: constexpr):
    """Two products of one A; KEEPS: one of them is read in the loop as well."""
    first, other = xetile.zeros((32, 16), f32), xetile.zeros((32, 16), f32)
    for k in range(0, A.shape[0], 16):
        a = xetile.load_tile(xetile.init_tile(A, [k, 0], (16, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (16, 16)))
        first = xetile.tile_mma(a.T, b, first)
        other = xetile.tile_mma(a.T, b, first if KEEPS else other)
    xetile.store_tile(first, xetile.init_tile(C, [0, 0], (32, 16)))
    xetile.store_tile(other, xetile.init_tile(D, [0, 0], (32, 16)))


def numbers(shape: tuple[int, int], dtype: Any) -> Any:
    """Small integers, whose sums are exact."""
    found = aligned(shape, dtype)
    found[...] = np.random.default_rng(shape).integers(-4, 5, shape)
    return found


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("shape", [(32, 32, 32), (64, 96, 128), (46, 40, 50)])
def test_a_transposed(dtype: Any, shape: tuple[int, int, int]) -> None:
    """Also of sizes that tiles do not divide, and from sums that are there."""
    m, n, k = shape
    a, b, c = (numbers(s, dtype) for s in ((k, m), (k, n), (m, n)))
    c = aligned((m, n), np.float32) + c.astype(np.float32)
    expected = c + a.astype(np.float32).T @ b.astype(np.float32)
    turned(a, b, c)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("shape", [(32, 32, 32), (64, 96, 128), (68, 72, 50)])
def test_bytes_transposed(shape: tuple[int, int, int]) -> None:
    """Words of four rows are transposed, in the order of rows."""
    m, n, k = shape
    a, b, c = (numbers(s, np.int8) for s in ((k, m), (k, n), (m, n)))
    c = aligned((m, n), np.int32) + c
    expected = c + a.astype(np.int32).T @ b.astype(np.int32)
    turned(a, b, c)
    assert np.array_equal(c, expected)


def test_rows_of_any_pitch() -> None:
    """The kernel for any memory: lanes load A in the order of its rows."""
    a, b = numbers((33, 35), BF16), numbers((33, 37), BF16)
    c = np.zeros((35, 37), np.float32)
    turned(a, b, c)
    assert np.array_equal(c, a.astype(np.float32).T @ b.astype(np.float32))


@pytest.mark.parametrize("keeps", [False, True])
def test_several_products_of_one_load(keeps: bool) -> None:
    a, b = numbers((64, 32), BF16), numbers((64, 16), BF16)
    c, d = (aligned((32, 16), np.float32) for _ in range(2))
    several(a, b, c, d, KEEPS=keeps)
    product = a.astype(np.float32).T @ b.astype(np.float32)
    last = a[48:].astype(np.float32).T @ b[48:].astype(np.float32)
    assert np.array_equal(c, product)
    assert np.array_equal(d, product + last if keeps else product)
