"""Right kernels pass all checks, and give what the CPU gives."""

import numpy as np
import pytest

from tests import example_kernels as family
from xetl import xetile
from xetl.errors import CheckError

M, N, K = 37, 45, 29
rng = np.random.default_rng(3)


def f32(*shape):
    """Small integers: sums are exact in any order."""
    return rng.integers(-4, 5, shape).astype(np.float32)


def f64(values):
    return values.astype(np.float64)


def i32(*shape):
    return rng.integers(-9, 9, shape).astype(np.int32)


def i8(*shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def cdiv(a, b):
    return -(-a // b)


CASES = [
    (family.gemm, (2, 3), [f32(M, K), f32(K, N), f32(M, N)]),
    (family.gemm_bias_relu, (3, 2), [f32(M, K), f32(K, N), f32(N), f32(M, N)]),
    (family.gemm_transposed, (3, 3), [f32(K, M), f32(N, K), f32(M, N)]),
    (family.batched, (3, 3, 2), [f32(2, M, K), f32(2, K, N), f32(2, M, N)]),
    (family.elementwise, (5, 2), [f32(M, N), f32(M, N), f32(M, N), 0.3]),
    (family.softmax, cdiv(M, 4), [f32(M, N), f32(M, N)]),
    (family.column_sums, 2, [f32(M, N), f32(1, N)]),
    (family.transpose, (5, 2), [f32(M, N), f32(N, M)]),
    (family.integers, 2, [i32(N), i32(N), i32(N)]),
    (family.gather_rows, 3, [f32(20), i32(N), f32(N)]),
    (family.loop_and_branch, M, [f32(M, N), f32(M, N), 4]),
    (family.layer_norm, M, [f32(M, 40), f32(40), f32(40), f32(M, 40), 1e-5]),
    (family.attention, 3, [f32(M, 24), f32(N, 24), f32(N, 24), f32(M, 24), 0.2]),
    (family.in_place_scan, 1, [f32(M, 16)]),
    (family.integer_gemm, (3, 3), [i8(M, K), i8(K, N), i32(M, N)]),
    (family.double_gemm, (3, 3), [*map(f64, (f32(M, K), f32(K, N), f32(M, N)))]),
    (family.weight_gradient, (2, 2), [f32(K, M), f32(K, N), f32(M, N)]),
    (family.mma_of_values, (5, 3), [f32(M, K), f32(N, K), f32(M, N)]),
    (family.online_softmax, cdiv(M, 4), [f32(M, N), f32(M, N)]),
    (
        family.log_softmax_backward,
        M,
        [f32(M, 10), i32(M).astype(np.int64) % 10, f32(M, 1), f32(M, 10)],
    ),
    (family.reduction, (1, 3), [i32(24, N), i32(1, N), "add", 0, (1, 20)]),
    (family.reduction, (2, 1), [i32(M, 20), i32(M, 1), "max", 1, (24, 1)]),
    (family.arg_extremum, 5, [f32(M, N), i32(M)]),
    (family.outer_product, (5, 2), [f32(M), f32(N), f32(M, N)]),
    (family.reshaped, 1, [f32(M, N), f32(96)]),
    (family.nested_loops, 1, [f32(M, N), f32(M, N)]),
    (family.swapped_tiles, (5, 3), [f32(M, N), f32(M, N), f32(M, N), 3]),
    (family.shared_memory, (5, 3), [f32(M, N), f32(N, M)]),
]


def fresh(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.parametrize(("function", "grid", "args"), CASES)
def test_nothing_is_found(function, grid, args):
    kernel = xetile.kernel(function)
    checked, plain, compiled = fresh(args), fresh(args), fresh(args)
    kernel.interpret(*checked, grid=grid)
    kernel.interpret(*plain, grid=grid, check="")
    kernel[grid](*compiled, backend="cpu")
    for one, other, third in zip(checked, plain, compiled):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(one, third, 2e-5, 2e-5)


def test_a_kernel_that_two_programs_write_is_found():
    """`reduction` of a matrix of more rows than a tile: the same row twice."""
    kernel = xetile.kernel(family.reduction)
    args = i32(M, N), i32(1, N), "add", 0, (1, 20)
    with pytest.raises(CheckError) as found:
        kernel.interpret(*args, grid=(2, 3))
    assert found.value.programs == ((0, 0, 0), (1, 0, 0))
