"""Launches that repeat an earlier one: fast, and never wrong."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

from xetl import xetile
from xetl.errors import LaunchError
from xetl_xegpu.launch.executable import XegpuExecutable


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each launch that takes the long road, of a kernel that was never launched."""
    monkeypatch.setattr(sys.modules[__name__], "scale", xetile.kernel(scale.fn))
    found: list[Any] = []
    real = XegpuExecutable.submit

    def submit(self: Any, grid: Any, args: Any, place: Any) -> Any:
        found.append(args)
        return real(self, grid, args, place)

    monkeypatch.setattr(XegpuExecutable, "submit", submit)
    return found


def test_the_same_arrays_again(slow: list[Any]) -> None:
    a, c = counting((16, 16)), aligned((16, 16))
    scale[1](a, c)
    for factor in (3.0, 4.0):
        a += 1
        scale[1](a, c, factor)
        scale[1](a, c, factor)
        assert np.array_equal(c, factor * a)
    # One for the call without a factor, one for those with it.
    assert len(slow) == 2


def test_numbers_and_grids_are_those_of_the_call(slow: list[Any]) -> None:
    a, c = counting((32, 32)), aligned((32, 32))
    scale[2, 2](a, c, 1.5)
    for factor, rows in ((2.5, 1), (3.5, 2)):
        c[...] = 0
        scale[rows, 2](a, c, factor)
        assert np.array_equal(c[: 16 * rows], factor * a[: 16 * rows])
        assert not c[16 * rows :].any()
    assert len(slow) == 1


def test_other_arrays_take_the_long_road_once(slow: list[Any]) -> None:
    arrays = [counting((16, 16), offset=4 * n) for n in range(4)]
    c = aligned((16, 16))
    for _ in range(3):
        for a in arrays:
            scale[1](a, c)
            assert np.array_equal(c, 2 * a)
    assert len(slow) == len(arrays)


def test_what_changed_about_an_array_is_seen(slow: list[Any]) -> None:
    a, c = counting((32, 32)), aligned((32, 32))
    scale[2, 2](a, c)
    scale[2, 2](a, c)
    c.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        scale[2, 2](a, c)
    c.flags.writeable = True
    with pytest.raises(LaunchError, match="shares memory"):
        scale[2, 2](c[1:], c[:-1])
    scale[2, 2](a.T, c)
    assert np.array_equal(c, 2 * a.T)
    whole = a.view(np.int32)
    result = aligned((32, 32), np.int32)
    copy[2, 2](whole, result)
    assert np.array_equal(result, whole)


def test_tensors_of_the_host(slow: list[Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for dtype in (torch.float32, torch.bfloat16):
        a, c = (torch.ones(16, 16, dtype=dtype) for _ in range(2))
        for number in range(3):
            a.fill_(number)
            scale[1](a, c)
            assert bool((c == 2 * number).all())
    assert len(slow) == 2


@xetile.kernel
def copy(A, C):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (16, 16)))
    xetile.store_tile(a, xetile.init_tile(C, [m, n], (16, 16)))


def test_without_waiting(slow: list[Any]) -> None:
    a, c = counting((64, 64)), aligned((64, 64))
    for number in range(5):
        a[...] = number
        event = scale[grid_of(a)](a, c, wait=False)
        assert event is not None
        event.wait()
        assert np.all(c == 2 * number)
    assert len(slow) == 1


def test_many_threads() -> None:
    wrong: list[Any] = []

    def work(number: int) -> None:
        a, c = counting((48, 32)), aligned((48, 32))
        for step in range(50):
            a[...] = step
            factor = float(number + 1)
            scale[grid_of(a)](a, c, factor)
            if not np.all(c == factor * step):
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_integers_that_do_not_fit() -> None:
    a, c = counting((16, 16)), aligned((16, 16))
    scale[1](a, c, 3)
    scale[1](a, c, -2)
    assert np.array_equal(c, -2 * a)
    with pytest.raises(LaunchError, match="does not fit a 64-bit integer"):
        scale[1](a, c, 1 << 64)
