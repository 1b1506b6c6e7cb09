"""Reductions of few long rows, which are cut into parts, over any dimensions."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.rows import reductions

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


def test_what_wide_rows_are_added_to_fits_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sum of each column of a tile of 4096 would be loaded and stored each time."""
    widths: list[int] = []
    plan = reductions.rows

    def noted(*args: Any, **options: Any) -> Any:
        widths.append(args[3][-1])
        return plan(*args, **options)

    monkeypatch.setattr(reductions, "rows", noted)
    x = (np.arange(17 * 4099) % 7).reshape(17, 4099).astype(np.float32)
    assert np.array_equal(ops.sum(x, 1), x.sum(1))
    assert widths == [64]


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


INTEGERS = [
    *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)),
    "bool",
]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(4, 9), (3, 1000), (1, 70_000)])
def test_extremes_of_integers(shape: tuple[int, ...], dtype: str) -> None:
    """What stands beside short rows is no smaller or larger than all of them."""
    ends = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    some = np.array([*ends, ends[0] + 1, ends[1] - 1], np.dtype(dtype))
    drawn = np.random.default_rng(3).choice(some, shape)
    for x in (drawn, *(np.full(shape, end, np.dtype(dtype)) for end in ends)):
        for dim in (0, 1):
            for name in ("amax", "amin", "argmax", "argmin"):
                found = getattr(ops, name)(x, dim)
                np.testing.assert_array_equal(found, getattr(np, name)(x, dim))
            values, places = ops.max(x, dim)
            np.testing.assert_array_equal(values, x.max(dim))
            np.testing.assert_array_equal(places, x.argmax(dim))


def test_the_sum_of_conditions_counts() -> None:
    x = np.random.default_rng(4).random((3, 50)) > 0.5
    for dim in (0, 1):
        found = ops.sum(x, dim)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, x.sum(dim))


@pytest.mark.parametrize("name", ["sum", "mean", "cumsum", "softmax", "log_softmax"])
def test_floats_do_not_become_integers(name: str) -> None:
    for dtype in (np.float32, np.float64):
        x = np.ones((2, 5), dtype)
        for wanted in (np.int32, np.bool_):
            with pytest.raises(
                LaunchError, match="was asked for a result of"
            ) as caught:
                getattr(ops, name)(x, 1, dtype=wanted)
            assert caught.value.code == "X0828"


def test_dimensions_are_ints() -> None:
    x = np.ones((2, 5), np.float32)
    for call, code in (
        (lambda: ops.sum(x, 1.0), "X0829"),  # pyright: ignore[reportArgumentType]
        (lambda: ops.sum(x, "a"), "X0829"),  # pyright: ignore[reportArgumentType]
        (lambda: ops.softmax(x, 1.0), "X0829"),  # pyright: ignore[reportArgumentType]
        (lambda: ops.gather(x, 1, np.array([0])), "X0827"),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == code
    with pytest.raises(LaunchError, match=r"X0805.*`input` is "):
        ops.softmax(None)
    one: Any = np.int64(1)
    assert np.array_equal(ops.sum(x, one), [5, 5])
    assert np.array_equal(ops.sum(x, [0, 1]), 10)
