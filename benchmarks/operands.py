"""The arrays that all libraries get."""

import os

import numpy as np

_LINE = 64


def row_distance(columns: int, itemsize: int) -> int:
    """Elements from row to row of a matrix of a product.

    With ``BENCH_ODD_LINES`` in the environment an odd number of cache lines: rows of a
    power of two fall into few sets of L1.
    """
    if not os.environ.get("BENCH_ODD_LINES"):
        return columns
    return (-(-columns * itemsize // _LINE) | 1) * _LINE // itemsize


def on_a_line(array: np.ndarray) -> np.ndarray:
    """A copy that begins with a cache line, as tensors of torch do.

    NumPy's large arrays begin 16 bytes behind one, which slows all libraries down, and
    would here slow down those alone that take NumPy's arrays.
    """
    rows, columns = array.shape
    distance = row_distance(columns, array.itemsize)
    size = rows * distance * array.itemsize
    room = np.empty(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    whole = room[first : first + size].view(array.dtype).reshape(rows, distance)
    copy = whole[:, :columns]
    copy[...] = array
    return copy


def extents(shape: str) -> tuple[int, int, int]:
    """(m, k, n) of a case such as ``128x4096x4096``."""
    m, k, n = map(int, shape.split("x"))
    return m, k, n


def flops(shape: str) -> float:
    """Work of a product, in units of 1e9 operations."""
    m, k, n = extents(shape)
    return 2e-9 * m * k * n


def normal_matrices(dtype: str, shape: str) -> list[np.ndarray]:
    """(m, k) and (k, n) numbers around 0, those of ``i8`` of all its bits.

    Products of integers of a few bits take less power: AMX tiles are faster on them.
    """
    rng = np.random.default_rng(0)
    m, k, n = extents(shape)
    sizes = ((m, k), (k, n))
    if dtype == "i8":
        return [rng.integers(-128, 128, size, np.int8) for size in sizes]
    return [on_a_line(rng.standard_normal(size, np.float32)) for size in sizes]


def integer_matrices(shape: str) -> list[np.ndarray]:
    """(m, k) and (k, n) small integers: their products are exact in f32."""
    m, k, n = extents(shape)
    rng = np.random.default_rng(0)
    sizes = ((m, k), (k, n))
    return [rng.integers(-4, 5, size).astype(np.float32) for size in sizes]


def normal_rows(rows: int, columns: int) -> np.ndarray:
    """A matrix of f32 numbers around 0."""
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)


HEADS = 16
"""Of attention; ``dim`` is elements of each query, key and value."""


def normal_heads(length: int, dim: int) -> list[np.ndarray]:
    """Queries, keys and values of attention: f32 numbers around 0."""
    rng = np.random.default_rng(0)
    size = (HEADS, length, dim)
    return [rng.standard_normal(size, np.float32) for _ in range(3)]


def attention_flops(length: int, dim: int, causal: bool) -> float:
    """Work of its two products, in units of 1e9 operations."""
    return 4e-9 * HEADS * length * length * dim / (2 if causal else 1)
