"""A block message that hardware refuses is an error where messages are emulated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import grid_of, scale

from xetl import xetile
from xetl.errors import LaunchError
from xetl.opencl_driver import VECTORS
from xetl.runtime.arrays import locate
from xetl_xegpu.build_options import FOR_CPUS
from xetl_xegpu.launch import facts


@xetile.kernel(grid=1)
def copied(X, Y):
    tile = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(tile, xetile.init_tile(Y, [0, 0], (8, 16)))


@xetile.kernel(grid=1)
def odd(X, Y):
    tile = xetile.load_tile(xetile.init_tile(X, [0, 1], (8, 16)))
    xetile.store_tile(tile, xetile.init_tile(Y, [0, 0], (8, 16)))


@xetile.kernel(grid=1)
def talking(X, Y):
    xetile.device_print("hello")
    tile = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(tile, xetile.init_tile(Y, [0, 0], (8, 16)))


@xetile.kernel(grid=1)
def asked_for(X, Y):
    tile = xetile.init_tile(X, [0, 0], (8, 16))
    xetile.prefetch_tile(tile)
    xetile.store_tile(
        xetile.zeros((8, 16), xetile.f16), xetile.init_tile(Y, [0, 0], (8, 16))
    )


def matrix(columns: int, *, off: int = 0) -> np.ndarray:
    """Eight rows of f16, ``off`` bytes behind a multiple of 64."""
    memory = np.ones(8 * columns + 64, np.float16)
    start = (-memory.ctypes.data % 64 + off) // 2
    return memory[start : start + 8 * columns].reshape(8, columns)


WRONG: dict[str, Callable[[], Any]] = {
    "address": lambda: matrix(64, off=2),
    "pitch": lambda: matrix(68),
    "narrow": lambda: matrix(24),
    "rows over one another": lambda: np.lib.stride_tricks.as_strided(
        matrix(64), (8, 64), (64, 2)
    ),
}
ROUNDED = {"width": lambda: matrix(128)[:, :41]}
"""Messages see two bytes more of a row: fine in copies, which have zeros there."""

PLACE = (
    r"kernel `(\w+)` sends a block message that no GPU takes \(.*16 bits.*\): base "
    r"\d+, width \d+ and pitch \d+ bytes, 8 rows, at column [01] and row 0"
)


@pytest.fixture
def unlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the launch had not looked: the emulated message runs."""
    monkeypatch.setattr(facts.limits, "why_no_blocks", lambda *_, **__: None)


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("unlooked")
def test_what_hardware_refuses_is_an_error(name: str) -> None:
    """And moves nothing: what is loaded is NaN, and nothing is stored."""
    y = matrix(64)
    with pytest.raises(LaunchError) as error:
        copied(WRONG[name](), y)
    found = re.search(PLACE, str(error.value))
    assert found is not None
    assert found[1] == "copied"
    assert error.value.code == "X0835"
    assert error.value.line == copied.fn.__code__.co_firstlineno + 2
    assert np.isnan(y[:, :16]).all()
    assert (y[:, 16:] == 1).all()
    if name in ("address", "pitch", "narrow"):  # others may not be written
        z = WRONG[name]()
        z[:] = 0
        with pytest.raises(LaunchError, match="no GPU takes") as error:
            copied(matrix(64), z)
        assert error.value.line == copied.fn.__code__.co_firstlineno + 3
        assert not z.any()
    copied(matrix(64), y)  # and is forgotten
    assert (y == 1).all()


@pytest.mark.usefixtures("unlooked")
def test_launches_of_all_kinds_say_so(pretend: Any) -> None:
    x, y = WRONG["pitch"](), matrix(64)
    copied(matrix(64), y)
    for _ in range(3):  # from the second on a shortcut
        with pytest.raises(LaunchError, match="no GPU takes"):
            copied(x, y)
        copied(matrix(64), y)
    event = copied(x, y, wait=False)
    with pytest.raises(LaunchError, match="no GPU takes"):
        event.wait()
    event = copied(x, y, wait=False)
    while not event.done:
        pass
    with pytest.raises(LaunchError, match=r"kernel `copied` .*no GPU takes"):
        odd(matrix(64), matrix(64))  # the next launch says what nobody waited for
    with pytest.raises(LaunchError, match="no GPU takes"):
        asked_for(x, matrix(64))
    pretend(reads_host=False)
    with pytest.raises(LaunchError, match="no GPU takes"):
        copied(WRONG["rows over one another"](), y)


@pytest.mark.usefixtures("unlooked")
def test_what_was_printed_before_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LaunchError, match="no GPU takes"):
        talking(WRONG["pitch"](), matrix(64))
    assert capfd.readouterr().out == "hello\n"


@pytest.mark.usefixtures("unlooked")
def test_many_programs_send_them() -> None:
    """One is enough for an error; the others leave the record as it is."""
    x, y = np.ones((640, 98), np.float32)[:, :97], np.ones((640, 96), np.float32)
    with pytest.raises(LaunchError, match=r"kernel `scale`.* no GPU takes"):
        scale[grid_of(y)](x, y)


@pytest.mark.parametrize("name", [*WRONG, *ROUNDED])
def test_a_launch_sends_no_such_message(name: str) -> None:
    x, y = {**WRONG, **ROUNDED}[name](), matrix(64)
    view = locate(x)
    assert facts.why_no_surface(facts.Surface(0, 0, 1), view) is not None
    for kernel in (copied, odd):
        y[:] = 0
        kernel(x, y)
        assert y[:, :16].all()


@xetile.kernel
def telling(A, C, limit):
    row = xetile.program_id(0) * 16
    a = xetile.load_tile(xetile.init_tile(A, [row, 0], (16, 16)))
    xetile.device_assert(row < limit, f"row {row} is too much, the sum is {a.sum()}")
    xetile.store_tile(a + a, xetile.init_tile(C, [row, 0], (16, 16)))


OPTIMISED = pytest.param(True, marks=pytest.mark.optimised)


@pytest.mark.parametrize("optimised", [False, OPTIMISED])
def test_lanes_of_kernels_that_may_end_early_are_subgroups(optimised: bool) -> None:
    x, y = np.ones((2, 48, 16), np.float32)
    assert optimised != bool(FOR_CPUS)
    xetile.kernel(telling.fn)[3](x, y, 100)  # not built before
    assert (y == 2).all()


UNTOLD = """
import numpy as np, test_strict_blocks as kernels
from xetl_xegpu.build_options import FOR_CPUS
FOR_CPUS[:] = ["-cl-opt-disable"]
kernels.copied(*np.ones((2, 8, 32), np.float32), backend="xegpu")
"""


def test_lanes_that_are_no_subgroups_are_an_error() -> None:
    """The driver for CPUs runs lanes one by one unless a variable is set."""
    untold = {**os.environ, VECTORS: "False"}
    command, folder = [sys.executable, "-c", UNTOLD], Path(__file__).parent
    found = subprocess.run(command, cwd=folder, env=untold, stderr=subprocess.PIPE)
    text = "`copied` has subgroups of 16 lanes, but the driver runs it with"
    assert text in found.stderr.decode()


def test_gpus_do_not_look() -> None:
    x, y = matrix(64), matrix(64)
    options = {"backend": "xegpu", "target": "pvc"}
    assert "checked" not in copied.ir("llvm", x, y, **options)
    assert "checked" in copied.ir("llvm", x, y, **{**options, "target": "opencl"})
