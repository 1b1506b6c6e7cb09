"""Arrays of one dimension, moved as rows of 64 bytes, and rows of other arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launched import aligned, counting

from xetl import xetile
from xetl.settings import config
from xetl.xetile import cdiv, constexpr, f32

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def _say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.assigned, "log", True)


@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], a.BLOCK))
def add(X, Y, Z, BLOCK: constexpr):
    first = xetile.program_id(0) * BLOCK
    x = xetile.load_tile(xetile.init_tile(X, [first], (BLOCK,)))
    y = xetile.load_tile(xetile.init_tile(Y, [first], (BLOCK,)))
    xetile.store_tile(x + y.to(x.dtype), xetile.init_tile(Z, [first], (BLOCK,)))


def numbers(size: int, dtype: Any, offset: int = 0) -> Any:
    found = aligned((size,), dtype, offset)
    found[...] = np.random.default_rng(size).integers(-50, 50, size)
    return found


@pytest.mark.parametrize("size", [64, 960, 2048, 4096 + 64])
@pytest.mark.parametrize(
    ("first", "second"), [(np.float32, BF16), (np.int8, np.int8), (BF16, np.float32)]
)
def test_whole_rows(
    size: int, first: Any, second: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also if the last block is not full; elements of 32, 16 and 8 bits."""
    x, y, room = numbers(size, first), numbers(size, second), numbers(size + 64, first)
    expected = room.copy()
    expected[:size] = x + y.astype(first)
    add(x, y, room[:size], BLOCK=1024)
    assert "without block messages" not in capfd.readouterr().err
    assert np.array_equal(room, expected)  # and nothing behind it is written


@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], a.BLOCK))
def copy(X, Y, BLOCK: constexpr):
    first = xetile.program_id(0) * BLOCK
    x = xetile.load_tile(xetile.init_tile(X, [first], (BLOCK,)))
    xetile.store_tile(x, xetile.init_tile(Y, [first], (BLOCK,)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int8, np.bool_])
def test_any_size_and_alignment(dtype: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Messages move what follows the last whole row, in words; all bits are kept."""
    size, random = np.dtype(dtype).itemsize, np.random.default_rng(0)
    most = 1 if dtype is np.bool_ else 255
    for count in [*range(1, 131), 1000, 1023, 1024]:
        for offset in (0, 4, 60) if count % 16 < 2 else (0,):
            bits = random.integers(0, most, count * size, np.uint8, endpoint=True)
            x = aligned((count,), dtype, offset)
            room = aligned((count + 512,), dtype)
            x.view(np.uint8)[:] = bits
            room.view(np.uint8)[:] = 1
            copy(x, room[:count], BLOCK=512 if dtype is np.bool_ else 128)
            assert np.array_equal(room[:count].view(np.uint8), bits)
            assert (room[count:].view(np.uint8) == 1).all(), (count, offset)
            fits = count * size >= 64 and count * size % 4 == 0 and not offset
            by_lanes = "without block messages" in capfd.readouterr().err
            assert by_lanes != fits, (count, offset)


@pytest.mark.parametrize(("size", "offset"), [(1001, 4), (7, 0), (960, 4), (1024, 60)])
def test_lanes_move_the_others(
    size: int, offset: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Fewer than 64 bytes, or a base between multiples of 64 bytes."""
    x, y = numbers(size, np.float32, offset), numbers(size, np.float32)
    room = numbers(size + 64, np.float32)
    expected = room.copy()
    expected[:size] = x + y
    add(x, y, room[:size], BLOCK=1024)
    assert "without block messages" in capfd.readouterr().err
    assert np.array_equal(room, expected)


def test_more_than_a_row_of_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    """As one row, 16 MB would have been too long."""
    x, z = counting((1 << 22,)), aligned((1 << 22,))
    add(x, x, z, BLOCK=1 << 14)
    assert "without block messages" not in capfd.readouterr().err
    assert np.array_equal(z, 2 * x)


@xetile.kernel(grid=1)
def sums(X, Y, BLOCK: constexpr):
    """From one block before the array to one behind it, with 1 outside of it."""
    acc = xetile.zeros((BLOCK,), f32)
    for first in range(-BLOCK, X.shape[0] + BLOCK, BLOCK):
        xetile.prefetch_tile(xetile.init_tile(X, [first + BLOCK], (BLOCK,)))
        acc += xetile.load_tile(xetile.init_tile(X, [first], (BLOCK,)), padding=1.0)
    xetile.store_tile(acc, xetile.init_tile(Y, [0], (BLOCK,)))


@pytest.mark.parametrize("size", [160, 161, 175, 191, 193])
def test_blocks_outside_and_padding(
    size: int, capfd: pytest.CaptureFixture[str]
) -> None:
    x, y = counting((size,)), aligned((64,))
    sums(x, y, BLOCK=64)
    assert "without block messages" not in capfd.readouterr().err
    whole = np.ones((-(-size // 64) + 2) * 64, np.float32)
    whole[64 : 64 + size] = x
    assert np.array_equal(y, whole.reshape(-1, 64).sum(0))


@xetile.kernel(grid=1)
def parts(X, Y, n):
    """Tiles of a part of an array, whose end is somewhere in it."""
    x = xetile.load_tile(xetile.init_tile(X[16:n], [0], (64,)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [0], (64,)))


def test_a_part_of_an_array() -> None:
    x, y = counting((160,)), aligned((64,))
    parts(x, y, 40)
    expected = np.zeros(64, np.float32)
    expected[:24] = 2 * x[16:40]
    assert np.array_equal(y, expected)


def test_every_second_element() -> None:
    """A stride keeps a message from moving one of the arrays, but not the others."""
    x, y = counting((256,)), aligned((128,))
    add(x[::2], y, y, BLOCK=128)
    assert np.array_equal(y, x[::2])


@xetile.kernel
def rows(X, ROWS, Y, BLOCK: constexpr):
    """Y[j] = X[ROWS[j]]."""
    j = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[ROWS[j]], [0], (BLOCK,)))
    xetile.store_tile(x, xetile.init_tile(Y[j], [0], (BLOCK,)))


@xetile.kernel
def inner_rows(X, ROWS, Y, BLOCK: constexpr):
    j = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X[1, ROWS[j]], [0], (BLOCK,)))
    xetile.store_tile(x, xetile.init_tile(Y[0, j], [0], (BLOCK,)))


@pytest.mark.parametrize("width", [64, 52, 20])
def test_a_row_by_an_index(width: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows that begin between multiples of 64 bytes, too; outside there are zeros."""
    x, y = counting((40, width)), counting((6, width))
    index = np.array([3, 39, 0, 40, -1, 7], np.int32)
    expected = np.where((index >= 0) & (index < 40), 1, 0)[:, None] * x[index % 40]
    rows[6](x, index, y, BLOCK=64)
    assert "without block messages" not in capfd.readouterr().err
    assert np.array_equal(y, expected)
    rows[7](x, np.zeros(7, np.int32), y, BLOCK=64)  # there is no Y[6]
    assert np.array_equal(y, np.repeat(x[:1], 6, 0))
    pair, one = x.reshape(2, 20, width), counting((1, 6, width))
    inner_rows[6](pair, index % 20, one, BLOCK=64)
    assert "without block messages" not in capfd.readouterr().err
    assert np.array_equal(one[0], pair[1][index % 20])
