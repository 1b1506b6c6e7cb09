"""GEMM in every layout, shape and surrounding, inline and called, against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import laid_out, launch, same, small_integers

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

pytestmark = [
    pytest.mark.usefixtures("anywhere", "products"),
    pytest.mark.parametrize("products", ["inline", "libxsmm"], indirect=True),
]

LAYOUTS = ("rows", "columns", "neither")
DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 64, BN: constexpr = 64, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def operands(rng: Any, m: int, n: int, k: int, dtype: Any = np.float32) -> Any:
    a = small_integers(rng, m, k, dtype=dtype)
    b = small_integers(rng, k, n, dtype=dtype)
    return a, b, np.full((m, n), 7, np.float32)


def product(a: Any, b: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize("b_layout", LAYOUTS)
def test_every_layout_of_the_operands(dtype: Any, a_layout: str, b_layout: str) -> None:
    rng = np.random.default_rng(0)
    a, b, c = operands(rng, 70, 75, 45, dtype)
    expected = product(a, b)
    out = launch(gemm, (2, 2), laid_out(a, a_layout), laid_out(b, b_layout), c)[2]
    same(out, expected.astype(np.float32))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_the_result(layout: str) -> None:
    a, b, c = operands(np.random.default_rng(0), 70, 75, 45)
    out = launch(gemm, (2, 2), a, b, laid_out(c, layout))[2]
    same(out, product(a, b).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_a_narrow_result_is_rounded_once(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-64, 65, (33, 40)).astype(dtype)
    b = rng.integers(-64, 65, (40, 37)).astype(dtype)
    c = np.zeros((33, 37), dtype)
    out = launch(gemm, (1, 1), a, b, c)[2]
    same(out, product(a, b).astype(np.float32).astype(dtype))


@pytest.mark.parametrize("tile", [(1, 1, 1), (1, 64, 8), (64, 1, 8), (17, 100, 3)])
def test_tiles_of_any_extent(tile: tuple[int, int, int]) -> None:
    a, b, c = operands(np.random.default_rng(0), 35, 33, 19)
    bm, bn, bk = tile
    grid = (cdiv(35, bm), cdiv(33, bn))
    out = launch(gemm, grid, a, b, c, BM=bm, BN=bn, BK=bk)[2]
    same(out, product(a, b).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 300, 37), (32, 512, 64)])
def test_low_wide_tiles_stream_b(
    dtype: Any, b_layout: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a, b, c = operands(np.random.default_rng(0), m, n, k, dtype)
    tiles = {"BM": 32 if m > 8 else 8, "BN": 256, "BK": 16}
    out = launch(gemm, (1, 2), a, laid_out(b, b_layout), c, **tiles)[2]
    same(out, product(a, b).astype(np.float32))


@pytest.mark.parametrize("special", [np.inf, np.nan])
def test_special_values_reach_only_their_row_and_column(special: float) -> None:
    a, b, c = operands(np.random.default_rng(0), 16, 300, 40)
    a[3, 5] = b[7, 290] = special
    out = launch(gemm, (1, 2), a, b, c, BM=16, BN=256)[2]
    with np.errstate(invalid="ignore"):
        expected = product(a, b).astype(np.float32)
    assert np.array_equal(np.isnan(out), np.isnan(expected))
    finite = np.isfinite(expected)
    same(out[finite], expected[finite])


def test_a_long_k_is_done_in_chunks() -> None:
    for k in (255, 256, 257, 600, 1025):
        for dtype in DTYPES:
            a, b, c = operands(np.random.default_rng(k), 20, 40, k, dtype)
            out = launch(gemm, (1, 1), a, b, c)[2]
            same(out, product(a, b).astype(np.float32))


def test_the_grid_may_be_larger_or_smaller_than_needed() -> None:
    a, b, c = operands(np.random.default_rng(0), 70, 75, 45)
    expected = product(a, b).astype(np.float32)
    same(launch(gemm, (4, 7), a, b, c)[2], expected)
    out = launch(gemm, (1, 1), a, b, c)[2]
    same(out[:64, :64], expected[:64, :64])
    assert (out[64:] == 7).all()
    assert (out[:, 64:] == 7).all()


def test_operands_that_disagree_in_size_are_padded() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 20, 40), small_integers(rng, 50, 30)
    c = np.full((35, 45), 7, np.float32)
    expected = np.zeros_like(c)
    expected[:20, :30] = product(a, b[:40])
    same(launch(gemm, (1, 1), a, b, c)[2], expected)
    expected[:20, :30] = product(a, b[:40])
    same(launch(gemm, (1, 1), a, b[:40], c)[2], expected)
    out = launch(gemm, (1, 1), a, b[:25], c)[2]
    expected[:20, :30] = product(a[:, :25], b[:25])
    same(out, expected)


def test_empty_operands() -> None:
    c = np.full((20, 30), 7, np.float32)
    a, b = np.zeros((20, 0), np.float32), np.zeros((0, 30), np.float32)
    same(launch(gemm, (1, 1), a, b, c)[2], np.zeros_like(c))
    a, b = np.zeros((0, 9), np.float32), np.zeros((9, 30), np.float32)
    launch(gemm, (1, 1), a, b, np.zeros((0, 30), np.float32))
    same(launch(gemm, (1, 1), a, b, c)[2], np.zeros_like(c))
    a, b = np.ones((20, 9), np.float32), np.zeros((9, 0), np.float32)
    same(launch(gemm, (1, 1), a, b, c)[2], np.zeros_like(c))


@xetile.kernel
def gemm_rebuilt(A, B, C, start, step, BM: constexpr = 32, BN: constexpr = 48):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(start, A.shape[1], step):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 8)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (8, BN)))
        acc = a @ b + acc
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize(("start", "step"), [(0, 8), (16, 8), (3, 5), (0, 16), (2, -1)])
def test_a_loop_over_any_steps_of_k(start: int, step: int) -> None:
    a, b, c = operands(np.random.default_rng(0), 40, 60, 50)
    expected = np.zeros_like(c)
    for k in range(start, 50, step) if step > 0 else ():
        expected += product(a[:, k : k + 8], b[k : k + 8]).astype(np.float32)
    same(launch(gemm_rebuilt, (2, 2), a, b, c, start, step)[2], expected)


@xetile.kernel
def gemm_carried(A, B, C, stop, step):
    a = xetile.init_tile(A, [0, 0], (32, 8))
    b = xetile.init_tile(B, [0, 0], (8, 48))
    acc = xetile.zeros((32, 48), f32)
    for _ in range(0, stop, step):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 8])
        b = xetile.update_tile_offset(b, [8, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (32, 48)))


@pytest.mark.parametrize(("stop", "steps"), [(3, 1), (5, 2), (-1, 1), (7, 0), (7, -2)])
def test_the_counter_need_not_be_k(stop: int, steps: int) -> None:
    a, b, c = operands(np.random.default_rng(0), 32, 48, 50)
    trips = len(range(0, stop, steps)) if steps > 0 else 0
    out = launch(gemm_carried, 1, a, b, c, stop, steps)[2]
    same(out, product(a[:, : 8 * trips], b[: 8 * trips]).astype(np.float32))


@xetile.kernel
def gemm_transposed(A, B, C, BM: constexpr = 16, BN: constexpr = 24):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[0], 8):
        a = xetile.load_tile(xetile.init_tile(A.T, [m, k], (BM, 8)))
        b = xetile.load_tile(xetile.init_tile(B, [n, k], (BN, 8)))
        acc = xetile.tile_mma(a, b.T, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_transposes_of_arrays_and_of_values(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a = small_integers(rng, 45, 33, dtype=dtype)
    b = small_integers(rng, 51, 45, dtype=dtype)
    c = np.zeros((33, 51), np.float32)
    out = launch(gemm_transposed, (3, 3), a, b, c)[2]
    same(out, product(a.T, b.T).astype(np.float32))


@xetile.kernel
def gemm_order(A, B, C):
    a = xetile.init_tile(A, [0, 0], (32, 8), order=[0, 1])
    b = xetile.init_tile(B, [0, 0], (8, 32), order=[0, 1])
    acc = xetile.zeros((32, 32), f32)
    for _ in range(0, A.shape[1], 8):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 8])
        b = xetile.update_tile_offset(b, [8, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (32, 32), order=[0, 1]))


def test_order_said_by_hand() -> None:
    a, b, c = (
        np.asfortranarray(x) for x in operands(np.random.default_rng(0), 30, 31, 29)
    )
    same(launch(gemm_order, 1, a, b, c)[2], product(a, b).astype(np.float32))


@xetile.function
def gelu(v):
    return 0.5 * v * (1.0 + xetile.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


@xetile.kernel
def gemm_epilogue(
    A,
    B,
    C,
    bias=None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 64,
    BN: constexpr = 48,
    BK: constexpr = 32,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def test_bias_and_gelu() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((70, 45), (45, 75)))
    bias = rng.standard_normal(75).astype(np.float32)
    c = np.zeros((70, 75), np.float32)
    out = launch(gemm_epilogue, (2, 2), a, b, c, bias, EPILOGUE=gelu)[2]
    z = product(a, b) + bias
    exact = 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))
    # |d gelu/dz| <= 1.13; the sum has 46 terms, each rounded at most twice.
    bound = 2.0**-24 * (1.13 * 46 * (abs(a) @ abs(b) + abs(bias)) + 32 * (abs(z) + 1))
    assert (abs(out - exact) <= bound).all()


@xetile.kernel
def row_sums_of_product(A, B, C, S, BM: constexpr = 32, BN: constexpr = 40):
    a = xetile.init_tile(A, [0, 0], (BM, 16))
    b = xetile.init_tile(B, [0, 0], (16, BN))
    acc = xetile.full((BM, BN), 1.0, f32)
    for _ in range(0, A.shape[1], 16):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 16])
        b = xetile.update_tile_offset(b, [16, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (BM, BN)))
    xetile.store_tile(acc.sum(1), xetile.init_tile(S, [0], (BM,)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_is_exact_where_the_result_is_reduced(dtype: Any) -> None:
    a, b, c = operands(np.random.default_rng(0), 20, 30, 21, dtype)
    s = np.zeros(32, np.float32)
    expected = np.ones((32, 40), np.float32)
    expected[:20, :30] += product(a, b).astype(np.float32)
    out = launch(row_sums_of_product, 1, a, b, c, s)
    same(out[2], expected[:20, :30])
    same(out[3], expected.sum(1))


@pytest.mark.parametrize("special", [np.inf, np.nan])
@pytest.mark.parametrize("where", ["a", "b"])
def test_padding_times_infinity_is_nan(special: float, where: str) -> None:
    a, b, c = operands(np.random.default_rng(0), 20, 30, 21)
    (a if where == "a" else b)[5, 7] = special
    padded_a, padded_b = np.zeros((32, 32), np.float32), np.zeros((32, 40), np.float32)
    padded_a[:20, :21], padded_b[:21, :30] = a, b
    with np.errstate(invalid="ignore"):
        expected = 1 + padded_a @ padded_b
        sums = expected.sum(1)
    out = launch(row_sums_of_product, 1, a, b, c, np.zeros(32, np.float32))
    same(out[2], expected[:20, :30])
    same(out[3], sums)


@pytest.mark.parametrize("special", [np.inf, np.nan])
def test_special_values_beyond_the_other_operand(special: float) -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 20, 21), small_integers(rng, 30, 30)
    b[25, 3] = special
    with np.errstate(invalid="ignore"):
        padded = np.zeros((20, 30), np.float32)
        padded[:, :21] = a
        expected = padded @ b
    out = launch(gemm, (1, 1), a, b, np.zeros((20, 30), np.float32))[2]
    same(out, expected)


@xetile.kernel
def two_products(A, B, C, D, E):
    """E = (A @ B) @ C and D = A @ C.T"""
    m = xetile.program_id(0) * 32
    acc = xetile.zeros((32, 40), f32)
    other = xetile.zeros((32, 40), f32)
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 8)))
        acc = xetile.tile_mma(
            a, xetile.load_tile(xetile.init_tile(B, [k, 0], (8, 40))), acc
        )
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 8)))
        c = xetile.load_tile(xetile.init_tile(C, [0, k], (40, 8)))
        other = xetile.tile_mma(a, c.T, other)
    square = xetile.load_tile(xetile.init_tile(C, [0, 0], (40, 40)))
    xetile.store_tile(other, xetile.init_tile(D, [m, 0], (32, 40)))
    xetile.store_tile(acc @ square, xetile.init_tile(E, [m, 0], (32, 40)))


def test_several_products_in_one_kernel() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (small_integers(rng, *s) for s in ((50, 35), (35, 40), (40, 35)))
    d, e = np.zeros((50, 40), np.float32), np.zeros((50, 35), np.float32)
    out = launch(two_products, 2, a, b, c, d, e)
    same(out[3], product(a, c.T).astype(np.float32))
    same(out[4], product(product(a, b), c).astype(np.float32))


@xetile.kernel
def three_packed(A, B, C, D, E):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    total = xetile.zeros((16, 32), f32)
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, 8)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (8, 32)))
        total = xetile.tile_mma(a, b, total)
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, 8)))
        b = xetile.load_tile(xetile.init_tile(C, [k, n], (8, 32)))
        total = xetile.tile_mma(a, b, total)
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, 8)))
        b = xetile.load_tile(xetile.init_tile(D, [k, n], (8, 32)))
        total = xetile.tile_mma(a, b, total)
    xetile.store_tile(total, xetile.init_tile(E, [m, n], (16, 32)))


def test_several_operands_packed_for_the_launch() -> None:
    rng = np.random.default_rng(0)
    a, b, c, d = (small_integers(rng, *s) for s in ((40, 500), *[(500, 600)] * 3))
    out = launch(three_packed, (3, 19), a, b, c, d, np.zeros((40, 600), np.float32))
    same(out[4], product(a, b + c + d).astype(np.float32))


@xetile.kernel
def product_if(A, B, C, flag):
    acc = xetile.full((32, 40), 2.0, f32)
    if flag > 0:
        for k in range(0, A.shape[1], 8):
            a = xetile.load_tile(xetile.init_tile(A, [0, k], (32, 8)))
            b = xetile.load_tile(xetile.init_tile(B, [k, 0], (8, 40)))
            acc = xetile.tile_mma(a, b, acc)
        acc = acc * 2.0
    elif flag < 0:
        acc = acc - 5.0
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (32, 40)))


@pytest.mark.parametrize("flag", [1, 0, -1])
def test_a_product_in_a_run_time_if(flag: int) -> None:
    a, b, c = operands(np.random.default_rng(0), 30, 38, 21)
    expected = {1: 2 * (2 + product(a, b)), 0: 2 + 0 * c, -1: -3 + 0 * c}[flag]
    same(launch(product_if, 1, a, b, c, flag)[2], expected.astype(np.float32))


@xetile.kernel
def in_place(A, B):
    m = xetile.program_id(0) * 16
    acc = xetile.zeros((16, 32), f32)
    for k in range(0, A.shape[1], 8):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, 8)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (8, 32)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(A, [m, 0], (16, 32)))


def test_the_result_may_overwrite_an_operand() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 40, 32), small_integers(rng, 32, 32)
    same(launch(in_place, 3, a, b)[0], product(a, b).astype(np.float32))
    square = small_integers(rng, 16, 16)
    out = launch(in_place, 1, square, square)[0]
    same(out, product(square, square).astype(np.float32))


@xetile.kernel
def batched(A, B, C, BM: constexpr = 32):
    h, m = xetile.program_id(1), xetile.program_id(0) * BM
    acc = xetile.zeros((BM, BM), f32)
    for k in range(0, A.shape[2], 8):
        a = xetile.load_tile(xetile.init_tile(A[h], [m, k], (BM, 8)))
        b = xetile.load_tile(xetile.init_tile(B[h], [k, 0], (8, BM)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C[h], [m, 0], (BM, BM)))


def test_matrices_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 3, 40, 21), small_integers(rng, 3, 21, 30)
    out = launch(batched, (2, 3), a, b, np.zeros((3, 40, 30), np.float32))[2]
    same(out, np.matmul(a, b))
    out = launch(batched, (2, 4), a, b, np.zeros((3, 40, 30), np.float32))[2]
    same(out, np.matmul(a, b))


@xetile.kernel
def own_accumulator(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), C.dtype)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("rows", [1, 3, 4])
@pytest.mark.parametrize("dtype", [*DTYPES, np.float64])
@pytest.mark.parametrize("b_layout", LAYOUTS)
def test_few_rows_stream_b(rows: int, dtype: Any, b_layout: str) -> None:
    rng = np.random.default_rng(0)
    a, b, _ = operands(rng, rows, 75, 45, dtype)
    c = np.zeros((rows, 75), np.float64 if dtype is np.float64 else np.float32)
    tiles = {"BM": rows, "BN": 64, "BK": 16}
    out = launch(own_accumulator, (1, 2), a, laid_out(b, b_layout), c, **tiles)[2]
    same(out, product(a, b).astype(c.dtype))


def test_few_rows_of_operands_that_disagree() -> None:
    """Where B ends before A does, the rest of A meets zeros: infinity makes NaN."""
    rng = np.random.default_rng(0)
    a, b, c = operands(rng, 2, 40, 50)
    a[1, 47] = np.inf
    padded = np.concatenate([b[:45], np.zeros((5, 40), np.float32)])
    tiles = {"BM": 2, "BN": 64, "BK": 16}
    out = launch(own_accumulator, (1, 1), a, b[:45], c, **tiles)[2]
    with np.errstate(invalid="ignore"):
        same(out, (a @ padded).astype(np.float32))


@pytest.mark.parametrize("rows", [40, 100, 130, 200])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("b_layout", LAYOUTS)
def test_b_shared_by_one_to_four_programs(rows: int, dtype: Any, b_layout: str) -> None:
    """One and two pack it themselves, in chunks of k; for more it is packed before."""
    a, b, c = operands(np.random.default_rng(0), rows, 75, 600, dtype)
    grid = (cdiv(rows, 64), 2)
    out = launch(gemm, grid, a, laid_out(b, b_layout), c)[2]
    same(out, product(a, b).astype(np.float32))


@pytest.mark.parametrize("dtype", [*DTYPES, np.float64])
@pytest.mark.parametrize("a_layout", LAYOUTS[1:])
def test_a_is_copied_row_by_row(dtype: Any, a_layout: str) -> None:
    """Where its rows are not contiguous: in several tasks, along m and along k."""
    a, b, _ = operands(np.random.default_rng(0), 150, 75, 520, dtype)
    c = np.zeros((150, 75), np.float64 if dtype is np.float64 else np.float32)
    tiles = {"BM": 64, "BN": 64, "BK": 32}
    out = launch(own_accumulator, (3, 2), laid_out(a, a_layout), b, c, **tiles)[2]
    same(out, product(a, b).astype(c.dtype))
