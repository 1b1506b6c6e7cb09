"""Stores past the caches: of large matrices, where all rows are aligned."""

from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr
from xetl_cpu.targets import find_target


@xetile.kernel
def doubled(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, xetile.program_id(1) * BN]
    v = xetile.load_tile(xetile.init_tile(X, at, (BM, BN)))
    xetile.store_tile(v + v, xetile.init_tile(Y, at, (BM, BN)))


def result_at(offset: int, rows: int, columns: int, dtype: Any) -> Any:
    """A matrix that starts so many bytes behind a line."""
    size = rows * columns * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    return memory[first : first + size].view(dtype).reshape(rows, columns)


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("columns", [1024, 1001])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_large_results(offset: int, columns: int, dtype: Any) -> None:
    least = find_target("host").machine.most_kept
    rows = least // (columns * np.dtype(dtype).itemsize) + 3
    x = (np.arange(rows * columns, dtype=np.uint32) % 50).astype(dtype)
    x = x.reshape(rows, columns)
    y = result_at(offset, rows, columns, dtype)
    doubled[-(-rows // 64), -(-columns // 256)](x, y, 64, 256)
    assert np.array_equal(y, x + x)


@xetile.kernel
def doubled_in_part(X, Y, part, BN: constexpr):
    at = [xetile.program_id(0), 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (1, BN)))
    xetile.store_tile(v + v, xetile.init_tile(Y[part], at, (1, BN)))


@pytest.mark.parametrize("apart", [4, 16, 20])
def test_a_matrix_of_several(apart: int) -> None:
    """Its rows are aligned among themselves; where it starts decides."""
    rows = find_target("host").machine.most_kept // 4096 + 1
    step = rows * 1024 + apart
    flat = result_at(0, 1, 2 * step, np.float32)[0]
    several = np.lib.stride_tricks.as_strided(
        flat, (2, rows, 1024), (4 * step, 4096, 4)
    )
    x = (np.arange(rows * 1024) % 50).astype(np.float32).reshape(rows, 1024)
    for part in range(2):
        doubled_in_part[rows](x, several, part, 1024)
        assert np.array_equal(several[part], x + x)


def test_both_stores_are_there() -> None:
    text = doubled.ir(
        "asm", *[np.ones((64, 64), np.float32)] * 2, 64, 64, target="avx2"
    )
    assert "vmovntps" in text
    assert "vmovups" in text


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("columns", [1, 3, 64, 515, 1024])
def test_rows_that_begin_within_a_line(dtype: Any, columns: int) -> None:
    """They are stored to the last element, and nothing beside them is."""
    rows, step = 5, 1088
    size = np.dtype(dtype).itemsize
    for offset in (0, size, 16, 64 - size):
        for apart in (step, step + 1):
            memory = result_at(offset, rows, apart, dtype)
            memory[:] = np.arange(rows * apart).reshape(rows, apart) % 50
            expected = memory.copy()
            x = memory[:, 8 : 8 + columns]
            expected[:, 8 : 8 + columns] += x
            grid = rows, -(-columns // 512)
            doubled[grid](x, x, 1, 512)
            assert np.array_equal(memory, expected)


def test_large_results_that_begin_within_a_line() -> None:
    rows = find_target("host").machine.most_kept // 4096 + 3
    x = (np.arange(rows * 1024) % 50).astype(np.float32).reshape(rows, 1024)
    y = result_at(16, rows, 1024, np.float32)
    doubled_in_part[rows](x, y[None], 0, 1024)
    assert np.array_equal(y, x + x)


@xetile.kernel
def function_of(X: Any, Y: Any, WIDTH: constexpr) -> None:
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, WIDTH)))
    y = xetile.init_tile(Y, [row, 0], (1, WIDTH))
    xetile.store_tile(xetile.exp2(x), y)


@pytest.mark.parametrize("offset", [0, 4, 16, 60])
def test_functions_of_large_arrays_begin_within_a_line(offset: int) -> None:
    """Their loops have no masked start: only what is aligned goes past the caches."""
    rows = find_target("host").machine.most_kept // 4096 + 3
    x = (np.arange(rows * 1024) % 50).astype(np.float32).reshape(rows, 1024)
    y = result_at(offset, rows, 1024, np.float32)
    function_of[rows](x, y, 1024)
    assert np.array_equal(y, np.exp2(x))
