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


def test_explain_says_where_values_live() -> None:
    said = normalised.explain("f32[M,N] f32[M,N]", W=64, target="avx512")
    texts = {(each.topic, each.text) for each in said.remarks}
    assert {
        ("values", "2 readers, 2 operations a vector: computed by each, in registers"),
        ("passes", "read from memory 2 times, by as many loops"),
        ("values", "2 readers, 14 operations a vector: computed once"),
        ("memory", "its 1 x 64 elements are kept in scratch"),
    } <= texts
    said = nested.explain("f32[M,N] f32[M,N]", W=32, target="avx512")
    texts = {(each.topic, each.text) for each in said.remarks}
    carried = "a row of 32 elements is carried in registers: 2 of them"
    assert ("memory", carried) in texts
    assert ("passes", "read from memory once") in texts
