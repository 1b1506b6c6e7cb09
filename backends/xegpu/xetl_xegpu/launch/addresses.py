"""Where a NumPy array begins, in a tenth of the time NumPy takes to say it.

`__array_interface__` builds a dictionary of all it knows: 0.8 us, for each array of a
launch that has 7 us to itself. The address is the first field of the array's struct.

Source: NumPy's C API, "PyArrayObject_fields"; its ABI has had ``data`` in front since
NumPy 1.0. Where a try says otherwise, `__array_interface__` is asked.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_DATA = object.__basicsize__
"""Bytes of an object before its own fields."""

_word_at = ctypes.c_size_t.from_address


def _from_struct(array: Any) -> int:
    return _word_at(id(array) + _DATA).value


def _from_interface(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _choose() -> Callable[[Any], int]:
    if sys.implementation.name != "cpython":
        return _from_interface  # `id` is no address
    whole = np.zeros((4, 5), np.int16)
    probes = [whole, whole[1:, 2:], whole.T, np.zeros(3)]
    right = all(_from_struct(each) == _from_interface(each) for each in probes)
    return _from_struct if right else _from_interface


address_of = _choose()
"""The address of the first element of a `numpy.ndarray`, of no other type."""
