"""What is measured, in NumPy."""

import numpy as np
from harness import Job
from operands import extents, flops, integer_matrices, normal_rows


def gemm(dtype: str, shape: str) -> Job | None:
    """NumPy multiplies 16-bit matrices without BLAS: no peer."""
    if dtype != "f32":
        return None
    A, B = integer_matrices(shape)
    m, _, n = extents(shape)
    C = np.empty((m, n), np.float32)
    calls = [lambda: np.matmul(A, B, out=C)]
    if m == 1:
        a, c = A[0], C[0]
        calls += [lambda: np.dot(a, B, out=c), lambda: np.dot(B.T, a, out=c)]
    return Job(calls, flops(shape))


def softmax(rows: int, columns: int) -> Job:
    """As few passes as NumPy can do it in, and no large array made anew."""
    x = normal_rows(rows, columns)
    y = np.empty_like(x)

    def call() -> None:
        np.subtract(x, x.max(1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(1, keepdims=True), out=y)

    return Job([call], 2e-9 * x.nbytes)
