"""Tiles whose rows are columns in memory: transposed in registers, block by block."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")
R, C = 35, 70
"""A tile: blocks, and a rest in both directions."""


@xetile.kernel
def transposed(X, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)), padding=3)
    xetile.store_tile(v.T * 2, xetile.init_tile(Y, [j, i], (C, R)))


@xetile.kernel
def symmetric(X, Y, SIDE: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (SIDE, SIDE)))
    kept = v * v + xetile.sqrt(xetile.abs(v))  # read twice: it stands in memory
    xetile.store_tile(kept + kept.T, xetile.init_tile(Y, [0, 0], (SIDE, SIDE)))


def test_transposes_of_any_extent() -> None:
    rng = np.random.default_rng(0)
    for columns in range(1, 131):
        rows = (7 * columns) % 83 + 1
        x = small_integers(rng, rows, columns)
        grid = -(-rows // R), -(-columns // C)
        _, y = launch(
            transposed, grid, x, np.ones((columns, rows), np.float32), R=R, C=C
        )
        same(y, 2 * x.T)


@pytest.mark.parametrize("tile", [(4, 64), (64, 4), (8, 8), (5, 12), (3, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_transposes_of_narrow_tiles(tile: tuple[int, int], dtype: Any) -> None:
    """A gather for each row of such a tile took up to 40 times as long."""
    rows, columns = tile
    x = small_integers(np.random.default_rng(0), 37, 90, dtype=dtype)
    grid = -(-37 // rows), -(-90 // columns)
    _, y = launch(transposed, grid, x, np.ones((90, 37), dtype), R=rows, C=columns)
    same(y, 2 * x.T)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.float64, np.float16, ml_dtypes.bfloat16]
)
def test_transposes_of_other_types(dtype: Any) -> None:
    x = small_integers(np.random.default_rng(0), 33, 90, dtype=dtype)
    _, y = launch(transposed, (1, 2), x, np.ones((90, 33), dtype), R=R, C=C)
    same(y, 2 * x.T)


def test_what_lies_outside_is_padding() -> None:
    """The result is larger than what is loaded."""
    x = small_integers(np.random.default_rng(0), 20, 17)
    _, y = launch(transposed, 1, x, np.ones((C, R), np.float32), R=R, C=C)
    whole = np.full((R, C), 3, np.float32)
    whole[:20, :17] = x
    same(y, 2 * whole.T)


@xetile.kernel
def moved(X, Z, Y, down, right, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(X, [i + down, j + right], (R, C)), padding=3)
    w = xetile.load_tile(xetile.init_tile(Z, [j + right, i + down], (C, R)), padding=5)
    xetile.store_tile(v.T + w, xetile.init_tile(Y, [j, i], (C, R)))


@pytest.mark.parametrize("down", [-20, -1, 0, 5])
@pytest.mark.parametrize("right", [-3, 0, 40])
def test_blocks_that_begin_before_their_matrix(down: int, right: int) -> None:
    rng, how = np.random.default_rng(0), {"R": 64, "C": 70}
    x, z = small_integers(rng, 64, 70), small_integers(rng, 70, 64)
    agree(moved, 1, x, z, np.ones((70, 64), np.float32), down, right, **how)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("side", [48, 35, 10])
def test_both_orders_at_once(order: Any, side: int) -> None:
    x = small_integers(np.random.default_rng(0), side, side)
    kept = x * x + np.sqrt(abs(x))
    given = np.asarray(x, order=order)
    _, y = launch(symmetric, 1, given, np.empty((side, side), np.float32), SIDE=side)
    np.testing.assert_allclose(y, kept + kept.T, rtol=1e-6)


@xetile.kernel
def turned_product(A, B, Y, M: constexpr, N: constexpr, K: constexpr):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (M, K)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (K, N)))
    acc = xetile.tile_mma(a, b, xetile.zeros((M, N)))
    xetile.store_tile(acc.T.to(Y.dtype), xetile.init_tile(Y, [0, 0], (N, M)))


@pytest.mark.parametrize("shape", [(28, 16), (10, 16), (7, 5), (33, 40), (5, 70)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_products_of_any_extent_are_turned(shape: tuple[int, int], dtype: Any) -> None:
    """The last block goes on below the product; each of its elements was gathered."""
    (m, n), k, rng = shape, 12, np.random.default_rng(0)
    a, b = small_integers(rng, m, k), small_integers(rng, k, n)
    y, how = np.ones((n, m), dtype), {"M": m, "N": n, "K": k}
    *_, found = launch(turned_product, 1, a, b, y, **how)
    same(found, (a @ b).T.astype(dtype))
    text = turned_product.ir("loops", a, b, y, **how, target="avx2", backend="cpu")
    assert "vector.shuffle" in text


@xetile.kernel
def product_of_columns(A, B, Y, M: constexpr, N: constexpr, K: constexpr):
    i = xetile.program_id(0) * N
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (M, K)))
    b = xetile.load_tile(xetile.init_tile(B, [0, i], (K, N)))
    acc = xetile.tile_mma(a, b, xetile.zeros((M, N)))
    xetile.store_tile(acc.to(Y.dtype), xetile.init_tile(Y.T, [0, i], (M, N)))


@pytest.mark.parametrize("shape", [(28, 16), (10, 16), (7, 5), (33, 40), (5, 70)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_products_are_stored_to_columns(shape: tuple[int, int], dtype: Any) -> None:
    """Y ends within the last tile; sums are rows in memory, and Y has them as columns.

    Each element was gathered.
    """
    (m, n), k, rng = shape, 12, np.random.default_rng(0)
    a, b = small_integers(rng, m, k), small_integers(rng, k, 2 * n)
    y, how = np.ones((2 * n - 1, m - 2), dtype), {"M": m, "N": n, "K": k}
    *_, found = launch(product_of_columns, 2, a, b, y, **how)
    same(found, (a @ b).T.astype(dtype)[:-1, :-2])
    args = a, b, y
    text = product_of_columns.ir("loops", *args, **how, target="avx2", backend="cpu")
    assert "vector.shuffle" in text


@xetile.kernel
def reshaped(X, Y, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X.T, [0, 0], (R, C)))
    place = xetile.init_tile(Y, [0, 0], (1, R * C))
    xetile.store_tile(v.reshape((1, R * C)) + 1, place)


@pytest.mark.parametrize("tile", [(8, 17), (4, 18), (16, 33), (8, 8)])
def test_blocks_of_rows_without_padding(tile: tuple[int, int]) -> None:
    """What a block has behind a row is the row below it."""
    rows, columns = tile
    x = small_integers(np.random.default_rng(0), columns, rows)
    y = np.ones((1, rows * columns), np.float32)
    _, y = launch(reshaped, 1, x, y, R=rows, C=columns)
    same(y, x.T.reshape(1, -1) + 1)


@xetile.kernel
def distances(X, Y, D, Z, R: constexpr, C: constexpr):
    """Columns as rows, which many rows read; and a row with a function of it."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    total = xetile.zeros((R, C))
    for k in xetile.static_range(3):
        y = xetile.load_tile(xetile.init_tile(Y, [j, k], (C, 1)), padding=2)
        own = xetile.load_tile(xetile.init_tile(X, [i, k], (R, 1)))
        apart = own.to(f32) - y.to(f32).reshape((1, C))
        total += apart * apart
    xetile.store_tile(total, xetile.init_tile(D, [i, j], (R, C)))
    z = xetile.load_tile(xetile.init_tile(Z, [j], (C,)))
    xetile.store_tile(xetile.abs(z) + 1, xetile.init_tile(Z, [j], (C,)))
    xetile.store_tile(
        total - xetile.sqrt(z * z) * 2, xetile.init_tile(D, [i, j], (R, C))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [1, 50, 130])
def test_columns_that_many_rows_read(dtype: Any, order: Any, columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = np.asarray(small_integers(rng, 20, 3).astype(dtype), order=order)
    y = np.asarray(small_integers(rng, columns, 3).astype(dtype), order=order)
    z, d = small_integers(rng, columns), np.zeros((20, columns), np.float32)
    found = agree(distances, (1, 1), x, y, d, z, R=24, C=136)
    apart = x.astype(np.float32)[:, None] - y.astype(np.float32)
    wanted = (apart * apart).sum(2) - 2 * np.abs(z)
    same(found[2], wanted)
