"""Small matrices that one program multiplies by: strips read them in place."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import same, small_integers
from native_harness import fenced

from xetl import xetile
from xetl.xetile import constexpr

pytestmark = pytest.mark.usefixtures("target")

SHAPES = [
    (3, 24, 40, 24),
    (2, 16, 16, 16),
    (4, 40, 7, 9),
    (2, 9, 200, 33),
    (2, 5, 0, 3),
    (2, 40, 200, 60),
]
LAYOUTS = {
    "whole": np.s_[:],
    "of a wider matrix": np.s_[:, :, 1:-2],
    "rows backwards": np.s_[:, ::-1],
    "matrices backwards": np.s_[::-1],
}


@xetile.kernel
def products(A, B, C, ACC: constexpr, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    number = xetile.program_id(2)
    a = xetile.init_tile(A[number], [m, 0], (BM, BK))
    b = xetile.init_tile(B[number], [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), ACC)
    for _ in range(0, A.shape[2], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C[number], [m, n], (BM, BN)))


def run(a: Any, b: Any, **tiles: int) -> Any:
    """Multiply the matrices; all of an array is between pages nobody may access."""
    c = fenced(np.full((*a.shape[:2], b.shape[2]), 7, a.dtype))
    acc = xetile.f64 if a.dtype == np.float64 else xetile.f32
    products[1, 1, a.shape[0]](a, b, c, ACC=acc, **tiles)
    return c


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_layout(dtype: Any, layout: str, shape: tuple[int, ...]) -> None:
    count, m, k, n = shape
    rng = np.random.default_rng(0)
    a = fenced(small_integers(rng, count, m, k, dtype=dtype))
    wider = 3 * (layout == "of a wider matrix")
    whole = small_integers(rng, count, k, n + wider, dtype=dtype)
    exact = a.astype(np.float64) @ whole[LAYOUTS[layout]].astype(np.float64)
    for at_end in (True, False):
        b = fenced(whole, at_end=at_end)[LAYOUTS[layout]]
        out = run(a, b, BM=64 if m > 32 else 32, BN=64, BK=32)
        same(out, exact.astype(dtype))


def test_what_is_beside_a_matrix_reaches_no_sum() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 3, 16, 16), small_integers(rng, 3, 16, 24)
    b[1], b[0, :, 20:] = np.nan, np.inf
    out = run(fenced(a), fenced(b)[:, :, :20], BM=16, BN=32, BK=16)
    expected = a.astype(np.float64) @ b.astype(np.float64)[:, :, :20]
    same(out, expected.astype(np.float32))


@pytest.mark.parametrize("size", [(16, 20), (12, 32), (12, 20)])
def test_elements_behind_a_matrix_are_zeros(size: tuple[int, int]) -> None:
    rng, (k, n) = np.random.default_rng(0), size
    a, whole = small_integers(rng, 3, 16, 16), small_integers(rng, 3, 16, 32)
    out, b = np.full((3, 16, 28), 7, np.float32), whole[:, :k, :n]
    tiles = {"ACC": xetile.f32, "BM": 16, "BN": 32, "BK": 16}
    products[1, 1, 3](a, b, out, **tiles)
    expected = np.zeros((3, 16, 32))
    expected[:, :, :n] = a[:, :, :k].astype(np.float64) @ b.astype(np.float64)
    same(out, expected[:, :, :28].astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(16, 300, 300), (8, 400, 33), (9, 70, 517), (70, 1, 130), (40, 700, 1020)]
)
def test_of_the_last_panel_nothing_behind_the_matrix_is_read(
    dtype: Any, shape: tuple[int, int, int]
) -> None:
    """Loads of the last row have masks. A long k is cut if rows of B share sets."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = fenced(small_integers(rng, 1, m, k, dtype=dtype))
    apart = -(-n // 1024) * 1024 if n > 1000 else n
    b = fenced(small_integers(rng, 1, k, apart, dtype=dtype))[:, :, -n:]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    c = fenced(np.full((1, m, n), 7, dtype))
    acc, rows = xetile.f64 if dtype == np.float64 else xetile.f32, 32 if m <= 32 else 96
    tiles = {"ACC": acc, "BM": rows, "BN": 128, "BK": 32}
    products[1, -(-n // 128), 1](a, b, c, **tiles)
    same(c, exact.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(3, 700, 200), (20, 65, 300), (32, 5, 150)])
def test_few_rows_that_are_columns_in_memory(
    dtype: Any, shape: tuple[int, int, int]
) -> None:
    """A is copied, chunk by chunk, and B is read in place."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = fenced(small_integers(rng, 2, k, m, dtype=dtype)).swapaxes(1, 2)
    b = fenced(small_integers(rng, 2, k, n, dtype=dtype))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    same(run(a, b, BM=32, BN=512, BK=32), exact.astype(dtype))


@pytest.mark.parametrize("shape", [(70, 3, 200), (33, 16, 260), (50, 1, 130)])
def test_short_steps_store_the_result_in_the_order_of_memory(
    shape: tuple[int, int, int],
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 1, m, k), small_integers(rng, 1, k, n)
    out = run(fenced(a), fenced(b), BM=80, BN=264, BK=32)
    same(out, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(6, 47), (6, 48), (20, 20), (32, 300), (9, 1)])
def test_few_rows_by_contiguous_columns(dtype: Any, shape: tuple[int, int]) -> None:
    """Long columns are dot products, short ones are packed."""
    rows, k = shape
    rng = np.random.default_rng(0)
    a = fenced(small_integers(rng, 2, rows, k, dtype=dtype))
    b = fenced(small_integers(rng, 2, 200, k, dtype=dtype)).swapaxes(1, 2)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    same(run(a, b, BM=32, BN=256, BK=32), exact.astype(dtype))
