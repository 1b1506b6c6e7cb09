"""Scatter tiles and tiles of shared memory that paths and loops hand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import f32

BACKENDS = pytest.mark.parametrize("backend", ["reference", "cpu"])
COUNTS = pytest.mark.parametrize("n", [0, 1, 3, 5, 9])


def ran(kernel: Any, backend: str, *args: Any) -> Any:
    out = np.zeros(4, "f4")
    kernel[1](*args, out, backend=backend)
    return out


V = np.arange(1, 9, dtype="f4")


# Paths that were left ----------------------------------------------------------------


@xetile.kernel
def scattered_after_a_break(V, n, OUT):
    total = xetile.zeros((4,), f32)
    for i in range(n):
        if i > 2:
            if i > 5:
                break
            t = xetile.init_tile(V, xetile.arange(4))
        else:
            t = xetile.init_tile(V, xetile.arange(4) + 4)
        total = total + xetile.load_gather(t)
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (4,)))


@xetile.kernel
def shared_after_a_continue(V, n, OUT):
    line, square = xetile.slm((8,), f32), xetile.slm((2, 4), f32)
    v = xetile.load_tile(xetile.init_tile(V, [0], (8,)))
    xetile.store_tile(v, xetile.init_tile(line, [0], (8,)))
    xetile.store_tile(v.reshape((2, 4)), xetile.init_tile(square, [0, 0], (2, 4)))
    total = xetile.zeros((4,), f32)
    for i in range(n):
        if i > 2:
            if i == 4:
                continue
            s = xetile.init_tile(line, xetile.arange(4))
            t = xetile.init_tile(square, [1, 0], (1, 4))
        else:
            s = xetile.init_tile(line, xetile.arange(4) + 4)
            t = xetile.init_tile(square, [0, 0], (1, 4))
        total = total + xetile.load_gather(s) * 2.0
        total = total + xetile.load_tile(t).reshape((4,))
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (4,)))


@xetile.function
def chosen(V, n):
    if n > 4:
        return xetile.init_tile(V, xetile.arange(4))
    return xetile.init_tile(V, xetile.arange(4) * 2)


@xetile.kernel
def scattered_after_a_return(V, n, OUT):
    found = xetile.load_gather(chosen(V, n))
    xetile.store_tile(found, xetile.init_tile(OUT, [0], (4,)))


@BACKENDS
@COUNTS
def test_a_scatter_tile_where_a_path_was_left(backend: str, n: int) -> None:
    halves = [V[:4] if i > 2 else V[4:] for i in range(min(n, 6))]
    expected = sum(halves, np.zeros(4))
    assert np.array_equal(ran(scattered_after_a_break, backend, V, n), expected)
    picked = V[:4] if n > 4 else V[::2]
    assert np.array_equal(ran(scattered_after_a_return, backend, V, n), picked)


@BACKENDS
@COUNTS
def test_a_shared_tile_where_a_path_was_left(backend: str, n: int) -> None:
    expected = np.zeros(4)
    for i in [i for i in range(n) if i != 4]:
        low, high = (V[:4], V[4:]) if i > 2 else (V[4:], V[:4])
        expected += 2 * low + high
    assert np.array_equal(ran(shared_after_a_continue, backend, V, n), expected)


# Arrays that change ------------------------------------------------------------------


@xetile.kernel
def swaps_its_array(X, Y, n, OUT):
    where = xetile.arange(4) * 3
    t = xetile.init_tile(X, where)
    total = xetile.zeros((4,), f32)
    for i in range(n):
        total = total * 2.0 + xetile.load_gather(t, padding=0.5)
        t = xetile.init_tile(Y, where + i)
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (4,)))


@xetile.kernel
def swaps_in_a_while(X, Y, n, OUT):
    s, t = xetile.init_tile(X, xetile.arange(4)), xetile.init_tile(Y, xetile.arange(4))
    total = xetile.zeros((4,), f32)
    while n > 0:
        total = total * 2.0 + xetile.load_gather(s)
        s, t = t, s
        n = n - 1
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (4,)))


@xetile.kernel
def stores_where_it_was_sent(X, Y, n):
    if n > 2:
        t = xetile.init_tile(X, xetile.arange(4) * 2)
    else:
        t = xetile.init_tile(Y, xetile.arange(4) + 1)
    # Both orders matter: what is loaded is what stood there before the store.
    before = xetile.load_gather(t)
    xetile.store_scatter(xetile.full((4,), 7.0, f32), None, t)
    xetile.store_scatter(before, None, xetile.init_tile(X, xetile.arange(4)))
    xetile.atomic_rmw_tile("add", xetile.full((4,), 1.0, f32), t)


def gathered(array: Any, where: Any) -> Any:
    inside = where < len(array)
    return np.where(inside, array[np.minimum(where, len(array) - 1)], 0.5)


@BACKENDS
@COUNTS
@pytest.mark.parametrize("strided", ["none", "one", "both"])
def test_a_carried_scatter_tile_changes_its_array(
    backend: str, n: int, strided: str
) -> None:
    """Arrays of different lengths and strides; what is outside of each is padded."""
    x, y = np.arange(10, 18, dtype="f4"), np.arange(50, 57, dtype="f4")
    if strided != "none":
        y = np.repeat(y, 3)[::3]
    if strided == "both":
        x = np.repeat(x, 2)[::2]
    expected, source, where = np.zeros(4), x, np.arange(4) * 3
    for i in range(n):
        expected = expected * 2 + gathered(source, where)
        source, where = y, np.arange(4) * 3 + i
    assert np.array_equal(ran(swaps_its_array, backend, x, y, n), expected)


@BACKENDS
@COUNTS
def test_two_scatter_tiles_change_places(backend: str, n: int) -> None:
    expected, pair = np.zeros(4), [V[:4], V[4:]]
    for i in range(n):
        expected = expected * 2 + pair[i % 2]
    found = ran(swaps_in_a_while, backend, V[:4].copy(), V[4:].copy(), n)
    assert np.array_equal(found, expected)


@BACKENDS
@pytest.mark.parametrize("n", [1, 5])
def test_stores_through_a_tile_of_either_array(backend: str, n: int) -> None:
    x, y = V.copy(), V * 10
    stores_where_it_was_sent[1](x, y, n, backend=backend)
    a, b = V.copy(), V * 10
    target = a[::2] if n > 2 else b[1:5]
    before = target.copy()
    target[:] = 7
    a[:4] = before
    target += 1
    assert np.array_equal(x, a)
    assert np.array_equal(y, b)
