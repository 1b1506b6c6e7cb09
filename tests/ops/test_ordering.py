"""`ops.sort` and `ops.topk`: equals, NaN, infinities, integers, long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        for k in (1, n - 1, n):
            values, places = ops.topk(x, k, largest=largest)
            assert np.array_equal(places, wanted[:, :k])
            assert values.tobytes() == np.ascontiguousarray(found[:, :k]).tobytes()
            down = x.T.copy()  # columns, and rows that are columns in memory
            for (values, places), turn in (
                (ops.topk(down, k, 0, largest), np.transpose),
                (ops.topk(down.T, k, 1, largest), np.array),
            ):
                assert np.array_equal(turn(places), wanted[:, :k])
                assert np.array_equal(turn(values), found[:, :k], equal_nan=True)


@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (50, 1, 2), (2, 3, 50)])
def test_few_elements_along_each_dimension(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(0, 4, shape).astype(np.float32)
    for dim in range(len(shape)):
        wanted = np.argsort(x, dim, kind="stable")
        values, places = ops.sort(x, dim)
        assert np.array_equal(places, wanted)
        assert np.array_equal(values, np.take_along_axis(x, wanted, dim))
        if dim < len(shape) - 1:
            out = x.copy()
            ops.sort(out, dim, out=(out, np.empty(shape, np.int64)))
            assert np.array_equal(out, values)


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


def _of_64_bits(dtype: type) -> np.ndarray[Any, Any]:
    some = np.array([0, 1, 1 << 32, (1 << 32) + 1, 1 << 62, (1 << 62) + 4096], dtype)
    return np.random.default_rng(2).choice(some, (3, 2, 521))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_numbers_of_64_bits(dtype: type) -> None:
    x = _of_64_bits(dtype)
    values, places = ops.sort(x, 0)
    wanted = np.argsort(x, 0, kind="stable")
    assert np.array_equal(places, wanted)
    assert np.array_equal(values, np.take_along_axis(x, wanted, 0))


@pytest.mark.parametrize("k", [40, 300, 2, 20])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_first_numbers_of_64_bits(dtype: type, largest: bool, k: int) -> None:
    x = _of_64_bits(dtype)
    key = -x if dtype is np.float64 else ~x
    wanted = np.argsort(key if largest else x, -1, kind="stable")[..., :k]
    values, places = ops.topk(x, k, largest=largest)
    assert np.array_equal(places, wanted)
    assert np.array_equal(values, np.take_along_axis(x, wanted, -1))


LENGTHS = (8193, 16384, 16385, 32768, 40001)
"""Rows longer than a program holds, around the borders of blocks."""


def _drawn(kind: str, dtype: str, n: int, seed: int) -> np.ndarray[Any, Any]:
    """A row with equals; of floats also NaN, infinities and zeros of both signs."""
    random = np.random.default_rng(seed)
    x = (random.standard_normal(n) * 90).astype(dtype)
    if kind == "equal":
        x[:] = 3
    elif kind == "few":
        x[:] = random.integers(0, 3, n)
    elif x.dtype.kind == "f":
        for each in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            x[random.integers(0, n, n // 20)] = each
    else:
        limits = np.iinfo(dtype)
        x[random.integers(0, n, n // 20)] = limits.max
        x[random.integers(0, n, n // 20)] = limits.min
    return np.sort(x) if kind == "sorted" else x


def _order(x: np.ndarray[Any, Any], dim: int, largest: bool) -> np.ndarray[Any, Any]:
    """The indices wanted: equals in order, NaN last."""
    if x.dtype.kind == "f":
        key = np.where(np.isnan(x), np.nan, -x if largest else x)
    else:
        key = ~x if largest else x
    return np.argsort(key, dim, kind="stable")


def _check_order(x: np.ndarray[Any, Any], dim: int, largest: bool, k: int) -> None:
    wanted = _order(x, dim, largest)
    found = np.take_along_axis(x, wanted, dim)
    values, places = ops.sort(x, dim, largest)
    assert np.array_equal(places, wanted)
    assert values.tobytes() == found.tobytes()
    values, places = ops.topk(x, k, dim, largest)
    assert np.array_equal(places, np.take(wanted, range(k), dim))
    assert values.tobytes() == np.take(found, range(k), dim).tobytes()


@settings(deadline=None, max_examples=30)
@given(
    kind=st.sampled_from(("random", "sorted", "few", "equal")),
    dtype=st.sampled_from([kind + size for kind in "iu" for size in "1248"])
    | st.sampled_from(["f2", "f4", "f8"]),
    n=st.sampled_from(LENGTHS),
    k=st.sampled_from((1, 50, 1000)),
    largest=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_long_rows(
    kind: str, dtype: str, n: int, k: int, largest: bool, seed: int
) -> None:
    _check_order(_drawn(kind, dtype, n, seed)[None], 1, largest, k)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_long_rows_along_any_dimension(dim: int, dtype: str) -> None:
    n = 16400
    x = np.moveaxis(_drawn("random", dtype, 6 * n, 7).reshape(2, 3, n), 2, dim)
    for each in (x, np.ascontiguousarray(x), np.repeat(x, 2, 2)[..., ::2]):
        _check_order(each, dim, True, 60)


@pytest.mark.parametrize("n", [1, 5, 300, 20_000])
@pytest.mark.parametrize("largest", [False, True])
def test_booleans(n: int, largest: bool) -> None:
    x = np.random.default_rng(n).random((3, n)) < 0.5
    _check_order(x, 1, largest, max(1, n // 9))


def test_a_large_k() -> None:
    """The groups of the best, and those of their best, are themselves long rows."""
    _check_order(_drawn("few", "i4", 600_000, 1), 0, True, 17_000)


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_long_rows_to_the_input(dtype: str) -> None:
    x = _drawn("random", dtype, 40_000, 3)
    wanted = _order(x, 0, False)
    for _ in range(3):
        given, places = x.copy(), np.empty(x.shape, np.int64)
        ops.sort(given, out=(given, places))
        assert np.array_equal(places, wanted)
        assert given.tobytes() == x[wanted].tobytes()
    if dtype == "i8":
        given, values = x.copy(), x.copy()
        ops.sort(given, out=(values, given))
        assert np.array_equal(given, wanted)
        assert np.array_equal(values, x[wanted])


@pytest.mark.parametrize(("name", "options"), [("sort", (-1, True)), ("topk", (50,))])
def test_long_rows_in_torch(name: str, options: tuple[Any, ...]) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.randperm(32_800).float().reshape(2, -1).requires_grad_()
    ours, theirs = getattr(ops, name), getattr(torch, name)
    found, wanted = ours(x, *options), theirs(x, *options)
    assert torch.equal(found.values, wanted.values)
    assert torch.equal(found.indices, wanted.indices)
    weights = torch.randn_like(found.values)
    pair = (torch.autograd.grad(each.values, x, weights)[0] for each in (found, wanted))
    assert torch.equal(*pair)
    how = {"fullgraph": True, "backend": "eager", "dynamic": True}
    compiled = torch.compile(lambda x: tuple(ours(x, *options)), **how)
    assert torch.equal(compiled(x.detach())[1], wanted.indices)


def test_long_rows_as_an_operator() -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.randn(2, 16_400, requires_grad=True)
    assert ops.topk(x, 0).values.shape == (2, 0)
    torch.library.opcheck(torch.ops.xetl.topk_with_indices.default, (x, 50, 1, True))


def test_what_is_refused() -> None:
    x = np.ones((2, 20), np.float32)
    for call in (
        lambda: ops.topk(x, 21),
        lambda: ops.sort(x, 2),
        lambda: ops.sort(np.broadcast_to(np.float32(1), 1 << 31)),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == "X0827"
        assert caught.value.file == __file__


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
