"""Kernels that print or assert, launched again and again: by native entries, too."""

from __future__ import annotations

from typing import Any

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


def test_a_kernel_that_asserts_takes_the_native_entry(monkeypatch: Any) -> None:
    x, y = np.arange(32, dtype=np.float32), np.empty((2, 16), np.float32)
    for _ in range(2):
        folded[2](x, y, 16, backend="cpu")

    def refuse(*_: object) -> None:
        raise AssertionError("the launch was prepared anew")

    monkeypatch.setattr("xetl_cpu.launch.executable.CpuExecutable.launch", refuse)
    y[...] = 0
    folded[2](x, y, 16, backend="cpu")
    np.testing.assert_array_equal(y, x.reshape(2, 16) * 2)
    with pytest.raises(AssertionError, match="prepared anew"):
        folded[2](x[:16], y, 16, backend="cpu", wait=False)
