"""A launch takes several threads if its programs have enough to do.

What they have to do is counted at the launch, from its sizes. The pool of these tests
records how many threads a launch asks for, and runs all programs on one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr, f32
from xetl_cpu.launch import executable, fastcall
from xetl_cpu.launch.threads import ThreadLayer, thread_layer

_WORD = ctypes.c_int64
_TASK = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
_FORK = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[_WORD] * 3)
Forks: TypeAlias = Callable[..., list[int]]
"""Launches a kernel, and returns the threads of each fork."""


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    asked: list[int] = []

    def fork(task: int, *rest: Any) -> None:
        *context, _, _, threads = rest
        asked.append(threads)
        _TASK(task)(*context)

    there = thread_layer()
    pool = _FORK(fork)
    address = ctypes.cast(pool, ctypes.c_void_p).value or 0
    layer = ThreadLayer("omp", 2, address)
    monkeypatch.setattr(executable, "thread_layer", lambda: layer)
    fastcall.publish(layer)

    def launch(kernel: Any, *args: Any) -> list[int]:
        asked.clear()
        kernel(*args)
        return list(asked)

    yield launch
    fastcall.publish(there)


@xetile.kernel
def positive(X, Y, W: constexpr):
    at = [0, xetile.program_id(0) * W]
    x = xetile.load_tile(xetile.init_tile(X, at, (1, W)))
    xetile.store_tile(xetile.maximum(x, 0.0), xetile.init_tile(Y, at, (1, W)))


@pytest.mark.parametrize("columns", [5_000, 1_000_000])
@pytest.mark.parametrize("width", [256, 4096, 65536])
def test_tiles_of_any_width(forks: Forks, columns: int, width: int) -> None:
    x = np.linspace(-1, 1, columns, dtype=np.float32)[None]
    y = np.empty_like(x)
    expected = [2] if columns > 100_000 else []
    assert forks(positive[(cdiv(columns, width),)], x, y, width) == expected
    assert np.array_equal(y, np.maximum(x, 0))


@xetile.kernel
def add_rows(X, Y, UNTIL_ITS_OWN: constexpr, W: constexpr = 64):
    own = xetile.program_id(0)
    total = xetile.zeros((1, W), f32)
    for row in range(own if UNTIL_ITS_OWN else X.shape[0]):
        total += xetile.load_tile(xetile.init_tile(X, [row, 0], (1, W)))
    xetile.store_tile(total, xetile.init_tile(Y, [own, 0], (1, W)))


@pytest.mark.parametrize("until_its_own", [False, True])
@pytest.mark.parametrize(("rows", "expected"), [(4, []), (400, [2])])
def test_loops_up_to_a_size_or_to_the_program(
    forks: Forks, until_its_own: bool, rows: int, expected: list[int]
) -> None:
    x = np.ones((rows, 64), np.float32)
    y = np.empty_like(x)
    assert forks(add_rows[(rows,)], x, y, until_its_own) == expected
    sums = np.arange(rows) if until_its_own else np.full(rows, rows)
    assert np.array_equal(y, np.repeat(sums[:, None], 64, 1))


@xetile.kernel
def product(A, B, C, M: constexpr, N: constexpr, K: constexpr = 32):
    m, n = xetile.program_id(0) * M, xetile.program_id(1) * N
    total = xetile.zeros((M, N), f32)
    for k in range(0, A.shape[1], K):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (M, K)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (K, N)))
        total = xetile.tile_mma(a, b, total)
    xetile.store_tile(total, xetile.init_tile(C, [m, n], (M, N)))


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize("depth", [8, 4096])
def test_products_of_any_depth(forks: Forks, rows: int, depth: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (rows, depth)).astype(np.float32)
    b = rng.integers(-2, 3, (depth, 128)).astype(np.float32)
    c = np.empty((rows, 128), np.float32)
    grid = cdiv(rows, 16), 2
    asked = forks(product[grid], a, b, c, min(rows, 16), 64)
    assert (2 in asked) == (depth > 100)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize(("keys", "expected"), [(1000, []), (65536, [2])])
def test_one_query_over_many_keys(forks: Forks, keys: int, expected: list[int]) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((n, 64), np.float32) for n in (1, keys))
    assert forks(ops.scaled_dot_product_attention, q, k, k) == expected
