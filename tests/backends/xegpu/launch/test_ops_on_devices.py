"""`xetl.ops` with arrays in a device's memory: launched there, not read elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.calling.calls import Launch
from xetl.runtime import usm
from xetl.settings import config
from xetl_xegpu.launch import devices, executable
from xetl_xegpu.launch.facts import choose_kernel


class OnDevice:
    """An array in memory of a device, of which the host says it cannot read it."""

    def __init__(self, array: Any, **more: Any) -> None:
        memory = devices.dpctl().memory
        self.memory = memory.MemoryUSMDevice(
            max(array.nbytes, 1), queue=devices.default_queue()
        )
        self.dtype, self.shape = array.dtype, array.shape
        self.write(array)
        own = {"shape": array.shape, "typestr": array.dtype.str}
        interface = self.memory.__sycl_usm_array_interface__
        self.__sycl_usm_array_interface__ = {**interface, **own, **more}

    def write(self, array: Any) -> None:
        flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        if flat.size:
            self.memory.copy_from_host(flat)

    def read(self) -> Any:
        found = self.memory.copy_to_host().view(self.dtype)
        return found[: int(np.prod(self.shape))].reshape(self.shape)


@pytest.fixture(autouse=True)
def unreadable(monkeypatch: pytest.MonkeyPatch, xegpu: None) -> None:
    """No memory of a device may be read by the host; nobody names a backend."""
    monkeypatch.setattr(usm, "_is_reachable", lambda obj, device: False)
    del config.backend


def numbers(*shape: int) -> Any:
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_products() -> None:
    a, b, row = numbers(40, 50), numbers(50, 30), numbers(30)
    there, out = OnDevice(a), OnDevice(np.zeros((40, 30), np.float32))
    close(ops.matmul(there, OnDevice(b)), a @ b)
    close(ops.matmul(a, OnDevice(b), bias=OnDevice(row)), a @ b + row)
    assert ops.matmul(there, b, out=out, activation="relu") is out
    close(out.read(), np.maximum(a @ b, 0))
    close(ops.matmul(there, ops.prepack(OnDevice(b))), a @ b)
    close(ops.matmul(a, ops.prepack(OnDevice(b))), a @ b)


class Bare:
    """What states the interface of another array, and has nothing else."""

    def __init__(self, of: OnDevice) -> None:
        self.__sycl_usm_array_interface__ = of.__sycl_usm_array_interface__


def test_a_place_that_states_nothing_but_the_interface() -> None:
    x, out = numbers(6, 8), OnDevice(np.zeros((6, 8), np.float32))
    bare = Bare(out)
    assert ops.relu(Bare(OnDevice(x)), out=bare) is bare
    close(out.read(), np.maximum(x, 0))
    with pytest.raises(
        LaunchError, match=r"`out` is \(6, 8\), but the result is \(6,\)"
    ):
        ops.sum(OnDevice(x), 1, out=bare)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Each kernel that is launched from now on, and its grid."""
    found: list[tuple[str, Any]] = []
    run = Launch.run_seen

    def noted(self: Launch, *args: Any, **kwargs: Any) -> None:
        found.append((self.kernel.fn.__name__, self.grid))
        run(self, *args, **kwargs)

    monkeypatch.setattr(Launch, "run_seen", noted)
    return found


LONG = 8000
"""Steps of k: no multiple of a part's."""


@pytest.mark.parametrize("m", [1, 16, 70])
def test_parts_of_k(m: int, launched: list[tuple[str, Any]]) -> None:
    """Added in order: the same bits each time, close to the exact sums."""
    a, b, row = numbers(m, LONG), numbers(LONG, 40), numbers(40)
    there, other, bias = OnDevice(a), OnDevice(b), OnDevice(row)
    found = ops.matmul(there, other, bias=bias, activation="relu")
    (first, (x, y, z)), (last, grid) = launched
    assert (first, last) == ("part_of_product", "sum_of_parts")
    assert z > 1
    assert x * y * z > 16
    assert grid[2] == 1
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + row, 0)
    size = np.abs(a).astype(np.float64) @ np.abs(b)
    assert (np.abs(found - exact) <= 1e-6 * size + 1e-6).all()
    again = ops.matmul(there, other, bias=bias, activation="relu")
    assert np.array_equal(found, again)
    at_home = ops.matmul(a, b, bias=row, activation="relu")  # arrays of the host
    assert (np.abs(at_home - exact) <= 1e-6 * size + 1e-6).all()


def test_parts_of_k_of_batches_and_bytes(launched: list[tuple[str, Any]]) -> None:
    a, b = numbers(2, 20, LONG), numbers(2, LONG, 3)
    found = ops.matmul(OnDevice(a), OnDevice(b))
    size = np.abs(a) @ np.abs(b)
    assert (np.abs(found - a.astype(np.float64) @ b) <= 1e-6 * size).all()
    rng = np.random.default_rng(0)
    c, d = rng.integers(-128, 128, (2, 24, LONG), np.int8)
    turned = OnDevice(d, shape=(LONG, 24), strides=(1, LONG))
    product = ops.matmul(OnDevice(c), turned)
    assert np.array_equal(product, c.astype(np.int32) @ d.T.astype(np.int32))
    names = [name for name, _ in launched]
    assert names == ["part_of_product", "sum_of_parts"] * 2


@pytest.mark.slow
def test_tiles_are_those_of_the_backend(launched: list[tuple[str, Any]]) -> None:
    """Of arrays of the host, also if calls like these ran elsewhere before."""
    a, b, one = numbers(512, 64), numbers(64, 512), np.ones(1, np.float32)
    c, d = (np.ones(shape, np.int8) for shape in ((512, 64), (64, 512)))
    calls = [lambda: ops.matmul(a, b), lambda: ops.scaled_mm(c, d, one, one)]
    for call in calls:
        found: dict[str, Any] = {}
        for backend in ("cpu", "xegpu"):
            config.backend = backend
            found[backend] = call()
            found[f"grid of {backend}"] = launched[-1][1]
        close(found["cpu"], found["xegpu"])
        x, y, _ = found["grid of xegpu"]
        assert x * y >= 2 * 16
        assert found["grid of cpu"] != found["grid of xegpu"]


def test_groups() -> None:
    """A group of no rows as well, and rows that are no multiple of a tile."""
    a, b = numbers(70, 33), numbers(3, 33, 20)
    ends = np.array([5, 5, 70], np.int32)
    found = ops.grouped_mm(*(OnDevice(each) for each in (a, b, ends)))
    close(found, np.concatenate([a[:5] @ b[0], a[5:] @ b[2]]))


@pytest.mark.parametrize("is_turned", [False, True])
def test_bytes_with_scales(is_turned: bool) -> None:
    """One for each row and column; no size is a multiple of a tile's."""
    m, n, k = 37, 45, 70
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (n, k)))
    rows, columns, bias = numbers(m, 1), numbers(n), numbers(n)
    there = OnDevice(b, shape=(k, n), strides=(1, k)) if is_turned else OnDevice(b.T)
    there.shape = k, n
    found = ops.scaled_mm(
        OnDevice(a), there, OnDevice(rows), OnDevice(columns), OnDevice(bias)
    )
    sums = a.astype(np.float64) @ b.T.astype(np.float64)
    assert np.abs(sums).max() > 1e5
    np.testing.assert_allclose(found, sums * rows * columns + bias, rtol=0, atol=0.1)
    one = np.full(1, 0.25, np.float32)
    found = ops.scaled_mm(OnDevice(a), there, OnDevice(one), OnDevice(columns))
    np.testing.assert_allclose(found, sums * 0.25 * columns, rtol=2e-7, atol=1e-3)


@pytest.mark.parametrize("m", [1, 3, 18])
def test_weights_of_four_bits(m: int) -> None:
    n, k, groups = 40, 96, 3
    rng = np.random.default_rng(m)
    q = rng.integers(0, 16, (n, k), dtype=np.uint8)
    parts = q.T.reshape(groups, 2, k // groups // 2, n)
    weight = (parts[:, 1] << 4 | parts[:, 0]).reshape(k // 2, n)
    scales, zeros = numbers(groups, n), numbers(n, groups).T.copy()
    x = numbers(m, k).astype(np.float16)
    given = [OnDevice(each) for each in (x, weight, scales, zeros)]
    each = [np.repeat(s.T.astype(np.float64), k // groups, 1) for s in (scales, zeros)]
    expected = x.astype(np.float64) @ ((q - 8.0) * each[0] + each[1]).T
    found = ops.linear_int4(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=4e-3)


@pytest.mark.slow
def test_batches_and_vectors() -> None:
    a, b = numbers(3, 1, 20, 24), numbers(2, 24, 16)
    close(ops.matmul(OnDevice(a), OnDevice(b)), a @ b)
    close(
        ops.matmul(OnDevice(a[0, 0]), OnDevice(b[0, :, 0].copy())), a[0, 0] @ b[0, :, 0]
    )
    turned = OnDevice(b[0].T, shape=(24, 16), strides=(1, 24))
    close(ops.matmul(OnDevice(a[0, 0]), turned), a[0, 0] @ b[0])


def test_rows() -> None:
    x = numbers(7, 90)
    e = np.exp(x - x.max(1, keepdims=True))
    close(ops.softmax(OnDevice(x)), e / e.sum(1, keepdims=True))
    d = x - x.mean(1, keepdims=True)
    expected = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
    out = OnDevice(np.zeros_like(x))
    assert ops.layer_norm(OnDevice(x), out=out) is out
    close(out.read(), expected)


@pytest.mark.parametrize("shape", [(9, 640), (20, 500)])
def test_rows_of_several_subgroups(shape: tuple[int, int]) -> None:
    """As wide as the tile, and narrower."""
    x = np.random.default_rng(5).standard_normal(shape, np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    close(ops.softmax(OnDevice(x)), e / e.sum(1, keepdims=True))
    d = x - x.mean(1, keepdims=True)
    out = OnDevice(np.zeros_like(x))
    ops.layer_norm(OnDevice(x), out=out)
    close(out.read(), d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5))


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the kernels that are launched."""
    names: set[str] = set()

    def choose(*given: Any) -> Any:
        found = choose_kernel(*given)
        names.add(found[0].name if found[0] else "of any arrays")
        return found

    monkeypatch.setattr(executable, "choose_kernel", choose)
    return names


def are_softmax_and_norm(there: OnDevice, x: Any) -> None:
    """Compare both of an array on a device with NumPy's of the same, ``x``."""
    n = x.shape[-1]
    weight, bias = numbers(n), numbers(n + 1)[1:]
    out = OnDevice(np.zeros(x.shape, np.float32))
    e = np.exp(x - x.max(-1, keepdims=True))
    assert ops.softmax(there, out=out) is out
    close(out.read(), e / e.sum(-1, keepdims=True))
    d = x - x.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
    ops.layer_norm(there, weight=OnDevice(weight), bias=OnDevice(bias), out=out)
    close(out.read(), y * weight + bias)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "at"),
    [((5, 1024), 0), ((3, 7, 160), 0), ((2, 2048), 0), ((4, 1040), 0), ((5, 1024), 4)],
)
def test_rows_without_gaps_are_folded(
    shape: tuple[int, ...], at: int, kernels: set[str]
) -> None:
    """By one or two subgroups; not where they begin besides multiples of 64 bytes."""
    every = numbers(int(np.prod(shape)) + 16)
    there = OnDevice(every, shape=shape)
    there.shape, there.__sycl_usm_array_interface__["offset"] = shape, at
    are_softmax_and_norm(there, every[at : at + int(np.prod(shape))].reshape(shape))
    if at == 0 and shape[-1] != 1040:
        assert kernels == {"softmax_folded_rows", "norm_folded_rows"}
    else:
        assert not any("folded" in name for name in kernels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "strides", "are_folded"),
    [
        ((5, 1024), (1040, 1), True),
        ((3, 7, 160), (7 * 176, 176, 1), True),
        ((2, 3, 160), (4 * 176, 176, 1), False),  # no distance from row to row
        ((9, 256), (260, 1), False),
        ((5, 160), (0, 1), False),
    ],
)
def test_rows_with_gaps_are_folded(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    are_folded: bool,
    kernels: set[str],
) -> None:
    """If they are a multiple of 64 bytes apart, an odd number of rows included."""
    last = sum((n - 1) * step for n, step in zip(shape, strides))
    every = numbers(last + 1)
    there = OnDevice(every, shape=shape, strides=strides)
    there.shape = shape
    bytes_ = tuple(4 * step for step in strides)
    are_softmax_and_norm(there, as_strided(every, shape, bytes_))
    assert are_folded == (kernels == {"softmax_folded_rows", "norm_folded_rows"})


def test_attention() -> None:
    q, k, v = numbers(2, 20, 16), numbers(2, 24, 16), numbers(2, 24, 16)
    s = q @ k.swapaxes(1, 2) / 4
    p = np.exp(s - s.max(-1, keepdims=True))
    found = ops.scaled_dot_product_attention(*map(OnDevice, (q, k, v)))
    close(found, p / p.sum(-1, keepdims=True) @ v)


def test_one_query_over_many_keys() -> None:
    q, k, v = numbers(1, 64), numbers(16400, 64), numbers(16400, 80)
    found = ops.scaled_dot_product_attention(*map(OnDevice, (q, k, v)))
    scores = np.exp(np.float64(q) @ np.float64(k).T / 8)
    close(found, scores @ v / scores.sum(-1, keepdims=True))


@pytest.mark.slow
def test_attention_without_keys_is_zero() -> None:
    empty, out = numbers(2, 0, 16), OnDevice(numbers(2, 20, 16))
    ops.scaled_dot_product_attention(numbers(2, 20, 16), empty, empty, out=out)
    close(out.read(), np.zeros((2, 20, 16)))
