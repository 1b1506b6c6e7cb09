"""Transposes of large matrices: past the caches, or with lines prefetched to write."""

from typing import Any

import numpy as np
import pytest
from launching import same

from xetl import xetile
from xetl.xetile import constexpr


@xetile.kernel
def transposed(X, Y, R: constexpr, C: constexpr):
    i, j = xetile.program_id(0) * R, xetile.program_id(1) * C
    v = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
    xetile.store_tile(v.T * 2, xetile.init_tile(Y, [j, i], (C, R)))


LARGE = 3203, 3264
"""40 MB of f32: more than any processor keeps of a transpose (`xetl_cpu.machine`)."""


@pytest.mark.parametrize("skip", [0, 4], ids=["lines", "between lines"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_transposes_bypass_the_caches(target: str, dtype: Any, skip: int) -> None:
    """Whole blocks, and the masked ends of rows that begin between cache lines."""
    rows, columns = LARGE
    x = np.arange(rows * columns, dtype=dtype).reshape(columns, rows)
    room = np.zeros(rows * columns + 64, dtype)
    first = -room.ctypes.data % 64 // x.itemsize + skip
    y = room[first : first + rows * columns].reshape(rows, columns)
    assert y.ctypes.data % 64 == skip * x.itemsize
    transposed[-(-columns // 64), -(-rows // 32)](x, y, R=64, C=32)
    same(y, 2 * x.T)
    assert not room[:first].any()
    assert not room[first + rows * columns :].any()


def test_lines_of_transposes_are_prefetched_or_stored_past_the_caches() -> None:
    """Only a vector that is a line bypasses the caches; half a line would wait."""
    x, y = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    for target, bypasses in (("avx512", 16), ("avx2", 0)):
        how: dict[str, Any] = {"R": 64, "C": 64, "backend": "cpu", "target": target}
        text = transposed.ir("loops", x, y, **how)
        assert text.count("nontemporal") == bypasses
        assert "memref.prefetch" in text
    half = x.astype(np.float16)
    text = transposed.ir("loops", half, half, **(how | {"target": "avx512"}))
    assert "nontemporal" not in text
    assert "memref.prefetch" in text
