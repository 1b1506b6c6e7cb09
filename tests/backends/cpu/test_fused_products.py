"""What AMX micro-kernels compute of their sums, by the emulator of tests/native."""

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32, i32

BF16 = ml_dtypes.bfloat16
FUSED = "the result is computed further, and stored from registers"

pytestmark = pytest.mark.usefixtures("amx_target")


def over_c(a):
    return cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)


@xetile.function
def product(A, B, m, n, BM, BN, dtype):
    acc = xetile.zeros((BM, BN), dtype)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    return acc


@xetile.kernel(grid=over_c)
def layer(A, B, Bias, Scale, C, BM: constexpr, BN: constexpr):
    """Numbers of a column and of a row, and a function of a value used twice."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = product(A, B, m, n, BM, BN, f32)
    acc += xetile.load_tile(xetile.init_tile(Bias, [n], (BN,)))
    acc = acc * xetile.load_tile(xetile.init_tile(Scale, [m, 0], (BM, 1)))
    acc = acc * xetile.sigmoid(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def operands(m, n, k):
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-2, 3, shape).astype(BF16) for shape in ((m, k), (k, n)))
    return a, b, rng


SHAPES = [(64, 64, 64), (100, 77, 33), (33, 130, 1100), (300, 40, 70), (1, 200, 96)]


@pytest.mark.parametrize("tile", [(64, 64), (32, 128), (16, 16), (512, 32)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [BF16, np.float32])
def test_a_layer(amx, shape, tile, dtype):
    m, n, k = shape
    a, b, rng = operands(m, n, k)
    bias = rng.standard_normal(n).astype(np.float32)
    scale = rng.standard_normal((m, 1)).astype(np.float32) / 8
    around = np.full((m + 2, n + 2), 7, dtype)
    c = around[1:-1, 1:-1]
    sizes = {"BM": tile[0], "BN": tile[1]}
    with amx.counting():
        layer(a, b, bias, scale, c, **sizes)
    x = (a.astype("f8") @ b.astype("f8") + bias) * scale
    close = (
        {"rtol": 1e-2, "atol": 1e-2} if dtype is BF16 else {"rtol": 1e-5, "atol": 1e-5}
    )
    np.testing.assert_allclose(c.astype("f8"), x / (1 + np.exp(-x)), **close)
    around[1:-1, 1:-1] = 7
    assert (around == 7).all()
    assert amx.errors() == []
    if tile[0] > 16:  # fewer rows have plans of their own
        assert FUSED in str(layer.explain(a, b, bias, scale, c, **sizes))


@xetile.kernel(grid=over_c)
def added(A, B, C, D, BM: constexpr, BN: constexpr):
    """C is updated in place; the last strips of C overlap those before."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    here = xetile.init_tile(C, [m, n], (BM, BN))
    other = xetile.load_tile(xetile.init_tile(D, [m, n], (BM, BN)))
    acc = product(A, B, m, n, BM, BN, f32)
    xetile.store_tile(xetile.load_tile(here) * 0.5 + acc * 2 - other, here)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("moved", [None, 1])
def test_an_update(amx, shape, moved):
    """Also if another operand is the matrix that is written, at other places."""
    m, n, k = shape
    a, b, rng = operands(m, n, k)
    c = rng.integers(-9, 9, (m, n)).astype(np.float32)
    d = c[::-1].copy() if moved is None else c.copy()
    right = c * 0.5 + 2 * (a.astype("f8") @ b.astype("f8")) - d
    with amx.counting():
        added(a, b, c, d, BM=64, BN=64)
    assert np.array_equal(c, right)
    assert amx.errors() == []


@xetile.kernel(grid=1)
def turned(A, B, C):
    """The tile that is added is the one that is stored, turned over."""
    old = xetile.load_tile(xetile.init_tile(C, [0, 0], (64, 64)))
    acc = product(A, B, 0, 0, 64, 64, f32)
    xetile.store_tile(acc + old.T, xetile.init_tile(C, [0, 0], (64, 64)))


def test_an_operand_that_is_overwritten(amx):
    a, b, rng = operands(64, 64, 64)
    c = rng.integers(-9, 9, (64, 64)).astype(np.float32)
    right = a.astype("f8") @ b.astype("f8") + c.T
    with amx.counting():
        turned(a, b, c)
    assert np.array_equal(c, right)


@xetile.kernel(grid=over_c)
def scaled(A, B, Rows, Columns, C, BM: constexpr, BN: constexpr):
    """Bytes: sums of integers become floats."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = product(A, B, m, n, BM, BN, i32).to(f32)
    acc = acc * xetile.load_tile(xetile.init_tile(Rows, [m, 0], (BM, 1)))
    acc = acc * xetile.load_tile(xetile.init_tile(Columns, [n], (BN,)))
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes(amx, shape):
    m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    b = rng.integers(-128, 128, (k, n)).astype(np.int8)
    rows = rng.random((m, 1), np.float32)
    columns = rng.random(n, np.float32)
    c = np.zeros((m, n), np.float32)
    with amx.counting():
        scaled(a, b, rows, columns, c, BM=64, BN=64)
    right = (a.astype("f8") @ b.astype("f8")) * rows * columns
    np.testing.assert_allclose(c, right, rtol=1e-6, atol=1e-3)


@xetile.kernel(grid=over_c)
def gated(A, B, G, C, BM: constexpr, BN: constexpr):
    """Only one of two products can be stored from registers."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    up, gate = product(A, B, m, n, BM, BN, f32), product(A, G, m, n, BM, BN, f32)
    out = up * xetile.sigmoid(gate) + gate
    xetile.store_tile(out.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel(grid=over_c)
def kept(A, B, C, Sums, BM: constexpr, BN: constexpr):
    """Another reader, and a branch."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    out = product(A, B, m, n, BM, BN, f32) * 2
    row = xetile.init_tile(Sums, [m, xetile.program_id(1)], (BM, 1))
    xetile.store_tile(out.sum(1, keepdims=True), row)
    if m > 0:
        xetile.store_tile(out + 1, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("shape", SHAPES)
def test_other_readers(amx, shape):
    m, n, k = shape
    a, b, rng = operands(m, n, k)
    g = (rng.integers(-2, 3, (k, n)) / 16).astype(BF16)
    c, sums = np.zeros((m, n), np.float32), np.zeros((m, cdiv(n, 64)), np.float32)
    with amx.counting():
        gated(a, b, g, c, BM=64, BN=64)
    x, y = (a.astype("f8") @ each.astype("f8") for each in (b, g))
    np.testing.assert_allclose(c, x / (1 + np.exp(-y)) + y, rtol=1e-5, atol=1e-4)
    c[:] = 0
    with amx.counting():
        kept(a, b, c, sums, BM=64, BN=64)
    assert np.array_equal(sums.sum(1), 2 * x.sum(1))
    assert np.array_equal(c[64:], 2 * x[64:] + 1)
    assert not c[:64].any()
