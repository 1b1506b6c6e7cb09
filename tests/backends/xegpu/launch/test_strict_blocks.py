"""`XETL_STRICT`: a block message that hardware refuses is an error, also emulated."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.errors import LaunchError
from xetl.runtime.arrays import locate
from xetl.settings import config
from xetl_xegpu.launch import facts

pytestmark = pytest.mark.optimised  # the driver forms no subgroups of these otherwise


@xetile.kernel(grid=1)
def copied(X, Y):
    tile = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(tile, xetile.init_tile(Y, [0, 0], (8, 16)))


unchecked = xetile.kernel(grid=1)(copied.fn)


@xetile.kernel(grid=1)
def odd(X, Y):
    tile = xetile.load_tile(xetile.init_tile(X, [0, 1], (8, 16)))
    xetile.store_tile(tile, xetile.init_tile(Y, [0, 0], (8, 16)))


def matrix(columns: int, *, off: int = 0) -> np.ndarray:
    """Eight rows of f16, ``off`` bytes behind a multiple of 64."""
    memory = np.ones(8 * columns + 64, np.float16)
    start = (-memory.ctypes.data % 64 + off) // 2
    return memory[start : start + 8 * columns].reshape(8, columns)


WRONG = {
    "address": lambda: matrix(64, off=2),
    "pitch": lambda: matrix(68),
    "narrow": lambda: matrix(24),
    "rows over one another": lambda: np.lib.stride_tricks.as_strided(
        matrix(64), (8, 64), (64, 2)
    ),
}
ROUNDED = {"width": lambda: matrix(128)[:, :41]}
"""Messages see two bytes more of a row: fine in copies, which have zeros there."""


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    device.require()
    monkeypatch.setitem(config.assigned, "strict", True)


@pytest.mark.parametrize("name", WRONG)
def test_what_hardware_refuses_moves_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default, too: what is loaded is NaN, and nothing is stored."""
    monkeypatch.setitem(config.assigned, "strict", False)
    monkeypatch.setattr(facts, "why_no_blocks", lambda *_, **__: None)
    y = matrix(64)
    unchecked(WRONG[name](), y, backend="xegpu")
    assert np.isnan(y[:, :16]).all()
    assert (y[:, 16:] == 1).all()
    if name in ("address", "pitch", "narrow"):  # others may not be written
        z = WRONG[name]()
        z[:] = 0
        unchecked(matrix(64), z, backend="xegpu")
        assert not z.any()
    unchecked(matrix(64), y, backend="xegpu")
    assert (y == 1).all()


@pytest.mark.parametrize("name", WRONG)
def test_what_hardware_refuses_is_an_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the launch had not looked: the emulated message would run."""
    monkeypatch.setattr(facts, "why_no_blocks", lambda *_, **__: None)
    y = matrix(64)
    y[:] = 0
    with pytest.raises(LaunchError, match="no GPU takes this block message") as error:
        copied(WRONG[name](), y, backend="xegpu")
    place = r"base \d+, width \d+ and pitch \d+ bytes, 8 rows, at column [01] and row 0"
    assert re.search(place, str(error.value))
    assert error.value.line == copied.fn.__code__.co_firstlineno + 2
    assert not y.any()
    monkeypatch.setitem(config.assigned, "strict", False)
    copied(WRONG[name](), y, backend="xegpu")
    assert y[:, :16].all()


@pytest.mark.parametrize("name", [*WRONG, *ROUNDED])
def test_a_launch_sends_no_such_message(name: str) -> None:
    x, y = {**WRONG, **ROUNDED}[name](), matrix(64)
    view = locate(x)
    assert facts.why_no_surface(facts.Surface(0, 0, 1), view) is not None
    for kernel in (copied, odd):
        y[:] = 0
        kernel(x, y, backend="xegpu")
        assert y[:, :16].all()


def test_the_checks_are_before_the_messages() -> None:
    x, y = matrix(64), matrix(64)
    text = copied.ir("check-blocks", x, y, target="pvc", backend="xegpu")
    before = re.findall(r"simt\.(assert|block_\w+)", text.partition("_unaligned")[0])
    assert before == ["assert", "block_load", "assert", "block_store"]
