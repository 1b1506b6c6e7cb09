"""Truncations that are extended again: modules that drivers take, and its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.xetile import constexpr


@xetile.kernel
def narrow_and_wide(X, Y, N: constexpr, NARROW: constexpr, WIDE: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    y = x.to(NARROW).to(WIDE) + xetile.program_id(0).to(NARROW).to(WIDE)
    xetile.store_tile(y, xetile.init_tile(Y, [0], (N,)))


@pytest.mark.parametrize(
    ("source", "narrow", "wide"),
    [
        (np.int32, xetile.u8, xetile.i16),
        (np.int64, xetile.u8, xetile.i16),
        (np.int64, xetile.u8, xetile.i32),
        (np.int64, xetile.u16, xetile.i32),
        (np.int32, xetile.i8, xetile.i16),
    ],
)
def test_extended_again(source: Any, narrow: Any, wide: Any) -> None:
    device.require()
    x = np.arange(-500, 524, dtype=source) * 77
    left: list[Any] = []
    for backend in ("reference", "xegpu"):
        y = np.zeros(1024, wide.numpy)
        narrow_and_wide[1](x, y, 1024, narrow, wide, backend=backend)
        left.append(y)
    assert np.array_equal(*left)
