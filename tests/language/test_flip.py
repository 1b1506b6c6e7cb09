"""`flip`, through shared memory, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import computed, matrix
from xetl import xetile
from xetl.errors import ControlFlowError
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@ALL
@pytest.mark.parametrize("dtype", ["i1", "i8", "u16", "i64", "f16", "bf16", "f32"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_of_a_matrix(axis: int, dtype: str, backend: str) -> None:
    a = matrix(dtype, (5, 16))
    found = computed(lambda a, b: xetile.flip(a, axis), a, a, dtype, backend)
    np.testing.assert_array_equal(found, np.flip(a, axis))


@xetile.kernel
def of_rows(X, Y, N: constexpr):
    step = xetile.program_id(0)
    total = xetile.zeros((N,))
    for row in range(step, 4):
        x = xetile.load_tile(xetile.init_tile(X[row], [0], (N,)))
        total = xetile.flip(total) + x
    xetile.store_tile(total, xetile.init_tile(Y[step], [0], (N,)))


@ALL
def test_of_rows_in_a_loop(backend: str) -> None:
    """The memory of one turn is not written by the next before all have read it."""
    x, y = matrix("f32", (4, 48)), np.zeros((4, 48), np.float32)
    of_rows[4](x, y, N=48, backend=backend)
    for step in range(4):
        total = np.zeros(48, np.float32)
        for row in x[step:]:
            total = total[::-1] + row
        np.testing.assert_array_equal(y[step], total)


@xetile.kernel
def several_subgroups(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (32, 32)))
    x = x + xetile.zeros((32, 32), wg_map=xetile.wg_map([2, 2], [16, 16]))
    y = xetile.flip(xetile.flip(x, 0), 1)
    xetile.store_tile(y, xetile.init_tile(Y, [0, 0], (32, 32)))


@ALL
def test_across_subgroups(backend: str) -> None:
    x = matrix("f32", (32, 32))
    y = np.zeros_like(x)
    several_subgroups[1](x, y, backend=backend)
    np.testing.assert_array_equal(y, x[::-1, ::-1])


def test_of_an_axis_that_is_not_there() -> None:
    a = matrix("f32")
    with pytest.raises(ControlFlowError, match="`flip` of rank 2: axis 2"):
        computed(lambda a, b: xetile.flip(a, 2), a, a, "f32", "reference")


@xetile.kernel(grid=1, subgroups=[1, 2])
def by_subgroups(X):
    tile = xetile.init_tile(X, [0, 0], (8, 16))
    xetile.store_tile(xetile.flip(xetile.load_tile(tile), 1), tile)


def test_subgroups_would_share_its_memory() -> None:
    with pytest.raises(ControlFlowError, match="`flip` has a meaning in") as caught:
        by_subgroups(matrix("f32", (8, 16)), backend="reference")
    assert caught.value.code == "X0608"
