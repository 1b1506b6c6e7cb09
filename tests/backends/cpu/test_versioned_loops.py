"""Loops over elements whose tests of bounds are made once, at all edges of arrays."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.xetile import i32, u64

SIZE, ROOM = 9, 12


@xetile.kernel
def walks(A, B, first, last, shift):
    for i in range(first, last):
        B[i + shift] = A[i] + A[i - shift]
    for i in range(first, last, 3):
        B[i] += 2 * A[i + shift]
    for i in range(last, first, -2):
        B[i] += 3 * A[i - shift]
    for i in range(first, last):
        for j in range(i, min(i + 3, last), 2):
            B[j] += A[j - i] * A[2 * j + shift - i]
    for i in range(first, last):
        B[min(i, 3) + shift] += A[2 * i if i % 2 > 0 else i - 1]


@xetile.kernel
def rings(A, B, first, period):
    for i in range(first, period):
        B[i] += A[(i + 1) % period] + 2 * A[(i - 1) % period]
        B[(i - 1 + period) % period] += A[(period - 1 - i) % period]
        B[(i + 3) % period] -= A[i % 4]


@xetile.kernel
def one_place_of_a_ring(A, B, first, period):
    place = period + 1
    for i in range(first, period):
        if A[i] > 300:
            B[i] += A[place % period] + (A[i] + i) % period
        B[u64(i) % period] += i32(i + 1) % i32(period)


@xetile.kernel
def is_no_vector_after_all(A, B, first, period):
    """The innermost loop is refused where the one around it has begun."""
    for i in range(max(first, 0), period):
        for j in range(2, period // 2):
            product = 1
            for k in range(1, 3):
                far = A[(i + 1) % period] if k > i else A[i + 1] * A[2 * j]
                B[j + 1] = far
                product *= max(A[j % 4], k)
            B[i] = product


@xetile.kernel
def recurrences(A, B, first, last, shift):
    for i in range(first, last):
        B[i] = max(B[i - 1], A[i]) - A[shift]
    for i in range(first, last):
        A[shift] += B[i]
    for i in range(first, last, 2):
        A[i + 2] = A[i] + 1
    for i in range(last, first, -1):
        B[i - 1] = B[i] + A[i]
    for i in range(first, last):
        A[i] = A[i - 1] + A[i - 2]


def _inside(fill: int) -> Any:
    """An array in the middle of a larger one, which no kernel may touch."""
    whole = np.full(SIZE + 2 * ROOM, fill, np.int64)
    part = whole[ROOM : ROOM + SIZE]
    part[:] = np.arange(1, SIZE + 1) * fill
    return part


def _agree(kernel: Any, *numbers: int) -> None:
    ours, theirs = ([_inside(101), _inside(997)] for _ in range(2))
    kernel[1](*ours, *numbers)
    kernel[1](*theirs, *numbers, backend="reference")
    for one, other in zip(ours, theirs):
        np.testing.assert_array_equal(one.base, other.base, f"{numbers}")


RANGES = [*product((-2, -1, 0, 1, 5), (0, SIZE - 1, SIZE, SIZE + 1))]


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("kernel", [walks, recurrences], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 2, 9])
def test_every_edge(kernel: Any, shift: int) -> None:
    for first, last in RANGES:
        _agree(kernel, first, last, shift)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("period", [-SIZE, -1, 0, 1, 2, 4, SIZE - 1, SIZE, SIZE + 1])
def test_rings(period: int) -> None:
    for first in (-2 * SIZE, -5, -1, 0, 1, 3):
        _agree(rings, first, period)
        _agree(one_place_of_a_ring, first, period)
        _agree(is_no_vector_after_all, first, period)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("far", [2**40, 2**62, 2**63 - 5, -(2**63), -(2**40) - 1])
def test_sums_that_overflow(far: int) -> None:
    _agree(walks, 0, SIZE, far)
    _agree(rings, far - 3 if far > 0 else far, far if far > 0 else far + 3)
    _agree(walks, far, far + 3 if far < 0 else far - 3, 1)


@pytest.mark.usefixtures("target")
def test_each_loop_is_copied_once() -> None:
    a, b = _inside(1), _inside(1)
    before, after = "widen-programs", "version-element-loops"

    def copies(what: str, kernel: Any, *numbers: int) -> int:
        texts = [kernel.ir(each, a, b, *numbers) for each in (before, after)]
        return texts[1].count(what) - texts[0].count(what)

    assert copies("scf.for", walks, 0, SIZE, 1) == 7  # one is copied by itself
    assert copies("xetile.bounds", rings, 0, SIZE) == 0
    # Of `i % 4`, and of the sum whose largest value depends on `first`.
    assert copies("floordivsi", rings, 0, SIZE) == 2
    text = recurrences.ir("forward-stored-elements", a, b, 0, SIZE, 1)
    assert text.count("iter_args") == 5
