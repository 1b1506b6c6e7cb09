"""`associative_scan`, on each backend, against loops over rows and columns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import NUMPY, computed, matrix
from xetl import xetile
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
BOTH = pytest.mark.parametrize("backend", ["reference", "cpu"])
SHAPES = [(1, 1), (1, 40), (7, 3), (33, 20), (40, 1), (3, 257)]


def in_order(function, arrays, axis, reverse):
    """A scan as its definition has it."""
    turn = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
    first, *others = zip(*(np.moveaxis(turn(a), axis, 0) for a in arrays))
    found = [first]
    for each in others:
        found.append(function(*found[-1], *each))
    whole = [np.moveaxis(np.stack(each), 0, axis) for each in zip(*found)]
    return [turn(each) for each in whole]


@ALL
@pytest.mark.parametrize("dtype", NUMPY)
def test_of_each_dtype(dtype: str, backend: str) -> None:
    axis = len(dtype) % 2
    a = matrix(dtype, (9, 37))
    if dtype == "i1":
        a[:] = a & (matrix(dtype, (9, 37), seed=1) & matrix(dtype, (9, 37), seed=2))
    either = lambda x, y: x | y
    larger = lambda x, y: xetile.where(y > x, y, x)
    combine = either if dtype == "i1" else larger
    scan = lambda a, b: xetile.associative_scan(a, axis, combine)
    found = computed(scan, a, a, dtype, backend)
    np.testing.assert_array_equal(found, np.maximum.accumulate(a, axis))


@xetile.function
def composed(g0, h0, g1, h1):
    return g0 * g1, h0 * g1 + h1


@BOTH
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_that_do_not_commute(
    shape: tuple[int, int], axis: int, reverse: bool, backend: str
) -> None:
    """Affine maps of wrapping integers, composed: equal in whichever order."""
    g, h = matrix("i32", shape), matrix("i32", shape, seed=1)
    with np.errstate(over="ignore"):
        both = in_order(composed.fn, (g, h), axis, reverse)
    for number, expected in enumerate(both):
        scan = lambda a, b, n=number: xetile.associative_scan(
            (a, b), axis, composed, reverse
        )[n]
        found = computed(scan, g, h, "i32", backend)
        np.testing.assert_array_equal(found, expected)
    scan = lambda a, b: xetile.associative_scan((a, b), axis, composed, reverse)
    total = lambda a, b: scan(a, b)[0] ^ scan(a, b)[1]
    found = computed(total, g, h, "i32", backend)
    np.testing.assert_array_equal(found, both[0] ^ both[1])


@ALL
@pytest.mark.parametrize("axis", [0, 1])
def test_of_values_of_several_dtypes(axis: int, backend: str) -> None:
    """The last one that was marked, where it stands, and a number."""
    a, b = matrix("f32", (6, 40)), matrix("f32", (6, 40), seed=3)

    @xetile.function
    def last(m0, p0, v0, m1, p1, v1):
        return m0 | m1, xetile.where(m1, p1, p0), xetile.where(m1, v1, v0)

    def scan(a, b):
        place = xetile.arange(a.shape[axis])
        place = place[:, None] if axis == 0 else place[None, :]
        places = xetile.zeros(a.shape, xetile.i64) + place
        marked, where, value = xetile.associative_scan((b > 5, places, a), axis, last)
        return xetile.where(marked, value * 64 + where.to(xetile.f32), -1.0)

    places = np.broadcast_to(
        np.arange(a.shape[axis])[:, None] if axis == 0 else np.arange(a.shape[axis]),
        a.shape,
    )

    def chosen(m0, p0, v0, m1, p1, v1):
        return m0 | m1, np.where(m1, p1, p0), np.where(m1, v1, v0)

    marked, where, value = in_order(chosen, (b > 5, places, a), axis, False)
    expected = np.where(marked, value * 64 + where, -1)
    found = computed(scan, a, b, "f32", backend)
    np.testing.assert_array_equal(found, expected)


@xetile.kernel(grid=1)
def parts(A, OUT, most: int, F, AXIS: constexpr, M: constexpr, N: constexpr):
    """A tile that is larger than its matrix, and starts before it."""
    a = xetile.load_tile(xetile.init_tile(A, [-2, -3], (M, N)))
    found = xetile.associative_scan(a, AXIS, lambda x, y: F(x, y, most))
    xetile.store_tile(found, xetile.init_tile(OUT, [-2, -3], (M, N)))


@xetile.function
def capped(x, y, most):
    return xetile.minimum(x + y, most)


@xetile.function
def capped_if_positive(x, y, most):
    """A branch of the run: it does not work element by element."""
    total = x + y
    if most > 0:
        total = xetile.minimum(total, most)
    return total


@BOTH
@pytest.mark.parametrize("function", [capped, capped_if_positive])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(9, 14), (5, 50), (30, 19)])
def test_with_masks_of_the_run(
    shape: tuple[int, int], axis: int, function, backend: str
) -> None:
    a = matrix("i32", shape, low=0)
    out = np.zeros_like(a)
    parts(a, out, 40, function, AXIS=axis, M=16, N=32, backend=backend)
    expected = np.minimum(np.cumsum(a[:14, :29], axis), 40)
    np.testing.assert_array_equal(out[:14, :29], expected)
    assert not out[14:].any()
    assert not out[:, 29:].any()


@pytest.mark.parametrize("axis", [0, 1])
def test_cpus_need_no_shared_memory(axis: int) -> None:
    """They go through each element once, in vectors."""
    a = matrix("i32", (16, 32))
    given = a, a, 40
    for function, memories in ((capped, 0), (capped_if_positive, 1)):
        how = {"AXIS": axis, "M": 16, "N": 32, "backend": "cpu"}
        text = parts.ir("xetile", *given, function, **how)
        assert text.count("xetile.tile_associative_scan") == 1
        text = parts.ir("xsmm", *given, function, **how)
        assert text.count("memref.alloc(") == memories
