"""Memory for the interpreter of lanes: who leaves an array is found out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Memory:
    """Bytes at addresses: arrays with room between them, where nobody may go."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.starts: list[int] = []
        self.spans: list[tuple[int, int]] = []
        size = 4096
        for array in arrays:
            steps = zip(array.shape, array.strides)
            extent = array.itemsize + sum((n - 1) * step for n, step in steps)
            self.starts.append(size)
            self.spans.append((size, size + (extent if array.size else 0)))
            size += -(-extent // 64) * 64 + 4096
        self.bytes = np.full(size, 0xA5, np.uint8)
        for array, start in zip(arrays, self.starts):
            if array.size:
                self.seen_as(array, start)[...] = array

    def seen_as(self, like: Array, start: int) -> Array:
        """The bytes from ``start`` on, as an array of such strides."""
        return np.ndarray(like.shape, like.dtype, self.bytes, start, like.strides)

    def places(self, addresses: Array, size: int) -> Array:
        """The bytes of an element at each address; they must exist."""
        for address in addresses:
            inside = any(a <= address and address + size <= b for a, b in self.spans)
            assert inside, f"{size} bytes at {address} lie in no array {self.spans}"
        return addresses[:, None] + np.arange(size)

    def load(self, addresses: Array, dtype: np.dtype[Any]) -> Array:
        places = self.places(addresses, dtype.itemsize)
        raw = self.bytes[places].reshape(-1)
        return raw != 0 if dtype == np.bool_ else raw.view(dtype)

    def store(self, addresses: Array, values: Array) -> None:
        raw = np.ascontiguousarray(values).view(np.uint8)
        places = self.places(addresses, values.dtype.itemsize)
        self.bytes[places] = raw.reshape(places.shape)
