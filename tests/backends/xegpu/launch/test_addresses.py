"""The address of an array, read from its struct."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from xetl_xegpu.launch import shortcut

WHOLE = np.zeros((6, 7, 8), np.float32)
ARRAYS = [
    WHOLE,
    WHOLE[2:, 3:, 1:],
    WHOLE[::-1],
    WHOLE.T,
    np.zeros(0),
    np.zeros(()),
    np.broadcast_to(np.float16(1), (3, 3)),
    np.frombuffer(b"12345678", np.uint8)[3:],
    np.zeros(3, bfloat16),
]


@pytest.mark.parametrize("array", ARRAYS)
def test_it_is_what_numpy_says(array: Any) -> None:
    assert shortcut.address_of is shortcut._from_struct
    assert shortcut.address_of(array) == array.__array_interface__["data"][0]


def test_an_array_that_moves() -> None:
    arrays = [np.zeros(4) for _ in range(100)]  # not all have room behind them
    before = [shortcut.address_of(array) for array in arrays]
    for array in arrays:
        array.resize(1 << 12, refcheck=False)
    after = [array.__array_interface__["data"][0] for array in arrays]
    assert list(map(shortcut.address_of, arrays)) == after != before


def test_where_the_struct_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcut, "_DATA", object.__basicsize__ + 8)
    assert shortcut._choose() is shortcut._from_interface
    monkeypatch.undo()
    other = SimpleNamespace(implementation=SimpleNamespace(name="pypy"))
    monkeypatch.setattr(shortcut, "sys", other)
    assert shortcut._choose() is shortcut._from_interface
    assert shortcut._choose()(WHOLE) == WHOLE.ctypes.data
