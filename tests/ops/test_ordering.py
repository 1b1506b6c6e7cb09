"""`ops.sort` and `ops.topk`: equals, NaN, infinities, integers, long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.errors import LaunchError


@pytest.mark.parametrize("n", [1, 50, 300])
@pytest.mark.parametrize("descending", [False, True])
def test_equals_keep_their_order(n: int, descending: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 3, (4, n)).astype(np.int32)
    values, places = ops.sort(x, descending=descending)
    wanted = np.argsort(-x if descending else x, 1, kind="stable")
    assert np.array_equal(places, wanted)
    assert np.array_equal(values, np.take_along_axis(x, wanted, 1))


@pytest.mark.parametrize("descending", [False, True])
def test_nan_and_infinities(descending: bool) -> None:
    x = np.array([[np.nan, 1, -np.inf, np.inf, np.nan, 0] * 5], np.float32)
    x[:, -1] = -1
    values, places = ops.sort(x, descending=descending)
    assert sorted(places[0]) == list(range(30))
    assert np.isnan(values[0, -10:]).all()
    numbers = np.sort(x[~np.isnan(x)])
    assert np.array_equal(values[0, :-10], numbers[::-1] if descending else numbers)
    values, places = ops.topk(x, 30, largest=descending)
    assert sorted(places[0]) == list(range(30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(20, 2), (20, 12), (300, 9), (1000, 40)])
@pytest.mark.parametrize("largest", [False, True])
def test_nan_is_behind_infinity(largest: bool, n: int, k: int, dtype: type) -> None:
    x = np.full((2, n), np.nan, dtype)
    x[0, 1::4], x[0, ::7] = (-np.inf if largest else np.inf), 3
    key = -x if largest else x
    wanted = np.lexsort((np.broadcast_to(np.arange(n), x.shape), key))[:, :k]
    values, places = ops.topk(x, k, largest=largest)
    assert np.array_equal(places, wanted)
    assert np.array_equal(values, np.take_along_axis(x, wanted, 1), equal_nan=True)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i1", "u1", "i8"])
@pytest.mark.parametrize("largest", [False, True])
def test_narrow_rows(n: int, dtype: str, largest: bool) -> None:
    """Several rows are in one vector: equals, the ends of the type, NaN."""
    for rows in (1, 37, 300):
        x = np.random.default_rng([n, rows]).integers(0, 4, (rows, n)).astype(dtype)
        if x.dtype.kind == "f":
            x[::2, 1], x[::3, 0], x[1::3, -1] = np.nan, -np.inf, np.inf
        else:
            x[::2, 1], x[::3, 0] = np.iinfo(dtype).max, np.iinfo(dtype).min
        key = x.astype(np.longdouble)
        key = np.where(np.isnan(key), np.nan, -key if largest else key)
        wanted = np.argsort(key, 1, kind="stable")
        found = np.take_along_axis(x, wanted, 1)
        values, places = ops.sort(x, descending=largest)
        assert np.array_equal(places, wanted)
        assert values.tobytes() == found.tobytes()
        for k in (1, n - 1):
            values, places = ops.topk(x, k, largest=largest)
            assert np.array_equal(places, wanted[:, :k])
            assert values.tobytes() == np.ascontiguousarray(found[:, :k]).tobytes()


@pytest.mark.parametrize("largest", [False, True])
def test_the_first_of_integers(largest: bool) -> None:
    x = np.array([[5, np.iinfo(np.int32).min, 7, np.iinfo(np.int32).max]], np.int32)
    values, places = ops.topk(x, 2, largest=largest)
    assert places.tolist() == [[3, 2] if largest else [1, 0]]
    assert np.array_equal(values, np.take_along_axis(x, places, 1))


@pytest.mark.parametrize("k", [0, 1])
def test_a_number_is_its_own_largest_as_in_torch(k: int) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.tensor(3.0)
    values, places = ops.topk(x, k)
    assert torch.equal(values, torch.topk(x, k).values)
    assert torch.equal(places, torch.topk(x, k).indices)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_numbers_of_64_bits(dtype: type) -> None:
    some = np.array([0, 1, 1 << 32, (1 << 32) + 1, 1 << 62, (1 << 62) + 4096], dtype)
    x = np.random.default_rng(2).choice(some, (3, 2, 521))
    values, places = ops.sort(x, 0)
    wanted = np.argsort(x, 0, kind="stable")
    assert np.array_equal(places, wanted)
    assert np.array_equal(values, np.take_along_axis(x, wanted, 0))
    for largest in (True, False):
        for k in (2, 20, 40, 300):
            key = -x if dtype is np.float64 else ~x
            wanted = np.argsort(key if largest else x, -1, kind="stable")[..., :k]
            values, places = ops.topk(x, k, largest=largest)
            assert np.array_equal(places, wanted)
            assert np.array_equal(values, np.take_along_axis(x, wanted, -1))


def test_what_is_refused() -> None:
    x = np.ones((2, 20), np.float32)
    for call in (
        lambda: ops.topk(x, 21),
        lambda: ops.sort(x, 2),
        lambda: ops.sort(np.ones(20000, np.float32)),
        lambda: ops.sort(np.ones(9000)),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == "X0827"
        assert caught.value.file == __file__
    with pytest.raises(LaunchError, match="input of i1") as caught:
        ops.sort(np.ones(20, bool))
    assert caught.value.code == "X0828"


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_values_and_derivatives_are_those_of_torch(dim: int) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.randn(5, 7, 18, requires_grad=True)
    for name, options in (("sort", (dim, True)), ("topk", (4, dim, False))):
        found, wanted = (getattr(each, name)(x, *options) for each in (ops, torch))
        assert torch.equal(found.values, wanted.values)
        assert torch.equal(found.indices, wanted.indices)
        weights = torch.randn_like(found.values)
        one, two = (
            torch.autograd.grad(each.values, x, weights)[0] for each in (found, wanted)
        )
        assert torch.equal(one, two)
    assert torch.equal(ops.argsort(x, dim), torch.argsort(x, dim))
    opcheck = torch.library.opcheck
    opcheck(torch.ops.xetl.sort_with_indices.default, (x, dim, False))
    opcheck(torch.ops.xetl.topk_with_indices.default, (x, 3, dim, True))
