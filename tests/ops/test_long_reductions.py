"""Reductions of few long rows, which are cut into parts, over any dimensions."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.rows import reductions
from xetl.ops.rows.running_sums import cumsum_backward

LONG = [(2, 100003), (2, 102400), (102400,), (64, 64, 17), (3, 2, 40960), (1, 3, 70001)]
LONG += [(2, 777, 10), (20000, 3), (263, 5), (5000, 1), (2, 512, 2, 30)]


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


@pytest.mark.parametrize(
    "shape", [(2, 300, 130), (1000, 20), (33, 100), (3, 5)], ids=str
)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int16", "int64"])
def test_narrow_integers(dtype: str, shape: tuple[int, ...]) -> None:
    """Sums are widened; the largest and the least are found in their own dtype."""
    x = np.random.default_rng(0).integers(-(2**15), 2**15, shape)
    x = x > 0 if dtype == "bool" else x.astype(dtype)
    for dim in range(len(shape)):
        np.testing.assert_array_equal(ops.sum(x, dim), x.sum(dim, dtype=np.int64))
        np.testing.assert_array_equal(ops.amax(x, dim), x.max(dim))
        np.testing.assert_array_equal(ops.amin(x, dim), x.min(dim))


@pytest.mark.parametrize("dims", [(0, 2, 3), (0, 2), (0, 3), (1, 3), (0, 1, 3)])
def test_dimensions_with_others_between(dims: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3, 17, 5))
    turned = (x.transpose(0, 3, 1, 2), x[:, :1].transpose(3, 1, 0, 2))
    for each in (x, *turned, x[:, :, ::2], x[:, :1], x[:, :, :1]):
        for keeps in (False, True):
            wanted = each.sum(dims, keepdims=keeps)
            np.testing.assert_allclose(ops.sum(each, dims, keeps), wanted, atol=1e-12)
            largest = ops.amax(each, dims, keeps)
            assert np.array_equal(largest, each.max(dims, keepdims=keeps))
            varied = ops.var(each, dims, keepdim=keeps)
            wanted = each.var(dims, ddof=1, keepdims=keeps)
            np.testing.assert_allclose(varied, wanted, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3, 4), (3, 0, 4), (0, 0, 3)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    """As NumPy's: 0 for sums, NaN for means and variances; there is no largest."""
    for x in (np.zeros(shape), np.zeros(shape[::-1]).T):
        for count in range(1, len(shape) + 1):
            for dims in combinations(range(len(shape)), count):
                for keeps in (False, True):
                    found = [
                        each(x, dims, keepdim=keeps) for each in (ops.sum, ops.mean)
                    ]
                    wanted = [
                        each(x, dims, keepdims=keeps) for each in (np.sum, np.mean)
                    ]
                    found.append(ops.var(x, dims, keepdim=keeps))
                    wanted.append(np.var(x, dims, ddof=1, keepdims=keeps))
                    for one, two in zip(found, wanted):
                        np.testing.assert_array_equal(one, two, strict=True)


@pytest.mark.parametrize("n", [511, 512, 1025, 4097, 300_001])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_running_sums_of_long_rows(n: int, first: int) -> None:
    numbers = np.random.default_rng(0).integers(-9, 9, 2 * n + first)
    for dtype in (np.float64, np.int64, np.float32):
        x = numbers.astype(dtype)[first:].reshape(2, n)
        assert np.array_equal(ops.cumsum(x, 1), x.cumsum(1))
        back = cumsum_backward(x, 1, None)
        assert np.array_equal(back, x[:, ::-1].cumsum(1)[:, ::-1])


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


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("shape", [(2, 2), (50, 256), (4, 3000), (2, 70000)])
def test_a_sum_as_bool_is_whether_a_number_is_not_zero(
    shape: tuple[int, int], dtype: Any
) -> None:
    x = np.zeros(shape, dtype)
    x[0] = [1, -1] * (shape[1] // 2) if dtype in (np.int64, np.int8) else 1
    x[1, -1] = 1
    for dim in (0, 1, None):
        found = ops.sum(x, dim, dtype=np.bool_)
        assert np.asarray(found).dtype == np.bool_
        np.testing.assert_array_equal(found, (x != 0).any(dim))
        assert not np.any(ops.sum(0 * x, dim, dtype=np.bool_))
    with pytest.raises(LaunchError, match="cumsum") as caught:
        ops.cumsum(x, 1, dtype=np.bool_)
    assert caught.value.code == "X0828"


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
