"""Loops over elements, which run a vector at a time where this changes no number."""

from typing import Any

import numpy as np
import pytest
from launching import agree, small_integers

from xetl import xetile


@xetile.kernel
def five_points(A, B, rows, cols):
    for i in range(1, rows - 1):
        for j in range(1, cols - 1):
            B[i, j] = 0.3 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@xetile.kernel
def past_all_edges(A, B, rows, cols):
    for i in range(-1, rows + 1):
        for j in range(-3, cols + 3):
            B[i, j] = A[i, j] + 0.3 * A[i - 1, j + 2] * A[rows - i, j - 5]


@xetile.kernel
def shortest_paths(A, B, rows, cols):
    for k in range(rows):
        for i in range(rows):
            for j in range(cols):
                B[i, j] = min(B[i, j], B[i, k] + B[k, j])


@xetile.kernel
def choices(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            if A[i, j] > 1:
                B[i, j] = A[i, j + 1] if j > i else 2 * B[i, j]
            elif j < 7:
                B[i, j] += A[i, j]
            else:
                B[i, j] = j


@xetile.kernel
def down_columns(A, B, rows, cols):
    for i in range(1, rows):
        for j in range(cols):
            B[i, j] = B[i - 1, j] + 0.3 * A[i, j]


@xetile.kernel
def beside_each_other(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            t = A[i, j]
            B[i, j] = t - 1
            if B[i, j] < 0:
                B[i, j] = abs(t) + B[i, j]


@xetile.kernel
def by_numbers(A, B, rows, cols):
    for j in range(cols):
        first = A[0, 0] * 0
        B[0, j] = A[0, j - int(first)]


@xetile.kernel
def along_rows(A, B, rows, cols):
    for i in range(rows):
        for j in range(1, cols):
            B[i, j] = B[i, j - 1] + 0.3 * A[i, j]


@xetile.kernel
def first_is_stored(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            B[i, j] = A[i, j]
            B[i, 0] = A[i, j]


@xetile.kernel
def product(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            total = 0.0
            for k in range(rows):
                total += A[i, k] * A[k, j]
            B[i, j] = total


@xetile.kernel
def windows(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            for b in range(2, 5):
                B[i, j] = 0.3 * B[i, j] + A[i + b - 3, j - b] * A[b - 2, 0]


@xetile.kernel
def adds_to_neighbours(A, B, rows, cols):
    for j in range(cols):
        for b in range(rows):
            B[0, j + b] = 0.3 * B[0, j + b] + A[b, j]


@xetile.kernel
def reads_rows_above(A, B, rows, cols):
    for j in range(cols):
        for k in range(1, rows):
            B[k, j] = B[k - 1, j + 1] + A[k, j]


@xetile.kernel
def a_program_each(A, B, rows, cols):
    i, j = xetile.program_id(1), xetile.program_id(0) - 1
    if j > 0 and j < cols - 1:
        B[i, j] = 0.3 * (A[i - 1, j] + A[i, j + 1]) + (B[i, j] if j > i else j)


@xetile.kernel
def tiles_in_a_loop(A, B, rows, cols):
    for j in range(cols):
        row = xetile.zeros((1, 32), A.dtype)
        for i in range(rows):
            row += xetile.load_tile(xetile.init_tile(A, [i, j], (1, 32)))
        B[0, j] = row.max()


@xetile.kernel
def every_nth(A, B, rows, cols):
    for i in range(rows):
        for j in range(-1, cols):
            B[i, j] = A[i, 2 * j] + A[i, 3 * j - 4] * A[i, cols - j] - A[i, 4 * j + 1]


@xetile.kernel
def folds(A, B, rows, cols):
    for i in range(rows):
        count = 7
        least, most = A[i, 0], A[i, 0]
        for j in range(-2, cols + 1):
            if A[i, j] > 0:
                count += 1
            else:
                count -= j
            least = min(A[i, j], least)
            most = max(most, A[i, j])
            B[i, j] = A[i, j]
        B[i, 0], B[i, 1], B[i, 2] = count, least, most


@xetile.kernel
def bits(A, B, rows, cols):
    for i in range(rows):
        some, every, total, product = 0, -1, 3, 1
        for j in range(cols):
            some |= A[i, j]
            every &= A[i, j] ^ 5
            total += (A[i, j] * A[i, j]) // 3 + (A[i, j] - 60) % -7
            product *= A[i, j] + j // 8
        B[i, 0], B[i, 1], B[i, 2], B[i, 3] = some, every, total, product


@xetile.kernel
def turned(A, B, rows, cols):
    for j in range(cols):
        for i in range(rows):
            B[i, j] = A[j, i] + 0.3 * A[2 * j - 3, rows - i]


@xetile.kernel
def by_index(A, B, rows, cols):
    for i in range(rows):
        for j in range(-2, cols + 2):
            found = A[i, j]
            B[i, j] = A[int(found * found) % 3, int(found * 8)]


@xetile.kernel
def distances(A, B, rows, cols):
    for i in range(rows):
        for j in range(rows + 3):
            total = 0.0
            for k in range(cols):
                total += (A[i, k] - A[j, k]) * (A[i, k] - A[j, k])
            B[i, j] = total


@xetile.kernel
def gathers_what_is_stored(A, B, rows, cols):
    for j in range(cols):
        B[1, j] = B[0, (j * j) // 5] + B[1, 3 * j // 2] + A[0, j]


@xetile.kernel
def is_read_on_the_way(A, B, rows, cols):
    count = 0
    for j in range(cols):
        count += 1 if A[0, j] > 0 else 2
        B[0, j] = count


@xetile.kernel
def is_no_fold(A, B, rows, cols):
    found, twice = 0, 0
    for j in range(cols):
        found = j if A[0, j] > 0 else found
        twice = 2 * twice + 1 - twice
    B[0, 0], B[0, 1] = found, twice


@xetile.kernel
def sums_in_order(A, B, rows, cols):
    total = 0.0
    for j in range(cols):
        total += A[0, j]
    B[0, 0] = total


VECTORS = [
    *(five_points, past_all_edges, shortest_paths, choices, down_columns),
    *(beside_each_other, by_numbers, product, windows, every_nth, folds),
    *(turned, by_index, distances, adds_to_neighbours),
]
ONE_BY_ONE = [
    *(
        gathers_what_is_stored,
        along_rows,
        first_is_stored,
        is_read_on_the_way,
        is_no_fold,
        sums_in_order,
    ),
    *(reads_rows_above, tiles_in_a_loop),
]


def _matrices(dtype: str, rows: int, cols: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(rows * 100 + cols)
    if np.dtype(dtype).kind == "f":
        a, b = rng.standard_normal((2, rows, cols)).astype(dtype)
    else:
        a, b = small_integers(rng, 2, rows, cols, dtype=dtype)
    return a, b


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("kernel", [*VECTORS, *ONE_BY_ONE], ids=lambda k: k.__name__)
@pytest.mark.parametrize("cols", [1, 9, 16, 17, 40])
def test_elements_are_those_of_the_loop(kernel: Any, cols: int) -> None:
    a, b = _matrices("float32", 3, cols)
    agree(kernel, 1, a, b, 3, cols)
    agree(kernel, 1, *_matrices("float64", 33, cols), 33, cols)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int16", "int8"])
@pytest.mark.parametrize("kernel", [choices, shortest_paths], ids=["choices", "paths"])
def test_element_types(kernel: Any, dtype: str) -> None:
    a, b = _matrices(dtype, 5, 70)
    agree(kernel, 1, a, b, 5, 70)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "int16", "uint8"])
@pytest.mark.parametrize("cols", [4, 16, 70])
def test_integers_are_folded_and_divided(dtype: str, cols: int) -> None:
    a, b = _matrices(dtype, 3, cols)
    agree(bits, 1, a, b, 3, cols)


@xetile.kernel
def gray(A, B, rows, cols):
    for i in range(rows):
        for j in range(cols):
            B[i, j] = 2 * A[i, j, 0] + 5 * A[i, j, 1] - A[i, j, 2]


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("colors", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_colors(dtype: str, colors: int) -> None:
    """Pixels are as far apart as their colors show, or elements go one by one."""
    a, b = _matrices(dtype, 3, 40 * colors)
    pixels = a.reshape(3, 40, colors)
    agree(gray, 1, pixels, b, 4, 41)
    agree(gray, 1, pixels[:, ::2], b, 3, 20)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("kernel", [five_points, down_columns], ids=["points", "down"])
def test_the_same_array_and_columns_in_memory(kernel: Any) -> None:
    a, b = _matrices("float64", 6, 70)
    agree(kernel, 1, a, a, 6, 70)
    agree(kernel, 1, np.asfortranarray(a), np.asfortranarray(b), 6, 70)
    agree(kernel, 1, a[::-1, 3:60], b[:, 3:60], 6, 57)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("cols", [1, 9, 16, 17, 40])
def test_programs_of_one_element(cols: int) -> None:
    a, b = _matrices("float32", 3, cols)
    agree(a_program_each, (cols + 3, 4), a, b, 3, cols)


@pytest.mark.parametrize("kernel", [*VECTORS, *ONE_BY_ONE], ids=lambda k: k.__name__)
def test_explain_says_which_loops_are_vectors(kernel: Any) -> None:
    found = str(kernel.explain(*_matrices("float32", 3, 70), 3, 70))
    assert ("elements at a time" in found) == (kernel in VECTORS)


def test_explain_of_integers_and_colors() -> None:
    a, b = _matrices("int32", 3, 120)
    assert "elements at a time" in str(bits.explain(a, b, 3, 120))
    assert "elements at a time" in str(gray.explain(a.reshape(3, 40, 3), b, 3, 40))
