"""The arrays that all libraries get."""

import numpy as np


def integer_matrices(n: int) -> list[np.ndarray]:
    """Two n x n matrices of small integers: their products are exact in f32."""
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2)]


def normal_rows(rows: int, columns: int) -> np.ndarray:
    """A matrix of f32 numbers around 0."""
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)
