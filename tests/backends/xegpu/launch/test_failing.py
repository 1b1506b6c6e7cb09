"""Devices that fail: each failure is an error of ours, and arrays are as they were."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from launched import counting, scale

from xetl import xetile
from xetl.errors import LaunchError
from xetl_xegpu.launch import devices, executable, first_builds, places


def broken_queue(**methods: Any) -> Any:
    """A queue of which some methods are others."""
    real = devices.dpctl().SyclQueue
    type_ = type(
        "BrokenQueue", (real,), {n: staticmethod(m) for n, m in methods.items()}
    )
    return type_(devices.default_queue().sycl_device, property="in_order")


class Lost:
    """An event of a device that is no longer there: waiting says nothing."""

    def __init__(self) -> None:
        self.execution_status = devices.dpctl().event_status_type.unknown_status

    def wait(self) -> None:
        """Return at once, as dpctl does then."""


def lost(*args: Any) -> Any:
    return Lost()


def not_submitted(*args: Any) -> Any:
    raise devices.dpctl().SyclKernelSubmitError("Kernel submission failed.")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with methods of a queue: those of all launches from then on."""

    def change(**others: Any) -> None:
        queue = broken_queue(**others)
        monkeypatch.setattr(places, "default_queue", lambda: queue)

    # A kernel that was never launched: it has no shortcut.
    monkeypatch.setattr(sys.modules[__name__], "scale", xetile.kernel(scale.fn))
    yield change
    places.place_of.cache_clear()
    places.PENDING.clear()


def launch(array: Any, *, wait: bool) -> None:
    event = scale[1](array, array, wait=wait)
    if event is not None:
        event.wait()


def failure(array: Any, *, wait: bool = True) -> LaunchError:
    """The error of a launch on one array, or of waiting for it."""
    with pytest.raises(LaunchError) as caught:
        launch(array, wait=wait)
    return caught.value


def test_a_device_that_is_lost_while_a_kernel_runs(use: Any) -> None:
    use(submit=lost, submit_async=lost)
    a = counting((16, 16))
    for _ in range(2):  # without waiting, the second one is a shortcut
        for wait in (True, False):
            error = failure(a, wait=wait)
            assert error.code == "X0832"
            assert "was lost" in error.message
            assert "running kernel `scale`" in error.message
            assert "is not known" in error.notes[0]
            assert "DPCTL_VERBOSITY" in (error.help or "")
    event = scale[1](a, a, wait=False)
    assert event is not None
    assert event.done  # nobody polls for ever


def test_what_nobody_waited_for_is_told_later(
    use: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once each: by the next launch, of any kernel, or when the process ends."""
    real = devices.default_queue().submit_async
    calls: list[Any] = []

    def first_is_lost(*args: Any) -> Any:
        calls.append(args)
        return Lost() if len(calls) == 1 else real(*args)

    use(submit_async=first_is_lost)
    a, c, d = (counting((16, 16)) for _ in range(3))
    scale[1](a, a, wait=False)
    with pytest.raises(LaunchError, match="running kernel `scale`") as caught:
        both[1](a, c, d)
    assert caught.value.code == "X0832"
    both[1](a, c, d)
    assert np.array_equal(d, 3 * a)
    calls.clear()
    event = scale[1](a, a, wait=False)
    with pytest.raises(LaunchError, match="was lost"):
        event.wait()
    both[1](a, c, d)  # who waited was told
    calls.clear()
    scale[1](a, a, wait=False)
    with pytest.raises(LaunchError, match="was lost"):
        both[1](a, c, d)  # a shortcut
    calls.clear()
    scale[1](a, a, wait=False)
    places._wait_for_all()
    assert "was lost" in capsys.readouterr().err
    places._wait_for_all()
    assert capsys.readouterr().err == ""


def test_only_the_shortcut_fails(use: Any) -> None:
    real = devices.default_queue()
    calls: list[Any] = []

    def once(*args: Any) -> Any:
        calls.append(args)
        return real.submit_async(*args)

    for method, said in ((lost, "was lost"), (not_submitted, "was not started")):
        use(submit_async=once, submit=method)
        a = counting((16, 16))
        launch(a, wait=True)
        before, seen = a.copy(), len(calls)
        assert said in failure(a).message
        assert np.array_equal(a, before)
        assert len(calls) == seen


def test_a_kernel_that_is_not_started(use: Any) -> None:
    use(submit=not_submitted, submit_async=not_submitted)
    a = counting((16, 16))
    for wait in (True, False):
        error = failure(a, wait=wait)
        assert (error.code, error.notes) == ("X0832", ())
        assert "`scale`: it was not started" in error.message
    assert np.array_equal(a, counting((16, 16)))


def test_a_grid_that_the_driver_does_not_start(use: Any) -> None:
    """Also of a call like an earlier one."""
    use()
    a = counting((16, 16))
    launch(a, wait=True)
    before = a.copy()
    for wait in (True, False):
        with pytest.raises(LaunchError, match="4,900,000,000 programs of 16") as caught:
            scale[1, 70000, 70000](a, a, wait=wait)
        assert caught.value.code == "X0802"
        assert "the grid (1, 70000, 70000) is too large" in caught.value.message
        assert "let a program do more" in (caught.value.help or "")
    assert np.array_equal(a, before)


def test_a_driver_that_is_too_old_for_a_program(
    monkeypatch: pytest.MonkeyPatch, pretend: Any, use: Any
) -> None:
    """It is told to be updated, where it is one of a GPU."""
    use()
    program = devices.dpctl().program

    def refuses(*args: Any) -> Any:
        raise program.SyclProgramCompilationError("unknown instruction")

    monkeypatch.setattr(program, "create_program_from_spirv", refuses)
    monkeypatch.setattr(first_builds, "check", lambda *args: None)
    a, helps = counting((16, 16)), list[str]()
    for is_gpu in (False, True):
        pretend(is_gpu=is_gpu, driver="1.3.27642")
        monkeypatch.setattr(executable, "_built", {})
        with pytest.raises(LaunchError, match="it was not compiled") as caught:
            xetile.kernel(scale.fn)[1](a, a)
        assert caught.value.code == "X0832"
        helps.append(caught.value.help or "")
    assert "update" not in helps[0]
    assert "which is 1.3.27642" in helps[1]
    assert "apt-get install --only-upgrade" in helps[1]
    assert np.array_equal(a, counting((16, 16)))


def test_a_device_with_memory_of_its_own_is_lost(use: Any, pretend: Any) -> None:
    """Results of the first array have come back when the second copy fails."""
    pretend(reads_host=False)
    copies: list[int] = []

    def copying(fails_at: int) -> Any:
        def copy(target: Any, source: Any, size: int) -> Any:
            copies.append(size)
            if len(copies) == fails_at:
                return Lost()
            return devices.default_queue().memcpy_async(target, source, size)

        return copy

    def no_copy(*args: Any) -> Any:
        raise RuntimeError("SyclQueue.memcpy_async operation encountered an error")

    a, c, d = (counting((16, 16)) for _ in range(3))
    # Three copies there and two back.
    broken = [{"memcpy_async": copying(n)} for n in range(1, 6)]
    broken += [{"memcpy_async": no_copy}, {"submit_async": lost}]
    for each in broken:
        copies.clear()
        use(**each)
        with pytest.raises(LaunchError, match="was lost") as caught:
            both[1](a, c, d)
        assert caught.value.code == "X0832"
        assert "arrays of the host are as they were" in caught.value.notes[0]
        for array in (a, c, d):
            assert np.array_equal(array, counting((16, 16)))
    copies.clear()
    use(memcpy_async=copying(6))
    both[1](a, c, d)
    assert np.array_equal(c, 2 * a)
    assert np.array_equal(d, 3 * a)


@xetile.kernel
def both(A, C, D):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    xetile.store_tile(a * 2, xetile.init_tile(C, [0, 0], (16, 16)))
    xetile.store_tile(a * 3, xetile.init_tile(D, [0, 0], (16, 16)))


@xetile.kernel
def printing(A):
    xetile.device_print("{}", xetile.program_id(0))
    a = xetile.init_tile(A, [0, 0], (16, 16))
    xetile.store_tile(xetile.load_tile(a) + 1, a)


@pytest.mark.parametrize("kind", [MemoryError, None])
def test_no_memory_for_a_log(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    memory = devices.dpctl().memory

    def full(size: int, **options: Any) -> Any:
        raise (kind or memory.USMAllocationError)("USM allocation failed")

    monkeypatch.setattr(memory, "MemoryUSMShared", full)
    a = counting((16, 16))
    with pytest.raises(LaunchError, match="bytes left for the log") as caught:
        printing[1](a)
    assert caught.value.code == "X0833"
    assert np.array_equal(a, counting((16, 16)))


def test_a_driver_that_makes_no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    dpctl = devices.dpctl()

    def no_queue(*args: Any, **options: Any) -> Any:
        raise dpctl.SyclQueueCreationError("device is busy")

    fake = SimpleNamespace(
        SyclQueue=no_queue, SyclQueueCreationError=dpctl.SyclQueueCreationError
    )
    found = devices.usable_devices()
    monkeypatch.setattr(devices, "usable_devices", lambda: found)
    monkeypatch.setattr(devices, "dpctl", lambda: fake)
    with pytest.raises(LaunchError, match="it made no queue") as caught:
        devices.default_queue.__wrapped__()
    assert caught.value.code == "X0832"
    assert "xetl doctor" in (caught.value.help or "")
