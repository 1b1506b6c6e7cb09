"""Offsets of 64 bits, which block messages cut to 32: what is outside stays outside."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.runtime.kernel import Kernel
from xetl.settings import config
from xetl_xegpu.launch import facts

POWERS = [sign << bits for bits in (16, 24, 30, 31, 32, 33, 40) for sign in (1, -1)]
NEAR = [power + step for power in POWERS for step in (-16, 0, 16)]
INSIDE = (0, 16, -4)
PLACES = [*itertools.product(NEAR, INSIDE), *itertools.product(INSIDE, NEAR)]


@xetile.kernel
def moved(A, B, C, row: int, col: int):
    far = xetile.init_tile(A, [row, col], (16, 32))
    xetile.prefetch_tile(far)
    xetile.store_tile(xetile.load_tile(far), xetile.init_tile(B, [0, 0], (16, 32)))
    near = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 32)))
    xetile.store_tile(near, xetile.init_tile(C, [row, col], (16, 32)))


def arrays() -> list[np.ndarray]:
    """Aligned, so that messages may move them."""
    memory = np.zeros(3 * 64 * 64 + 32, np.float16)
    start = -memory.ctypes.data % 64 // 2
    a, b, c = memory[start : start + 3 * 64 * 64].reshape(3, 64, 64)
    a[:] = np.arange(1, 64 * 64 + 1).reshape(64, 64) % 100 + 1
    return [a, b, c]


def test_far_offsets() -> None:
    device.require()
    assert "simt.block_load" in moved.ir("lanes", *arrays(), 0, 0, target="opencl")
    for row, col in PLACES:
        ours, theirs = arrays(), arrays()
        moved[1](*ours, row, col, backend="xegpu")
        moved[1](*theirs, row, col, backend="reference")
        for one, other in zip(ours, theirs):
            assert np.array_equal(one, other), (row, col)


@xetile.kernel
def left(A, B):
    outside = xetile.load_tile(xetile.init_tile(A[0], [0, -64], (2, 16)))
    xetile.store_tile(outside, xetile.init_tile(B, [0, 0], (2, 16)))


@xetile.kernel
def before(A, B):
    outside = xetile.load_tile(xetile.init_tile(A[-1], [0, 0], (2, 16)))
    xetile.store_tile(outside, xetile.init_tile(B, [0, 0], (2, 16)))


@pytest.mark.parametrize("kernel", [left, before])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_blocks_known_to_lie_outside_are_zero(kernel: Kernel, dtype: type) -> None:
    """The driver for CPUs knew that all is zero, and wrote something else."""
    device.require()
    a, b = np.ones((1, 2, 64), dtype), np.ones((2, 64), dtype)
    kernel[1](a, b, backend="xegpu")
    assert not b[:, :16].any()
    assert b[:, 16:].all()


def test_many_programs_take_the_kernel_without_messages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device.require()
    monkeypatch.setattr(facts.limits, "MOST_PROGRAMS", 2)
    monkeypatch.setitem(config.assigned, "log", True)
    for programs, reason in (
        (2, ""),
        (2, ""),
        (3, "a grid of (1, 3, 1) has more programs"),
        (2, ""),
    ):
        a, b, c = arrays()
        moved[1, programs](a, b, c, 16, 0, backend="xegpu")
        assert np.array_equal(b[:16, :32], a[16:32, :32])
        assert reason in capsys.readouterr().err
