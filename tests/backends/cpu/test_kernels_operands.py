"""Products whose operands are computed in the loop: casts, scales, bytes to floats."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32, i32

pytestmark = pytest.mark.usefixtures("target")

BF16 = np.dtype(ml_dtypes.bfloat16)
SIZES = {"BM": 32, "BN": 48, "BK": 32}


@xetile.kernel
def dequantised(A, B, COLUMNS, STEPS, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    scale = xetile.load_tile(xetile.init_tile(COLUMNS, [n], (BN,)))
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN))).to(f32) * scale
        b = b * xetile.load_tile(xetile.init_tile(STEPS, [k], (BK,)))[:, None]
        acc = xetile.tile_mma(a, b.to(A.dtype), acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize("stored", [np.int8, np.uint8])
@pytest.mark.parametrize("extents", [(70, 45, 75), (33, 96, 100), (32, 0, 48)])
# Once with programs that have nothing to do.
@pytest.mark.parametrize("grid", [(3, 3), (4, 5)])
def test_bytes_with_scales(extents: Any, dtype: Any, stored: Any, grid: Any) -> None:
    m, k, n = extents
    rng = np.random.default_rng(0)
    a = small_integers(rng, m, k, dtype=dtype)
    b = rng.integers(0, 9, (k, n)).astype(stored)
    columns = 2.0 ** rng.integers(-2, 2, n)
    steps = 2.0 ** rng.integers(-2, 2, k)
    rows = [x.astype(np.float32) for x in (columns, steps)]
    c = np.full((m, n), 7, np.float32)
    out = launch(dequantised, grid, a, b, *rows, c, **SIZES)[4]
    expected = a.astype(float) @ (b * columns * steps[:, None])
    same(out, expected.astype(np.float32))


@xetile.kernel
def padded(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a, b = xetile.init_tile(A, [m, 0], (BM, BK)), xetile.init_tile(B, [n, 0], (BN, BK))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        # Of what lies outside, and loads as 0, both make 1: that is summed up, too.
        left = xetile.maximum(xetile.load_tile(a), -2.0) + 1.0
        right = xetile.load_tile(b).to(f32).T + 1.0
        acc = xetile.tile_mma(left, right, acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [0, BK])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("k", [45, 64])
def test_both_operands_and_padding_that_is_not_zero(k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 70, k), small_integers(rng, 75, k, dtype=np.float16)
    c = np.zeros((70, 75), np.float32)
    out = agree(padded, (3, 2), a, b, c, **SIZES)[2]
    left, right = np.maximum(a, -2) + 1, b.astype(np.float32).T + 1
    same(out, left @ right + np.float32(-k % 32))


@xetile.kernel
def shared_by_all(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m = xetile.program_id(0) * BM
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BK, BN))) * 2.0
        acc = xetile.tile_mma(a, b, acc * 0.5)
    xetile.store_tile(acc, xetile.init_tile(C, [m, 0], (BM, BN)))


def test_one_tile_for_all_in_a_loop_that_stays() -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 70, 64), small_integers(rng, 64, 48)
    out = launch(shared_by_all, 3, a, b, np.zeros((70, 48), np.float32), **SIZES)[2]
    same(out, (a[:, :32] @ b[:32] + 2 * a[:, 32:] @ b[32:]).astype(np.float32))


@xetile.kernel
def in_place(A, B, BM: constexpr, BK: constexpr):
    m = xetile.program_id(0) * BM
    acc = xetile.zeros((BM, BM), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (BK, BM))) * 2.0
        acc = xetile.tile_mma(a, b, acc)
        xetile.store_tile(acc, xetile.init_tile(B, [k + BK, 0], (BM, BM)))


def test_an_operand_that_the_loop_writes() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-1, 2, (16, 48)), rng.integers(-1, 2, (64, 16))
    agree(in_place, 1, a.astype(np.float32), b.astype(np.float32), BM=16, BK=16)


@xetile.kernel
def unread(A, C):
    row, column = 0, xetile.program_id(1)
    acc = xetile.full((16, 16), 1, f32)
    for k in range(0, A.shape[1], 16):
        xetile.prefetch_tile(xetile.init_tile(A, [0, 0], (16, 16)))
        a = xetile.load_tile(xetile.init_tile(A, [row, k], (16, 16)))
        acc = xetile.tile_mma(a.to(f32), a.to(f32), acc)
    to = xetile.init_tile(C.T, [column, row], (16, 16))
    xetile.store_tile(xetile.full((16, 16), 1, i32), to)


def test_a_product_that_nobody_reads() -> None:
    """It is left out; the memory of its operands still stands before all tasks."""
    numbers, c = np.ones((16, 16), np.int32), np.zeros((16, 16), np.int32)
    unread[1, 1](numbers, c)
    np.testing.assert_array_equal(c, 1)


@pytest.mark.parametrize(
    ("rows", "columns", "computed"),
    [(4, 48, {"a"}), (8, 48, {"a", "b"}), (48, 8, {"a", "b"}), (48, 4, {"b"})],
)
def test_what_few_rows_multiply_is_not_computed_ahead(
    rows: int, columns: int, computed: set[str]
) -> None:
    rng = np.random.default_rng(0)
    a, b = small_integers(rng, 70, 64), small_integers(rng, 75, 64, dtype=np.float16)
    sizes = {"BM": rows, "BN": columns, "BK": 32}
    grid = -(-70 // rows), -(-75 // columns)
    c = np.zeros((70, 75), np.float32)
    out = launch(padded, grid, a, b, c, **sizes)[2]
    same(out, (np.maximum(a, -2) + 1) @ (b.astype(np.float32).T + 1))
    report = str(padded.explain(a, b, c, **sizes))
    found = {name for name in "ab" if f"{name} is computed once" in report}
    assert found == computed


def test_the_report_says_so() -> None:
    a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.int8)
    row, c = np.ones(64, np.float32), np.ones((64, 64), np.float32)
    report = str(dequantised.explain(a, b, row, row, c, **SIZES))
    assert "operands: b is computed once, before the programs run" in report
    assert "brgemm: the loop over k is one batch-reduce GEMM" in report
    assert "packing: b is packed once, before the programs run" in report


@xetile.kernel
def of_nibbles(A, Q, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        q = xetile.load_tile(xetile.init_tile(Q, [k // 2, n], (BK // 2, BN)))
        both = xetile.interleave((q & 15).T, (q >> 4).T).T
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        acc = xetile.tile_mma(a, both.to(A.dtype) - 8, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_numbers_of_four_bits_are_unpacked_ahead(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a = small_integers(rng, 70, 64).astype(dtype)
    q = rng.integers(0, 256, (32, 75), np.uint8)
    b = np.stack([q & 15, q >> 4], 1).reshape(64, 75).astype(np.float32) - 8
    c = np.zeros((70, 75), np.float32)
    sizes = {"BM": 32, "BN": 48, "BK": 32}
    of_nibbles[-(-70 // 32), -(-75 // 48)](a, q, c, **sizes)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b)
    report = str(of_nibbles.explain(a, q, c, **sizes))
    assert "b is computed once, before the programs run" in report
    assert "the loop over k is one batch-reduce GEMM" in report


@xetile.kernel
def of_two_loops(A, B, C, first, last, BM: constexpr, BN: constexpr):
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, 32)))
    total = xetile.zeros((BM, BN), f32)
    for n in range(0, first, BN):
        b = xetile.load_tile(xetile.init_tile(B, [n, 0], (BN, 32)))
        total += xetile.tile_mma(a, b.T) + 1
    for n in range(first, last, BN):
        b = xetile.load_tile(xetile.init_tile(B, [n, 0], (BN, 32)))
        total += xetile.tile_mma(a, b.T) * 2
    xetile.store_tile(total, xetile.init_tile(C, [m, 0], (BM, BN)))


@pytest.mark.parametrize("ends", [(0, 0), (0, 16), (32, 32), (32, 40), (32, 100)])
def test_tiles_are_packed_as_far_as_both_loops_go(ends: tuple[int, int]) -> None:
    rng, (first, last) = np.random.default_rng(0), ends
    a, b = small_integers(rng, 150, 32), small_integers(rng, 40, 32)
    given, sizes = (a, b, np.zeros((150, 16), "f4"), *ends), {"BM": 50, "BN": 16}
    _, _, c, *_ = launch(of_two_loops, 3, *given, **sizes)
    padded = np.zeros((128, 32), np.float32)
    padded[:40] = b
    want = np.zeros((150, 16), np.float32)
    for n in range(0, last, 16):
        product = a @ padded[n : n + 16].T
        want += product + 1 if n < first else product * 2
    same(c, want)
