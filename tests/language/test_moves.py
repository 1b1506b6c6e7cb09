"""Operations that move, order and scan the elements of vectors, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.frontend.page import NUMPY, computed, matrix
from xetl import xetile
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
BOTH = pytest.mark.parametrize("backend", ["reference", "cpu"])


@xetile.kernel(grid=1)
def of_a_line(A, OUT, F, N: constexpr):
    result = F(xetile.load_tile(xetile.init_tile(A, [0], (N,))))
    xetile.store_tile(result, xetile.init_tile(OUT, [0], result.shape))


def line(function, a, like, backend):
    """``function`` of a vector of rank 1, as a kernel computes it."""
    out = np.zeros_like(like)
    of_a_line(a, out, function, N=len(a), backend=backend)
    return out


@ALL
@pytest.mark.parametrize("axis", [0, 1])
def test_gather_along_an_axis(axis: int, backend: str) -> None:
    a = matrix("f32", (5, 16))
    index = np.random.default_rng(0).integers(0, a.shape[axis], a.shape, np.int32)
    found = computed(lambda a, b: xetile.gather(a, b, axis), a, index, "f32", backend)
    np.testing.assert_array_equal(found, np.take_along_axis(a, index, axis))


@ALL
def test_joining_and_splitting(backend: str) -> None:
    a = matrix("i16", (1, 16))[0]
    both = np.stack([a, -a], 1).ravel()
    joined = lambda v: xetile.join(v, -v).reshape(32)
    np.testing.assert_array_equal(line(joined, a, both, backend), both)
    turns = lambda v: xetile.cat(*xetile.split(xetile.join(v, -v)))
    np.testing.assert_array_equal(
        line(turns, a, both, backend), np.concatenate([a, -a])
    )


def in_turn(a, b):
    return np.stack([a, b], -1).reshape(a.shape[0], -1)


@ALL
@pytest.mark.parametrize("dtype", ["i1", "i8", "bf16", "f32", "f64"])
@pytest.mark.parametrize("columns", [1, 3, 8, 33])
def test_interleave(dtype: str, columns: int, backend: str) -> None:
    a, b = matrix(dtype, (3, columns)), matrix(dtype, (3, columns), seed=1)
    found = computed(
        lambda a, b: xetile.interleave(a, b), a, b, dtype, backend, columns=2 * columns
    )
    np.testing.assert_array_equal(found, in_turn(a, b))


INTERLEAVES = {
    "of columns": (
        lambda a, b: xetile.interleave(a.T, b.T).T[:8],
        lambda a, b: in_turn(a.T, b.T).T[:8],
    ),
    "of parts": (
        lambda a, b: xetile.interleave(a[:, 1:17], b[:, 4:20])[:, 1:21],
        lambda a, b: in_turn(a[:, 1:17], b[:, 4:20])[:, 1:21],
    ),
    "of interleaved": (
        lambda a, b: xetile.interleave(xetile.interleave(a, b)[:, :20], b)[:, 20:],
        lambda a, b: in_turn(in_turn(a, b)[:, :20], b)[:, 20:],
    ),
    "beside its columns": (
        lambda a, b: xetile.interleave(a, b)[:, 20:] + a * b,
        lambda a, b: in_turn(a, b)[:, 20:] + a * b,
    ),
}


@ALL
@pytest.mark.parametrize("name", INTERLEAVES)
def test_interleave_in_other_places(name: str, backend: str) -> None:
    function, meaning = INTERLEAVES[name]
    a, b = matrix("f32", (8, 20)), matrix("f32", (8, 20), seed=1)
    if name == "of columns":
        a, b = a[:, :16], b[:, :16]
    expected = meaning(a, b)
    found = computed(function, a, b, "f32", backend, columns=expected.shape[1])
    np.testing.assert_array_equal(found, expected)


@xetile.kernel
def rotated(X, Y, ROWS: constexpr, COLUMNS: constexpr):
    """Pairs of neighbours as complex numbers, times i."""
    at = [xetile.program_id(0) * ROWS, xetile.program_id(1) * COLUMNS]
    v = xetile.load_tile(xetile.init_tile(X, at, (ROWS, COLUMNS)))
    re, im = xetile.split(xetile.reshape(v, (ROWS * COLUMNS // 2, 2)))
    both = xetile.reshape(xetile.interleave(-im, re), (ROWS, COLUMNS))
    xetile.store_tile(both, xetile.init_tile(Y, at, (ROWS, COLUMNS)))


@ALL
@pytest.mark.parametrize("shape", [(1, 2048), (1, 36), (4, 64), (3, 10)])
@pytest.mark.parametrize("width", [2602, 30])
def test_complex_numbers_side_by_side(
    width: int, shape: tuple[int, int], backend: str
) -> None:
    memory = matrix("f32", (6, width + 3))
    x, y = memory[:, 1 : 1 + width], np.zeros_like(memory)[:, 3:]
    if backend == "xegpu":
        x, y = np.ascontiguousarray(x[:3]), np.ascontiguousarray(y[:3])
    grid = -(-x.shape[0] // shape[0]), -(-width // shape[1])
    rotated[grid](x, y, *shape, backend=backend)
    np.testing.assert_array_equal(y, turned(x))


def turned(x):
    pairs = x.reshape(x.shape[0], -1, 2)
    return np.stack([-pairs[..., 1], pairs[..., 0]], -1).reshape(x.shape)


@xetile.kernel(grid=1)
def part_of_a_product(
    A, B, OUT, M: constexpr, N: constexpr, R: constexpr, C: constexpr, MAP: constexpr
):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (M, 32)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (32, N)))
    v = xetile.tile_mma(a, b, xetile.zeros((M, N), xetile.f32), wg_map=MAP)
    part = v[R[0] : R[1] : R[2], C[0] : C[1] : C[2]]
    both = xetile.interleave(part, xetile.where(part > 0, part, 0.5))
    xetile.store_tile(both, xetile.init_tile(OUT, [0, 0], both.shape))


PARTS = [
    ((64, 64), (0, 64, 1), (0, 32, 1), (2, 2)),
    ((64, 64), (0, 64, 1), (32, 64, 1), (4, 1)),
    ((64, 64), (16, 48, 1), (0, 64, 1), (2, 4)),
    ((64, 64), (1, 64, 2), (3, 50, 3), (2, 2)),
    ((8, 128), (7, 8, 1), (76, 125, 2), (1, 4)),
    ((8, 32), (0, 8, 1), (11, 28, 3), None),
    ((128, 32), (0, 128, 1), (3, 31, 2), None),
    ((16, 48), (3, 4, 1), (5, 6, 1), None),
]
"""Extents, rows and columns of the part, and how many subgroups there are."""


@ALL
@pytest.mark.parametrize(("shape", "rows", "columns", "subgroups"), PARTS)
def test_a_part_of_what_subgroups_share(
    shape: tuple[int, int],
    rows: tuple[int, int, int],
    columns: tuple[int, int, int],
    subgroups: tuple[int, int] | None,
    backend: str,
) -> None:
    rng, wg_map = np.random.default_rng(0), None
    if subgroups is not None:
        data = [extent // n for extent, n in zip(shape, subgroups)]
        wg_map = xetile.wg_map(list(subgroups), data)
    a = rng.integers(-4, 5, (shape[0], 32)).astype(np.float32)
    b = rng.integers(-4, 5, (32, shape[1])).astype(np.float32)
    part = (a @ b)[slice(*rows), slice(*columns)]
    out = np.zeros((part.shape[0], 2 * part.shape[1]), np.float32)
    part_of_a_product(a, b, out, *shape, rows, columns, wg_map, backend=backend)
    want = in_turn(part, np.where(part > 0, part, np.float32(0.5)))
    np.testing.assert_array_equal(out, want)


def test_parts_of_rows_stay_with_their_subgroup() -> None:
    """No memory is shared: each subgroup has whole rows, of which it takes parts."""

    @xetile.kernel
    def halves(X, Y):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (32, 64)))
        both = xetile.interleave(v[:, ::2], v[:, 1::2] + v[:, 32:])
        xetile.store_tile(both, xetile.init_tile(Y, [0, 0], (32, 64)))

    signature = "f32[M,N] f32[M,N]"
    text = halves.ir("distribute-to-subgroups", signature, target="pvc")
    assert "memref.alloc" not in text
    assert "gpu.barrier" not in text


@ALL
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["i8", "u32", "f16", "f32"])
def test_sort(dtype: str, descending: bool, backend: str) -> None:
    a = matrix(dtype, (3, 13))
    expected = np.sort(a, 1)
    expected = expected[:, ::-1] if descending else expected
    sort = lambda a, b: xetile.sort(a, 1, descending=descending)
    np.testing.assert_array_equal(computed(sort, a, a, dtype, backend), expected)


@BOTH
@pytest.mark.parametrize("dtype", ["i64", "u64", "f64"])
@pytest.mark.parametrize("axis", [0, -1])
def test_sort_of_64_bits(axis: int, dtype: str, backend: str) -> None:
    a = matrix(dtype, (8, 6))
    a[0, 0] = np.iinfo(a.dtype).max if dtype != "f64" else -np.inf
    found = computed(lambda a, b: xetile.sort(a, axis), a, a, dtype, backend)
    np.testing.assert_array_equal(found, np.sort(a, axis))


@BOTH
@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_last(descending: bool, backend: str) -> None:
    a = np.array([[1, np.nan, -np.inf, np.inf, -2, -np.nan, 0, 3]], np.float32)
    expected = np.sort(a[~np.isnan(a)])
    expected = expected[::-1] if descending else expected
    expected = [[*expected, np.nan, np.nan]]
    sort = lambda a, b: xetile.sort(a, descending=descending)
    found = computed(sort, a, a, "f32", backend)
    np.testing.assert_array_equal(found, np.float32(expected))


@ALL
@pytest.mark.parametrize("descending", [False, True])
def test_argsort_is_stable(descending: bool, backend: str) -> None:
    a = np.random.default_rng(0).integers(0, 4, (2, 21)).astype(np.int32)
    key = -a if descending else a
    order = lambda a, b: xetile.argsort(a, 1, descending)
    found = computed(order, a, a, "i32", backend)
    np.testing.assert_array_equal(found, np.argsort(key, 1, kind="stable"))


@ALL
@pytest.mark.parametrize("descending", [False, True])
def test_zeros_of_both_signs_are_equals(descending: bool, backend: str) -> None:
    a = np.array([[0.0, -0.0, -0.0, 0.0, 1.0, -1.0, -0.0]], np.float32)
    order = lambda a, b: xetile.argsort(a, 1, descending)
    found = computed(order, a, a, "i32", backend)
    key = -a if descending else a
    np.testing.assert_array_equal(found, np.argsort(key, 1, kind="stable"))


def edges(dtype: str, shape: tuple[int, int]) -> np.ndarray:
    """Numbers that differ in one half or in both, equals, and the ends."""
    ends = [-np.inf, np.inf, -0.0, np.nan]
    if dtype != "f64":
        info = np.iinfo(NUMPY[dtype])
        ends = [info.min, info.max, info.max - 1, 0]
    some = [1, 2, 1 << 32, (1 << 32) + 1, 1 << 62, *ends]
    return np.random.default_rng(1).choice(np.array(some, NUMPY[dtype]), shape)


@ALL
@pytest.mark.parametrize("dtype", ["i64", "u64", "f64"])
@pytest.mark.parametrize(("axis", "descending"), [(0, True), (1, False)])
def test_order_of_64_bits(axis: int, descending: bool, dtype: str, backend: str):
    a = edges(dtype, (9, 11))
    key = a if not descending else -a if dtype == "f64" else ~a
    order = lambda a, b: xetile.argsort(a, axis, descending)
    found = computed(order, a, a, "i32", backend)
    np.testing.assert_array_equal(found, np.argsort(key, axis, kind="stable"))


@ALL
@pytest.mark.parametrize("dtype", ["i64", "u64", "f64"])
def test_the_largest_of_64_bits(dtype: str, backend: str) -> None:
    a = edges(dtype, (3, 12))
    key = -a if dtype == "f64" else ~a
    wanted = np.argsort(key, 1, kind="stable")[:, :5]
    values = lambda a, b: xetile.topk(a, 5)[0]
    found = computed(values, a, a, dtype, backend, columns=5)
    np.testing.assert_array_equal(found, np.take_along_axis(a, wanted, 1))
    indices = lambda a, b: xetile.topk(a, 5)[1]
    found = computed(indices, a, a, "i32", backend, columns=5)
    np.testing.assert_array_equal(found, wanted)


@xetile.kernel(grid=1, subgroups=[2, 1])
def halves_in_order(X, Y):
    at = [xetile.subgroup_id() * 2, 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (2, 21)))
    xetile.store_tile(xetile.sort(v, 1), xetile.init_tile(Y, at, (2, 21)))


@ALL
def test_subgroups_sort_what_is_their_own(backend: str) -> None:
    a = matrix("f32", (4, 21))
    found = np.zeros_like(a)
    halves_in_order(a, found, backend=backend)
    np.testing.assert_array_equal(found, np.sort(a, 1))


@ALL
def test_the_largest(backend: str) -> None:
    a = matrix("f32", (4, 24))
    order = np.argsort(-a, 1, kind="stable")[:, :5]
    values = lambda a, b: xetile.topk(a, 5)[0]
    found = computed(values, a, a, "f32", backend, columns=5)
    np.testing.assert_array_equal(found, np.take_along_axis(a, order, 1))
    indices = lambda a, b: xetile.topk(a, 5)[1]
    found = computed(indices, a, a, "i32", backend, columns=5)
    np.testing.assert_array_equal(found, order)


@ALL
@pytest.mark.parametrize(("dtype", "k"), [("i32", 5), ("i64", 5), ("i64", 2)])
def test_the_largest_of_a_long_row(dtype: str, k: int, backend: str) -> None:
    """Groups are chosen first, also where many elements are equal."""
    a = np.random.default_rng(3).integers(0, 40, (1, 512)).astype(NUMPY[dtype])
    a[0, 100:140] = np.iinfo(a.dtype).max
    a[0, ::3] = np.iinfo(a.dtype).min
    for b in (a, np.flip(np.sort(a, 1), 1).copy(), a[:, :100].repeat(5, 1) // 4):
        wanted = np.argsort(~b, 1, kind="stable")[:, :k]
        indices = lambda a, b: xetile.topk(a, k)[1]
        found = computed(indices, b, b, "i32", backend, columns=k)
        np.testing.assert_array_equal(found, wanted)


@ALL
def test_histogram(backend: str) -> None:
    a = np.random.default_rng(1).integers(-2, 12, (1, 64), np.int32)[0]
    counts = np.bincount(a[(a >= 0) & (a < 9)], minlength=9).astype(np.int32)
    found = line(lambda v: xetile.histogram(v, 9), a, counts, backend)
    np.testing.assert_array_equal(found, counts)
    few = np.bincount(a[(a >= 0) & (a < 4)], minlength=9).astype(np.int32)
    found = line(lambda v: xetile.histogram(v, 9, v < 4), a, counts, backend)
    np.testing.assert_array_equal(found, few)


@ALL
@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_counted_and_looked_up_values_wrap(dtype: str, backend: str) -> None:
    """Offsets of tiles are computed in 64 bits; values are not."""
    a = np.arange(1, 33).astype(NUMPY[dtype])
    wrapped = a * a.dtype.type(91) * a.dtype.type(91)
    counts = np.array([(wrapped == bin_).sum() for bin_ in range(128)], np.int32)
    found = line(lambda v: xetile.histogram(v * 91 * 91, 128), a, counts, backend)
    np.testing.assert_array_equal(found, counts)
    seen = np.where((wrapped >= 0) & (wrapped < 32), wrapped, 0)
    pick = lambda v: xetile.gather(v - 1, v * 91 * 91, 0)
    np.testing.assert_array_equal(line(pick, a, a, backend), seen)


@ALL
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans(axis: int, reverse: bool, backend: str) -> None:
    a = matrix("i32", (4, 12))
    turn = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    for name, function in {
        "cumsum": np.add,
        "cummax": np.maximum,
        "cummin": np.minimum,
    }.items():
        scan = getattr(xetile, name)
        found = computed(
            lambda a, b, f=scan: f(a, axis, reverse=reverse), a, a, "i32", backend
        )
        expected = turn(function.accumulate(turn(a), axis))
        np.testing.assert_array_equal(found, expected, err_msg=name)


@xetile.function
def linear(g0, h0, g1, h1):
    """The composition of ``h -> g0 h + h0`` and ``h -> g1 h + h1``."""
    return g0 * g1, h0 * g1 + h1


@ALL
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_pairs(reverse: bool, backend: str) -> None:
    """A linear recurrence; the composition does not commute."""
    a, gate = matrix("f64", (3, 11)), np.abs(matrix("f64", (3, 11), seed=1)) / 9
    order = range(10, -1, -1) if reverse else range(11)
    state, expected = np.zeros(3), np.zeros_like(a)
    for at in order:
        state = state * gate[:, at] + a[:, at]
        expected[:, at] = state
    scan = lambda a, b: xetile.associative_scan((b, a), 1, linear, reverse)[1]
    found = computed(scan, a, gate, "f64", backend)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@xetile.function
def largest(a, b):
    return a * 0 + xetile.reduce(a, 1, lambda x, y: xetile.where(y > x, y, x))[:, None]


@ALL
def test_reduce_by_a_function(backend: str) -> None:
    a = matrix("f32", (4, 10))
    found = computed(largest, a, a, "f32", backend)
    np.testing.assert_array_equal(found, np.broadcast_to(a.max(1)[:, None], a.shape))


@ALL
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (4, 10), (7, 3)])
def test_reduce_of_pairs_in_order(
    shape: tuple[int, int], axis: int, backend: str
) -> None:
    a, gate = matrix("f64", shape), np.abs(matrix("f64", shape, seed=1)) / 9
    expected = np.zeros(shape[1 - axis])
    for row, factor in zip(np.moveaxis(a, axis, 0), np.moveaxis(gate, axis, 0)):
        expected = expected * factor + row
    total = lambda a, b: xetile.reduce((b, a), axis, linear)[1]
    wide = lambda a, b: a * 0 + (total(a, b)[:, None] if axis else total(a, b)[None, :])
    found = computed(wide, a, gate, "f64", backend)
    expected = np.broadcast_to(np.expand_dims(expected, axis), shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_reduce_moves_each_element_once_per_halving() -> None:
    """Not the whole matrix in each step, as a scan does."""
    v = np.ones(32, np.float32)
    total = lambda v: v * 0 + xetile.reduce(v, 0, lambda x, y: x + y)
    text = of_a_line.ir("xetile", v, v, total, N=32)
    moved = re.findall(r"load_gather .*-> vector<(\d+)x1xf32>", text)
    assert 32 <= sum(map(int, moved)) <= 2 * 32


@BOTH
@pytest.mark.parametrize("form", ["function", "method"])
def test_masks_as_any_and_all(form: str, backend: str) -> None:
    a = matrix("i32", (4, 6))
    masks = lambda a, b: xetile.where(
        xetile.any(a > 40, 1)[:, None], xetile.where(xetile.all(a, 0), a, -a), a * 2
    )
    if form == "method":
        masks = lambda a, b: xetile.where(
            (a > 40).any(1)[:, None], xetile.where(a.all(0), a, -a), a * 2
        )
    found = computed(masks, a, a, "i32", backend)
    expected = np.where((a > 40).any(1)[:, None], np.where(a.all(0), a, -a), a * 2)
    np.testing.assert_array_equal(found, expected)


@BOTH
def test_extrema_with_indices(backend: str) -> None:
    a = matrix("f32", (4, 9))
    both = lambda a, b: (
        a * 0
        + xetile.max(a, 1, return_indices=True)[1][:, None]
        + xetile.min(a, 0, return_indices=True)[0]
    )
    found = computed(both, a, a, "f32", backend)
    np.testing.assert_array_equal(found, a.argmax(1)[:, None] + a.min(0))
