"""Loads and stores keep the order in which the kernel says them."""

from typing import Any

import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")
SHAPES = [(8, 16), (7, 33), (5, 100), (1, 17), (17, 1)]


@xetile.kernel
def same_tile(X, R: constexpr, C: constexpr):
    t = xetile.init_tile(X, [0, 0], (R, C))
    v = xetile.load_tile(t)
    xetile.store_tile(v * 2.0, t)
    xetile.store_tile(v + 1.0, t)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_value_loaded_before_a_store_stays(shape: Any) -> None:
    x = small_integers(np.random.default_rng(0), *shape)
    same(agree(same_tile, 1, x, R=shape[0], C=shape[1])[0], x + 1)


@xetile.kernel
def of_one_value(X, Y, A, B, C: constexpr):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, C)))
    w = xetile.load_tile(xetile.init_tile(Y, [row, 0], (1, C)))
    e = v * w + v - w
    e = e * e / (e * e + 1.0)
    xetile.store_tile(e + w, xetile.init_tile(A, [row, 0], (1, C)))
    xetile.store_tile(e * v, xetile.init_tile(B, [row, 0], (1, C)))


@pytest.mark.parametrize("columns", [(37, 20), (20, 37), (130, 130), (5, 700)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_two_arrays_of_other_sizes_are_stored_by_one_loop(
    columns: Any, dtype: Any
) -> None:
    rng = np.random.default_rng(0)
    sizes = (5, 130), (6, 130), (5, columns[0]), (4, columns[1])
    arrays = [small_integers(rng, *size).astype(dtype) for size in sizes]
    agree(of_one_value, 5, *arrays, C=1024)


@xetile.kernel
def exchanged(X, Y, C: constexpr):
    x, y = xetile.init_tile(X, [0, 0], (1, C)), xetile.init_tile(Y, [0, 0], (1, C))
    v, w = xetile.load_tile(x), xetile.load_tile(y)
    xetile.store_tile(w, x)
    xetile.store_tile(v + 1.0, y)


@pytest.mark.parametrize("n", [5, 16, 33, 600])
def test_two_arrays_change_places(n: int) -> None:
    x, y = small_integers(np.random.default_rng(0), 2, 1, n)
    found = agree(exchanged, 1, x, y, C=1024)
    same(found[0], y)
    same(found[1], x + 1)
    same(agree(exchanged, 1, x, x, C=1024)[0], x + 1)


@xetile.kernel
def shifted(X, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, C)))
    b = xetile.load_tile(xetile.init_tile(X, [0, 1], (1, C)))
    xetile.store_tile(b, xetile.init_tile(X, [0, 0], (1, C)))
    xetile.store_tile(a + b, xetile.init_tile(X, [0, -3], (1, C)))


@pytest.mark.parametrize("n", [5, 16, 33, 64, 100])
def test_shifted_tiles(n: int) -> None:
    x = small_integers(np.random.default_rng(0), 1, n)
    b = np.zeros_like(x)
    b[0, :-1] = x[0, 1:]
    expected = b.copy()
    expected[0, : n - 3] = (x + b)[0, 3:]
    same(agree(shifted, 1, x, C=n)[0], expected)


@xetile.kernel
def down_by_one(X, R: constexpr, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    xetile.store_tile(v + 1.0, xetile.init_tile(X, [1, 0], (R, C)))


def test_rows_written_below_where_they_are_read() -> None:
    x = small_integers(np.random.default_rng(0), 9, 20)
    expected = x.copy()
    expected[1:] = x[:-1] + 1
    same(agree(down_by_one, 1, x, R=9, C=20)[0], expected)


@xetile.kernel
def transposed_in_place(X, N: constexpr):
    t = xetile.init_tile(X, [0, 0], (N, N))
    xetile.store_tile(xetile.load_tile(t).T, t)


@pytest.mark.parametrize("n", [3, 16, 17, 40])
def test_transpose_in_place(n: int) -> None:
    x = small_integers(np.random.default_rng(0), n, n)
    same(agree(transposed_in_place, 1, x, N=n)[0], x.T.copy())


@xetile.kernel
def normalised_in_place(X, R: constexpr, C: constexpr):
    t = xetile.init_tile(X, [0, 0], (R, C))
    v = xetile.load_tile(t)
    xetile.store_tile(v - v.max(1, keepdims=True), t)


def test_rows_reduced_and_rewritten() -> None:
    x = small_integers(np.random.default_rng(0), 9, 70)
    same(agree(normalised_in_place, 1, x, R=9, C=70)[0], x - x.max(1, keepdims=True))


@xetile.kernel
def from_x_to_y(X, Y, R: constexpr, C: constexpr):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (R, C)))
    b = xetile.load_tile(xetile.init_tile(Y, [0, 0], (R, C)))
    xetile.store_tile(a + b, xetile.init_tile(Y, [0, 0], (R, C)))
    xetile.store_tile(a * b, xetile.init_tile(X, [0, 0], (R, C)))


def test_the_very_same_view_given_twice() -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 6, 40), small_integers(rng, 6, 40)
    out = agree(from_x_to_y, 1, x, y, R=6, C=40)
    same(out[0], x * y)
    same(out[1], x + y)
    same(agree(from_x_to_y, 1, x, x, R=6, C=40)[0], x * x)


@xetile.kernel
def store_in_loop(X, Y, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, C)))
    for i in range(3):
        w = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, C)))
        xetile.store_tile(v + w, xetile.init_tile(X, [i, 0], (1, C)))
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (1, C)))


def test_a_load_before_a_loop_that_stores() -> None:
    x = small_integers(np.random.default_rng(0), 3, 40)
    out = agree(store_in_loop, 1, x, np.zeros((1, 40), np.float32), C=40)
    same(out[0], x + x[0])
    same(out[1], x[:1])


@xetile.kernel
def store_in_if(X, Y, flag, C: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (2, C)))
    if flag > 0:
        xetile.store_tile(v * 3.0, xetile.init_tile(X, [0, 0], (2, C)))
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (2, C)))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_load_before_an_if_that_stores(flag: int) -> None:
    x = small_integers(np.random.default_rng(0), 2, 40)
    out = agree(store_in_if, 1, x, np.zeros((2, 40), np.float32), flag, C=40)
    same(out[0], x * 3 if flag else x)
    same(out[1], x)


@xetile.kernel
def prefix_in_place(X, C: constexpr):
    t = xetile.init_tile(X, [0, 0], (1, C))
    u = xetile.init_tile(X, [1, 0], (1, C))
    for _ in range(X.shape[0] - 1):
        xetile.store_tile(xetile.load_tile(t) + xetile.load_tile(u), u)
        t = u
        u = xetile.update_tile_offset(u, [1, 0])


def test_each_trip_sees_the_store_of_the_last() -> None:
    x = small_integers(np.random.default_rng(0), 9, 40)
    same(agree(prefix_in_place, 1, x, C=40)[0], np.cumsum(x, 0))


@xetile.kernel
def scatter_then_gather(X, J, Y, Z, N: constexpr):
    i = xetile.load_tile(xetile.init_tile(J, [0], (N,)))
    t = xetile.init_tile(X, i)
    before = xetile.load_gather(t)
    xetile.store_scatter(before + 10.0, None, t)
    after = xetile.load_gather(t)
    xetile.store_tile(before, xetile.init_tile(Y, [0], (N,)))
    xetile.store_tile(after, xetile.init_tile(Z, [0], (N,)))


def test_gathers_and_scatters_of_one_array() -> None:
    rng = np.random.default_rng(0)
    x = small_integers(rng, 50)
    index = rng.permutation(50)[:30].astype(np.int32)
    y = np.zeros(30, np.float32)
    out = agree(scatter_then_gather, 1, x, index, y, y.copy(), N=30)
    same(out[2], x[index])
    same(out[3], x[index] + 10)


@xetile.kernel
def index_overwritten(X, J, Y, N: constexpr):
    t = xetile.init_tile(J, [0], (N,))
    i = xetile.load_tile(t)
    gathered = xetile.init_tile(X, i)
    xetile.store_tile(i * 0, t)
    xetile.store_tile(xetile.load_gather(gathered), xetile.init_tile(Y, [0], (N,)))


def test_indices_are_those_of_init_tile() -> None:
    rng = np.random.default_rng(0)
    x, index = small_integers(rng, 50), rng.permutation(50)[:30].astype(np.int32)
    out = agree(index_overwritten, 1, x, index, np.zeros(30, np.float32), N=30)
    same(out[2], x[index])
    same(out[1], 0 * index)


@xetile.kernel
def product_reads_before_store(A, B, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (16, 16)))
    xetile.store_tile(a + 1.0, xetile.init_tile(A, [0, 0], (16, 16)))
    xetile.store_tile(a @ b, xetile.init_tile(C, [0, 0], (16, 16)))


def test_operands_of_a_product_loaded_before_a_store() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 16, 16), small_integers(rng, 16, 16)
    out = agree(product_reads_before_store, 1, a, b, 0 * a)
    same(out[2], a @ b)
    same(out[0], a + 1)


@xetile.kernel
def scalar_reads(X, Y):
    first = X[0, 0]
    xetile.store_tile(
        xetile.full((1, 4), 5.0, f32), xetile.init_tile(X, [0, 0], (1, 4))
    )
    second = X[0, 0]
    v = xetile.zeros((1, 4)) + first * 100.0 + second
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (1, 4)))


def test_scalars_read_around_a_store() -> None:
    x = np.full((1, 4), 3, np.float32)
    same(agree(scalar_reads, 1, x, 0 * x)[1], np.full((1, 4), 305, np.float32))


@xetile.kernel
def partial_reads(X, Y):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 16)))
    b = xetile.exp(a)
    s = b.sum(1, keepdims=True)
    xetile.store_tile(a + s, xetile.init_tile(X, [0, 0], (4, 16)))
    xetile.store_tile(b / s + a, xetile.init_tile(Y, [0, 0], (4, 16)))


def test_values_half_used_before_a_store() -> None:
    x = small_integers(np.random.default_rng(0), 4, 16)
    one = launch(partial_reads, 1, x, 0 * x)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(one[1], e / e.sum(1, keepdims=True) + x, rtol=1e-5)


@xetile.kernel
def reshaped_across_a_store(X, Y, N: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, N))).reshape((N, 1))
    other = xetile.load_tile(xetile.init_tile(Y, [0, 0], (N, 2)))
    xetile.store_tile(other, xetile.init_tile(X, [0, 0], (N, 2)))
    xetile.store_tile(v.T, xetile.init_tile(X, [0, 0], (1, N)))


def test_a_reshaped_load_before_a_store() -> None:
    rng = np.random.default_rng(0)
    x, y = small_integers(rng, 20, 20), small_integers(rng, 20, 2)
    expected = x.copy()
    expected[:, :2], expected[0] = y, x[0]
    same(agree(reshaped_across_a_store, 1, x, y, N=20)[0], expected)


@xetile.kernel
def shifted_exchange(X, n):
    v = xetile.load_tile(xetile.init_tile(X, [0], (64,)))
    there = xetile.init_tile(X, xetile.arange(64) + n)
    xetile.atomic_rmw_tile("xchg", v + 1.0, there)


def test_an_atomic_whose_old_values_nobody_reads_sees_what_was_loaded() -> None:
    x = np.arange(70, dtype=np.float32)
    for n in (0, 1, 5):
        expected = x.copy()
        expected[n : n + 64] = x[:64] + 1
        same(agree(shifted_exchange, 1, x, n)[0], expected)
