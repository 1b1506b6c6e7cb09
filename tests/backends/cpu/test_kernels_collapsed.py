"""Rows that lie one behind the other are computed as one; all others as they are."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, laid_out, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr

BF16 = ml_dtypes.bfloat16


@xetile.kernel
def mixed(X, Y, Z, R: constexpr, C: constexpr):
    at = [xetile.program_id(0) * R, xetile.program_id(1) * C]
    x = xetile.load_tile(xetile.init_tile(X, at, (R, C)), padding=7.0)
    y = xetile.load_tile(xetile.init_tile(Y, at, (R, C)))
    xetile.store_tile((x * x + y).to(Z.dtype), xetile.init_tile(Z, at, (R, C)))


@pytest.mark.parametrize("shape", [(1, 1), (3, 0), (5, 7), (9, 65), (40, 129)])
@pytest.mark.parametrize("tile", [(8, 64), (64, 8), (4, 128)])
def test_rows_one_behind_the_other(shape: Any, tile: Any) -> None:
    """They are computed as one, if they are so in all matrices, which are alike."""
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 2, *shape)
    z = np.zeros(shape, BF16)
    grid = tuple(-(-n // by) + 1 for n, by in zip(shape, tile))
    blocks = {"R": tile[0], "C": tile[1]}
    wanted = (x * x + y).astype(BF16)
    same(launch(mixed, grid, x, y, z, **blocks)[2], wanted)
    for layout in ("neither", "columns"):
        for several in (
            (laid_out(x, layout), y, z),
            (x, laid_out(y, layout), z),
            (x, y, laid_out(z, layout)),
        ):
            same(launch(mixed, grid, *several, **blocks)[2], wanted)


def test_rows_of_matrices_that_differ() -> None:
    """None is computed as part of another; nor is what the grid leaves out."""
    x, y = small_integers(np.random.default_rng(0), 2, 24, 200)
    z = np.zeros((24, 200), np.float32)
    shapes = (24, 200), (23, 200), (24, 199), (48, 100), (1, 4800)
    for one in shapes:
        for other in shapes:
            part, to = x.flat[: np.prod(one)].reshape(one), np.zeros(other, "f4")
            grid = -(-other[0] // 8), -(-other[1] // 64)
            agree(mixed, grid, part, y, to, R=8, C=64)
    for grid in ((3, 3), (2, 4), (1, 4), (3, 1)):
        agree(mixed, grid, x, y, z, R=8, C=64)
    same(launch(mixed, (3, 4), x, x, x, R=8, C=64)[0], x * x + x)


@xetile.kernel
def shifted(X, B: constexpr):
    before, behind = X[:-1, :], X[1:, :]
    at = [xetile.program_id(0) * B, xetile.program_id(1) * B]
    x = xetile.load_tile(xetile.init_tile(before, at, (B, B)))
    xetile.store_tile(x + 1.0, xetile.init_tile(behind, at, (B, B)))


def test_a_tile_is_loaded_before_it_is_stored_elsewhere_in_its_matrix() -> None:
    x = small_integers(np.random.default_rng(0), 64, 64)
    expected = np.concatenate([x[:1], x[:-1] + 1])
    same(launch(shifted, (1, 1), x, B=64)[0], expected)
