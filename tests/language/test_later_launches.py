"""Kernels that print or assert, launched again and again: by native entries, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import constexpr

BACKENDS = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@xetile.kernel
def doubled(X, Y, N: constexpr):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
    xetile.device_print("row", row)
    xetile.device_assert(v.min() >= 0, "a number is negative")
    xetile.store_tile(v * 2, xetile.init_tile(Y, [row, 0], (1, N)))


@xetile.kernel
def folded(X, Y, N: constexpr):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X.reshape(-1, N), [row, 0], (1, N)))
    xetile.store_tile(v * 2, xetile.init_tile(Y, [row, 0], (1, N)))


@pytest.fixture
def natively(monkeypatch: Any) -> Any:
    """Makes launches fail that are prepared anew."""

    def refuse(*_: object) -> None:
        raise AssertionError("the launch was prepared anew")

    def begin() -> None:
        monkeypatch.setattr("xetl.runtime.launcher.LaunchedKernel.launch_anew", refuse)

    return begin


@BACKENDS
def test_each_launch_prints_and_asserts(backend: str, capsys: Any) -> None:
    x, y = np.ones((3, 16), np.float32), np.empty((3, 16), np.float32)
    x[1] = 3
    for _ in range(4):
        y[...] = 0
        doubled[3](x, y, 16, backend=backend)
        np.testing.assert_array_equal(y, x * 2)
        assert capsys.readouterr().out.split() == ["row", "0", "row", "1", "row", "2"]
    x[1] = -1
    for _ in range(3):
        with pytest.raises(LaunchError, match="a number is negative") as caught:
            doubled[3](x, y, 16, backend=backend)
        assert caught.value.code == "X0820"
    x[1] = 0
    capsys.readouterr()
    doubled[3](x, y, 16, backend=backend)  # nothing is left of the failure
    assert capsys.readouterr().out.split() == ["row", "0", "row", "1", "row", "2"]


def test_plans_print_and_assert(capsys: Any) -> None:
    x, y = np.ones((2, 16), np.float32), np.empty((2, 16), np.float32)
    plan = doubled.bind(x, y, 16, grid=2)
    for _ in range(3):
        plan()
        assert capsys.readouterr().out.split() == ["row", "0", "row", "1"]
    x[...] = -1
    for _ in range(2):
        with pytest.raises(LaunchError, match="a number is negative"):
            plan()


def test_a_kernel_that_asserts_takes_the_native_entry(natively: Any) -> None:
    x, y = np.arange(32, dtype=np.float32), np.empty((2, 16), np.float32)
    for _ in range(2):
        folded[2](x, y, 16, backend="cpu")
    natively()
    y[...] = 0
    folded[2](x, y, 16, backend="cpu")
    np.testing.assert_array_equal(y, x.reshape(2, 16) * 2)


@xetile.kernel
def scaled(X, Y, factor, first, is_kept, N: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [first], (N,)))
    if is_kept:
        xetile.store_tile(v * factor, xetile.init_tile(Y, [0], (N,)))


class Foreign:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_numbers_of_numpy_take_the_native_entry(natively: Any) -> None:
    x, y = np.arange(40, dtype=np.float32), np.empty(16, np.float32)

    def launch(factor: Any, first: Any, is_kept: Any) -> None:
        y[...] = -1
        scaled[1](x, y, factor, first, is_kept, 16)

    kinds = np.float32(2), np.int8(3), np.bool_(True)
    for _ in range(2):
        launch(*kinds)
    with pytest.raises(LaunchError, match="does not fit a 64-bit integer"):
        launch(2.0, np.uint64(1 << 63), True)
    natively()
    for factor in map(np.float16, (0.5, np.inf, 3)):
        launch(factor, np.uint64(7), np.bool_(True))
        np.testing.assert_array_equal(y, x[7:23] * np.float32(factor))
    launch(np.float64(1), np.int64(-2), np.bool_(False))
    np.testing.assert_array_equal(y, -1)


def test_arrays_of_dlpack_take_the_native_entry(natively: Any) -> None:
    x, y = np.arange(40, dtype=np.float32), np.empty(16, np.float32)
    fixed = y.copy()
    fixed.flags.writeable = False
    for _ in range(2):
        scaled[1](Foreign(x), Foreign(y), 2.0, 1, True, 16)
    for _ in range(2):
        with pytest.raises(LaunchError, match=r"read-?only"):  # 2.0: by NumPy
            scaled[1](Foreign(x), Foreign(fixed), 2.0, 1, True, 16)
    with pytest.raises(LaunchError, match="cannot be read"):
        scaled[1](Foreign(None), Foreign(y), 2.0, 1, True, 16)
    natively()
    for first in range(5):
        scaled[1](Foreign(x), Foreign(y), 3.0, first, True, 16)
        np.testing.assert_array_equal(y, x[first : first + 16] * 3)
    scaled[1](Foreign(x[9:20]), Foreign(y), np.float32(3), 0, True, 16)
    np.testing.assert_array_equal(y[:11], x[9:20] * 3)


class Scale(NamedTuple):
    first: Any
    by: Any


@xetile.kernel
def moved(pair, Y, S: constexpr, N: constexpr = 16):
    v = xetile.load_tile(xetile.init_tile(pair[0], [S[0]], (N,)))
    xetile.store_tile(v // S[1] + pair[1][0], xetile.init_tile(Y, [0], (N,)))


def test_tuples_take_the_native_entry(natively: Any) -> None:
    """Of constants, from any place in the source; of arrays, also beside keywords."""
    x, y = np.arange(40, dtype=np.float32), np.empty(16, np.float32)
    pair = x, np.full(1, 5, np.float32)
    scales = (3, 2), (300, 2.5), Scale(3, 2)
    for _ in range(2):
        for scale in scales:
            moved[1](pair, y, S=scale)
            moved[1](pair, y, S=scale, N=16)
    natively()
    late, early = np.zeros(16, np.float32), x[3:19] // 2
    same = ((3, 2), early), ([3, 2], early), ((300, 2.5), late), (scales[2], early)
    for scale, wanted in same:
        for given in ({"S": scale}, {"S": scale, "N": 16}):
            y[...] = 0
            moved[1](pair, y, **given)
            np.testing.assert_array_equal(y, wanted + 5)


@BACKENDS
def test_tuples_of_other_kinds_are_other_constants(backend: str) -> None:
    """1, 1.0 and True are equal, but not the same constant."""

    @xetile.kernel
    def which(Y, S: constexpr):
        if isinstance(S[0], bool):
            Y[0] = 1
        elif isinstance(S[0], float):
            Y[0] = 2
        else:
            Y[0] = 3

    y = np.zeros(1, np.int32)
    for _ in range(3):
        for wanted, scale in enumerate(((True, 0), (1.0, 0), (1, 0)), 1):
            which[1](y, scale, backend=backend)
            assert y[0] == wanted
            which[1](y, [*scale], backend=backend)
            assert y[0] == wanted
