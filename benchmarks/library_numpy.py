"""What is measured, in NumPy."""

import numpy as np
from harness import Job
from operands import extents, flops, normal_matrices, on_a_line


def gemm(dtype: str, shape: str) -> Job | None:
    """NumPy multiplies 16-bit matrices without BLAS: no peer."""
    if dtype != "f32":
        return None
    A, B = normal_matrices(dtype, shape)
    m, _, n = extents(shape)
    C = on_a_line(np.empty((m, n), np.float32))
    calls = [lambda: np.matmul(A, B, out=C)]
    if m == 1:
        a, c = A[0], C[0]
        calls += [lambda: np.dot(a, B, out=c), lambda: np.dot(B.T, a, out=c)]
    return Job(calls, flops(shape))
