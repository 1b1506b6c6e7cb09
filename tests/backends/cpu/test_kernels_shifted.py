"""Tiles that may start before their matrix: masks only where they are outside."""

from typing import Any

import numpy as np
import pytest
from launching import agree, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def shifted(X, Y, Sums, Ends, dr: int, dc: int, H: constexpr, W: constexpr):
    """Stored, added up by rows, and read twice, so it stands in a buffer."""
    r, c = xetile.program_id(0) * H, xetile.program_id(1) * W
    v = xetile.load_tile(xetile.init_tile(X, [r + dr, c + dc], (H, W)), padding=2)
    both = v + xetile.load_tile(xetile.init_tile(X, [r, c - 1], (H, W)))
    store = xetile.store_tile
    store(both, xetile.init_tile(Y, [r, c], (H, W)))
    sums = v.sum(1, keepdims=True)
    store(sums, xetile.init_tile(Sums, [r, xetile.program_id(1)], (H, 1)))
    most = v.to(f32) * 2.0 + v.max(1, keepdims=True).to(f32)
    store(most, xetile.init_tile(Ends, [r, c], (H, W)))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16])
@pytest.mark.parametrize(
    ("dr", "dc"), [(0, 0), (-1, -1), (2, -3), (-9, -40), (0, -16), (1, 5), (0, -500)]
)
@pytest.mark.parametrize("columns", [1, 40, 130])
def test_shifted_tiles(dtype: Any, dr: int, dc: int, columns: int) -> None:
    rows, high, wide = 7, 4, 64
    x = small_integers(np.random.default_rng(1), rows, columns).astype(dtype)
    down, right = 2, -(-columns // wide)
    whole = np.full((down * high + 600, right * wide + 1200), 2, dtype)
    whole[300 : 300 + rows, 600 : 600 + columns] = x
    v = whole[300 + dr :, 600 + dc :][: down * high, : right * wide]
    left = np.zeros((down * high, right * wide + 1), dtype)
    left[:rows, 1 : 1 + columns] = x
    tiles = v.reshape(down * high, right, wide)
    most = np.float32(2) * tiles + tiles.max(2, keepdims=True).astype(np.float32)
    shapes = (rows, columns), (down * high, right), (down * high, right * wide)
    types = dtype, dtype, np.float32
    out = [np.zeros(s, t) for s, t in zip(shapes, types)]
    found = agree(shifted, (down, right), x, *out, dr, dc, H=high, W=wide)
    same(found[1], (v + left[:, :-1])[:rows, :columns])
    same(found[2], tiles.sum(2, dtype=dtype))
    same(found[3], most.reshape(down * high, -1))


@xetile.kernel
def carried(X, Y, shift: int, W: constexpr):
    total = xetile.zeros((1, W), f32)
    for column in range(0, X.shape[1] + 8, W):
        at = [xetile.program_id(0), column + shift]
        total += xetile.load_tile(xetile.init_tile(X, at, (1, W)))
    xetile.store_tile(total, xetile.init_tile(Y, [xetile.program_id(0), 0], (1, W)))


@pytest.mark.parametrize("shift", [0, -1, -8, -300])
def test_rows_that_a_loop_carries(shift: int) -> None:
    x = small_integers(np.random.default_rng(0), 2, 100)
    whole = np.zeros((2, 1000), np.float32)
    whole[:, 500:600] = x
    wanted = whole[:, 500 + shift :][:, :128].reshape(2, 4, 32).sum(1)
    same(agree(carried, 2, x, np.zeros((2, 32), np.float32), shift, W=32)[1], wanted)


@xetile.kernel
def smoothed(X, H: constexpr, W: constexpr):
    """In place: a row is read by the program that writes it, and by no other."""
    r = xetile.program_id(0)
    left = xetile.load_tile(xetile.init_tile(X, [r, -1], (H, W)))
    right = xetile.load_tile(xetile.init_tile(X, [r, 1], (H, W)))
    here = xetile.load_tile(xetile.init_tile(X, [r, 0], (H, W)))
    xetile.store_tile(left + right - here, xetile.init_tile(X, [r, 0], (H, W)))


@pytest.mark.parametrize("columns", [1, 16, 17, 100, 256])
def test_in_place(columns: int) -> None:
    x = small_integers(np.random.default_rng(0), 5, columns)
    whole = np.pad(x, ((0, 0), (1, 1)))
    wanted = whole[:, :-2] + whole[:, 2:] - x
    same(agree(smoothed, 5, x.copy(), H=1, W=256)[0], wanted)


@xetile.kernel
def windowed(X, Y, Z, dr: int, dc: int, H: constexpr, W: constexpr, STRIDE: constexpr):
    """Rows are copied, then read from each place: all of it is inside of the copy."""
    copy = xetile.slm((H + 2, W + 16), f32)
    line = xetile.slm((1, W + 16), f32)
    for i in range(H + 2):
        row = xetile.init_tile(X, [i + dr, dc], (1, W + 16))
        xetile.store_tile(
            xetile.load_tile(row).to(f32), xetile.init_tile(line, [0, 0], (1, W + 16))
        )
        xetile.barrier()
        at = xetile.init_tile(copy, [i % 2 * (H // 2 + 1) + i // 2, 0], (1, W + 16))
        whole = xetile.init_tile(line, [0, 0], (1, W + 16))
        xetile.store_tile(xetile.load_tile(whole), at)
        xetile.barrier()
    for i in range(0, H, STRIDE):
        acc = xetile.zeros((STRIDE, W), f32)
        for j in range(3):
            part = xetile.init_tile(copy, [i + j // 2, j], (STRIDE, W))
            acc += xetile.load_tile(part) * (j + 1)
        xetile.store_tile(acc, xetile.init_tile(Y, [i, 0], (STRIDE, W)))
        part = xetile.init_tile(copy, [i + 1, 3], (STRIDE, W))
        two = xetile.load_tile(part) + xetile.load_tile(
            xetile.init_tile(X, [i, 0], (STRIDE, W))
        ).to(f32)
        xetile.store_tile(two, xetile.init_tile(Z, [i, 0], (STRIDE, W)))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16])
@pytest.mark.parametrize(("dr", "dc"), [(0, 0), (-1, -1), (2, -17), (-3, 5), (0, 99)])
@pytest.mark.parametrize(("wide", "columns"), [(16, 7), (64, 56), (48, 200), (20, 33)])
def test_windows_of_a_copy(
    dtype: Any, dr: int, dc: int, wide: int, columns: int
) -> None:
    high, rows = 8, 9
    x = small_integers(np.random.default_rng(3), rows, columns).astype(dtype)
    padded = np.zeros((64, 600), np.float32)
    padded[20 : 20 + rows, 200 : 200 + columns] = x
    seen = padded[20 + dr :, 200 + dc :][: high + 2, : wide + 16]
    copy = np.concatenate([seen[::2], seen[1::2]])
    y = sum(copy[j // 2 :, j:][:high, :wide] * (j + 1) for j in range(3))
    z = copy[1:, 3:][:high, :wide] + padded[20:, 200:][:high, :wide]
    shape = high - 1, min(wide, columns)
    out = [np.zeros(shape, np.float32) for _ in range(2)]
    found = agree(windowed, 1, x, *out, dr, dc, H=high, W=wide, STRIDE=4)
    same(found[1], y[: shape[0], : shape[1]])
    same(found[2], z[: shape[0], : shape[1]])


@xetile.kernel
def sum_of_pieces(X, Y, WIDTH: constexpr):
    piece = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [0, piece * WIDTH], (1, WIDTH)))
    xetile.store_tile(v.sum(1, keepdims=True), xetile.init_tile(Y, [0, piece], (1, 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [64, 512, 1024])
def test_sums_of_pieces_end_in_the_middle_of_a_row(width, dtype):
    """Wherever the first aligned vector is, what is behind a tile does not count."""
    numbers = np.random.default_rng(0).integers(-9, 9, 2 * width + 48 + 17)
    for first in range(17):
        x = numbers.astype(dtype)[None, first : first + 2 * width + 48]
        y = np.zeros((1, 3), dtype)
        sum_of_pieces[3](x, y, width)
        wanted = [x[:, n : n + width].sum() for n in range(0, 3 * width, width)]
        assert np.array_equal(y[0], wanted)


@xetile.kernel
def from_before(X, Y, first: int, H: constexpr, W: constexpr):
    """A counter may be negative: it numbers the matrices of both arrays."""
    for i in range(first, Y.shape[0] + 2):
        v = xetile.load_tile(xetile.init_tile(X[i], [0, 0], (H, W)))
        if i >= 0:
            xetile.store_tile(v + 1, xetile.init_tile(Y[i], [0, 0], (H, W)))


@pytest.mark.parametrize("first", [-3, -1, 0, 2])
def test_a_loop_that_begins_before_the_first_matrix(first: int) -> None:
    x = small_integers(np.random.default_rng(0), 3, 5, 20)
    wanted = np.zeros((4, 5, 20), np.float32)
    wanted[max(first, 0) : 3] = x[max(first, 0) :] + 1
    wanted[3:] = 1
    found = agree(from_before, 1, x, np.zeros_like(wanted), first, H=5, W=20)[1]
    same(found, wanted)
