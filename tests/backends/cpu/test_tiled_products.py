"""Neighbouring programs that become one task (`grow-tiles`)."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, launch, small_integers
from scipy.special import erf

from xetl import ops, xetile
from xetl.settings import config
from xetl.xetile import constexpr
from xetl_cpu import targets
from xetl_cpu.targets import find_target, host_machine

BF16 = ml_dtypes.bfloat16


@xetile.kernel
def gemm(A, B, C, BM: constexpr, BN: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


ROWS = [(64, 128), (96, 512), (48, 256)]
COLUMNS = [(16, 16), (8, 48), (64, 64), (300, 40)]
STREAMED = [(1, 128), (2, 64), (4, 256), (3, 16)]


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16])
@pytest.mark.parametrize("tile", [*ROWS, *COLUMNS, *STREAMED])
@pytest.mark.parametrize("size", [(700, 70, 520), (3, 33, 1000)])
def test_products_of_tasks(size: Any, tile: Any, dtype: Any) -> None:
    (m, k, n), (rows, columns) = size, tile
    rng = np.random.default_rng(m + n)
    a, b = (small_integers(rng, *s, dtype=dtype) for s in ((m, k), (k, n)))
    c = np.full((m, n), 7, dtype)
    gemm[-(-m // rows), -(-n // columns)](a, b, c, BM=rows, BN=columns)
    assert np.array_equal(c, (a.astype("f4") @ b.astype("f4")).astype(dtype))
    report = str(gemm.explain(a, b, c, BM=rows, BN=columns))
    assert "programs run as one" in report


@pytest.mark.parametrize("grid", [(1, 1), (3, 2), (5, 3), (9, 9)])
@pytest.mark.parametrize("tile", [(64, 128), (16, 24), (2, 64)])
def test_only_the_programs_of_the_grid_store(grid: Any, tile: Any) -> None:
    rng, (rows, columns) = np.random.default_rng(1), tile
    a, b = (small_integers(rng, *s) for s in ((600, 40), (40, 500)))
    c = np.full((600, 500), 7, np.float32)
    gemm[grid](a, b, c, BM=rows, BN=columns)
    nothing = np.full((600, 500), 7, np.float32)
    gemm[grid](a[:, :0], b[:0], nothing, BM=rows, BN=columns)
    expected = np.full_like(c, 7)
    part = (slice(grid[0] * rows), slice(grid[1] * columns))
    expected[part] = (a @ b)[part]
    assert np.array_equal(c, expected)
    expected[part] = 0
    assert np.array_equal(nothing, expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("tile", [(64, 128), (16, 24), (1, 128)])
def test_operands_of_any_layout(order: Any, tile: Any) -> None:
    rng, (rows, columns) = np.random.default_rng(2), tile
    a, b = (small_integers(rng, 300, 300) for _ in range(2))
    given = [np.asarray(x, order=order) for x in (a, b, np.zeros_like(a))]
    gemm[-(-300 // rows), -(-300 // columns)](*given, BM=rows, BN=columns)
    assert np.array_equal(given[2], a @ b)


@pytest.mark.parametrize("tile", [(32, 512), (256, 256), (1, 4096)])
def test_tiles_that_stay_as_they_are(tile: Any) -> None:
    arrays = [np.zeros((64, 64), np.float32) for _ in range(3)]
    report = str(gemm.explain(*arrays, BM=tile[0], BN=tile[1]))
    assert "programs run as one" not in report


@xetile.kernel
def fused(A, B, bias, scale, R, C, BM: constexpr, BN: constexpr, HOW: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    old = xetile.load_tile(xetile.init_tile(R, [m, n], (BM, BN)))
    zeros = xetile.zeros((BM, BN), xetile.f32)
    acc = 2.0 * old if HOW == "accumulate" else zeros
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    if HOW == "bias":
        acc = xetile.maximum(
            acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,))), 0
        )
    elif HOW == "gelu":
        acc = 0.5 * acc * (1.0 + xetile.erf(0.7071067811865476 * acc))
    elif HOW == "residual":
        acc = acc + old
    elif HOW == "rows":
        acc = acc * xetile.load_tile(xetile.init_tile(scale, [m], (BM,)))[:, None] - 3.0
    elif HOW == "mask":
        column = n + xetile.arange(0, BN)
        acc = xetile.where((column % 3 == 0)[None, :], acc, 1.0)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


ADDITIONS = ["bias", "gelu", "residual", "rows", "accumulate", "mask"]


@pytest.mark.parametrize("how", ADDITIONS)
@pytest.mark.parametrize("tile", [(64, 64), (16, 48), (40, 128), (2, 128)])
def test_what_follows_a_product_grows_with_it(tile: Any, how: str, target: str) -> None:
    (m, k, n), (rows, columns) = (330, 70, 540), tile
    rng = np.random.default_rng(n)
    shapes = ((m, k), (k, n), (n,), (m,), (m, n))
    arrays = [small_integers(rng, *shape) for shape in shapes]
    arrays[0] /= 4  # where a GELU is neither 0 nor linear
    given = (*arrays, np.full((m, n), 7, np.float32))
    grid, constants = (-(-m // rows), -(-n // columns)), {"BM": rows, "BN": columns}
    if how == "gelu":
        c = launch(fused, grid, *given, HOW=how, **constants)[-1]
        p = arrays[0].astype(np.float64) @ arrays[1]
        expected = 0.5 * p * (1 + erf(p / np.sqrt(2)))
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    else:
        agree(fused, grid, *given, HOW=how, **constants)
    report = str(fused.explain(*given, HOW=how, **constants))
    assert "programs run as one" in report


@xetile.kernel
def gated(A, B, D, C, BM: constexpr, BN: constexpr):
    b, m, n = xetile.program_id(2), xetile.program_id(0) * BM, xetile.program_id(1) * BN
    up, gate = xetile.zeros((BM, BN), xetile.f32), xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[2], 32):
        a = xetile.load_tile(xetile.init_tile(A[b], [m, k], (BM, 32)))
        x = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        up = xetile.tile_mma(a, x, up)
    for k in range(0, A.shape[2], 32):
        a = xetile.load_tile(xetile.init_tile(A[b], [m, k], (BM, 32)))
        x = xetile.load_tile(xetile.init_tile(D, [k, n], (32, BN)))
        gate = xetile.tile_mma(a, x, gate)
    out = up * xetile.maximum(gate, 0)
    xetile.store_tile(out, xetile.init_tile(C[b], [m, n], (BM, BN)))


@pytest.mark.parametrize("tile", [(64, 64), (16, 48), (3, 128)])
def test_products_that_belong_together_grow_together(tile: Any, target: str) -> None:
    (rows, columns), rng = tile, np.random.default_rng(5)
    given = [small_integers(rng, *s) for s in ((3, 130, 70), (70, 300), (70, 300))]
    given.append(np.full((3, 130, 300), 7, np.float32))
    grid, constants = (-(-130 // rows), -(-300 // columns), 3), {"BM": rows}
    agree(gated, grid, *given, BN=columns, **constants)
    report = str(gated.explain(*given, BN=columns, **constants))
    assert "programs run as one" in report


@xetile.kernel
def batched(A, B, C, BM: constexpr, BN: constexpr):
    b, m, n = xetile.program_id(2), xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[2], 32):
        x = xetile.load_tile(xetile.init_tile(A[b], [m, k], (BM, 32)))
        y = xetile.load_tile(xetile.init_tile(B[b], [k, n], (32, BN)))
        acc = xetile.tile_mma(x, y, acc)
    xetile.store_tile(acc, xetile.init_tile(C[b], [m, n], (BM, BN)))


def test_matrices_of_a_batch_are_stored_from_registers(target: str) -> None:
    rng = np.random.default_rng(6)
    given = [small_integers(rng, *s) for s in ((3, 130, 70), (3, 70, 300))]
    given.append(np.full((3, 130, 300), 7, np.float32))
    agree(batched, (3, 5, 3), *given, BM=64, BN=64)
    assert "stored from registers" in str(batched.explain(*given, BM=64, BN=64))


def clipped(A, B, C, BM: constexpr = 8):
    acc = xetile.zeros((BM, BM), xetile.f32)
    for k in range(A.shape[1]):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (BM, 1)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (1, BM)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (BM, BM)))


@pytest.mark.parametrize("size", [16 << 10, 256 << 10, 1 << 20])
def test_rows_that_a_program_copies_fit(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a second cache of 256 KB a program packs more of k than is done at once."""
    machine = replace(host_machine(), l2=replace(host_machine().l2, size=size))
    target = replace(find_target("host"), machine=machine)
    monkeypatch.setattr(targets, "_host_target", lambda: target)
    rng, rows = np.random.default_rng(3), 7  # of A: fewer than C has, so it is copied
    a, b = (small_integers(rng, *s) for s in ((rows, 1024), (1024, 8)))
    c = np.zeros((8, 8), np.float32)
    config.cache = False
    try:
        xetile.kernel(clipped)[1](a, b, c, backend="cpu")
    finally:
        del config.cache
    assert np.array_equal(c[:rows], a @ b)


WAY = 4096
"""Bytes of a way of L1 on all machines that are described."""


@pytest.mark.parametrize("k", [1024, 1000, 2500])
@pytest.mark.parametrize("ways", [1, 2, 3])
def test_rows_of_a_that_share_sets(target: str, ways: int, k: int) -> None:
    """They are copied; what is around A must not be read."""
    rng = np.random.default_rng(7)
    step = max(ways, -(-4 * k // WAY)) * WAY // 4
    around = np.full((259, step), np.nan, np.float32)
    around[:257, :k] = small_integers(rng, 257, k)
    b = small_integers(rng, k, 330)
    c = np.full((257, 330), 7, np.float32)
    gemm[5, 6](around[:257, :k], b, c, BM=64, BN=64)
    assert np.array_equal(c, around[:257, :k] @ b)


@pytest.mark.parametrize(("on", "copies"), [("avx2", True), ("avx512", False)])
def test_whose_rows_leave_no_room_in_the_first_cache(on: str, copies: bool) -> None:
    """Of 8 ways strips of six rows take six; of 12 enough are left."""
    given = [np.zeros((512, 512), np.float32) for _ in range(3)]
    text = gemm.ir("xsmm", *given, target=on, BM=64, BN=64)
    assert ("arith.remui" in text) == ('operand = "a"' in text) == copies


def test_rows_of_a_batch_that_share_sets() -> None:
    """They are copied by each program."""
    rng = np.random.default_rng(7)
    a, b = (small_integers(rng, 3 * 1024, n) for n in (300, 330))
    a, b = a.reshape(3, 300, 1024), b.reshape(3, 1024, 330)
    assert np.array_equal(ops.matmul(a, b), a @ b)
