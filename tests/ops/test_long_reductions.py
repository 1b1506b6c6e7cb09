"""Reductions of few long rows, which are cut into parts, over any dimensions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from xetl import ops

LONG = [(2, 100003), (2, 102400), (102400,), (64, 64, 17), (3, 2, 40960), (1, 3, 70001)]


@pytest.mark.parametrize("shape", LONG)
def test_any_dimensions(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    for count in range(1, len(shape) + 1):
        for dims in permutations(range(len(shape)), count):
            for keeps in (False, True):
                wanted = x.sum(dims, keepdims=keeps), x.max(dims, keepdims=keeps)
                found = ops.sum(x, dims, keeps), ops.amax(x, dims, keeps)
                for one, two in zip(found, wanted):
                    assert one.shape == two.shape
                    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", LONG)
def test_places_of_the_largest(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    for dim in range(len(shape)):
        for keeps in (False, True):
            found = ops.max(x, dim, keeps)
            assert np.array_equal(found[0], x.max(dim, keepdims=keeps))
            assert np.array_equal(found[1], x.argmax(dim, keepdims=keeps))
            assert np.array_equal(ops.argmax(x, dim, keeps), found[1])
    assert int(ops.argmax(x)) == int(x.argmax())
