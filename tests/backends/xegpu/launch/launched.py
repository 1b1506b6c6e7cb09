"""Kernels and arrays that the tests of launches share."""

from __future__ import annotations

from typing import Any

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr


@xetile.kernel
def scale(A, C, factor=2.0, BM: constexpr = 16, BN: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (BM, BN)))
    xetile.store_tile(a * factor, xetile.init_tile(C, [m, n], (BM, BN)))


def grid_of(array: Any) -> tuple[int, int]:
    return -(-array.shape[0] // 16), -(-array.shape[1] // 16)


def aligned(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Any:
    """Zeros whose address is ``offset`` bytes behind a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    return room[start : start + size].view(dtype).reshape(shape)


def counting(shape: tuple[int, ...], offset: int = 0) -> Any:
    """0, 1, 2, ... in float32, aligned as `aligned` says."""
    found = aligned(shape, offset=offset)
    found[...] = np.arange(found.size).reshape(shape)
    return found
