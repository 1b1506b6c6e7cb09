"""Rows that loops carry: in registers where they fit, in memory where not."""

from typing import Any

import numpy as np
import pytest
from launching import agree, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32, i32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def folded(X, Sums, Last, Where, W: constexpr):
    sums, last = xetile.zeros((1, W), f32), xetile.full((1, W), 7.0, f32)
    before, where = last, xetile.full((1, W), -1, i32)
    for column in range(0, X.shape[1], W):
        v = xetile.load_tile(xetile.init_tile(X, [0, column], (1, W)), padding=1.0)
        where = xetile.where(v > sums, column, where)
        sums = sums + v * before
        before, last = last, v
    store = xetile.store_tile
    store(sums, xetile.init_tile(Sums, [0, 0], (1, W)))
    store(last + before, xetile.init_tile(Last, [0, 0], (1, W)))
    store(where, xetile.init_tile(Where, [0, 0], (1, W)))


@pytest.mark.parametrize("width", [16, 64, 128, 24])
@pytest.mark.parametrize("columns", [0, 1, 16, 63, 64, 65, 130, 257])
def test_rows_that_a_loop_carries(width: int, columns: int) -> None:
    x = small_integers(np.random.default_rng(columns), 1, columns)
    pieces = -(-columns // width)
    whole = np.ones((1, pieces * width), np.float32)
    whole[:, :columns] = x
    sums, before = np.zeros((2, 1, width), np.float32)
    before, last = before + 7, before + 7
    where = np.full((1, width), -1, np.int32)
    for column in range(0, pieces * width, width):
        v = whole[:, column : column + width]
        where = np.where(v > sums, np.int32(column), where)
        sums, before, last = sums + v * before, last, v
    out = [np.zeros((1, width), np.float32) for _ in range(2)]
    found = agree(folded, 1, x, *out, np.zeros((1, width), np.int32), W=width)
    for got, wanted in zip(found[1:], (sums, last + before, where)):
        same(got, wanted)


@xetile.kernel
def blocks(X, V, Y, Last, H: constexpr, W: constexpr):
    """A product with a vector, of which each trip adds up products of a block."""
    first = xetile.program_id(0) * H
    sums, last = xetile.zeros((H, W), f32), xetile.full((H, W), 7.0, f32)
    tile = xetile.init_tile(X, [first, 0], (H, W))
    for column in range(0, X.shape[1], W):
        last = xetile.load_tile(tile, padding=2.0)
        row = xetile.load_tile(xetile.init_tile(V, [column], (W,)))
        sums += last * row[None, :]
        tile = xetile.update_tile_offset(tile, [0, W])
    xetile.store_tile(
        sums.sum(1, keepdims=True), xetile.init_tile(Y, [first, 0], (H, 1))
    )
    xetile.store_tile(last, xetile.init_tile(Last, [first, 0], (H, W)))


@pytest.mark.parametrize("height", [2, 3, 4, 7, 8, 12])
@pytest.mark.parametrize(("width", "columns"), [(16, 70), (64, 200), (128, 128)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_blocks_that_a_loop_carries(
    height: int, width: int, columns: int, is_transposed: bool
) -> None:
    random = np.random.default_rng(height)
    x = small_integers(random, 10, columns)
    if is_transposed:
        x = np.asfortranarray(x)
    v = small_integers(random, 1, columns)[0]
    programs = -(-10 // height)
    whole = np.full((programs * height, -(-columns // width) * width), 2, np.float32)
    whole[:10, :columns] = x
    out = np.zeros((10, 1), np.float32), np.zeros((programs * height, width), "f4")
    found = agree(blocks, programs, x, v, *out, H=height, W=width)
    same(found[2], x @ v[:, None])
    same(found[3], whole[:, -width:])


def test_a_block_goes_through_the_loop_by_rows_that_fit() -> None:
    signature = "f32[M,N] f32[N] f32[M,1] f32[M,64]"
    said = blocks.explain(signature, H=8, W=64, target="avx512")
    carried = "2 rows of 64 elements are carried in registers: 8 of them"
    assert any(each.text == carried for each in said.remarks)


@xetile.kernel
def weighted(X, Numbers, Y, H: constexpr, W: constexpr):
    total = xetile.zeros((H, W), f32)
    for i in range(X.shape[0]):
        v = xetile.load_tile(xetile.init_tile(X[i], [0, 0], (H, W)))
        total = total + v * Numbers[i]
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (H, W)))


@pytest.mark.parametrize("shape", [(2, 64), (4, 64), (8, 64), (3, 21)])
@pytest.mark.parametrize("numbers", [0, 1, 3, 5])
def test_numbers_are_loaded_in_the_loop(shape: tuple[int, int], numbers: int) -> None:
    """Those behind the end are 0."""
    x = small_integers(np.random.default_rng(7), 5, 4 * 64).reshape(5, 4, 64)
    given = np.arange(3, 3 + numbers, dtype=np.float32)
    found = agree(weighted, 1, x, given, np.zeros(shape, "f4"), H=shape[0], W=64)
    rows, columns = min(shape[0], 4), shape[1]
    expected = np.zeros(shape, np.float32)
    expected[:rows] = np.einsum("ijk,i->jk", x[:numbers], given)[:rows, :columns]
    same(found[2], expected)


def test_a_loop_that_loads_numbers_carries_registers() -> None:
    signature = "f32[K,M,N] f32[K] f32[M,N]"
    said = weighted.explain(signature, H=4, W=64, target="avx512")
    carried = "4 rows of 64 elements are carried in registers: 16 of them"
    assert any(each.text == carried for each in said.remarks)


@xetile.kernel
def read_elsewhere(X, Y, W: constexpr):
    """What a trip reads of other elements than it writes cannot be in registers."""
    row = xetile.zeros((1, W), f32)
    for column in range(0, X.shape[1], W):
        v = xetile.load_tile(xetile.init_tile(X, [0, column], (1, W)))
        row = v + row.sum(1, keepdims=True)
    xetile.store_tile(row, xetile.init_tile(Y, [0, 0], (1, W)))


@xetile.kernel
def stored_on_the_way(X, Y, W: constexpr):
    row = xetile.zeros((1, W), f32)
    for column in range(0, X.shape[1], W):
        row = row + xetile.load_tile(xetile.init_tile(X, [0, column], (1, W)))
        xetile.store_tile(row, xetile.init_tile(Y, [0, column], (1, W)))


def test_rows_that_stay_in_memory() -> None:
    x = small_integers(np.random.default_rng(0), 1, 100)
    whole = np.zeros((7, 16), np.float32)
    whole.ravel()[:100] = x
    row = np.zeros(16, np.float32)
    for piece in whole:
        row = piece + row.sum()
    same(agree(read_elsewhere, 1, x, np.zeros((1, 16), np.float32), W=16)[1], row[None])
    sums = whole.cumsum(0).reshape(1, -1)[:, :100]
    same(agree(stored_on_the_way, 1, x, np.zeros_like(x), W=16)[1], sums)


@xetile.kernel
def nested(X, Y, W: constexpr):
    total = xetile.zeros((1, W), f32)
    for row in range(0, X.shape[0]):
        sums: Any = xetile.zeros((1, W), f32)
        for column in range(0, X.shape[1], W):
            sums += xetile.load_tile(xetile.init_tile(X, [row, column], (1, W)))
        total = total + sums * sums
    xetile.store_tile(total, xetile.init_tile(Y, [0, 0], (1, W)))


def test_a_loop_in_a_loop() -> None:
    x = small_integers(np.random.default_rng(0), 5, 96)
    expected = (x.reshape(5, 3, 32).sum(1) ** 2).sum(0)[None]
    same(agree(nested, 1, x, np.zeros((1, 32), np.float32), W=32)[1], expected)


@xetile.kernel
def normalised(X, Y, W: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (1, W)))
    e = xetile.exp(v - v.max(1, keepdims=True))
    xetile.store_tile(e / e.sum(1, keepdims=True), xetile.init_tile(Y, [0, 0], (1, W)))


@xetile.kernel
def down(X, Y, KIND: constexpr, FIRST: constexpr, H: constexpr, W: constexpr):
    """What is reduced of each block joins what the loop carries."""
    column = xetile.program_id(0) * W
    found = before = xetile.full((1, W), FIRST, X.dtype)
    for row in range(0, X.shape[0], H):
        v = xetile.load_tile(xetile.init_tile(X, [row, column], (H, W)), padding=3)
        part = xetile.tile_reduce(KIND, v + v, [0])
        before = found
        found = part + found if KIND == "add" else xetile.maximum(found, part)
    store, init = xetile.store_tile, xetile.init_tile
    store(found, init(Y, [0, column], (1, W)))
    store(before, init(Y, [1, column], (1, W)))


@xetile.kernel
def down_alone(X, Y, KIND: constexpr, FIRST: constexpr, H: constexpr, W: constexpr):
    """The same, and nobody else reads what the loop carries."""
    column = xetile.program_id(0) * W
    found = xetile.full((1, W), FIRST, X.dtype)
    for row in range(0, X.shape[0], H):
        v = xetile.load_tile(xetile.init_tile(X, [row, column], (H, W)), padding=3)
        part = xetile.tile_reduce(KIND, v + v, [0])
        found = part + found if KIND == "add" else xetile.maximum(found, part)
    xetile.store_tile(found, xetile.init_tile(Y, [0, column], (1, W)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize(("kind", "first"), [("add", 5), ("max", -9)])
@pytest.mark.parametrize(("height", "width"), [(4, 64), (6, 16), (1, 48), (8, 1)])
def test_columns_that_join_what_a_loop_carries(
    dtype: Any, kind: str, first: int, height: int, width: int
) -> None:
    constants = {"KIND": kind, "FIRST": first, "H": height, "W": width}
    for shape in ((0, 5), (5, 1), (12, 70), (17, 130)):
        x = small_integers(np.random.default_rng(3), *shape).astype(dtype)
        y = np.zeros((2, shape[1]), dtype)
        for kernel in (down, down_alone):
            agree(kernel, -(-shape[1] // width), x, y, **constants)


@pytest.mark.parametrize("at", [0, 9, 16])
def test_nan_joins_what_a_loop_carries(at: int) -> None:
    x = np.ones((17, 40), np.float32)
    x[at, 3:20] = np.nan
    for kind in ("max", "add"):
        y = np.zeros((2, 40), np.float32)
        constants = {"KIND": kind, "FIRST": 0, "H": 4, "W": 64}
        found = agree(down_alone, 1, x, y, **constants)
        assert np.isnan(found[1][0, 3:20]).all()


def test_explain_says_where_values_live() -> None:
    said = normalised.explain("f32[M,N] f32[M,N]", W=64, target="avx512")
    texts = {(each.topic, each.text) for each in said.remarks}
    assert {
        ("values", "2 readers, 2 operations a vector: computed by each, in registers"),
        ("passes", "read from memory 2 times, by as many loops"),
        ("values", "2 readers, 13 operations a vector: computed once"),
        ("memory", "its 1 x 64 elements are kept in scratch"),
    } <= texts
    said = nested.explain("f32[M,N] f32[M,N]", W=32, target="avx512")
    texts = {(each.topic, each.text) for each in said.remarks}
    carried = "a row of 32 elements is carried in registers: 2 of them"
    assert ("memory", carried) in texts
    assert ("passes", "read from memory once") in texts
