"""Reductions of rows by one loop, for rows that end anywhere."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")
WIDTHS = [*range(131), 271, 272, 273, *range(505, 521), *range(1020, 1041)]


@xetile.kernel
def moments(
    X,
    Out,
    end: int,
    START: constexpr,
    W: constexpr,
    EACH: constexpr = False,
    ROWS: constexpr = 1,
) -> None:
    """A sum, a sum of squares and the largest of differences from 2, and the mean's.

    Those from column ``START`` to the row's end are taken; with ``EACH`` those to
    ``end``, which may be elsewhere. A program has ``ROWS`` rows.
    """
    row = xetile.program_id(0) * ROWS
    v = xetile.load_tile(xetile.init_tile(X, [row, START], (ROWS, W))).to(f32)
    last = end if EACH else X.shape[1] - START
    d = xetile.where(xetile.arange(W)[None, :] < last, v - 2.0, 0.0)
    total, squares = d.sum(1, keepdims=True), (d * d).sum(1, keepdims=True)
    largest, all_of = d.max(1, keepdims=True), v.sum(1, keepdims=True)
    rest = (d - total).sum(1, keepdims=True)
    for at, each in enumerate((total, squares, largest, all_of, rest)):
        xetile.store_tile(each, xetile.init_tile(Out, [row, at], (ROWS, 1)))


def _expected(x: Any, end: int, start: int, width: int) -> Any:
    v = np.zeros((len(x), width))
    v[:, : max(0, x.shape[1] - start)] = x[:, start : start + width]
    d = np.where(np.arange(width) < end, v - 2, 0)
    total = d.sum(1, keepdims=True)
    rows = d.sum(1), (d * d).sum(1), d.max(1), v.sum(1), (d - total).sum(1)
    return np.stack(rows, 1).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("start", [0, 3])
def test_moments_of_rows_that_end_anywhere(dtype: Any, start: int) -> None:
    rng = np.random.default_rng(0)
    for columns in WIDTHS:
        x = small_integers(rng, 3, columns).astype(dtype)
        width = 1040 if columns > 272 else 272
        out = np.ones((3, 5), np.float32)
        found = launch(moments, 3, x, out, 0, START=start, W=width)[1]
        same(found, _expected(x.astype(float), columns - start, start, width))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("end", [-1, 0, 1, 77, 100, 101, 150, 500])
def test_what_is_chosen_may_end_elsewhere(dtype: Any, end: int) -> None:
    rng = np.random.default_rng(0)
    for columns in (0, 5, 64, 99, 100, 101, 130, 272):
        x = small_integers(rng, 2, columns).astype(dtype)
        out = np.ones((2, 5), np.float32)
        found = launch(moments, 2, x, out, end, START=0, W=272, EACH=True)[1]
        same(found, _expected(x.astype(float), end, 0, 272))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("width", [12, 16, 24, 40, 64])
@pytest.mark.parametrize("rows", [8, 10])
def test_moments_of_blocks_of_rows(dtype: Any, width: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    for columns in (width - 3, width):
        x = small_integers(rng, 3 * rows - 1, columns).astype(dtype)
        out = np.ones((len(x), 5), np.float32)
        found = launch(moments, 3, x, out, 0, START=0, W=width, ROWS=rows)[1]
        same(found, _expected(x.astype(float), columns, 0, width))
