"""Views, gathers, scatters, atomics, shared memory: where elements come from."""

from typing import Any

import numpy as np
import pytest
from launching import BF16, agree, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32, i64

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def gathered(X, Index, M, Y, N: constexpr):
    i = xetile.load_tile(xetile.init_tile(Index, [0], (N,)), padding=-1)
    m = xetile.load_tile(xetile.init_tile(M, [0], (N,)))
    v = xetile.load_gather(xetile.init_tile(X, i), m, padding=5)
    xetile.store_tile(v, xetile.init_tile(Y, [0], (N,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int8, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("step", [1, 3, -2])
def test_gathers_pad_what_is_outside_or_masked(
    dtype: Any, index: Any, step: int
) -> None:
    rng = np.random.default_rng(0)
    x = small_integers(rng, 300, dtype=dtype)[::step]
    i = rng.integers(-5, x.size + 10, 50).astype(index)
    i[0] = np.iinfo(index).min
    i[1] = np.iinfo(index).max
    m = rng.integers(0, 4, 50) > 0
    inside = (i >= 0) & (i < x.size) & m
    expected = np.where(inside, x[np.where(inside, i, 0)], np.array(5, dtype))
    out = agree(gathered, 1, x, i, m, np.zeros(50, dtype), N=50)
    same(out[3], expected.astype(dtype))


@xetile.kernel
def scattered(X, Index, M, Y, R: constexpr, C: constexpr):
    i = xetile.load_tile(xetile.init_tile(Index, [0, 0], (R, C)))
    m = xetile.load_tile(xetile.init_tile(M, [0, 0], (R, C)))
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    xetile.store_scatter(v + v, m, xetile.init_tile(Y, i))


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.uint8, np.float64])
@pytest.mark.parametrize("shape", [(4, 17), (1, 37), (37, 1)])
def test_scatters_drop_what_is_outside_or_masked(dtype: Any, shape: Any) -> None:
    rng = np.random.default_rng(0)
    x = abs(small_integers(rng, *shape)).astype(dtype)
    i = (rng.permutation(100)[: x.size].reshape(shape) - 10).astype(np.int32)
    m = rng.integers(0, 4, shape) > 0
    expected = np.zeros(60, dtype)
    inside = (i >= 0) & (i < 60) & m
    expected[i[inside]] = (x + x)[inside]
    out = agree(scattered, 1, x, i, m, 0 * expected, R=shape[0], C=shape[1])
    same(out[3], expected)


@xetile.kernel
def views(X, Y, Z, R: constexpr, C: constexpr):
    b, h = xetile.program_id(0), xetile.program_id(1)
    v = xetile.load_tile(xetile.init_tile(X[b, h], [0, 0], (R, C)))
    w = xetile.load_tile(xetile.init_tile(X[b, h].T, [0, 0], (C, R)))
    row = xetile.load_tile(xetile.init_tile(X[b, h, 1], [0], (C,)))
    xetile.store_tile(v + w.T * 2.0 + row, xetile.init_tile(Y[b, h], [0, 0], (R, C)))
    total = xetile.zeros((1, 1)) + X[b, h, 0, 1] * 10.0 + X[b, 0, 0, 0]
    xetile.store_tile(total, xetile.init_tile(Z[b], [h, 0], (1, 1)))


@pytest.mark.parametrize(
    "axes", [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)]
)
def test_views_of_arrays_of_rank_4(axes: Any) -> None:
    x = small_integers(np.random.default_rng(0), *(2, 3, 5, 7)).transpose(axes)
    x = x.copy(order="K")
    a, b, r, c = x.shape
    y, z = np.zeros(x.shape, np.float32), np.zeros((a, b, 1), np.float32)
    out = agree(views, (a, b), x, y, z, R=8, C=8)
    same(out[1], 3 * x + x[:, :, 1:2, :])
    same(out[2], (10 * x[:, :, 0, 1] + x[:, :1, 0, 0])[:, :, None])
    agree(views, (a + 1, b + 1), x, y, z, R=r, C=c)


@xetile.kernel
def offsets(X, Y, row, col, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [row, col], (R, C)), padding=9)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (R, C)))
    xetile.store_tile(v + v, xetile.init_tile(X, [row + 1, col - 1], (R, C)))


@pytest.mark.parametrize("row", [-30, -9, -2, 0, 3, 11, 2**40, -(2**40)])
@pytest.mark.parametrize("col", [-60, -37, -3, 0, 20, 41])
@pytest.mark.parametrize("shape", [(9, 37), (1, 20), (20, 1)])
def test_tiles_anywhere(row: int, col: int, shape: Any) -> None:
    x = small_integers(np.random.default_rng(0), 11, 41)
    y = np.zeros(shape, np.float32)
    out = agree(offsets, 1, x, y, row, col, R=shape[0], C=shape[1])
    expected, after = np.full(shape, 9, np.float32), x.copy()
    for i in range(shape[0]):
        for j in range(shape[1]):
            if 0 <= row + i < 11 and 0 <= col + j < 41:
                expected[i, j] = x[row + i, col + j]
    for i in range(shape[0]):
        for j in range(shape[1]):
            if 0 <= row + i + 1 < 11 and 0 <= col + j - 1 < 41:
                after[row + i + 1, col + j - 1] = 2 * expected[i, j]
    same(out[1], expected)
    same(out[0], after)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16, np.float64])
def test_tiles_of_any_type_anywhere(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 2, (11, 41)).astype(dtype)
    agree(offsets, 1, x, np.zeros((9, 37), dtype), -3, 10, R=9, C=37)


@xetile.kernel
def shared(X, Y, R: constexpr, C: constexpr):
    room = xetile.slm((R, C), f32)
    t = xetile.init_tile(room, [0, 0], (R, C))
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * R, 0], (R, C)))
    xetile.store_tile(v * 2.0, t)
    xetile.barrier()
    for i in range(R - 1):
        below = xetile.init_tile(room, [i + 1, 0], (1, C))
        above = xetile.load_tile(xetile.init_tile(room, [i, 0], (1, C)))
        xetile.store_tile(above + xetile.load_tile(below), below)
    xetile.barrier()
    outside = xetile.load_tile(xetile.init_tile(room, [-1, -1], (R, C)))
    v = xetile.load_tile(t) + outside
    xetile.store_tile(v, xetile.init_tile(Y, [xetile.program_id(0) * R, 0], (R, C)))


def test_shared_memory() -> None:
    x = small_integers(np.random.default_rng(0), 27, 37)
    rows = np.cumsum(2 * x.reshape(3, 9, 37), 1)
    expected = rows.copy()
    expected[:, 1:, 1:] += rows[:, :-1, :-1]
    same(agree(shared, 3, x, 0 * x, R=9, C=37)[1], expected.reshape(27, 37))


@xetile.kernel
def histogram(X, Counts, N: constexpr):
    i = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * N], (N,)))
    ones = xetile.full((N,), 1, i64)
    xetile.atomic_rmw_tile("add", ones, xetile.init_tile(Counts, i))


def test_atomic_additions_of_many_programs() -> None:
    x = np.random.default_rng(0).integers(-2, 12, 5000).astype(np.int32)
    out = agree(histogram, 50, x, np.zeros(10, np.int64), N=100)
    same(out[1], np.bincount(x[(x >= 0) & (x < 10)], minlength=10))


@xetile.kernel
def counted(X, Counts, R: constexpr, C: constexpr):
    place = [xetile.program_id(0) * R, xetile.program_id(1) * C]
    i = xetile.load_tile(xetile.init_tile(X, place, (R, C)))
    xetile.atomic_rmw_tile("add", i + 1, xetile.init_tile(Counts, i))


@pytest.mark.parametrize("tile", [(1, 32), (2, 32), (4, 2), (3, 5), (8, 1)])
@pytest.mark.parametrize("shape", [(1, 64), (1, 65), (4, 31), (7, 2), (9, 130)])
def test_atomics_behind_the_end_of_what_they_load(tile: Any, shape: Any) -> None:
    """Elements of the padding are counted as well: they are zeros."""
    x = np.random.default_rng(0).integers(-1, 7, shape).astype(np.int32)
    grid = tuple(-(-n // t) for n, t in zip(shape, tile))
    padded = np.zeros([t * g for t, g in zip(tile, grid)], np.int32)
    padded[: shape[0], : shape[1]] = x
    out = agree(counted, grid, x, np.zeros(6, np.int32), R=tile[0], C=tile[1])
    wanted = np.bincount(padded[(padded >= 0) & (padded < 6)], minlength=6)
    same(out[1], (wanted * np.arange(1, 7)).astype(np.int32))


@xetile.kernel
def counted_by_name(X, Names, Counts):
    i = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0), 0], (1, 16)))
    name = xetile.load_gather(xetile.init_tile(Names, i), padding=2)
    xetile.atomic_rmw_tile("add", name, xetile.init_tile(Counts, i + 1))


def test_atomic_additions_of_gathered_numbers() -> None:
    x = np.random.default_rng(0).integers(-2, 9, (5, 16)).astype(np.int32)
    names = np.arange(3, 10, dtype=np.int64)
    out = agree(counted_by_name, 5, x, names, np.zeros(8, np.int64))
    added = np.where((x >= 0) & (x < 7), names[np.clip(x, 0, 6)], 2)
    inside = (x + 1 >= 0) & (x + 1 < 8)
    same(out[2], np.bincount(x[inside] + 1, added[inside], 8).astype(np.int64))


@xetile.kernel
def old_values(X, Y, Z):
    v = xetile.load_tile(xetile.init_tile(Y, [0, 0], (5, 20)))
    t = xetile.init_tile(X, [-1, 3], (5, 20))
    old = xetile.atomic_rmw_tile("max", v, t)
    xetile.store_tile(old, xetile.init_tile(Z, [0, 0], (5, 20)))


def test_atomics_give_old_values_and_zero_outside() -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 6, 15), small_integers(rng, 5, 20)
    out = agree(old_values, 1, x, y, 0 * y)
    expected, old = x.copy(), 0 * y
    old[1:, :12] = x[:4, 3:]
    expected[:4, 3:] = np.maximum(x[:4, 3:], y[1:, :12])
    same(out[0], expected)
    same(out[2], old)


@xetile.kernel
def sizes(X, Y):
    v = xetile.zeros((1, 4), i64)
    total = X.shape[0] * 1000 + X.shape[1] * 10 + X.stride(0) - X.stride(1)
    number = xetile.program_id(0) + xetile.num_programs(0) * 100
    xetile.store_tile(v + total + number, xetile.init_tile(Y, [0, 0], (1, 4)))


def test_sizes_and_strides() -> None:
    x = np.zeros((12, 34), np.float32)[::2, ::-3]
    out = agree(sizes, 1, x, np.zeros((1, 4), np.int64))
    total = 6 * 1000 + 12 * 10 + 68 + 3 + 100
    same(out[1], np.full((1, 4), total))


@xetile.kernel
def static_offsets(X, Y):
    room = xetile.slm((4, 20), f32)
    whole = xetile.init_tile(room, [0, 0], (4, 20))
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 20)))
    xetile.store_tile(v, whole)
    row = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 20)))
    column = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 1)))
    for_nobody = xetile.init_tile(room, [-1, 0], (1, 20))
    xetile.store_tile(row, for_nobody)
    xetile.store_tile(column, xetile.init_tile(room, [0, 20], (4, 1)))
    xetile.store_tile(v + 10.0, xetile.init_tile(room, [-2, -3], (4, 20)))
    xetile.store_tile(v + 20.0, xetile.init_tile(room, [3, 18], (4, 20)))
    xetile.store_tile(xetile.load_tile(whole), xetile.init_tile(Y, [-1, -1], (4, 20)))


def test_stores_at_constant_offsets_outside() -> None:
    x = small_integers(np.random.default_rng(0), 4, 20)
    expected = x.copy()
    expected[:2, :17] = x[2:, 3:] + 10
    expected[3:, 18:] = x[:1, :2] + 20
    y = np.zeros((3, 19), np.float32)
    same(agree(static_offsets, 1, x, y)[1], expected[1:, 1:])


@xetile.kernel
def moved(X, Y, LEFT: constexpr):
    tile = xetile.init_tile(X, [xetile.program_id(0), -LEFT], (1, 128))
    to = xetile.init_tile(Y, [xetile.program_id(0), 0], (1, 128))
    xetile.store_tile(xetile.load_tile(tile), to)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("left", [-3, 0, 5])
def test_rows_of_narrow_elements_end_anywhere(dtype: str, left: int) -> None:
    for columns in (1, 2, 7, 15, 31, 33, 47, 63, 100, 127):
        x = np.arange(3 * columns).reshape(3, columns).astype(dtype)
        memory = np.full(3 * columns + 40, 7, dtype)
        y = memory[5 : 5 + 3 * columns].reshape(3, columns)
        moved[3](x, y, left)
        wide = np.pad(x, ((0, 0), (8, 8)))
        np.testing.assert_array_equal(y, wide[:, 8 - left : 8 - left + columns])
        assert (memory[:5] == 7).all()
        assert (memory[5 + 3 * columns :] == 7).all()
