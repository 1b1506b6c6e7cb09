"""Kernels of many statements: unrolled loops, and long functions of users."""

import re

import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def many_loads(X, Y, N: constexpr):
    """One loop does all loads: it ends where the first of their rows ends."""
    total = xetile.zeros((1, 16), f32)
    for row in xetile.static_range(N):
        total += xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 16)))
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (1, 16)))


def test_many_loads_in_one_loop() -> None:
    x = small_integers(np.random.default_rng(0), 600, 16)
    found = agree(many_loads, 1, x, np.zeros((1, 16), np.float32), N=600)
    same(found[1], x.sum(0, keepdims=True))


@xetile.kernel
def many_stores(X, Y, N: constexpr):
    """A store goes into the rows that a load behind it reads."""
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 16)))
    for row in xetile.static_range(N):
        xetile.store_tile(v + row, xetile.init_tile(Y, [row, 0], (1, 16)))
        if row % 10 == 9:
            v = v + xetile.load_tile(xetile.init_tile(Y, [row - 1, 0], (1, 16)))


def test_stores_are_joined_up_to_a_load_of_what_they_store() -> None:
    x = small_integers(np.random.default_rng(0), 1, 16)
    found = agree(many_stores, 1, x, np.zeros((33, 16), np.float32), N=33)
    v, expected = x[0], np.zeros((33, 16), np.float32)
    for row in range(33):
        expected[row] = v + row
        v = v + expected[row - 1] if row % 10 == 9 else v
    same(found[1], expected)


@xetile.kernel
def many_functions(X, Y, N: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, 16)))
    for _ in xetile.static_range(N):
        v = xetile.sin(v)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (1, 16)))


@pytest.mark.parametrize(("count", "how"), [(4, "alwaysinline"), (80, "noinline")])
def test_a_function_of_many_calls_is_not_inlined(count: int, how: str) -> None:
    text = many_functions.ir("llvm", "f32[M,N] f32[M,N]", N=count, target="avx512")
    (attributes,) = re.findall(r'^define .*@"xetl_sin_f32x16.*?\)(.*)$', text, re.M)
    assert how in attributes
    x = np.linspace(-3, 3, 16, dtype=np.float32)[None]
    expected = x.astype(np.float64)
    for _ in range(count):
        expected = np.sin(expected)
    (_, y) = launch(many_functions, 1, x, np.zeros_like(x), N=count)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
