"""After each pass of the CPU pipeline a kernel does what it did before."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xsmm_meaning import meanings

from tests.example_kernels import (
    ALL_REDUCTIONS,
    Scalar,
    arg_extremum,
    attention,
    batched,
    column_sums,
    double_gemm,
    elementwise,
    gather_rows,
    gemm,
    gemm_bias_relu,
    gemm_transposed,
    in_place_scan,
    integer_gemm,
    integers,
    layer_norm,
    log_softmax_backward,
    loop_and_branch,
    mma_of_values,
    nested_loops,
    online_softmax,
    outer_product,
    reduction,
    reshaped,
    runtime_values,
    shared_memory,
    signature_of,
    softmax,
    swapped_tiles,
    transpose,
    weight_gradient,
)
from tests.run_module import run_module
from xetl.backend import find_backend
from xetl.compiler import build
from xetl.pipeline import lower

TARGETS = ["avx2", "avx512_bf16"]
sizes = st.integers(1, 70)
small = st.integers(1, 40)
seeds = st.integers(0, 999)
few = settings(max_examples=5)


def check(kernel, grid, args, target="avx512_bf16", tolerance=0.0):
    """Every stage leaves in the arrays what the first one leaves."""
    extra = meanings()
    wanted = None
    backend = find_backend("cpu")
    module = build(kernel, signature_of(kernel, args), backend, target)
    for step in lower(module, backend, target):
        values = runtime_values(args)
        run_module(step.module, grid, values, extra)
        wanted = wanted or values
        for found, first in zip(values, wanted):
            if isinstance(found, np.ndarray):
                same(found, first, tolerance, step.name)


def same(found, wanted, tolerance, name):
    left, right = found.astype(np.float64), wanted.astype(np.float64)
    message = f"after {name}"
    np.testing.assert_allclose(left, right, tolerance, tolerance, err_msg=message)


def cdiv(a, b):
    return -(-a // b)


def whole(rng, shape, dtype=np.float32):
    """Small integers: sums are exact in any order."""
    return rng.integers(-4, 5, shape).astype(dtype)


@few
@given(m=sizes, n=sizes, k=sizes, seed=seeds)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_gemm(target, dtype, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = whole(rng, (m, k), dtype), whole(rng, (k, n), dtype)
    if seed % 3 == 1:
        b = np.asfortranarray(b)
    c = whole(rng, (m, n))
    check(gemm, (cdiv(m, 32), cdiv(n, 16)), [a, b, c], target)


@few
@given(m=sizes, n=sizes, k=sizes, seed=seeds)
@pytest.mark.parametrize("target", TARGETS)
def test_gemm_with_epilogue(target, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b, bias = whole(rng, (m, k)), whole(rng, (k, n)), whole(rng, n)
    c = whole(rng, (m, n))
    grid = cdiv(m, 16), cdiv(n, 32)
    check(gemm_bias_relu, grid, [a, b, bias, c], target)


@few
@given(m=small, n=small, k=small, seed=seeds)
def test_gemm_transposed(m, n, k, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (k, m)), whole(rng, (n, k)), whole(rng, (m, n))]
    check(gemm_transposed, (cdiv(m, 16), cdiv(n, 16)), args)


@few
@given(m=small, n=small, k=small, seed=seeds)
def test_batched_gemm(m, n, k, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (2, m, k)), whole(rng, (2, k, n)), whole(rng, (2, m, n))]
    check(batched, (cdiv(m, 16), cdiv(n, 16), 2), args)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@few
@given(m=sizes, n=sizes, seed=seeds)
def test_elementwise(dtype, m, n, seed):
    rng = np.random.default_rng(seed)
    args = [rng.standard_normal((m, n)).astype(dtype) for _ in range(3)]
    args.append(Scalar(0.3, "f64"))
    check(elementwise, (cdiv(m, 8), cdiv(n, 32)), args)


@few
@given(m=sizes, n=sizes, seed=seeds)
def test_softmax(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [rng.standard_normal((m, n)).astype(np.float32) for _ in range(2)]
    check(softmax, (cdiv(m, 4),), args, tolerance=2e-6)


@few
@given(m=sizes, n=sizes, seed=seeds)
def test_column_sums(m, n, seed):
    rng = np.random.default_rng(seed)
    check(column_sums, (cdiv(n, 24),), [whole(rng, (m, n)), whole(rng, (1, n))])


@few
@given(m=sizes, n=sizes, seed=seeds)
def test_transpose(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, n)), whole(rng, (n, m))]
    check(transpose, (cdiv(m, 8), cdiv(n, 24)), args)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int16])
@few
@given(n=sizes, seed=seeds)
def test_integers(dtype, n, seed):
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    args = [
        rng.integers(info.min, info.max, n, dtype, endpoint=True),
        rng.integers(max(info.min, -9), 9, n).astype(dtype),
        np.zeros(n, dtype),
    ]
    check(integers, (cdiv(n, 33),), args)


@few
@given(n=sizes, size=sizes, seed=seeds)
def test_gather_and_scatter(n, size, seed):
    rng = np.random.default_rng(seed)
    index = rng.integers(-3, size + 3, n).astype(np.int32)
    args = [whole(rng, size), index, whole(rng, n)]
    check(gather_rows, (cdiv(n, 20),), args)


@few
@given(m=st.integers(1, 9), n=small, count=st.integers(0, 5), seed=seeds)
def test_loop_and_branch(m, n, count, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, n)), whole(rng, (m, n)), Scalar(count, "i64")]
    check(loop_and_branch, (m,), args)


@few
@given(m=st.integers(1, 9), n=st.integers(2, 40), seed=seeds)
def test_layer_norm(m, n, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((m, n)).astype(np.float32) for _ in range(2))
    w, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    args = [x, w, b, y, Scalar(1e-5, "f64")]
    check(layer_norm, (m,), args, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@few
@given(m=small, n=small, seed=seeds)
def test_attention(dtype, m, n, seed):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((r, 24)).astype(dtype) for r in (m, n, n))
    args = [q, k, v, np.zeros((m, 24), np.float32), Scalar(0.2, "f64")]
    # bf16 values of p may round to a neighbour when a sum differs in its last bit.
    tolerance = 2e-5 if dtype == np.float32 else 1e-2
    check(attention, (cdiv(m, 16),), args, tolerance=tolerance)


@few
@given(m=small, n=st.integers(1, 16), seed=seeds)
def test_stores_that_loads_see(m, n, seed):
    rng = np.random.default_rng(seed)
    check(in_place_scan, (1,), [whole(rng, (m, n))])


@few
@given(m=small, n=small, k=small, seed=seeds)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integer_gemm(dtype, m, n, k, seed):
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, s, dtype) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.int32)
    check(integer_gemm, (cdiv(m, 16), cdiv(n, 16)), [a, b, c])


@few
@given(m=small, n=small, k=small, seed=seeds)
def test_double_gemm(m, n, k, seed):
    rng = np.random.default_rng(seed)
    shapes = (m, k), (k, n), (m, n)
    args = [whole(rng, shape, np.float64) for shape in shapes]
    check(double_gemm, (cdiv(m, 16), cdiv(n, 16)), args)


@few
@given(m=small, n=small, k=small, seed=seeds)
def test_weight_gradient(m, n, k, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (k, m)), whole(rng, (k, n)), whole(rng, (m, n))]
    check(weight_gradient, (cdiv(m, 32), cdiv(n, 32)), args)


@few
@given(m=small, n=small, k=small, seed=seeds)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_products_of_values(dtype, m, n, k, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, k), dtype), whole(rng, (n, k), dtype), whole(rng, (m, n))]
    check(mma_of_values, (cdiv(m, 8), cdiv(n, 16)), args)


@few
@given(m=st.integers(1, 12), n=sizes, seed=seeds)
def test_online_softmax(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [rng.standard_normal((m, n)).astype(np.float32) for _ in range(2)]
    check(online_softmax, (cdiv(m, 4),), args, tolerance=2e-6)


@few
@given(m=st.integers(1, 12), n=st.integers(1, 10), seed=seeds)
def test_log_softmax_backward(m, n, seed):
    rng = np.random.default_rng(seed)
    logits, grad = (rng.standard_normal((m, n)).astype(np.float32) for _ in range(2))
    labels = rng.integers(0, n, m).astype(np.int64)
    args = [logits, labels, np.zeros((m, 1), np.float32), grad]
    check(log_softmax_backward, (m,), args, tolerance=2e-6)


@few
@given(m=small, n=small, seed=seeds)
@pytest.mark.parametrize("kind", ALL_REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions(dim, kind, m, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (m, n)).astype(np.int32)
    out = np.zeros((1, n) if dim == 0 else (m, 1), np.int32)
    shape = (1, 20) if dim == 0 else (24, 1)
    args = [x, out, kind, dim, shape]
    check(reduction, (cdiv(m, 24), cdiv(n, 20)), args)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@few
@given(m=small, n=small, seed=seeds)
def test_arg_extremum(dtype, m, n, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, n), dtype), np.zeros(m, np.int32)]
    check(arg_extremum, (cdiv(m, 8),), args)


@few
@given(m=small, n=small, seed=seeds)
def test_outer_product(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, m), whole(rng, n), whole(rng, (m, n))]
    check(outer_product, (cdiv(m, 8), cdiv(n, 24)), args)


@few
@given(m=small, n=small, seed=seeds)
def test_reshaped(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, n)), np.zeros(96, np.float32)]
    check(reshaped, (1,), args)


@few
@given(m=small, n=small, seed=seeds)
def test_nested_loops(m, n, seed):
    rng = np.random.default_rng(seed)
    check(nested_loops, (1,), [whole(rng, (m, n)), whole(rng, (m, n))])


@few
@given(m=small, n=small, steps=st.integers(0, 5), seed=seeds)
def test_tiles_that_swap_places(m, n, steps, seed):
    rng = np.random.default_rng(seed)
    x, y = whole(rng, (m, n)), whole(rng, (m, n))
    args = [x, y, whole(rng, (m, n)), Scalar(steps, "i64")]
    check(swapped_tiles, (cdiv(m, 8), cdiv(n, 16)), args)


@few
@given(m=small, n=small, seed=seeds)
def test_shared_memory(m, n, seed):
    rng = np.random.default_rng(seed)
    args = [whole(rng, (m, n)), whole(rng, (n, m))]
    check(shared_memory, (cdiv(m, 8), cdiv(n, 16)), args)
