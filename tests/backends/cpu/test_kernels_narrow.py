"""Tiles of a few columns: programs beside one another run as one, rows go in groups.

And the ends of rows that are no whole vector.
"""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr

pytestmark = pytest.mark.usefixtures("target")
TILES = [(8, 1), (1, 8), (8, 2), (16, 4), (8, 8), (3, 12), (8, 32)]
SIZES = [1, 7, 12, 64, 75, 129]


@xetile.kernel
def affine(X, V, W, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(V, [j], (C,)))
    w = xetile.load_tile(xetile.init_tile(W, [i], (R,)))
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    y = xetile.init_tile(Y, [i, j], (R, C))
    old = xetile.load_tile(y)
    xetile.store_tile(x * v[None, :] + (w[:, None] + 1) + old, y)


@xetile.kernel
def rows_by_index(X, Rows, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    rows = xetile.load_tile(xetile.init_tile(Rows, [i], (R,)))
    found = X[rows[:, None], j + xetile.arange(C)[None, :]]
    xetile.store_tile(found.T, xetile.init_tile(Y, [j, i], (C, R)))


@xetile.kernel
def sums_down(X, Y, Sums, R: constexpr, C: constexpr):
    j = xetile.program_id(1) * C
    x = xetile.load_tile(xetile.init_tile(X, [0, j], (R, C)))
    sums = x.sum(0)
    xetile.store_tile(x - sums[None, :], xetile.init_tile(Y, [0, j], (R, C)))
    xetile.store_tile(sums, xetile.init_tile(Sums, [j], (C,)))


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_programs_beside_one_another(tile: tuple[int, int], order: Any) -> None:
    """What a grid does not reach is not written, however programs are put together."""
    rng = np.random.default_rng(0)
    (r, c), constants = tile, {"R": tile[0], "C": tile[1]}
    for n in SIZES:
        m = 7 * n % 41 + 1
        x = np.asarray(small_integers(rng, m, n), order=order)
        y = np.asarray(small_integers(rng, m, n), order=order)
        v, w = small_integers(rng, n), small_integers(rng, m)
        grid = -(-m // r) - n % 2, max(-(-n // c) - n % 5, 1)
        if not grid[0]:
            continue
        rows, columns = min(m, grid[0] * r), min(n, grid[1] * c)
        want = y.copy(order="K")
        whole = x * v + (w[:, None] + 1) + y
        want[:rows, :columns] = whole[:rows, :columns]
        same(launch(affine, grid, x, v, w, y, **constants)[3], want)

        order_of_rows = rng.permutation(m + 2).astype(np.int32)[:m] - 1
        there = (order_of_rows >= 0) & (order_of_rows < m)
        found = np.where(there[:, None], x[order_of_rows.clip(0, m - 1)], 0)
        want = y.T.copy(order="K")
        want[:columns, :rows] = found[:rows, :columns].T
        same(launch(rows_by_index, grid, x, order_of_rows, y.T, **constants)[2], want)

        want, sums = y.copy(order="K"), np.ones(n, np.float32)
        sums[:columns] = x.sum(0)[:columns]
        want[:, :columns] = (x - x.sum(0))[:, :columns]
        given = x, y, np.ones(n, np.float32)
        _, y, found = launch(sums_down, (1, grid[1]), *given, R=m, C=c)
        same(y, want)
        same(found, sums)


@xetile.kernel
def blocks(X, Y, Largest, R: constexpr, C: constexpr, UP: constexpr, LEFT: constexpr):
    i = xetile.program_id(0) * R
    largest = xetile.full((R, 1), -xetile.inf, xetile.f32)
    for j in range(0, X.shape[1], C):
        t = xetile.init_tile(X, [i - UP, j - LEFT], (R, C))
        x = xetile.load_tile(t, padding=-xetile.inf)
        largest = xetile.maximum(largest, x.max(1, keepdims=True))
        y = xetile.init_tile(Y, [i - UP, j - LEFT], (R, C))
        xetile.store_tile(largest - x, y)
    xetile.store_tile(largest.max(1), xetile.init_tile(Largest, [i], (R,)))


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize(("up", "left"), [(0, 0), (1, 3)])
def test_blocks_of_columns(tile: tuple[int, int], up: int, left: int) -> None:
    """Rows go in groups where a tile is inside; it may start before its matrix."""
    rng = np.random.default_rng(0)
    (r, c), constants = tile, {"UP": up, "LEFT": left}
    for n in SIZES:
        m = 7 * n % 41 + 1
        x = small_integers(rng, m, n)
        x[rng.random(x.shape) < 0.05] = -np.inf
        x[rng.random(x.shape) < 0.01] = np.nan
        programs = -(-m // r)
        wide = np.full((programs * r + up, -(-n // c) * c + left), -np.inf, np.float32)
        wide[up : up + m, left : left + n] = x[: len(wide) - up, : wide.shape[1] - left]
        y, largest = np.ones_like(x), np.full((programs * r, 1), -np.inf, np.float32)
        for i, j in product(range(0, m, r), range(0, n, c)):
            part, have = wide[i : i + r, j : j + c], largest[i : i + r]
            have[:] = np.maximum(have, part.max(1, keepdims=True))
            with np.errstate(invalid="ignore"):
                part = have - part
            top, first = max(up - i, 0), max(left - j, 0)
            to = y[
                i + top - up : max(i + r - up, 0),
                j + first - left : max(j + c - left, 0),
            ]
            to[...] = part[top : top + to.shape[0], first : first + to.shape[1]]
        given = x, np.ones_like(x), np.ones(m, np.float32)
        _, found, last = launch(blocks, programs, *given, R=r, C=c, **constants)
        same(found, y)
        same(last, largest[:m, 0])


@xetile.kernel
def in_place(X, R: constexpr, C: constexpr):
    """Reads what it has stored, twice."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    t = xetile.init_tile(X, [i, j], (R, C))
    x = xetile.load_tile(t)
    xetile.store_tile(x * 2, t)
    y = xetile.load_tile(t)
    xetile.store_tile(y + x, t)


@xetile.kernel
def places(X, Y, R: constexpr, C: constexpr):
    """Counts columns, by numbers that wrap; the first element for all."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    first = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 1)))
    rows, columns = (i + xetile.arange(R))[:, None], (j + xetile.arange(C))[None, :]
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    x = xetile.where((columns % 3 == 0) & (rows % 2 == 0), x, first)
    x = x + xetile.arange(R)[:, None] + (columns * 100000007 % 17)
    xetile.store_tile(x, xetile.init_tile(Y, [i, j], (R, C)))


@xetile.kernel
def own_numbers(X, Y, N, R: constexpr, C: constexpr):
    """What a program's number is used for besides."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    n = 0
    for k in range(N):
        n = (n * 3 + j + k) % 64
    if i > N:
        x = x * 2
    x = x + (n if j > N else xetile.program_id(1)) + xetile.num_programs(1)
    xetile.store_tile(x, xetile.init_tile(Y, [i, j], (R, C)))


@xetile.kernel
def only_numbers(X, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    xetile.store_tile(x * (j + 1), xetile.init_tile(Y, [i, j], (R, C)))


@xetile.kernel
def moved_loads(X, Y, R: constexpr, C: constexpr):
    """Of tiles that start before their matrix, and farther on."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    t = xetile.init_tile(X, [i, j], (R, C))
    x = xetile.load_tile(xetile.update_tile_offset(t, [1, 2]))
    x = x - xetile.load_tile(t)
    t = xetile.init_tile(X, [i - 1, j - 2], (R, C))
    x = x * xetile.load_tile(t, padding=3)
    xetile.store_tile(x, xetile.init_tile(Y, [i, j], (R, C)))


@xetile.kernel
def moved_stores(X, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    xetile.store_tile(x, xetile.init_tile(Y, [i - 1, j - 2], (R, C)))


@xetile.kernel
def indexed(X, Y, R: constexpr, C: constexpr):
    """Columns from back to front and some that lie outside."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    rows, columns = (i + xetile.arange(R))[:, None], (j + xetile.arange(C))[None, :]
    x = X[rows, j + (C - 1 - xetile.arange(C))[None, :]] - X[rows, 2 * columns - 3]
    xetile.store_tile(x + X[rows, columns], xetile.init_tile(Y, [i, j], (R, C)))


@xetile.kernel
def scattered(X, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    rows, columns = (i + xetile.arange(R))[:, None], (j + xetile.arange(C))[None, :]
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    xetile.store_scatter(x, columns % 2 == 0, xetile.init_tile(Y, (rows, columns)))


@xetile.kernel
def added(X, Y, R: constexpr, C: constexpr):
    """Sums of all rows by atomics, beside a store."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    xetile.store_tile(x + 1, xetile.init_tile(X, [i, j], (R, C)))
    sums = xetile.init_tile(Y, [0, j], (1, C))
    xetile.atomic_rmw_tile("add", x.sum(0, keepdims=True), sums)


@xetile.kernel
def of_each(X, Y, R: constexpr, C: constexpr):
    """The third dimension of the grid numbers matrices."""
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    b = xetile.program_id(2)
    x = xetile.load_tile(xetile.init_tile(X[b], [i, j], (R, C)))
    xetile.store_tile(x + b, xetile.init_tile(Y[b], [i, j], (R, C)))


KERNELS = [places, only_numbers, moved_loads, moved_stores, indexed, scattered, added]


@pytest.mark.parametrize("tile", [(8, 8), (4, 16), (1, 1), (8, 1), (1, 8), (16, 2)])
def test_as_the_reference(tile: tuple[int, int]) -> None:
    """Whatever programs do with their numbers, on all of a matrix or a part of it."""
    rng = np.random.default_rng(0)
    (r, c), constants = tile, {"R": tile[0], "C": tile[1]}
    m, n = (5, 33) if tile == (1, 1) else (17, 75)
    x, y = small_integers(rng, m, n), small_integers(rng, m, n)
    wide = small_integers(rng, m, 2 * n)
    for short in (0, 2):
        grid = max(1, -(-m // r) - short), -(-n // c) - short
        for kernel in KERNELS:
            agree(kernel, grid, x, y, **constants)
        agree(moved_loads, grid, np.asfortranarray(x), y, **constants)
        agree(own_numbers, grid, x, y, 7, **constants)
        agree(in_place, grid, x, **constants)
        one, other = np.stack([x, y, x]), np.stack([y, x, y])
        agree(of_each, (*grid, 2), one, other, **constants)
        # What is stored lies beside what is loaded, in one array.
        args = wide, x[0], y[:, 0], wide[:, grid[1] * c :]
        agree(affine, grid, *args, **constants)


@xetile.kernel
def turned(X, Y, R: constexpr, C: constexpr):
    i = xetile.program_id(0) * R
    for j in range(0, X.shape[1], C):
        x = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
        y = xetile.init_tile(Y, [j, i], (C, R))
        xetile.store_tile(x.T + xetile.load_tile(y), y)


@pytest.mark.parametrize("tile", [*TILES, (16, 16)])
def test_blocks_turned_in_place(tile: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 33, 51), small_integers(rng, 51, 33)
    agree(turned, -(-33 // tile[0]), x, y, R=tile[0], C=tile[1])


@xetile.kernel
def doubled(X, Y, C: constexpr):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, C)), padding=2)
    xetile.store_tile(x + x, xetile.init_tile(Y, [i, 0], (1, C)))


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.bfloat16, np.float32])
def test_rows_of_any_length(dtype: Any) -> None:
    """The last vector may begin before what is left: in place that would be twice."""
    for columns in range(1, 72):
        x = np.arange(3 * 80).reshape(3, 80).astype(dtype)[:, :columns]
        kept = np.ones((3, 80), dtype)
        doubled[3](x, kept[:, :columns], 128)
        same(kept[:, :columns], x + x)
        assert (kept[:, columns:] == 1).all()
        doubled[3](x[:, :-1], kept[:, :columns], 128)
        same(kept[:, : columns - 1], (x + x)[:, :-1])
        assert (kept[:, columns - 1] == 4).all()
        wanted = x + x
        doubled[3](x, x, 128)
        same(x, wanted)


@xetile.kernel
def sums_of_two(X, V, Y, Sums, BACK: constexpr, R: constexpr, C: constexpr):
    i = xetile.program_id(0) * R
    x = xetile.load_tile(xetile.init_tile(X, [i, 0], (R, C)), padding=2)
    v = xetile.load_tile(xetile.init_tile(V, [i - BACK, 0], (R, C)))
    sums = x.sum(1, keepdims=True) + v.max(1, keepdims=True)
    xetile.store_tile(x * v + sums, xetile.init_tile(Y, [i, 0], (R, C)))
    xetile.store_tile(sums, xetile.init_tile(Sums, [i, 0], (R, 1)))


@pytest.mark.parametrize("tile", [(16, 4), (64, 8), (12, 20), (4, 32), (32, 70)])
@pytest.mark.parametrize("back", [0, 5])
def test_matrices_that_end_at_other_rows(tile: tuple[int, int], back: int) -> None:
    """Each row of a tile is of both matrices, of one of them or of none."""
    rng, (r, c) = np.random.default_rng(1), tile
    for rows, ends in product((1, 7, 33, 70), ((0, 0), (3, -5), (-6, 40))):
        m, k = (max(1, rows + each) for each in ends)
        for columns in {c, max(1, c - 3)}:
            x, v = small_integers(rng, m, columns), small_integers(rng, k, columns)
            padded = [np.full((rows + r, c), fill, np.float32) for fill in (2, 0)]
            for to, array, first in zip(padded, (x, v), (0, back)):
                some = array[: rows + r - first]
                to[first : first + len(some), :columns] = some
            left, right = (each[:rows] for each in padded)
            sums = left.sum(1, keepdims=True) + right.max(1, keepdims=True)
            y, total = small_integers(rng, rows, columns), np.zeros((rows, 1), "f")
            constants = {"BACK": back, "R": r, "C": c}
            arrays, programs = (x, v, y, total), -(-rows // r)
            *_, y, total = launch(sums_of_two, programs, *arrays, **constants)
            same(total, sums)
            same(y, (left * right + sums)[:, :columns])
