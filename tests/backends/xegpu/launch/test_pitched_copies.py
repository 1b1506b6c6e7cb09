"""Copies of arrays of any layout lie so that block messages can move them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched import scale

from xetl import xetile
from xetl.settings import config
from xetl.xetile import cdiv, constexpr, f32

pytestmark = pytest.mark.optimised  # the driver forms no subgroups of these otherwise
BF16 = ml_dtypes.bfloat16
LANES = "without block messages"


@pytest.fixture(autouse=True)
def far(pretend: Any) -> Any:
    pretend(reads_host=False)
    config.log, config.strict = True, True
    yield
    del config.log, config.strict


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 32), cdiv(a.C.shape[1], 32)))
def product(A, B, C, TURNED: constexpr = False):
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    right = B.T if TURNED else B
    acc = xetile.zeros((32, 32), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 32)))
        b = xetile.load_tile(xetile.init_tile(right, [k, n], (32, 32)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (32, 32)))


def numbers(*shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def check_product(a: Any, b: Any, c: Any, *, turned: bool = False) -> None:
    product(a, b, c, turned)
    right = b.T if turned else b
    exact = a.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=2e-2, atol=0.1)


@pytest.mark.parametrize("dtype", [BF16, np.float16])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(33, 101, 45), (40, 7, 3), (16, 40, 80)])
def test_odd_rows(
    capsys: Any, dtype: Any, turned: bool, m: int, k: int, n: int
) -> None:
    b = numbers(n, k, dtype=dtype) if turned else numbers(k, n, dtype=dtype)
    check_product(numbers(m, k, dtype=dtype), b, np.ones((m, n), dtype), turned=turned)
    assert LANES not in capsys.readouterr().err


def test_parts_of_arrays(capsys: Any) -> None:
    """A head of 40 of rows of 3 heads; every other row; columns that lie as rows."""
    a, b, c = (
        numbers(33, 120)[:, 40:80],
        numbers(80, 66)[::2, 1:],
        np.ones((65, 90), "f"),
    )
    check_product(a, b, c.T[20:53])
    assert np.all(c[:, :20] == 1)
    assert np.all(c[:, 53:] == 1)
    assert LANES not in capsys.readouterr().err


def test_what_lies_behind_a_row_is_not_seen(capsys: Any) -> None:
    """In place: what is stored behind an odd row must not be loaded, so lanes move."""
    x = numbers(20, 39, dtype=np.float16)
    before = x.copy()
    scale[2, 3](x, x)
    np.testing.assert_array_equal(x, before * 2)
    assert LANES in capsys.readouterr().err


def test_repeated_rows_are_not_made_many(capsys: Any) -> None:
    row, c = numbers(1, 39, dtype=np.float32), np.empty((20, 39), np.float32)
    scale[2, 3](np.broadcast_to(row, (20, 39)), c)
    np.testing.assert_array_equal(c, np.broadcast_to(row * 2, (20, 39)))
    assert LANES in capsys.readouterr().err
