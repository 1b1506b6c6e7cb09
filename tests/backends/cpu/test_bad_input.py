"""Products of arrays that are empty, overlap, lie oddly or far apart, or hold NaN.

Each is right, or refused with nothing written; by our own micro-kernels in every dtype,
by calls of a library in those that it has.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import DType
from xetl.xetile import constexpr

BF16 = ml_dtypes.bfloat16
DTYPES = {
    "f32": (np.float32, np.float32),
    "f64": (np.float64, np.float64),
    "bf16": (BF16, np.float32),
    "f16": (np.float16, np.float32),
    "i8": (np.int8, np.int32),
    "u8": (np.uint8, np.int32),
}
"""Of the operands, and of what they are summed in."""

FLOATS = ("f32", "f64", "bf16", "f16")
TILE = 32
RNG = np.random.default_rng(9)
GIGABYTE = 1 << 30
_MAP_NORESERVE = 0x4000
"""Of Linux; Python has a name for it from 3.13 on."""

_CALLED = ("f32", "bf16", "f16")
_ROADS = [
    *[(target, "inline", dtype) for target in ("host", "avx2") for dtype in DTYPES],
    *[("host", by, dtype) for by in ("libxsmm", "recording") for dtype in _CALLED],
]


def roads(dtypes: Collection[str]) -> pytest.MarkDecorator:
    """On every target, by everybody who computes products, in these dtypes."""
    found = [road for road in _ROADS if road[2] in dtypes]
    names = ["-".join(road) for road in found]
    names_ = ("target", "products", "dtype")
    indirect = ("target", "products")
    return pytest.mark.parametrize(names_, found, indirect=indirect, ids=names)


pytestmark = pytest.mark.usefixtures("target", "products")
each_dtype = roads(DTYPES)
each_float = roads(FLOATS)


@xetile.kernel
def gemm(A, B, C, KEEP: constexpr = False):
    """C = A @ B, or C += A @ B."""
    m, n = xetile.program_id(0) * 32, xetile.program_id(1) * 32
    a = xetile.init_tile(A, [m, 0], (32, 32))
    b = xetile.init_tile(B, [0, n], (32, 32))
    c = xetile.init_tile(C, [m, n], (32, 32))
    acc = xetile.zeros((32, 32), C.dtype)
    if KEEP:
        acc = xetile.load_tile(c)
    for _ in range(0, A.shape[1], 32):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, c)


def small(dtype: str, *shape: int) -> Any:
    """Small integers, whose sums are exact in all dtypes."""
    low = 0 if dtype == "u8" else -4
    return RNG.integers(low, 5, shape).astype(DTYPES[dtype][0])


def result(dtype: str, *shape: int, fill: float = 7) -> Any:
    return np.full(shape, fill, DTYPES[dtype][1])


def wanted(a: Any, b: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.asarray(a, "f8") @ np.asarray(b, "f8")


def launch(a: Any, b: Any, c: Any, keep: bool = False) -> None:
    grid = max(1, -(-c.shape[0] // TILE)), max(1, -(-c.shape[1] // TILE))
    gemm[grid](a, b, c, KEEP=keep)


def check(a: Any, b: Any, c: Any) -> None:
    launch(a, b, c)
    assert np.array_equal(np.asarray(c, "f8"), wanted(a, b), equal_nan=True)


# Nothing to do ----------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize(
    ("m", "n", "k"), [(0, 5, 7), (5, 0, 7), (0, 0, 0), (0, 40, 0), (40, 0, 0)]
)
def test_results_without_elements(dtype: str, m: int, n: int, k: int) -> None:
    launch(small(dtype, m, k), small(dtype, k, n), result(dtype, m, n))


@each_dtype
@pytest.mark.parametrize("shape", [(5, 7), (32, 32), (70, 45), (1, 1)])
def test_sums_of_nothing(dtype: str, shape: tuple[int, int]) -> None:
    a, b = small(dtype, shape[0], 0), small(dtype, 0, shape[1])
    c = result(dtype, *shape)
    launch(a, b, c)
    assert (c == 0).all()
    c = result(dtype, *shape)
    launch(a, b, c, keep=True)
    assert (c == 7).all()


# Overlap ----------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("rows", [0, 1, 39])
def test_a_result_that_overlaps_an_operand_is_refused(dtype: str, rows: int) -> None:
    of, to = DTYPES[dtype]
    room = np.zeros(100 * 40 * 8, np.uint8)
    c = room[: 40 * 40 * np.dtype(to).itemsize].view(to).reshape(40, 40)
    c[:] = 7
    start = rows * 40 * np.dtype(to).itemsize
    size = 40 * 40 * np.dtype(of).itemsize
    shared = room[start : start + size].view(of).reshape(40, 40)
    own = small(dtype, 40, 40)
    before = room.copy()
    if rows == 0 and of is to:
        return  # the very same view, which is legal
    for operand, pair in {"A": (shared, own), "B": (own, shared)}.items():
        for _ in range(2):  # the second time there is a shortcut, of a right launch
            with pytest.raises(LaunchError, match=f"memory with `{operand}`") as no:
                launch(*pair, c)
            assert no.value.code == "X0807"
            assert np.array_equal(room, before)
            launch(own, own, np.zeros_like(c))


@roads(["f32", "f64"])
def test_neighbours_in_one_matrix_are_no_overlap(dtype: str) -> None:
    matrix = small(dtype, 40, 80)
    check(matrix[:, :40], small(dtype, 40, 40), matrix[:, 40:])
    matrix = small(dtype, 40, 80)
    check(matrix[:, ::2], small(dtype, 40, 40), matrix[:, 1::2])


@roads(["f32", "f64"])
def test_an_operand_may_be_the_result(dtype: str) -> None:
    """One program reads all of it before it writes."""
    a, b = small(dtype, 32, 32), small(dtype, 32, 32)
    before = a.copy()
    launch(a, b, a)
    assert np.array_equal(a, wanted(before, b))


@each_dtype
def test_a_result_that_overlaps_itself_is_refused(dtype: str) -> None:
    of_c = result(dtype, 100)
    step = of_c.itemsize
    for strides in ((0, step), (step, 0), (2 * step, step)):
        c = as_strided(of_c, (5, 7), strides)
        with pytest.raises(LaunchError, match="elements share memory"):
            launch(small(dtype, 5, 3), small(dtype, 3, 7), c)
    assert (of_c == 7).all()


@each_dtype
def test_a_result_that_is_read_only_is_refused(dtype: str) -> None:
    a, b, c = small(dtype, 40, 33), small(dtype, 33, 50), result(dtype, 40, 50)
    check(a, b, c)
    c[:] = 7
    c.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only") as refused:
        launch(a, b, c)
    assert refused.value.code == "X0806"
    assert (c == 7).all()


@each_dtype
def test_operands_may_be_read_only(dtype: str) -> None:
    a, b = small(dtype, 40, 33), small(dtype, 33, 50)
    a.flags.writeable = b.flags.writeable = False
    check(a, b, result(dtype, 40, 50))


# Where elements lie -----------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("which", ["a", "b", "c"])
def test_strides_over_two_gigabytes(dtype: str, layout: str, which: str) -> None:
    """Only the pages that are touched take memory."""
    arrays = {
        "a": small(dtype, 3, 40),
        "b": small(dtype, 40, 3),
        "c": result(dtype, 3, 3),
    }
    if layout == "columns":
        arrays = {name: each.T.copy().T for name, each in arrays.items()}
    near = arrays[which]
    far_axis = int(near.shape[0] != 3)
    shape, strides = near.shape, [near.itemsize] * 2
    strides[far_axis] = 3 * GIGABYTE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        memory = mmap.mmap(-1, 7 * GIGABYTE, flags)
    except OSError as error:
        pytest.skip(f"7 GB of addresses are not to be had: {error}")
    whole = np.frombuffer(memory, near.dtype)
    arrays[which] = as_strided(whole, shape, strides)
    arrays[which][:] = near
    check(*arrays.values())


@each_dtype
@pytest.mark.parametrize("which", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
def test_data_that_is_not_aligned(dtype: str, which: tuple[int, int, int]) -> None:
    """Also where elements lie across multiples of their size."""
    for m in (37, 2):
        near = small(dtype, m, 45), small(dtype, 45, 50), result(dtype, m, 50)
        for offset in range(1, 64):
            check(*[moved_by(each, offset * by) for each, by in zip(near, which)])


def moved_by(array: Any, offset: int) -> Any:
    """A copy whose first byte is ``offset`` behind a multiple of 64."""
    room = np.zeros(array.nbytes + 192, np.uint8)
    start = -room.ctypes.data % 64 + offset
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    assert copy.ctypes.data % 64 == offset
    return copy


@xetile.kernel
def normalize(X, Y):
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0), 0], (1, 64)))
    v = v * 2 - v.sum(1, keepdims=True)
    xetile.store_tile(v, xetile.init_tile(Y, [xetile.program_id(0), 0], (1, 64)))


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i64", "u16", "i8"])
@pytest.mark.parametrize(("target", "products"), [("host", "inline")], indirect=True)
def test_rows_that_are_not_aligned(dtype: str) -> None:
    of = DType.of(dtype).numpy
    x = RNG.integers(0, 2, (5, 45)).astype(of)
    wide = x.astype("i8")
    expected = (wide * 2 - wide.sum(1, keepdims=True)).astype(of)
    for offset in range(1, 64):
        y = moved_by(np.zeros_like(x), offset)
        normalize[5](moved_by(x, offset), y)
        assert np.array_equal(y, expected)


# NaN and infinities -----------------------------------------------------------------


@each_float
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_are_kept(dtype: str, value: float) -> None:
    shapes = ((70, 75, 45), (33, 65, 31), (32, 32, 32), (2, 9, 7))
    for (m, n, k), place in product(shapes, (0, -1)):
        a, b = small(dtype, m, k), small(dtype, k, n)
        a[place, place] = value
        check(a, b, result(dtype, m, n))
        a, b = small(dtype, m, k), small(dtype, k, n)
        b[place, place] = value
        check(a, b, result(dtype, m, n))


@each_float
@pytest.mark.parametrize("shape", [(70, 75, 45), (33, 65, 31), (3, 2, 1), (1, 40, 33)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_outside_does_not_leak_in(
    dtype: str, shape: tuple[int, int, int], order: str
) -> None:
    """All around the matrices is NaN; around the result are sevens, and stay."""
    m, n, k = shape
    a, b = inside(small(dtype, m, k), order), inside(small(dtype, k, n), order)
    room = np.full((m + 80, n + 80), 7, DTYPES[dtype][1], order=order)
    check(a, b, room[40 : 40 + m, 40 : 40 + n])
    room[40 : 40 + m, 40 : 40 + n] = 7
    assert (room == 7).all()


def inside(array: Any, order: str) -> Any:
    """The array as a part of a matrix of NaN."""
    rows, columns = array.shape
    room = np.full((rows + 80, columns + 80), np.nan, array.dtype, order=order)
    part = room[40 : 40 + rows, 40 : 40 + columns]
    part[:] = array
    return part


@each_float
def test_zero_times_infinity_is_nan_only_where_it_is_asked_for(dtype: str) -> None:
    a, b = small(dtype, 40, 45), small(dtype, 45, 50)
    a[3] = 0
    b[44, 49] = np.inf
    c = result(dtype, 40, 50)
    launch(a, b, c)
    assert np.isnan(c[3, 49])
    assert np.isfinite(c[:, :49]).all()
    assert np.array_equal(np.isnan(c[:, 49]), a[:, 44] == 0)
