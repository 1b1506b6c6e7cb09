"""The functions of `bench_elements.py`: what one writes for numba, by elements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from harness import Job

from xetl import xetile

SIDE = 256


def five_points(A, B, n):
    """A step of Jacobi's method."""
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def choice(A, B, n):
    """A store for each answer of a test."""
    for i in range(n):
        for j in range(n):
            if A[i, j] > 0.5:
                B[i, j] = A[i, j]
            else:
                B[i, j] = -A[i, j]


def down(A, B, n):
    """Running sums of columns."""
    for i in range(1, n):
        for j in range(n):
            B[i, j] = B[i - 1, j] + A[i, j]


def paths(A, B, n):
    """Shortest paths by Floyd and Warshall, a quarter of the nodes on the way."""
    for k in range(n // 4):
        for i in range(n):
            for j in range(n):
                B[i, j] = min(B[i, j], B[i, k] + B[k, j])


def product(A, B, n):
    """A product of matrices, the sum in the innermost loop; a quarter of the rows."""
    for i in range(n // 4):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += A[i, k] * A[k, j]
            B[i, j] = total


def windows(A, B, n):
    """Each element of 5 x 5 by its own factor."""
    for i in range(n - 4):
        for j in range(n - 4):
            total = 0.0
            for a in range(5):
                for b in range(5):
                    total += A[i + a, j + b] * A[a, b]
            B[i, j] = total


def count(A, B, n):
    """How many elements of each row are large, and the largest."""
    for i in range(n):
        found, largest = 0, A[i, 0]
        for j in range(n):
            if A[i, j] > 0.5:
                found += 1
            largest = max(largest, A[i, j])
        B[i, 0] = found + largest


def pooled(A, B, n):
    """Sums of pairs of neighbours."""
    for i in range(n):
        for j in range(n // 2):
            B[i, j] = A[i, 2 * j] + A[i, 2 * j + 1]


def distances(A, B, n):
    """Squared distances of all pairs of points in 8 dimensions."""
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(8):
                t = A[i, k] - A[j, k]
                total += t * t
            B[i, j] = total


def turned(A, B, n):
    """A transposed matrix."""
    for i in range(n):
        for j in range(n):
            B[j, i] = A[i, j]


def ring(A, B, n):
    """Sums of four neighbours on a torus."""
    for i in range(n):
        for j in range(n):
            rows = A[(i + 1) % n, j] + A[(i - 1 + n) % n, j]
            B[i, j] = rows + A[i, (j + 1) % n] + A[i, (j - 1 + n) % n]


def warping(A, B, n):
    """Dynamic time warping of two series: each element needs the one before."""
    for i in range(1, n):
        for j in range(1, n):
            least = min(B[i - 1, j], B[i, j - 1], B[i - 1, j - 1])
            B[i, j] = least + abs(A[0, i] - A[1, j])


def integral(A, B, n):
    """Sums of all elements above and to the left."""
    for i in range(1, n):
        total = 0.0
        for j in range(n):
            total += A[i, j]
            B[i, j] = B[i - 1, j] + total


ALL = (
    *(five_points, choice, down, paths, product, windows),
    *(count, pooled, distances, turned, ring, warping, integral),
)
FUNCTIONS = {each.__name__: each for each in ALL}


def in_xetl(what: str, dtype: str) -> Job:
    """A kernel of one program; its result is that of numba."""
    kernel = xetile.kernel(FUNCTIONS[what])[1]
    job, found = _job(kernel, dtype)
    expected = _job(numba.njit(FUNCTIONS[what]), dtype)[1]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
    return job


def in_numba(what: str, dtype: str) -> Job:
    """As numba compiles it, without options."""
    return _job(numba.njit(FUNCTIONS[what]), dtype)[0]


def _job(run: Callable[..., Any], dtype: str) -> tuple[Job, np.ndarray]:
    """What is timed, and the result of the first call."""
    a = np.random.default_rng(0).random((SIDE, SIDE)).astype(dtype)
    b = a.copy()
    run(a, b, SIDE)
    return Job([lambda: run(a, b, SIDE)], operator.mul(*a.shape) / 1e6), b.copy()
