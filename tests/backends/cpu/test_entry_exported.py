"""The native entry on arrays that are known by ``__dlpack__`` only."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.runtime.shortcuts import Shortcuts
from xetl.xetile import Array, constexpr

pytest.importorskip("torch")  # whose arrays are among the hostile ones

from tests.runtime.hostile_arrays import RIGHT, SIZE, WRONG, Foreign


class Exporter:
    """An array of another library; ``before`` is called when it is asked."""

    def __init__(self, array: Any, before: Callable[[], object] = int) -> None:
        self.array, self.before = array, before

    def __dlpack__(self, **options: Any) -> Any:
        self.before()
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@xetile.kernel
def doubled(X: Array, Y: Array, N: constexpr) -> None:
    """``Y = 2 * X``."""
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    xetile.store_tile(x * 2.0, xetile.init_tile(Y, [0], (N,)))


def _refuse(*_: object) -> None:
    raise AssertionError("the native entry has refused a call")


def test_the_entry_reads_capsules(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.arange(SIZE, dtype=np.float32), np.empty(SIZE, np.float32)
    fixed = y.copy()
    fixed.flags.writeable = False
    for _ in range(2):
        doubled[1](Exporter(x), Exporter(y), SIZE)
    count = sys.getrefcount(x)
    with monkeypatch.context() as changed:
        changed.setattr(Shortcuts, "run_on_plain", _refuse)
        for n in (SIZE, SIZE // 2, 1):
            doubled[1](Exporter(x[:n]), Exporter(y[-n:]), SIZE)
            np.testing.assert_array_equal(y[-n:], 2 * x[:n])
    assert sys.getrefcount(x) == count  # no capsule is left
    with pytest.raises(LaunchError, match="read-only"):
        doubled[1](Exporter(x), Exporter(fixed), SIZE)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_read_after_others(name: str) -> None:
    make, elements = RIGHT[name]
    y = np.empty(SIZE, np.float32)
    for given in (Foreign(), Foreign(), make()):
        y[:] = -1
        doubled[1](given, y, SIZE)
    wanted = 2 * np.array(elements, np.float32)
    np.testing.assert_array_equal(y[: len(wanted)], wanted)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_after_what_is_right(name: str) -> None:
    y = np.empty(SIZE, np.float32)
    for _ in range(2):
        doubled[1](Foreign(), y, SIZE)
    given = WRONG[name]()
    y[:] = -1
    with pytest.raises(LaunchError):
        doubled[1](given, y, SIZE)
    assert (y == -1).all()


def test_arrays_are_looked_at_after_code_of_python_has_run() -> None:
    """What ``__dlpack__`` does to another argument is seen."""
    x, y = np.arange(SIZE, dtype=np.float32), np.empty(SIZE, np.float32)
    for _ in range(2):
        doubled[1](x, Exporter(y), SIZE)
    other = np.ones(SIZE, np.float32)

    def move() -> None:
        # As `resize` would, if nobody else had the array.
        place = ctypes.c_int64.from_address(id(x) + 16)
        place.value = other.ctypes.data

    kept = x.ctypes.data
    try:
        doubled[1](x, Exporter(y, move), SIZE)
    finally:
        ctypes.c_int64.from_address(id(x) + 16).value = kept
    assert (y == 2).all()


def test_kernels_may_be_launched_when_an_array_is_asked() -> None:
    x, y, z = (np.ones(SIZE, np.float32) for _ in range(3))

    def inner() -> None:
        doubled[1](x, Exporter(z), SIZE)

    for _ in range(4):
        y[:] = z[:] = 0
        doubled[1](Exporter(x, inner), Exporter(y, inner), SIZE)
        assert (y == 2).all()
        assert (z == 2).all()


def test_a_tensor_with_a_derivative_is_refused_though_others_are_launched() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.ones(SIZE), np.ones(SIZE, np.float32)

    def inner() -> None:
        doubled[1](x, Exporter(y), SIZE)

    for _ in range(3):
        doubled[1](x, Exporter(y, inner), SIZE)
    with pytest.raises(LaunchError, match="gradient"):
        doubled[1](x.clone().requires_grad_(), Exporter(y, inner), SIZE)
