"""Products by programs in other orders than that of the grid: raised and packed."""

import numpy as np
import pytest
from launching import agree, small_integers

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

TILE = {"BM": 32, "BN": 48, "BK": 16}


@xetile.function
def product(A, B, C, m, n, BM: constexpr, BN: constexpr, BK: constexpr):
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def by_rows(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    number, across = xetile.program_id(0), cdiv(C.shape[1], BN)
    product(A, B, C, number // across * BM, number % across * BN, BM, BN, BK)


@xetile.kernel
def grouped(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    """Triton's order: four rows of tiles at a time, column after column."""
    number = xetile.program_id(0)
    down, across = cdiv(C.shape[0], BM), cdiv(C.shape[1], BN)
    first = number // (4 * across) * 4
    size = min(down - first, 4)
    inside = number % (4 * across)
    m, n = first + inside % size, inside // size
    product(A, B, C, m * BM, n * BN, BM, BN, BK)


@xetile.kernel
def persistent(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    down, across = cdiv(C.shape[0], BM), cdiv(C.shape[1], BN)
    for number in range(xetile.program_id(0), down * across, xetile.num_programs(0)):
        product(A, B, C, number // across * BM, number % across * BN, BM, BN, BK)


@xetile.kernel
def before_and_behind(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    """Two tiles before the matrices, two behind them."""
    m, n = xetile.program_id(0) - 2, xetile.program_id(1) - 2
    product(A, B, C, m * BM, n * BN, BM, BN, BK)


def operands(m, n, k):
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, m, k), small_integers(rng, k, n)
    return a, b, np.full((m, n), 7, np.float32)


@pytest.mark.parametrize("kernel", [by_rows, grouped, persistent])
@pytest.mark.parametrize("shape", [(32, 48, 16), (200, 150, 40), (97, 300, 33)])
def test_numbers_that_programs_compute(kernel, shape):
    a, b, c = operands(*shape)
    grid = -(-c.shape[0] // 32) * -(-c.shape[1] // 48)
    for programs in (grid, grid + 9, 5) if kernel is persistent else (grid, grid + 9):
        *_, got = agree(kernel, programs, a, b, c, **TILE)
        assert np.array_equal(got, a @ b)


def test_tiles_before_and_behind_the_matrices():
    a, b, c = operands(100, 130, 50)
    *_, got = agree(before_and_behind, (8, 7), a, b, c, **TILE)
    assert np.array_equal(got, a @ b)


@pytest.mark.parametrize("kernel", [by_rows, grouped, persistent, before_and_behind])
def test_they_are_raised_packed_once_and_stored_from_registers(kernel):
    a, b, c = operands(256, 240, 64)
    text = str(kernel.explain(a, b, c, **TILE | {"BM": 64}))
    assert "the loop over k is one batch-reduce GEMM" in text
    assert "b is packed once, before the programs run" in text
    assert "the result is stored from registers" in text


@xetile.kernel
def by_columns(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    number, down = xetile.program_id(1), cdiv(C.shape[0], BM)
    product(A, B, C, number % down * BM, number // down * BN, BM, BN, BK)


@xetile.kernel
def told(A, B, C, across, BM: constexpr, BN: constexpr, BK: constexpr):
    number = xetile.program_id(0)
    product(A, B, C, number // across * BM, number % across * BN, BM, BN, BK)


@xetile.kernel
def eight_across(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    number = xetile.program_id(0)
    product(A, B, C, number // 8 * BM, number % 8 * BN, BM, BN, BK)


@xetile.kernel
def numbered(A, B, C, Numbers, BM: constexpr, BN: constexpr, BK: constexpr):
    """Programs that may not become one: each stores what no other does."""
    number, across = xetile.program_id(0), cdiv(C.shape[1], BN)
    product(A, B, C, number // across * BM, number % across * BN, BM, BN, BK)
    one = xetile.full((1, 1), 1.0, f32)
    xetile.store_tile(one, xetile.init_tile(Numbers, [number, -number], (1, 1)))


SMALL = {"BM": 16, "BN": 16, "BK": 16}


@pytest.mark.parametrize("kernel", [by_rows, by_columns, eight_across])
@pytest.mark.parametrize("shape", [(16, 512, 40), (40, 496, 16), (500, 128, 33)])
@pytest.mark.parametrize("more", [0, 8, 9])
def test_neighbours_become_tasks(kernel, shape, more):
    a, b, c = operands(*shape)
    programs = -(-c.shape[0] // 16) * -(-c.shape[1] // 16) + more
    grid = (1, programs) if kernel is by_columns else programs
    *_, got = agree(kernel, grid, a, b, c, **SMALL)
    assert kernel is eight_across or np.array_equal(got, a @ b)
    text = str(kernel.explain(a, b, c, **SMALL))
    assert kernel is by_columns or "programs run as one" in text


@pytest.mark.parametrize("across", [32, 8, 3, 1, 0, -1, -4])
def test_a_divisor_that_nobody_knows(across):
    a, b, c = operands(64, 512, 40)
    agree(told, 128, a, b, c, across, **SMALL)


def test_programs_that_differ_by_more_than_their_place():
    a, b, c = operands(16, 512, 40)
    *_, got, _ = agree(numbered, 32, a, b, c, np.zeros((40, 40), np.float32), **SMALL)
    assert np.array_equal(got, a @ b)


@xetile.kernel
def chosen(A, B, C, which, BM: constexpr, BN: constexpr, BK: constexpr):
    n = which[xetile.program_id(0)]
    product(A, B, C, 0, n * BN, BM, BN, BK)


def test_numbers_read_from_memory_are_not_packed_for_all():
    a, b, c = operands(32, 480, 64)
    which = np.array([3, -1, 0, 12], np.int32)
    text = str(chosen.explain(a, b, c, which, **TILE))
    assert "packed once" not in text
    agree(chosen, 4, a, b, c, which, **TILE)
