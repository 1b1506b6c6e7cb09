"""Gathers of elements a few places apart: loaded as vectors and shuffled."""

from typing import Any

import numpy as np
import pytest
from launching import agree, same, small_integers
from native_harness import fenced

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import constexpr, i32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def every(X, Y, start: int, S: constexpr, W: constexpr, MASKED: constexpr = False):
    at = xetile.program_id(0) * W + xetile.arange(W)
    tile = xetile.init_tile(X, at * S + start)
    mask = at % 3 != 1 if MASKED else None
    found = xetile.load_gather(tile, mask, padding=7)
    xetile.store_tile(found, xetile.init_tile(Y, [xetile.program_id(0) * W], (W,)))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
@pytest.mark.parametrize("step", [-1, 2, 3, 4, 5])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("size", "start"), [(200, 0), (199, 2), (50, -5), (90, 84)])
def test_every_nth(dtype: str, step: int, masked: bool, size: int, start: int) -> None:
    x = (np.arange(size) % 100 + 1).astype(dtype)
    y = np.zeros(80, dtype)
    places = np.arange(80) * step + start
    counts = (places >= 0) & (places < size)
    if masked:
        counts &= np.arange(80) % 3 != 1
    wanted = np.where(counts, x[places.clip(0, size - 1)], 7).astype(dtype)
    same(agree(every, 2, x, y, start, S=step, W=40, MASKED=masked)[1], wanted)


@xetile.kernel
def spread(X, Y, start: int, S: constexpr, W: constexpr, MASKED: constexpr = False):
    at = xetile.program_id(0) * W + xetile.arange(W)
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * W], (W,)))
    mask = at % 7 != 1 if MASKED else None
    xetile.store_scatter(v, mask, xetile.init_tile(Y, at * S + start))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
@pytest.mark.parametrize("step", [-1, 2, 3, 4, 5])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("size", "start"), [(400, 0), (199, 2), (50, -5), (90, 84)])
def test_to_every_nth(
    dtype: str, step: int, masked: bool, size: int, start: int
) -> None:
    x, wanted = np.arange(1, 81).astype(dtype), np.full(size, 99, dtype)
    for lane, place in enumerate(np.arange(80) * step + start):
        if 0 <= place < size and not (masked and lane % 7 == 1):
            wanted[place] = x[lane]
    found = agree(
        spread, 2, x, np.full(size, 99, dtype), start, S=step, W=40, MASKED=masked
    )
    same(found[1], wanted)


@pytest.mark.parametrize("step", [2, 3])
def test_arrays_with_strides(step: int) -> None:
    """Elements of the array itself are apart, so nothing stands side by side."""
    x, y = np.arange(80, dtype=np.float32), np.zeros(640, np.float32)[::2]
    wanted = np.zeros(320, np.float32)
    wanted[: 80 * step : step] = x
    same(agree(spread, 2, x, y, 0, S=step, W=40)[1], wanted)
    found = agree(every, 2, wanted.repeat(2)[::2], np.zeros(80, "f4"), 0, S=step, W=40)
    same(found[1], x)


@xetile.kernel
def pooled(X, Y, W: constexpr):
    c, r, cols = xetile.program_id(0), xetile.program_id(1), xetile.arange(W) * 2
    upper = xetile.maximum(X[c][2 * r, cols], X[c][2 * r, cols + 1])
    lower = xetile.maximum(X[c][2 * r + 1, cols], X[c][2 * r + 1, cols + 1])
    found = xetile.maximum(upper, lower)
    xetile.store_tile(found[None, :], xetile.init_tile(Y[c], [r, 0], (1, W)))


@pytest.mark.parametrize("columns", [1, 2, 31, 64, 70, 128, 200])
def test_columns_of_matrices_end_where_these_do(columns: int) -> None:
    x = np.random.default_rng(0).random((2, 6, columns), np.float32) - 0.5
    padded = np.zeros((2, 6, 256), np.float32)
    padded[:, :, :columns] = x
    wanted = padded.reshape(2, 3, 2, 128, 2).max((2, 4))[:, :, :64]
    found = agree(pooled, (2, 3), x, np.zeros((2, 3, 64), np.float32), W=64)
    same(found[1], wanted)


@xetile.kernel
def gray(X, G, H: constexpr, W: constexpr):
    rows, cols = xetile.arange(H)[:, None], xetile.arange(W)[None, :]
    at = (rows * W + cols) * 3
    sum = xetile.zeros((H, W), i32)
    for color in xetile.static_range(3):
        found = xetile.load_gather(xetile.init_tile(X, at + color))
        sum += found.to(i32) << color
    xetile.store_tile(sum, xetile.init_tile(G, [0, 0], (H, W)))


def test_colors_of_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 40, 3)).astype(np.uint8)
    wanted = (image.astype(np.int32) << np.arange(3)).sum(2, dtype=np.int32)
    found = agree(gray, 1, image.ravel(), np.zeros((5, 40), np.int32), H=5, W=40)
    same(found[1], wanted)


@xetile.kernel
def added(X, Rows, Down, Along, FIRST: constexpr, S: constexpr, W: constexpr):
    rows = xetile.load_tile(xetile.init_tile(Rows, [0], (8,)))
    found = X[rows[:, None], xetile.arange(W)[None, :] * S + FIRST]
    xetile.store_tile(found.sum(0), xetile.init_tile(Down, [0], (W,)))
    xetile.store_tile(found.sum(1), xetile.init_tile(Along, [0], (8,)))


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("start", [0, 1, -4])
@pytest.mark.parametrize("columns", [1, 150, 300])
def test_rows_of_which_some_are_outside(step: int, start: int, columns: int) -> None:
    """Several rows at once: each says where a loop without masks ends."""
    x = small_integers(np.random.default_rng(0), 5, columns)
    rows, at = np.array([0, 9, -1, 3, 4, 1, 5, 2]), np.arange(100) * step + start
    counts = ((rows >= 0) & (rows < 5))[:, None] & (at >= 0) & (at < columns)
    wanted = np.where(counts, x[rows.clip(0, 4)][:, at.clip(0, columns - 1)], 0)
    empty = np.zeros(100, np.float32), np.zeros(8, np.float32)
    found = agree(added, 1, x, rows, *empty, FIRST=start, S=step, W=100)
    same(found[2], wanted.sum(0))
    same(found[3], wanted.sum(1))


@xetile.kernel
def until(X, Y, Z, n: int, m: int, W: constexpr):
    """Bounds of masks: along the row, one that is equal for all of it, any other."""
    at = xetile.program_id(0) * W + xetile.arange(W)
    mask = (at < n) & (m > 2) & (at % 5 != m)
    v = xetile.load_gather(xetile.init_tile(X, at * 3 + 1), mask, padding=7)
    xetile.store_scatter(v + 1, mask, xetile.init_tile(Y, at * 2))
    xetile.store_scatter(v, (at < n) & (m > 2), xetile.init_tile(Z, at * 2 + 1))


@pytest.mark.parametrize("n", [-4, 0, 1, 40, 75, 1000])
@pytest.mark.parametrize("m", [2, 3])
def test_masks(n: int, m: int) -> None:
    x, at = np.arange(1, 200, dtype=np.float32), np.arange(80)
    bound = (at < n) & (m > 2)
    counts = bound & (at % 5 != m)
    v = np.where(counts & (at < 66), x[(at * 3 + 1).clip(0, 198)], 7).astype("f4")
    y, z = np.zeros(160, np.float32), np.zeros(160, np.float32)
    y[at[counts] * 2] = v[counts] + 1
    z[at[bound] * 2 + 1] = v[bound]
    found = agree(until, 2, x, np.zeros(160, "f4"), np.zeros(160, "f4"), n, m, W=40)
    same(found[1], y)
    same(found[2], z)


def test_loops_without_branches() -> None:
    """The first loop of a row shuffles without conditions; gathers are behind it."""
    given = np.zeros(600, np.uint8), np.zeros((5, 40), np.int32)
    shown = gray.ir("loops", *given, H=5, W=40, target="avx512")
    first = shown.partition("scf.if")[0]
    assert first.count("vector.load") == 9, shown
    assert "gather" not in first, shown


WRAPPING = """
func.func @wrapping(%X: memref<40000xf32>, %Y: memref<1x32xf32>) {
  %numbers = vector.step : vector<32xindex>
  %narrow = arith.index_cast %numbers : vector<32xindex> to vector<32xi16>
  %first = arith.constant dense<8187> : vector<32xi16>
  %four = arith.constant dense<4> : vector<32xi16>
  %moved = arith.addi %narrow, %first : vector<32xi16>
  %times = arith.muli %moved, %four : vector<32xi16>
  %at = arith.index_cast %times : vector<32xi16> to vector<32xindex>
  %row = vector.shape_cast %at : vector<32xindex> to vector<1x32xindex>
  %mask = arith.constant dense<true> : vector<1x32xi1>
  %tile = xetile.init_tile %X, %row : memref<40000xf32>, vector<1x32xindex> -> !SCATTER
  %found = xetile.load_gather %tile, %mask
      : !SCATTER, vector<1x32xi1> -> vector<1x32xf32>
  %out = xetile.init_tile %Y[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
  xetile.store_tile %found, %out : vector<1x32xf32>, !xetile.tile<1x32xf32>
  func.return
}
"""
"""Indices of 16 bits that go on from -32768 in the middle of a vector."""


def test_numbers_that_wrap_around() -> None:
    scatter = "!xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>"
    kernel = xetl.load_mlir(WRAPPING.replace("!SCATTER", scatter))["wrapping"]
    x, y = np.arange(40_000, dtype=np.float32), np.zeros((1, 32), np.float32)
    kernel[1, 1, 1](x, y)
    wanted = np.zeros(32, np.float32)
    wanted[:5] = x[4 * 8187 : 1 << 15 : 4]
    same(y[0], wanted)


@pytest.mark.parametrize(("step", "is_said"), [(1, False), (3, True), (8, False)])
def test_explain_says_it(step: int, is_said: bool) -> None:
    said: Any = every.explain("u8[N] u8[M] i64", S=step, W=64, target="avx512")
    assert any("a few places apart" in each.text for each in said.remarks) == is_said


@xetile.kernel
def window(X, Y, row: int, column: int, ROWS: constexpr, COLUMNS: constexpr):
    tile = xetile.init_tile(X, [row, column], (ROWS, COLUMNS))
    found = xetile.load_tile(tile, padding=7)
    xetile.store_tile(found + found, xetile.init_tile(Y, [0, 0], (ROWS, COLUMNS)))


@pytest.mark.parametrize("shape", [(1, 1), (3, 0), (1, 40), (5, 20), (9, 70)])
@pytest.mark.parametrize("place", [(0, 0), (2, 3), (-1, -5), (20, 20)])
@pytest.mark.parametrize("of", ["number", "column", "steps"])
def test_rows_of_one_element(
    shape: tuple[int, int], place: tuple[int, int], of: str
) -> None:
    """A broadcast array has strides of 0: what is outside of it is padding."""
    one = np.full((1, 1), 3, np.float32)
    if of != "number":
        one = np.arange(1.0, 2 * shape[0] + 1, dtype=np.float32)[::2, None]
    x = np.broadcast_to(one, shape)
    if of == "steps":
        x = x[::-1, ::-1]
    agree(window, 1, x, np.zeros((8, 40), np.float32), *place, ROWS=8, COLUMNS=40)


def test_rows_of_one_or_every_second_element_are_not_gathered() -> None:
    x = np.broadcast_to(np.float32(3), (8, 40))
    y = np.zeros((8, 40), np.float32)
    shown = window.ir("loops", x, y, 0, 0, ROWS=8, COLUMNS=40, target="avx512")
    before = shown.partition("vector.gather")[0]
    assert before.rstrip().splitlines()[-2].strip() == "} else {", before
    *_, of_one, of_third, of_second, backwards = before.split("scf.if")
    assert "vector.broadcast" in of_one
    assert "vector.shuffle" in of_third
    assert "vector.shuffle" in of_second
    assert "vector.shuffle" in backwards


@pytest.mark.parametrize("step", [1, 2])
def test_explain_tells_how_rows_of_any_stride_are_loaded(step: int) -> None:
    x, y = (np.zeros((8, 40 * step), np.float32)[:, ::step] for _ in range(2))
    said: Any = window.explain(x, y, 0, 0, ROWS=8, COLUMNS=40, target="avx512")
    texts = " ".join(each.text for each in said.remarks)
    for part in ("strides of 2, 3 and -1 are loaded", "unless the stride is 2 or 3"):
        assert (part in texts) == (step == 2)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("step", [2, -2, -1, 3])
@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (5, 64)])
@pytest.mark.parametrize("place", [(0, 0), (-1, -5)])
def test_every_second_element_of_rows(
    dtype: str, step: int, shape: tuple[int, int], place: tuple[int, int]
) -> None:
    """What stands between is neither read into lanes nor written."""
    rows, columns = shape
    numbers = np.arange(3 * rows * columns) % 100
    x = numbers.reshape(rows, -1).astype(dtype)[:, ::step][:, :columns]
    y = np.full((rows, 3 * columns + 9), 1).astype(dtype)
    each = y[:, 1::step]
    wanted = agree(moved, 1, x, each, *place, ROWS=4, COLUMNS=48)[1]
    moved[1](x, each, *place, ROWS=4, COLUMNS=48)
    same(each, wanted)
    each[...] = 1
    same(y, np.ones_like(y))


@xetile.kernel
def backwards(X, Y, Z, W: constexpr):
    """Rows from their ends: what an index says, a flip, and to where one says."""
    i, n, j = xetile.program_id(0), X.shape[1], xetile.arange(W)
    Y[i, j] = X[i, n - 1 - j]
    row = xetile.load_tile(xetile.init_tile(X, [i, 0], (1, W)))
    Z[i, n - 1 - j] = xetile.flip(xetile.flip(row, 1), 1)[0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("columns", [1, 15, 16, 64, 70, 100, 128])
def test_rows_backwards(dtype: str, columns: int) -> None:
    x = (np.arange(3 * columns) % 101 % 7).reshape(3, -1).astype(dtype)
    y, z = np.zeros((2, *x.shape), dtype)
    found = agree(backwards, 3, x, y, z, W=100)
    same(found[1][:, :100], x[:, ::-1][:, :100])
    same(found[2][:, ::-1][:, :100], x[:, :100])


def test_a_row_backwards_is_not_gathered() -> None:
    x, y = np.zeros((2, 3, 128), np.float32)
    shown = backwards.ir("loops", x, y, y, W=128, target="avx512")
    first = shown.split("scf.for")[1]
    assert "vector.shuffle" in first, shown
    assert "gather" not in first, shown


@xetile.kernel
def moved(X, Y, row: int, column: int, ROWS: constexpr, COLUMNS: constexpr):
    tile = xetile.init_tile(X, [row, column], (ROWS, COLUMNS))
    xetile.store_tile(
        xetile.load_tile(tile), xetile.init_tile(Y, [row, column], (ROWS, COLUMNS))
    )


@pytest.mark.parametrize("columns", [16, 48, 61])
def test_nothing_is_read_behind_the_last_element(columns: int) -> None:
    """It is the last of its page, and behind that is nothing."""
    page = fenced(np.zeros(2 * columns - 1, np.float32))
    page[:] = np.arange(page.size)
    x, y = page[None, ::2], np.zeros((1, 2 * columns), np.float32)
    moved[1](x, y[:, ::2], 0, 0, ROWS=1, COLUMNS=64)
    same(y[:, ::2], x)
    assert not y[:, 1::2].any()
    moved[1](x[:, ::-1], y[:, ::2], 0, 0, ROWS=1, COLUMNS=64)
    same(y[:, ::2], x[:, ::-1])
    moved[1](page[None, ::-1], y, 0, 0, ROWS=1, COLUMNS=128)
    same(y[0, : page.size], page[::-1])
    y[:, ::2] = x
    moved[1](y[:, ::2], x, 0, 0, ROWS=1, COLUMNS=64)
    same(page[1::2], np.arange(1, page.size, 2, dtype=np.float32))


def test_arrays_backwards_lie_in_front_of_their_first_element() -> None:
    """Each launch is done again: by native code, which compares where arrays lie."""
    room = np.arange(240, dtype=np.float32).reshape(30, 8)
    back = room[10:20][::-1, ::-1]
    for first in (0, 20):
        for _ in range(3):
            other = room[first : first + 10]
            moved[1](back, other, 0, 0, ROWS=10, COLUMNS=16)
            same(other, back)
            moved[1](other, back, 0, 0, ROWS=10, COLUMNS=16)
    for first in (1, 10, 19):
        for other in (room[first : first + 10], room[first : first + 10][::-1, ::-1]):
            if other.ctypes.data != back.ctypes.data:
                with pytest.raises(LaunchError):
                    moved[1](back, other, 0, 0, ROWS=10, COLUMNS=16)
