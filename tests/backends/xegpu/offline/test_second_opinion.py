"""MLIR's lowering of our XeGPU and ours give the same numbers, and NumPy's."""

import ml_dtypes
import numpy as np
import pytest

from tests import example_kernels as family
from tests.example_kernels import Scalar
from xetl import xetile
from xetl.xetile import constexpr, f32

pytest.importorskip("dpctl", reason="dpctl is not installed: pip install dpctl")

from tests.backends.xegpu.offline.upstream import MLIR_OPT, upstream_result

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None, reason="mlir-opt-22 is not installed (apt install mlir-22-tools)"
)

DTYPES = [np.float16, ml_dtypes.bfloat16]


def both(kernel, grid, args, constants=()):
    """What the arrays hold after MLIR's code has run, and after ours."""
    theirs = upstream_result(kernel, args, constants, grid)
    arrays = [a.copy() if isinstance(a, np.ndarray) else a.value for a in args]
    xetile.kernel(kernel)[grid](*arrays, *constants, backend="xegpu")
    return theirs, [each for each in arrays if isinstance(each, np.ndarray)]


def whole(rng, *shape, dtype=np.float32):
    """Small integers: sums are exact in any order."""
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 80, 64), (33, 48, 96)])
def test_products(dtype, m, n, k):
    rng = np.random.default_rng(m)
    a, b, c = (
        whole(rng, m, k, dtype=dtype),
        whole(rng, k, n, dtype=dtype),
        whole(rng, m, n),
    )
    grid = (-(-m // 16), -(-n // 16))
    theirs, ours = both(family.gemm, grid, [a, b, c], (16, 16, 16))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(theirs[2], wanted)
    assert np.array_equal(ours[2], wanted)


def relu_product(A, B, C, BM: constexpr = 16, BN: constexpr = 32, BK: constexpr = 16):
    """With a prefetch, and an epilogue on the result."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    acc = xetile.maximum(acc * 0.5 + 1.0, 0.0)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_with_an_epilogue(dtype):
    rng = np.random.default_rng(1)
    a, b = whole(rng, 48, 64, dtype=dtype), whole(rng, 64, 96, dtype=dtype)
    theirs, ours = both(relu_product, (3, 3), [a, b, np.zeros((48, 96), np.float32)])
    product = a.astype(np.float64) @ b.astype(np.float64)
    wanted = np.maximum(product * 0.5 + 1, 0)
    assert np.array_equal(theirs[2], wanted)
    assert np.array_equal(ours[2], wanted)


def test_a_softmax_with_sums_across_lanes():
    x = np.random.default_rng(2).standard_normal((64, 80)).astype(np.float32)
    theirs, ours = both(family.online_softmax, (16,), [x, np.zeros_like(x)])
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    wanted = wide / wide.sum(1, keepdims=True)
    for found in (theirs[1], ours[1]):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-9)


def test_arithmetic_on_ragged_edges():
    rng = np.random.default_rng(3)
    x, y, out = (rng.standard_normal((50, 68)).astype(np.float32) for _ in range(3))
    args = [x, y, out, Scalar(0.25, "f64")]
    theirs, ours = both(family.elementwise, (7, 3), args)
    assert not np.array_equal(theirs[2], out)
    np.testing.assert_allclose(theirs[2], ours[2], rtol=1e-6)


@pytest.mark.slow
def test_loops_in_loops_and_rows_in_order():
    rng = np.random.default_rng(4)
    x, out = whole(rng, 64, 64), whole(rng, 64, 64)
    theirs, ours = both(family.nested_loops, (1,), [x, out])
    assert np.array_equal(theirs[1], ours[1])
    assert not np.array_equal(ours[1], out)
    theirs, ours = both(family.in_place_scan, (1,), [x])
    assert np.array_equal(theirs[0], ours[0])


def centered(X, OUT, BM: constexpr = 8, N: constexpr = 64):
    row = xetile.program_id(0) * BM
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (BM, N)))
    out = xetile.init_tile(OUT, [row, 0], (BM, N))
    xetile.store_tile(x - x.sum(1, keepdims=True), out)


def test_sums_of_rows():
    x = whole(np.random.default_rng(5), 64, 64)
    theirs, ours = both(centered, (8,), [x, np.zeros_like(x)])
    wanted = x - x.sum(1, keepdims=True)
    assert np.array_equal(theirs[1], wanted)
    assert np.array_equal(ours[1], wanted)


def turned(X, OUT, BM: constexpr = 16, BN: constexpr = 16):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    x = xetile.load_tile(xetile.init_tile(X.T, [m, n], (BM, BN)))
    xetile.store_tile(x, xetile.init_tile(OUT, [m, n], (BM, BN)))


def test_a_load_that_transposes():
    x = whole(np.random.default_rng(6), 64, 48)
    theirs, ours = both(turned, (3, 4), [x, np.zeros((48, 64), np.float32)])
    assert np.array_equal(theirs[1], x.T)
    assert np.array_equal(ours[1], x.T)


def functions(X, OUT, BM: constexpr = 8, N: constexpr = 32):
    row = xetile.program_id(0) * BM
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (BM, N))).to(f32)
    y = xetile.sqrt(xetile.exp(x) + 1.0) * xetile.tanh(x)
    xetile.store_tile(y.to(OUT.dtype), xetile.init_tile(OUT, [row, 0], (BM, N)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_functions_and_casts(dtype):
    x = np.random.default_rng(7).standard_normal((64, 32)).astype(dtype)
    theirs, ours = both(functions, (8,), [x, np.zeros_like(x)])
    wide = x.astype(np.float64)
    wanted = np.sqrt(np.exp(wide) + 1) * np.tanh(wide)
    close = 8 * np.finfo(dtype).eps
    for found in (theirs[1], ours[1]):
        np.testing.assert_allclose(found, wanted, rtol=close, atol=close)
