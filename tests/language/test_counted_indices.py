"""Elements at indices that count up are tiles: as fast, and products are recognised."""

from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CheckError
from xetl.xetile import cdiv, constexpr, f32

rng = np.random.default_rng(0)


@xetile.kernel
def product(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    rm = xetile.program_id(0) * BM + xetile.arange(BM)
    rn = xetile.program_id(1) * BN + xetile.arange(BN)
    rk = xetile.arange(BK)
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        acc += A[rm[:, None], k + rk[None, :]] @ B[k + rk[:, None], rn[None, :]]
    C[rm[:, None], rn[None, :]] = acc


@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_a_product_is_recognised(backend: str) -> None:
    a, b = rng.integers(-9, 9, (2, 70, 70)).astype(np.float32)
    c = np.zeros((70, 66), np.float32)
    product[cdiv(70, 32), cdiv(66, 64)](a, b[:, :66], c, 32, 64, 16, backend=backend)
    assert np.array_equal(c, a @ b[:, :66])
    said: Any = product.explain(a, b, c, 32, 64, 16, backend="cpu")
    assert any("one batch-reduce GEMM" in each.text for each in said.remarks)


@xetile.kernel
def moved(X, Y, Z, W, b: int, row: int, column: int, M: constexpr, N: constexpr):
    """Write a block of a matrix as it is, transposed twice, and its first row."""
    r, c = row + xetile.arange(M)[:, None], xetile.arange(N)[None, :] - 2 + column
    block = X[b, r, c]
    Y[b, r, c] = block + 1
    Z[c.T, b, r.T] = X[b, r.T, c.T]
    W[row, b, xetile.arange(N) + column] = block[0]


_PLACES = [(0, 0, 0), (1, 3, 5), (2, -3, -9), (1, 30, 1), (5, 0, 0)]


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("step", [1, -2])
@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_edges_and_strides(
    place: tuple[int, int, int], step: int, backend: str
) -> None:
    """What is outside reads as 0, and is not written."""
    x = rng.integers(1, 9, (3, 20, 40)).astype(np.float32)[:, ::step, ::step]
    y, z, w = np.zeros_like(x), np.zeros((40, 3, 20), "f4"), np.zeros((20, 3, 40), "f4")
    wanted = [each.copy() for each in (y, z, w)]
    moved[1](x, y, z, w, *place, 16, 32, backend=backend)
    b, row, column = place

    def put(array: np.ndarray, at: tuple[int, int, int], value: float) -> None:
        if all(0 <= i < n for i, n in zip(at, array.shape)):
            array[at] = value

    for r, c in np.ndindex(16, 32):
        at = b, row + r, column - 2 + c
        inside = all(0 <= i < n for i, n in zip(at, x.shape))
        value = x[at] if inside else 0
        put(wanted[0], at, value + 1)
        put(wanted[1], (at[2], b, at[1]), value)
        if r == 0:
            put(wanted[2], (row, b, column + c), value)
    for found, each in zip((y, z, w), wanted):
        assert np.array_equal(found, each)


@xetile.kernel
def others(X, Y, rows, N: constexpr):
    """Indices that are no tile: twice as far apart, the same row, loaded ones."""
    i, j = xetile.arange(N)[:, None], xetile.arange(N)[None, :]
    loaded = xetile.load_tile(xetile.init_tile(rows, [0], (N,)))
    Y[0, i, j] = X[2 * i, j] + X[i + j, j] + X[0 * i + 3, j] + X[loaded[:, None], j]
    k = xetile.arange(N)
    Y[1, k, k] = X[k, k]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_other_indices_are_gathered(backend: str) -> None:
    x = rng.integers(1, 9, (16, 8)).astype(np.float32)
    rows, y = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.zeros((2, 8, 8), np.float32)
    others[1](x, y, rows, 8, backend=backend)
    n = np.arange(8)
    sums = x[::2] + x[n[:, None] + n, n] + x[3] + x[rows]
    assert np.array_equal(y[0], sums)
    assert np.array_equal(y[1], np.diag(np.diag(x[:8])))


def test_interpret_still_reports_a_scalar_that_is_outside() -> None:
    x, y = np.zeros((2, 3, 16), np.float32), np.zeros((2, 3, 16), np.float32)

    @xetile.kernel
    def outside(X, Y, b: int):
        c = xetile.arange(32)
        Y[0, 0, c] = X[b, 1, c]

    outside.interpret(x, y, 1, grid=1)  # columns may cross the edge, as a tile may
    with pytest.raises(CheckError, match="index 2 is outside"):
        outside.interpret(x, y, 2, grid=1)


@xetile.kernel
def beside(X, Y, N: constexpr):
    """Sums of what is before and behind, in a row and in a column."""
    i, j = xetile.arange(N)[:, None], xetile.arange(1, N + 1)[None, :]
    Y[0, i, j] = X[0, i - 1, j] + X[0, i + 1, j] + X[0, i, j - 1] + X[0, i, 1 + j]


@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_constants_beside_counted_indices(backend: str) -> None:
    x = rng.integers(1, 9, (2, 8, 9)).astype(np.float32)
    y = np.zeros((1, 8, 9), np.float32)
    beside[1](x, y, 8, backend=backend)
    wide = np.pad(x[0], 1)
    sums = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    assert np.array_equal(y[0, :, 1:], sums[:, 1:])
    assert not y[0, :, 0].any()
    text = beside.ir("xetile", x, y, 8)
    assert text.count("load_tile") == 4
    assert "gather" not in text


@xetile.kernel
def rows_of(X, M, Y, Z, first: int, row: int, N: constexpr):
    """Write a part of a line, and one of a row and of a column of a matrix."""
    i = first + xetile.arange(N)
    Y[i] = X[i] + 1
    Z[row, i] = M[row, i] + X[i - 3] - M[i[None, :], row].reshape(N)
    Z[i, row] = X[2 + i]


@pytest.mark.parametrize("first", [0, 5, -7, 30, 99])
@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_lines_and_rows(first: int, step: int, backend: str) -> None:
    """A vector of indices of a line, or beside a number, is a tile, too."""
    x = rng.integers(1, 9, 40).astype(np.float32)[::step]
    m = rng.integers(1, 9, (40, 40)).astype(np.float32)[:, ::step]
    m = m[: len(x), : len(x)]
    y, z = np.zeros_like(x), np.zeros(m.shape, np.float32)
    rows_of[1](x, m, y, z, first, 3, 32, backend=backend)
    n = len(x)
    padded, square = np.zeros(n + 200, np.float32), np.zeros((n, n + 200), np.float32)
    padded[100 : 100 + n], square[:, 100 : 100 + n] = x, m
    wanted_y, wanted_z = np.zeros_like(y), np.zeros_like(z)
    for i in range(max(first, 0), min(first + 32, n)):
        wanted_y[i] = x[i] + 1
        wanted_z[3, i] = m[3, i] + padded[97 + i] - m[i, 3]
    for i in range(max(first, 0), min(first + 32, n)):
        wanted_z[i, 3] = padded[102 + i]
    assert np.array_equal(y, wanted_y)
    assert np.array_equal(z, wanted_z)
    text = rows_of.ir("xetile", x, m, y, z, first, 3, 32)
    assert "gather" not in text
    assert "scatter" not in text


@pytest.mark.parametrize(("first", "outside"), [(0, None), (9, 40), (-1, -1)])
def test_interpret_reports_a_line_that_exceeds_its_array(
    first: int, outside: int | None
) -> None:
    x, m = np.zeros(40, np.float32), np.zeros((40, 40), np.float32)

    @xetile.kernel
    def line(X, Y, first: int):
        Y[0, xetile.arange(32)] = X[first + xetile.arange(32)]

    if outside is None:
        line.interpret(x, m, first, grid=1)
        return
    with pytest.raises(CheckError, match=f"index {outside} is outside of `X`"):
        line.interpret(x, m, first, grid=1)
