"""Operands of products that a number chooses which is computed in the program."""

from typing import Any

import numpy as np
import pytest
from launching import agree, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("target")


@xetile.function
def plain(n: Any, count: Any, turn: Any) -> Any:
    return n % count


@xetile.function
def by_division(n: Any, count: Any, turn: Any) -> Any:
    return (n * 7 // (count + 1)) % count


@xetile.function
def by_choice(n: Any, count: Any, turn: Any) -> Any:
    return xetile.where(n > count, count - 1, n) if n > 100 else n % 2


@xetile.function
def by_turn(n: Any, count: Any, turn: Any) -> Any:
    return (n + turn) % count


@xetile.kernel
def chosen(A, B, C, n: int, WHICH: constexpr, W: constexpr):
    m = xetile.program_id(0) * 16
    total = xetile.zeros((16, W), f32)
    for turn in range(0, 2):
        a = xetile.load_tile(xetile.init_tile(A, [m, 0], (16, W)))
        matrix = B[WHICH(n, B.shape[0], turn)]
        b = xetile.load_tile(xetile.init_tile(matrix, [0, 0], (W, W)))
        total += a @ b
    xetile.store_tile(total, xetile.init_tile(C, [m, 0], (16, W)))


@pytest.mark.parametrize("which", [plain, by_division, by_turn, by_choice])
@pytest.mark.parametrize("count", [1, 3])
def test_the_matrix_is_found_whoever_packs_it(which: Any, count: int) -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 80, 32), small_integers(rng, count * 32, 32)
    b = b.reshape(count, 32, 32).astype(np.float32)
    c = np.zeros((80, 32), np.float32)
    agree(chosen, 5, a.astype(np.float32), b, c, 5, WHICH=which, W=32)


@xetile.kernel
def started(A, B, C, n: int, W: constexpr):
    m = xetile.program_id(0) * 16
    total = xetile.zeros((16, W), f32)
    for _ in range(0, 2):
        a = xetile.load_tile(xetile.init_tile(A, [m, 0], (16, W)))
        b = xetile.load_tile(xetile.init_tile(B, [n % 3 * 8, 0], (W, W)))
        total += a @ b
    xetile.store_tile(total, xetile.init_tile(C, [m, 0], (16, W)))


def test_a_start_that_is_computed_in_the_program() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 80, 32), small_integers(rng, 64, 32)
    c = np.zeros((80, 32), np.float32)
    agree(started, 5, a.astype(np.float32), b.astype(np.float32), c, 5, W=32)


@xetile.kernel
def taps(A, B, C, TAPS: constexpr, BN: constexpr):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * BN
    total = xetile.zeros((16, BN), f32)
    for tap in range(TAPS):
        a = xetile.load_tile(xetile.init_tile(A[tap], [m, 0], (16, 32)))
        matrix = B[tap // 3, tap % 3]
        b = xetile.load_tile(xetile.init_tile(matrix, [tap, n], (32, BN)))
        total += a @ b
    xetile.store_tile(total, xetile.init_tile(C, [m, n], (16, BN)))


@pytest.mark.parametrize("programs", [1, 9])
def test_matrices_of_few_trips_are_packed_once(programs: int) -> None:
    rng = np.random.default_rng(0)
    # The last trips choose matrices that are not there.
    a, b = small_integers(rng, 8 * 144, 32), small_integers(rng, 6 * 40, 75)
    a, b = a.reshape(8, 144, 32), b.reshape(2, 3, 40, 75)
    c = np.zeros((16 * programs, 75), np.float32)
    arguments = [x.astype(np.float32) for x in (a, b, c)]
    agree(taps, (programs, 3), *arguments, TAPS=8, BN=32)


@pytest.mark.parametrize(("trips", "is_packed"), [(8, True), (65, False)])
def test_how_many_matrices_are_packed(trips: int, is_packed: bool) -> None:
    a, b = np.zeros((8, 144, 32), np.float32), np.zeros((2, 3, 40, 75), np.float32)
    text = str(taps.explain(a, b, a[0], TAPS=trips, BN=32))
    assert ("packing: b is packed once, before the programs run" in text) == is_packed
