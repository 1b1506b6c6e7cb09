"""Loops that test their end at the end give what they gave, and for nothing nothing."""

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.analysis.ranges import Range, Ranges
from xetl.dialects.upstream import arith
from xetl.xetile import cdiv, constexpr, f32

pytest.importorskip("dpctl", reason="dpctl is not installed: pip install dpctl")

BF16 = ml_dtypes.bfloat16
TYPES = "bf16[M,K] bf16[K,N] f32[M,N]"


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 16), cdiv(m.C.shape[1], 16)))
def by_columns(A, B, C):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    a = xetile.init_tile(A, [m, 0], (16, 32))
    b = xetile.init_tile(B, [0, n], (32, 16))
    acc = xetile.zeros((16, 16), f32)
    for _ in range(0, A.shape[1], 32):
        acc += xetile.load_tile(a) @ xetile.load_tile(b)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (16, 16)))


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 16), cdiv(m.C.shape[1], 16)))
def by_steps(A, B, C, BK: constexpr = 32):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    acc = xetile.zeros((16, 16), f32)
    for i in range(cdiv(A.shape[1], BK)):
        a = xetile.load_tile(xetile.init_tile(A, [m, i * BK], (16, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [i * BK, n], (BK, 16)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (16, 16)))


@pytest.mark.parametrize("kernel", [by_columns, by_steps])
@pytest.mark.parametrize("k", [0, 1, 31, 32, 64, 96, 100])
def test_products_of_any_depth(kernel, k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-4, 5, s).astype(BF16) for s in ((64, k), (k, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, b, c, backend="xegpu")
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("kernel", [by_columns, by_steps])
def test_only_the_kernel_that_moves_blocks_tests_at_the_end(kernel) -> None:
    text = kernel.ir("rotate-loops", TYPES, backend="xegpu", target="pvc")
    blocks, lanes = text.split("simt.func @")[1:]
    assert "scf.while" in blocks
    assert "scf.for" not in blocks
    assert "scf.for" in lanes
    assert "scf.while" not in lanes


def test_an_empty_array_is_moved_by_lanes(capfd, monkeypatch) -> None:
    monkeypatch.setenv("XETL_LOG", "1")
    # Of another size than above: a launch like an earlier one says nothing.
    a, b = np.zeros((48, 0), BF16), np.zeros((0, 48), BF16)
    by_columns(a, b, np.zeros((48, 48), np.float32), backend="xegpu")
    assert "argument 0: it is empty" in capfd.readouterr().err


def test_a_range_that_an_index_cannot_hold_is_not_known() -> None:
    ranges = Ranges(subgroups=1)
    one = arith.ConstantOp.index(1)
    size = arith.AddiOp(one, one).result
    ranges.say(size, Range(1, 1 << 40))
    square = arith.MuliOp(size, size).result
    half = arith.FloordivsiOp(size, arith.ConstantOp.index(2)).result
    assert ranges.of(half) == Range(0, 1 << 39)
    assert ranges.of(square) is None
    assert ranges.of(arith.FloordivsiOp(square, size).result) is None
