"""Strides of contiguous arrays: for the runtime, and for types of the IR."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
