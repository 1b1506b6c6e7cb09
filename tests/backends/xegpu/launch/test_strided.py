"""Arrays whose columns are apart, and rows of odd width: right on every path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import constexpr

BF16 = ml_dtypes.bfloat16
Layout = Callable[[Any], Any]


@xetile.kernel
def product(A, B, C, SUMS: constexpr, BM: constexpr = 16, BK: constexpr = 32):
    """C = A @ B; a program has 16 rows and 32 columns."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BK
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BK))
    acc = xetile.zeros((BM, BK), SUMS)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(b, [BK, 0]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BK)))


@xetile.kernel
def by_transpose(A, B, C, SUMS: constexpr, BM: constexpr = 16, BK: constexpr = 32):
    """C = A @ B.T; B is loaded as it lies, and turned."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BK
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [n, 0], (BK, BK))
    acc = xetile.zeros((BM, BK), SUMS)
    for _ in range(0, A.shape[1], BK):
        turned = xetile.tile_transpose(xetile.load_tile(b), [1, 0])
        acc = xetile.tile_mma(xetile.load_tile(a), turned, acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [0, BK])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BK)))


def apart(down: int, right: int) -> Layout:
    """The array with its rows and columns so far apart."""

    def lay_out(array: Any) -> Any:
        rows, columns = array.shape
        room = np.zeros((rows * abs(down), columns * abs(right)), array.dtype)
        view = room[::down, ::right]
        view[...] = array
        return view

    return lay_out


def odd(array: Any) -> Any:
    """A part of a wider array: rows begin between words, an odd number apart."""
    rows, columns = array.shape
    room = np.zeros((rows, columns + 3 - columns % 2), array.dtype)
    view = room[:, 1 : 1 + columns]
    view[...] = array
    assert (view.strides[0] // array.itemsize) % 2 == 1
    return view


def turned(layout: Layout) -> Layout:
    return lambda array: layout(array.T).T


LAYOUTS: dict[str, Layout] = {
    "rows": lambda array: array,
    "apart": apart(2, 3),
    "backwards": apart(-1, -2),
    "odd": odd,
    "odd columns": turned(odd),
}
DTYPES = {"f16": np.float16, "bf16": BF16, "f32": np.float32, "i8": np.int8}


def check(kernel: Any, dtype: str, layouts: tuple[str, str, str], turns: bool) -> None:
    rng = np.random.default_rng(len(dtype))
    m, n, k = 37, 45, 77  # ragged in every direction, K odd
    a = rng.integers(-4, 5, (m, k)).astype(DTYPES[dtype])
    b = rng.integers(-4, 5, (k, n)).astype(DTYPES[dtype])
    wide = np.int32 if dtype == "i8" else np.float32
    c = LAYOUTS[layouts[2]](np.zeros((m, n), wide))
    whole = c if c.base is None else c.base
    right = b.T if turns else b
    sums = xetile.i32 if dtype == "i8" else xetile.f32
    placed = LAYOUTS[layouts[0]](a), LAYOUTS[layouts[1]](np.ascontiguousarray(right))
    kernel[-(-m // 16), -(-n // 32)](*placed, c, sums)
    wanted = a.astype(wide) @ b.astype(wide)
    assert np.array_equal(c, wanted)
    c[...] = 0  # what lies between the elements is as it was
    assert not whole.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "layouts",
    [("apart", "apart", "apart"), ("rows", "apart", "rows"),
     ("backwards", "rows", "backwards"), ("odd", "odd columns", "apart")],
    ids=" ".join,
)  # fmt: skip
def test_products(dtype: str, layouts: tuple[str, str, str]) -> None:
    check(product, dtype, layouts, turns=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rows", "odd", "odd columns", "apart"])
def test_a_transposed_side(dtype: str, layout: str) -> None:
    """Rows of 77 elements are no whole words: pairs of a row cannot be turned."""
    check(by_transpose, dtype, ("odd", layout, "rows"), turns=True)


@xetile.kernel
def turn(A, C, BM: constexpr = 32, BN: constexpr = 24):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (BM, BN)), padding=7)
    xetile.store_tile(a.T, xetile.init_tile(C, [n, m], (BN, BM)))


@pytest.mark.parametrize("dtype", [*DTYPES.values(), np.float64, np.bool_, np.int64])
@pytest.mark.parametrize("layout", ["apart", "odd", "backwards", "odd columns"])
def test_transposes(dtype: Any, layout: str) -> None:
    a = np.random.default_rng(0).integers(0, 2, (50, 41)).astype(dtype)
    c = LAYOUTS[layout](np.zeros((41, 50), dtype))
    turn[2, 2](LAYOUTS[layout](a), c)
    assert np.array_equal(c, a.T)


@xetile.kernel
def row(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 40], (40,)))
    xetile.store_tile(x + 1, xetile.init_tile(Y, [xetile.program_id(0) * 40], (40,)))


@pytest.mark.parametrize("step", [3, -1, -5])
def test_vectors(step: int) -> None:
    x, whole = np.arange(300, dtype=np.float32)[::step], np.zeros(300, np.float32)
    row[-(-x.size // 40)](x, whole[::step])
    wanted = np.zeros(300, np.float32)
    wanted[::step] = x + 1
    assert np.array_equal(whole, wanted)


def test_steps_of_zero() -> None:
    """All columns, and all elements, are the same ones."""
    for shown in (np.arange(50.0)[:, None], np.ones((1, 1))):
        a = np.broadcast_to(shown.astype(np.float32), (50, 41))
        c = np.zeros((41, 50), np.float32)
        turn[2, 2](a, c)
        assert np.array_equal(c, a.T)


@pytest.mark.parametrize("target", ["opencl", "pvc"])
def test_there_is_as_little_code_as_for_rows_without_gaps(target: str) -> None:
    """Gathers were 4 to 20 times as much, and took a driver 30 s to build."""
    plain = [np.zeros((64, 64), dtype) for dtype in (BF16, BF16, np.float32)]
    strided = [apart(2, 2)(each) for each in plain]
    texts = [
        product.ir("lanes", *arrays, SUMS=xetile.f32, target=target)
        for arrays in (plain, strided)
    ]
    twin = texts[0][texts[0].index("@product_unaligned") :]
    assert twin.count("by_lanes") == texts[1].count("by_lanes") > 4
    assert "simt.load " not in texts[1]
    assert len(texts[1].splitlines()) < 1.2 * len(twin.splitlines())


@xetile.kernel(subgroups=[2, 2])
def turned_twice(X, Y):
    """``Y = X.T``, by tiles of ``X.T`` and ``Y.T``."""
    v = xetile.load_tile(xetile.init_tile(X.T, [0, 0], (8, 8)))
    xetile.store_tile(v.T, xetile.init_tile(Y.T, [0, 0], (8, 8)))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 8)])
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_a_transposed_array_that_no_message_moves(shape: Any, dtype: Any) -> None:
    """Lanes move it: the launch checks no array for its messages."""
    x = np.arange(1 + shape[0] * shape[1], dtype=dtype)[1:].reshape(shape)
    y = np.zeros(shape[::-1], dtype)
    turned_twice[1, 1](x, y, backend="xegpu")
    assert np.array_equal(x.T, y)
