"""Calls that native code answers; others go to Python, and objects stay counted."""

from __future__ import annotations

import copy
import ctypes
import gc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.runtime.launcher import Launcher
from xetl.runtime.shortcuts import Shortcuts
from xetl.settings import DECIDING
from xetl.xetile import constexpr
from xetl_cpu.launch import fastcall

FACTOR = 2.0


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds the entry, and takes away variables with which Python would answer."""
    fastcall._entry()
    for name in DECIDING:
        monkeypatch.delenv(name.decode(), raising=False)


def scaling() -> Any:
    @xetile.kernel
    def scale(X, Y, by=2.0, N: constexpr = 8):
        i = xetile.program_id(0) * N
        x = xetile.load_tile(xetile.init_tile(X, [i], (N,)))
        xetile.store_tile(x * by, xetile.init_tile(Y, [i], (N,)))

    return scale


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(8, dtype=np.float32), np.zeros(8, np.float32)


@pytest.fixture
def forbid_python(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on a launch that Python answers fails."""

    def fail(*_: object) -> None:
        raise AssertionError("Python was called")

    return lambda: monkeypatch.setattr(Shortcuts, "run", fail)


FORMS = [
    ((2.0,), {}),
    ((2.0, 8), {}),
    ((), {}),
    ((2.0,), {"N": 8}),
    ((), {"N": 8, "by": 2.0}),
    ((), {"by": 2.0, "wait": True}),
]


@pytest.mark.parametrize(("args", "keywords"), FORMS)
def test_forms_of_calls(
    args: Any, keywords: Any, forbid_python: Callable[[], None]
) -> None:
    scale, (x, y) = scaling(), arrays()
    held = scale[1]
    held(x, y, *args, **keywords)
    forbid_python()
    for call in (held, scale[1], scale[1, 1]):
        y[:] = 0
        assert call(x, y, *args, **keywords) is None
        assert np.array_equal(y, x * 2)


def test_several_kinds_of_calls(forbid_python: Callable[[], None]) -> None:
    scale, (x, y) = scaling(), arrays()
    wide, result = x.astype(np.float64), y.astype(np.float64)
    for _ in range(2):
        scale[1](x, y, 3.0)
        scale[1](wide, result, 4.0)
        assert scale[1](x, x.copy(), 3.0, wait=False).done
        assert np.array_equal(y, x * 3)
        assert np.array_equal(result, wide * 4)
        forbid_python()


def test_many_compile_time_values_in_turns(forbid_python: Callable[[], None]) -> None:
    scale, (x, y) = scaling(), arrays()
    for turn in range(2):
        for width in range(8, 48):
            y[:] = 0
            scale[1](x, y, 2.0, width)
            assert np.array_equal(y, x * 2)
        if turn == 0:
            forbid_python()


def test_plans(forbid_python: Callable[[], None]) -> None:
    scale, (x, y) = scaling(), arrays()
    plan = scale.bind(x, y, 5.0, grid=1)
    plan()
    forbid_python()
    y[:] = 0
    assert plan() is None
    assert np.array_equal(y, x * 5)
    with pytest.raises(TypeError):
        plan(1)
    assert scale.bind(x, y, grid=1, wait=False)().done


def test_plans_of_tensors(forbid_python: Callable[[], None]) -> None:
    torch: Any = pytest.importorskip("torch")
    scale, x = scaling(), torch.arange(8.0)
    y = torch.zeros(8)
    plan = scale.bind(x, y, 5.0, grid=1)
    forbid_python()
    counts = [sys.getrefcount(each) for each in (x, y, plan)]
    version = y._version
    for _ in range(100):
        plan()
    assert torch.equal(y, x * 5)
    assert y._version == version + 100
    assert counts == [sys.getrefcount(each) for each in (x, y, plan)]
    x.requires_grad_()
    with pytest.raises(LaunchError, match="gradient"):
        plan()
    x.requires_grad_(False)
    kept, x.data = x.data, torch.ones(8)
    with pytest.raises(LaunchError, match="`X` has other memory"):
        plan()
    x.data = kept
    plan()


def test_a_grid_function_ends_in_native_code(forbid_python: Callable[[], None]) -> None:
    scale, (x, y) = scaling(), arrays()
    by_size = scale[lambda m: m.X.shape[0] // m.N]
    by_size(x, y, 3.0)
    forbid_python()
    by_size(x, y, 4.0)
    assert np.array_equal(y, x * 4)


def test_references_stay_counted() -> None:
    scale, (x, y) = scaling(), arrays()
    launch, plan = scale[1], scale.bind(x, y, grid=1)
    names = {"N": 8}

    def counts() -> list[int]:
        kept = scale.shortcuts.known
        owned = [part for each in kept for part in (each.fast, each.rest)]
        objects = [x, y, names, launch, plan, kept, launch._table, plan._table, *owned]
        return [sys.getrefcount(each) for each in objects]

    def many() -> None:
        for _ in range(3000):
            launch(x, y, 2.0)
            launch(x, y, by=2.0, **names)
            plan()

    many()
    before, none = counts(), sys.getrefcount(None)
    tracemalloc.start()
    many()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts() == before
    assert abs(sys.getrefcount(None) - none) < 1000
    assert peak < 50_000


def test_kernels_are_freed() -> None:
    scale, (x, y) = scaling(), arrays()
    for _ in range(3):
        scale[1](x, y)
        scale.bind(x, y, grid=1)()
    gone = weakref.ref(scale)
    del scale
    gc.collect()
    assert gone() is None


def test_errors_are_those_of_python() -> None:
    scale, (x, y) = scaling(), arrays()
    for _ in range(3):
        scale[1](x, y)
    with pytest.raises(LaunchError) as wrong:
        scale[1](x, y, other=1)
    assert wrong.value.file == __file__
    assert wrong.traceback[-1].path.samefile(__file__)
    with pytest.raises(LaunchError, match="shares memory"):
        scale[1](x[:4], x[2:6], 1.0)
    y.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        scale[1](x, y)


def test_settings_and_globals_count(
    monkeypatch: pytest.MonkeyPatch, forbid_python: Callable[[], None]
) -> None:
    scale, (x, y) = scaling(), arrays()

    @xetile.kernel
    def captures(X, Y):
        x = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
        xetile.store_tile(x * FACTOR, xetile.init_tile(Y, [0], (8,)))

    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        for _ in range(2):
            captures[1](x, y)
            assert np.array_equal(y, x * factor)
    for _ in range(2):
        scale[1](x, y)
    with monkeypatch.context() as other:
        other.setenv("XETL_TARGET", "nonsense")
        with pytest.raises(LaunchError, match="nonsense"):
            scale[1](x, y)
    xetl.config.backend = "nonsense"
    try:
        with pytest.raises(LaunchError, match="nonsense"):
            scale[1](x, y)
    finally:
        del xetl.config.backend
    forbid_python()
    scale[1](x, y)


def test_other_threads_may_forget_calls_meanwhile() -> None:
    scale = scaling()
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            scale.shortcuts.clear()

    def launch() -> None:
        x, y = arrays()
        for i in range(300):
            scale[1](x, y, float(i))
            assert y[1] == i

    threads = [threading.Thread(target=launch) for _ in range(3)]
    other = threading.Thread(target=disturb)
    for each in (*threads, other):
        each.start()
    for each in threads:
        each.join()
    stop.set()
    other.join()


def test_launchers_can_be_copied() -> None:
    scale, (x, y) = scaling(), arrays()
    scale[1](x, y)
    again = copy.copy(scale[1])
    assert type(again) is Launcher
    again(x, y, 7.0)
    assert np.array_equal(y, x * 7)


@xetile.kernel
def doubled(X, Y, N: constexpr = 16):
    i = xetile.program_id(0) * N
    x = xetile.load_tile(xetile.init_tile(X, [i], (N,)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [i], (N,)))


@xetile.kernel
def doubled_in_a_loop(X, Y, N: constexpr = 16):
    i = xetile.program_id(0) * N
    for j in range(X.shape[0] // X.shape[0]):
        x = xetile.load_tile(xetile.init_tile(X, [i + j], (N,)))
        xetile.store_tile(x + x, xetile.init_tile(Y, [i + j], (N,)))


@pytest.mark.parametrize(
    ("kernel", "programs", "released"),
    [(doubled, 1, 0), (doubled, 50, 0), (doubled, 500, 1), (doubled_in_a_loop, 1, 1)],
)
def test_short_launches_keep_the_lock_of_python(
    kernel: Any, programs: int, released: int
) -> None:
    X = np.arange(16 * programs, dtype=np.float32)
    Y = np.zeros_like(X)
    plan = kernel.bind(X, Y, grid=programs)
    for _ in range(3):
        plan()
    Y[:] = 0
    seen: list[int] = []
    # Nothing is released here: only that it would be is written down.
    save = ctypes.PYFUNCTYPE(ctypes.c_void_p)(lambda: seen.append(1))
    restore = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    places = fastcall.P_SAVE_THREAD, fastcall.P_RESTORE_THREAD
    before = [fastcall.process[place] for place in places]
    try:
        for place, function in zip(places, (save, restore)):
            fastcall.process[place] = ctypes.cast(function, ctypes.c_void_p).value
        plan()
    finally:
        for place, address in zip(places, before):
            fastcall.process[place] = address
    assert len(seen) == released
    assert (Y == 2 * X).all()
