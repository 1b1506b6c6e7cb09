"""What is measured, in xetl; results are checked once before they are timed."""

import ml_dtypes
import numpy as np
from harness import Job
from kernels import gemm as gemm_kernel
from kernels import softmax as softmax_kernel
from operands import integer_matrices, normal_rows

DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def gemm(dtype: str, n: int) -> Job:
    """The kernel of the language page."""
    exact = integer_matrices(n)
    A, B = (x.astype(DTYPES[dtype]) for x in exact)
    C = np.empty_like(A)
    gemm_kernel(A, B, C)
    assert np.array_equal(C, (exact[0] @ exact[1]).astype(DTYPES[dtype]))
    return Job([lambda: gemm_kernel(A, B, C)], 2e-9 * n**3)


def softmax(rows: int, columns: int) -> Job:
    """The kernel of the tutorial."""
    x = normal_rows(rows, columns)
    y = np.empty_like(x)
    softmax_kernel(x, y, WIDTH=columns)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    return Job([lambda: softmax_kernel(x, y, WIDTH=columns)], 2e-9 * x.nbytes)
