"""Tuples, lists, named tuples and dataclasses as arguments, and ``*args``."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import CheckError, LaunchError, NameLookupError, TileTypeError
from xetl.xetile import constexpr

ROWS, COLUMNS = 8, 16


def numbers(seed: int = 0) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    return random.standard_normal((ROWS, COLUMNS)).astype(np.float32)


@xetile.function
def load(X):
    return xetile.load_tile(xetile.init_tile(X, [0, 0], (ROWS, COLUMNS)))


@xetile.function
def store(v, X):
    xetile.store_tile(v, xetile.init_tile(X, [0, 0], (ROWS, COLUMNS)))


@xetile.kernel(grid=1)
def add_all(Y, *arrays):
    total = load(arrays[0])
    for array in arrays[1:]:
        total = total + load(array)
    xetile.static_assert(len(arrays) < 5)
    store(total, Y)


@xetile.kernel(grid=1)
def nested(pairs, scales, Y):
    (a, b), rest = pairs
    v = load(a) * scales[0] + load(b) * scales[1]
    for i in xetile.static_range(len(rest)):
        v = v + load(rest[i])
    store(v, Y)


class Layer(NamedTuple):
    weight: Any
    scale: float
    activation: Any = None


@dataclass
class Options:
    step: float
    sizes: tuple[int, int] = (ROWS, COLUMNS)
    layers: Any = ()


@xetile.function
def double(v):
    return v + v


@xetile.kernel(grid=1)
def apply(X, layer, options, Y):
    shape = (options.sizes[0], options.sizes[1])
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], shape))
    v = v * load(layer.weight) * layer.scale + options.step
    if layer.activation is not None:
        v = layer.activation(v)
    for each in options.layers:
        v = v + load(each.weight) * each[1]
    store(v, Y)


@pytest.mark.parametrize("backend", ["cpu", "reference", "xegpu"])
def test_the_rest_of_the_arguments(backend: str) -> None:
    if backend == "xegpu":
        pytest.importorskip("dpctl")
    y, arrays = np.empty((ROWS, COLUMNS), np.float32), [numbers(i) for i in range(3)]
    add_all(y, *arrays, backend=backend)
    assert np.allclose(y, sum(arrays))
    add_all(y, arrays[1], backend=backend)
    assert (y == arrays[1]).all()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_nested_tuples_and_lists(backend: str) -> None:
    y = np.empty((ROWS, COLUMNS), np.float32)
    a, b, c, d = map(numbers, range(4))
    for scales in ((2.0, a), [3.0, a]):
        with pytest.raises(TileTypeError):  # an array is no factor
            nested(((a, b), [c, d]), scales, y, backend=backend)
    mixed = ((a, b), [c, d])

    @xetile.kernel(grid=1)
    def scaled(X, Y):
        array, factor, is_twice = X
        v = load(array) * factor
        if is_twice:
            v = v + v
        store(v, Y)

    for factor, twice in ((2.0, True), (3.0, False)):  # of the run: compiled once
        scaled((a, factor, twice), y, backend=backend)
        assert np.allclose(y, a * factor * (2 if twice else 1))
    nested(mixed, Layer(2.0, 3.0), y, backend=backend)
    assert np.allclose(y, 2 * a + 3 * b + c + d, atol=1e-5)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_fields_of_named_tuples_and_dataclasses(backend: str) -> None:
    x, w, y = numbers(1), numbers(2), np.empty((ROWS, COLUMNS), np.float32)
    expected = x * w * 2 + 1
    apply(x, Layer(w, 2.0), Options(1.0), y, backend=backend)
    assert np.allclose(y, expected, atol=1e-6)
    apply(x, Layer(w, 2.0, double), Options(1.0), y, backend=backend)
    assert np.allclose(y, 2 * expected, atol=1e-6)
    layers = [Layer(x, 3.0), Layer(w, 4.0)]
    apply(x, Layer(w, 2.0), Options(1.0, layers=layers), y, backend=backend)
    assert np.allclose(y, expected + 3 * x + 4 * w, atol=1e-5)


def test_constants_with_fields() -> None:
    class Sizes(NamedTuple):
        rows: int
        columns: int

    @xetile.kernel(grid=1)
    def fill(Y, sizes: constexpr, value: constexpr):
        v = xetile.full((sizes.rows, sizes.columns), value.step, Y.dtype)
        xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (sizes[0], sizes[1])))

    y = np.zeros((ROWS, COLUMNS), np.float32)
    fill(y, Sizes(4, 8), Options(3.0))
    assert (y[:4, :8] == 3).all()
    assert y.sum() == 96
    fill(y, Sizes(8, 4), Options(5.0))
    assert (y[:, :4] == 5).all()


def test_code_is_that_of_the_structure() -> None:
    x, y = numbers(), np.empty((ROWS, COLUMNS), np.float32)
    One = namedtuple("One", "a b c")
    Two = namedtuple("Two", "a c b")

    @xetile.kernel(grid=1)
    def pick(X, Y):
        store(load(X.a) * X.b, Y)

    pick(One(x, 2.0, 3.0), y)
    assert np.allclose(y, 2 * x)
    pick(Two(x, 2.0, 3.0), y)
    assert np.allclose(y, 3 * x)
    pick(One(x, 5.0, 3.0), y)
    assert np.allclose(y, 5 * x)


def test_bound_interpreted_and_described() -> None:
    y, a, b = np.empty((ROWS, COLUMNS), np.float32), numbers(0), numbers(1)
    plan = add_all.bind(y, a, b)
    plan()
    assert np.allclose(y, a + b)
    a += 1
    plan()
    assert np.allclose(y, a + b)
    y[:] = 0
    add_all.interpret(y, a, b)
    assert np.allclose(y, a + b)
    with xetl.no_compile():
        add_all.warmup("f32[M,N] f32[M,N] f32[M,N]")
        add_all(y, b, a)
    nested.warmup("((f32[M,N], f32[M,N]), (f32[M,N])) (f32, f32) f32[M,N]")
    text = add_all.ir("xetile", "f32[M,N] f32[M,N] f32[M,N]")
    assert "@add_all(%Y: memref" in text
    assert 'xetile.arg_names = ["Y", "arrays[0]", "arrays[1]"]' in text
    for target in ("avx2", "pvc"):
        assert add_all.ir("llvm", "f32[M,N] f32[M,N] f32[M,N]", target=target)
    assert str(apply.explain(a, Layer(b, 2.0), Options(1.0), y))


def test_a_grid_sees_the_structure() -> None:
    seen: list[Any] = []
    y, a = np.empty((ROWS, COLUMNS), np.float32), numbers()
    add_all[lambda m: seen.append(len(m.arrays)) or 1](y, a, a)
    assert seen == [2]
    assert np.allclose(y, a + a)


def test_arrays_in_tuples_are_written_checked_and_tuned() -> None:
    @xetl.autotune(BM=[4, 8], rep=1, cache_results=False)
    @xetile.kernel(grid=lambda m: ROWS // m.BM)
    def bump(arrays, BM: constexpr):
        for array in arrays:
            i = xetile.program_id(0) * BM
            tile = xetile.init_tile(array, [i, 0], (BM, COLUMNS))
            xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)

    x, y = (np.zeros((ROWS, COLUMNS), np.float32) for _ in range(2))
    bump((x, y))
    assert (x == 1).all()
    assert (y == 1).all()
    y.flags.writeable = False
    with pytest.raises(LaunchError, match=r"`arrays\[1\]` is written by the kernel"):
        bump((x, y))
    with pytest.raises(LaunchError, match="shares memory"):
        bump((x, x[1:]))
    assert (x == 1).all()
    bump((x, x))
    assert (x == 3).all()

    @xetile.kernel(grid=1)
    def outside(arrays):
        xetile.device_print("{}", arrays[0][9, 0])

    with pytest.raises(CheckError, match=r"arrays\[0\]"):
        outside.interpret((x,))


def test_tensors_of_torch_in_tuples() -> None:
    torch: Any = pytest.importorskip("torch")
    y, a, b = torch.zeros(ROWS, COLUMNS), torch.ones(8, 16), torch.ones(8, 16)
    add_all(y, a, b)
    assert (y == 2).all()


def test_calls_like_an_earlier_one_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    y, a, b, c = np.empty((ROWS, COLUMNS), np.float32), *map(numbers, range(3))

    @xetile.kernel(grid=1)
    def both(pair, layer, *more, Y=None, FACTOR: constexpr = 2.0):
        v = load(pair[0]) * layer.scale + load(layer.weight) * FACTOR
        for each in more:
            v = v + load(each)
        store(v, pair[1])

    def launched(*args: Any) -> np.ndarray[Any, Any]:
        args[0][1][:] = 0
        both(*args)
        return args[0][1].copy()

    calls = [
        (((a, y), Layer(b, 3.0)), a * 3 + b * 2),
        (((a, y), Layer(b, 3.0), c), a * 3 + b * 2 + c),
        (((a, y), Layer(b, 3.0), c, a), a * 4 + b * 2 + c),
        (((b, y), Layer(c, 5.0), a, a), b * 5 + c * 2 + a * 2),
        (([a, y], Layer(b, 3.0), c), a * 3 + b * 2 + c),
        (((a, y), Options(3.0), c), None),
    ]
    for args, expected in calls[:5]:
        assert np.allclose(launched(*args), expected, atol=1e-5)
    with pytest.raises(NameLookupError, match="no attribute `scale`"):
        launched(*calls[5][0])
    monkeypatch.setattr(both, "launch_anew", None)  # from here on shortcuts do
    for args, expected in calls[:5]:
        assert np.allclose(launched(*args), expected, atol=1e-5)
    add_all(y, a, b)
    monkeypatch.setattr(add_all, "launch_anew", None)
    add_all(y, b, c)
    assert np.allclose(y, b + c)


def test_torch_is_told_what_was_written() -> None:
    torch: Any = pytest.importorskip("torch")

    @xetile.kernel(grid=1)
    def increase(factors, *arrays):
        for array in arrays:
            store(load(array) + 1.0, array)

    x, y = torch.zeros(ROWS, COLUMNS), torch.zeros(ROWS, COLUMNS)
    for count in (1, 2, 3):
        increase([numbers()], x, y)
        assert (x._version, y._version) == (count, count)
        assert (y == count).all()


def test_helpers_take_any_number_of_arguments() -> None:
    @xetile.function
    def largest(first, *others, least=0.0):
        for each in others:
            first = xetile.maximum(first, each)
        return xetile.maximum(first, least)

    @xetile.kernel(grid=1)
    def k(Y, *arrays):
        values = load(arrays[0]), load(arrays[1])
        store(largest(*values, least=-1.0) + largest(load(arrays[2])), Y)

    y, (a, b, c) = np.empty((8, 16), np.float32), map(numbers, range(3))
    k(y, a, b, c)
    expected = np.maximum(np.maximum(a, b), -1) + np.maximum(c, 0)
    assert np.allclose(y, expected)


def test_errors_name_the_part() -> None:
    y, a = np.empty((ROWS, COLUMNS), np.float32), numbers()
    with pytest.raises(LaunchError, match=r"`arrays\[1\]` is a str"):
        add_all(y, a, "text")
    with pytest.raises(LaunchError, match=r"`layer.weight` has dtype complex64"):
        apply(a, Layer(a.astype(complex).astype("c8"), 1.0), Options(1.0), y)
    with pytest.raises(LaunchError, match="holds more than the 256 values"):
        nested(([a, *range(300)], a), (1.0, a), y)
    with pytest.raises(LaunchError, match="`pairs` is a list, which a kernel"):
        nested([1.0, 2.0], (1.0, a), y)

    @xetile.kernel(grid=1)
    def wrong(layer, Y):
        store(load(layer.weigth), Y)

    with pytest.raises(NameLookupError, match="has no attribute `weigth`") as caught:
        wrong(Layer(a, 1.0), y)
    assert caught.value.help == "did you mean `weight`?"
    for text, said in (
        ("(f32[M,N]", r"a tuple has no `\)`"),
        ("f32[M,N], f32[M,N]", "cannot be read"),
        ("f32[M,N])", "cannot be read"),
    ):
        with pytest.raises(LaunchError, match=said):
            add_all.warmup(text)
