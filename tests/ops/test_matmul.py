"""`xetl.ops.matmul` against NumPy in float64: shapes, layouts, dtypes, epilogues."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xetl
from xetl.errors import LaunchError
from xetl.ops import matmul, prepack
from xetl.ops.products.plans import make_plan

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
}
RESULTS = {**DTYPES, "i8": np.dtype(np.int32), "u8": np.dtype(np.int32)}


def small(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Integers up to 3, and from -3 where there are such: sums of a few are exact."""
    low = 0 if np.dtype(dtype) == np.uint8 else -3
    return np.random.default_rng([seed, *shape]).integers(low, 4, shape).astype(dtype)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def check(a: np.ndarray, b: np.ndarray) -> None:
    result, expected = matmul(a, b), exact(a, b)
    assert result.shape == expected.shape
    assert np.array_equal(result.astype(np.float64), expected)


SHAPES = [
    ((7,), (7,)),
    ((7,), (7, 9)),
    ((9, 7), (7,)),
    ((3, 9, 7), (7,)),
    ((7,), (3, 7, 9)),
    ((1, 1), (1, 1)),
    ((3, 70), (70, 90)),
    ((90, 70), (70, 3)),
    ((300, 33), (33, 16)),
    ((128, 65), (65, 700)),
    ((2, 600), (600, 1500)),
    ((300, 280), (280, 290)),
    ((4, 9, 7), (7, 5)),
    ((4, 9, 7), (4, 7, 5)),
    ((4, 9, 7), (1, 7, 5)),
    ((9, 7), (4, 7, 5)),
    ((2, 3, 9, 7), (3, 7, 5)),
    ((2, 1, 9, 7), (1, 3, 7, 5)),
    ((2, 1, 2, 9, 7), (3, 1, 7, 5)),
    ((3, 2, 90, 7), (3, 1, 7, 2)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(small(*left), small(*right, seed=1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((0, 5), (5, 3)),
        ((4, 5), (5, 0)),
        ((0, 4, 5), (5, 3)),
        ((4, 0), (0, 3)),
        ((0,), (0,)),
        ((300, 0), (0, 2)),
        ((2, 3, 0), (2, 0, 70)),
        ((5, 4, 3), (0, 1, 3, 2)),
        ((0, 5, 4, 3), (5, 3, 2)),
    ],
    ids=str,
)
def test_empty_dimensions(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = small(*left), small(*right)
    check(a, b)
    row = small(right[-1] if len(right) > 1 else 1)
    expected = np.maximum(exact(a, b) + (row if len(right) > 1 else row[0]), 0)
    assert np.array_equal(matmul(a, b, bias=row, activation="relu"), expected)


SMALL = [
    ((70, 3, 3), (70, 3, 1)),
    ((70, 3, 3), (70, 3, 3)),
    ((70, 1, 4), (70, 4, 4)),
    ((3, 3), (70, 3, 1)),
    ((5, 20, 2, 5), (20, 5, 1)),
    ((130, 2), (130, 2, 3)),
    ((300, 3), (3, 4)),
    ((64, 300, 3), (64, 3, 3)),
]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(("left", "right"), SMALL, ids=str)
def test_many_small_matrices(
    name: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """Rotations of points: each lane has a matrix, or a row, of its own."""
    dtype = DTYPES[name]
    a = small(*left, dtype=dtype)
    b, turned = small(*right, dtype=dtype), small(*right[:-2], *right[:-3:-1])
    for factor in (b, turned.astype(dtype).swapaxes(-1, -2)):
        result, wanted = matmul(a, factor), exact(a, factor)
        assert np.array_equal(result, wanted.astype(RESULTS[name]))
    bias = small(right[-1], dtype=RESULTS[name])
    wanted = np.maximum(exact(a, b) + bias.astype(np.float64), 0)
    out = np.full(wanted.shape, 7, RESULTS[name])
    assert matmul(a, b, out, bias=bias, activation="relu") is out
    assert np.array_equal(out, wanted.astype(RESULTS[name]))


@pytest.mark.parametrize("place", [0, 1])
def test_small_matrices_do_not_mix(place: int) -> None:
    """An infinity in one is in no other's result."""
    a, b = small(70, 3, 3), small(70, 3, 3, seed=1)
    (a, b)[place][33] = np.inf
    others = np.arange(70) != 33
    assert np.array_equal(matmul(a, b)[others], exact(a[others], b[others]))


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_a_table_of_few_columns_is_read_as_it_lies(name: str, columns: int) -> None:
    """``X.T @ y``: turning X first took up to seven times as long."""
    dtype = DTYPES[name]
    table, y = small(600, columns, dtype=dtype), small(600, dtype=dtype, seed=1)
    assert make_plan(table.T, y, None, None, None, False, is_packed=False).method.swaps
    bias, out = np.ones(1, np.float32), np.empty(columns, np.float64)
    assert np.array_equal(matmul(table.T, y, out, bias), exact(table.T, y) + 1)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("rows", [1, 3, 5, 18, 32, 33])
@pytest.mark.parametrize("k", [70, 5000])
def test_a_few_rows_times_weights_of_linear(name: str, rows: int, k: int) -> None:
    """Columns of B are contiguous, and may be read where they are (`dots.py`)."""
    x = small(rows, k, dtype=DTYPES[name])
    weight = small(300, k, dtype=DTYPES[name], seed=1)
    assert np.array_equal(matmul(x, weight.T), exact(x, weight.T).astype(RESULTS[name]))
    product = exact(weight, x[0]).astype(RESULTS[name])
    assert np.array_equal(matmul(weight, x[0]), product)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(1, 20, 30), (50, 40, 60), (50, 40, 2)], ids=str)
def test_dtypes(name: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = small(m, k, dtype=DTYPES[name]), small(k, n, dtype=DTYPES[name])
    result = matmul(a, b)
    assert result.dtype == RESULTS[name]
    expected = exact(a, b).astype(RESULTS[name])
    assert np.array_equal(result, expected)


BYTES = [(one, other) for one in (np.int8, np.uint8) for other in (np.int8, np.uint8)]


@pytest.mark.parametrize(("one", "other"), BYTES)
@pytest.mark.parametrize(
    "shape",
    [(1, 67, 40), (3, 130, 9), (9, 20, 30), (70, 129, 300), (33, 9001, 17)],
    ids=str,
)
def test_the_extremes_of_bytes(one: Any, other: Any, shape: Any) -> None:
    """Of any sign each, packed or in place, once or before: sums do not saturate."""
    m, k, n = shape
    rng = np.random.default_rng([*shape])
    ends = {np.int8: [-128, -128, 127], np.uint8: [255, 255, 0]}
    a, b = rng.choice(ends[one], (m, k)), rng.choice(ends[other], (k, n))
    a[0], b[:, 0] = ends[one][0], ends[other][0]
    a, b, wanted = a.astype(one), b.astype(other), a @ b
    for factor in (b, np.asfortranarray(b), prepack(b)):
        assert np.array_equal(matmul(a, factor), wanted)
    assert np.array_equal(matmul(np.asfortranarray(a), b), wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_prepacked_bytes_meet_both_signs(dtype: Any) -> None:
    b = small(70, 90, dtype=dtype)
    packed = prepack(b)
    for sign in (np.int8, np.uint8, np.int8):
        a = small(80, 70, dtype=sign)
        assert np.array_equal(matmul(a, packed), exact(a, b))


def layouts(rows: int, columns: int, seed: int) -> list[np.ndarray]:
    """The same extents laid out in every way."""
    plain = small(rows, columns, seed=seed)
    return [
        plain,
        np.asfortranarray(plain),
        small(rows + 5, columns + 3, seed=seed)[2:-3, 1:-2],
        small(rows, 2 * columns, seed=seed)[:, ::2],
        plain[::-1],
        plain[:, ::-1],
        np.broadcast_to(plain[:1], plain.shape),
        np.broadcast_to(plain[:, :1], plain.shape),
    ]


@pytest.mark.parametrize("shape", [(37, 41, 43), (3, 41, 43), (37, 41, 3)], ids=str)
def test_layouts(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    for a, b in itertools.product(layouts(m, k, 0), layouts(k, n, 1)):
        check(a, b)


def test_batches_in_any_order_of_memory() -> None:
    heads = small(3, 20, 4, 30).transpose(0, 2, 1, 3)  # as attention has them
    keys = small(3, 25, 4, 30, seed=1).transpose(0, 2, 3, 1)
    check(heads, keys)
    check(heads, keys[:, :1])
    five = small(2, 3, 2, 2, 20, 30).transpose(3, 1, 2, 0, 4, 5)
    check(five, small(2, 30, 9))
    check(five[:, :, ::-1], small(2, 3, 1, 2, 30, 9))


@pytest.mark.parametrize("name", ["bf16", "i8", "f32"])
@pytest.mark.parametrize("width", [48, 50, 64])  # whole lines, or not
def test_batches_larger_than_a_cache(name: str, width: int) -> None:
    """Each result fits caches, all do not; strips end with few rows and columns."""
    shape = 2 * (1 << 20) // (45 * width * RESULTS[name].itemsize) + 1, 45, width
    a = small(*shape[:2], 20, dtype=DTYPES[name])
    b = small(shape[0], 20, width, dtype=DTYPES[name])
    result, expected = matmul(a, b), exact(a, b).astype(RESULTS[name])
    assert np.array_equal(result, expected)


def test_rows_of_a_batch_become_one_product() -> None:
    a, b = small(6, 50, 30), small(30, 70)
    check(a, b)
    check(a[::2], b)
    check(a.transpose(1, 0, 2), b)
    out = np.zeros((70, 6, 50), np.float32).transpose(1, 2, 0)
    assert matmul(a, b, out) is out
    assert np.array_equal(out, exact(a, b))


EPILOGUES = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", EPILOGUES)
@pytest.mark.parametrize("shape", [(50, 20, 60), (2, 20, 60), (50, 20, 3)], ids=str)
def test_epilogues(activation: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(3)
    a, b, bias = (rng.uniform(-1, 1, s) for s in ((m, k), (k, n), (n,)))
    for with_bias in (False, True):
        given = bias if with_bias else None
        expected = EPILOGUES[activation](a @ b + (bias if with_bias else 0))
        wide = matmul(a, b, bias=given, activation=activation)
        np.testing.assert_allclose(wide, expected, rtol=1e-13, atol=1e-13)
        narrow = [None if x is None else x.astype(np.float32) for x in (a, b, given)]
        x, y, row = narrow
        got = matmul(x, y, bias=row, activation=activation)
        # 20 products and the epilogue, each within an ulp or a few of numbers below 20.
        np.testing.assert_allclose(got, expected, rtol=4e-6, atol=4e-6)


def test_the_bias_of_a_batch_and_of_a_vector() -> None:
    a, b, bias = small(3, 9, 7), small(7, 5), small(5)
    assert np.array_equal(matmul(a, b, bias=bias), exact(a, b) + bias)
    stacked = small(3, 7, 5)
    assert np.array_equal(matmul(a, stacked, bias=bias), exact(a, stacked) + bias)
    one = small(1)
    assert np.array_equal(matmul(a, b[:, 0], bias=one), exact(a, b[:, 0]) + one)


def test_an_epilogue_is_rounded_once() -> None:
    a, b = (small(40, 40, dtype=ml_dtypes.bfloat16, seed=s) for s in (0, 1))
    bias = np.linspace(-1, 1, 40, dtype=np.float32)
    result = matmul(a, b, bias=bias)
    sums = exact(a, b).astype(np.float32) + bias
    assert np.array_equal(result, sums.astype(ml_dtypes.bfloat16))


def test_one_array_as_both_operands() -> None:
    a, b = small(40, 40), small(40, 40, seed=1)
    for _ in range(2):
        for right in (a, b, a.T):
            check(a, right)


def test_long_dot_products() -> None:
    a, b = small(5000), small(5000, seed=1)
    check(a, b)
    check(a[::-1], b[::2].repeat(2))
    check(small(3, 2, 5000), b)
    check(small(3, 1, 5000), small(3, 5000, 1))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(1, 300_001, 1), (10, 40_000, 10), (3, 33_000, 70), (70, 16_385, 64)],
    ids=str,
)
def test_few_tiles_and_a_long_k_are_parts(
    name: str, shape: tuple[int, int, int]
) -> None:
    (m, k, n), dtype = shape, DTYPES[name]
    rng = np.random.default_rng(k)
    low = 0 if name == "u8" else -1
    a, b = (rng.integers(low, 2, at).astype(dtype) for at in ((m, k), (n, k)))
    bias = rng.integers(-9, 9, n).astype(RESULTS[name])
    plan = make_plan(a, b.T, None, bias, "relu", False, False)
    assert plan.method.parts is not None
    found = matmul(a, b.T, bias=bias, activation="relu")
    expected = np.maximum(exact(a, b.T) + bias.astype(np.float64), 0)
    assert np.array_equal(found, expected.astype(found.dtype))
    assert np.array_equal(
        matmul(a.T.copy().T, b.copy().T), exact(a, b.T).astype(found.dtype)
    )


def test_out_decides_the_dtype() -> None:
    a, b = (small(20, 20, dtype=ml_dtypes.bfloat16, seed=s) for s in (0, 1))
    out = np.empty((20, 20), np.float32)
    assert matmul(a, b, out=out) is out
    assert np.array_equal(out, exact(a, b))
    bytes_ = a.astype(np.int8), b.astype(np.int8)
    wide = matmul(*bytes_, np.empty((20, 20), np.float64), activation="tanh")
    np.testing.assert_allclose(wide, np.tanh(exact(a, b)), atol=1e-6)
    number = np.empty((), np.float32)
    assert matmul(a[0], b[:, 0], number) is number
    assert number == exact(a[0], b[:, 0])


any_shape = given(
    m=st.integers(1, 70),
    k=st.integers(0, 70),
    n=st.integers(1, 70),
    batch=st.lists(st.integers(0, 3), max_size=3),
    columns=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    seed=st.integers(0, 9),
)


@settings(max_examples=10)  # some examples compile
@any_shape
def test_any_shape(**shape: Any) -> None:
    check_shape(**shape)


@pytest.mark.slow
@settings(max_examples=100)
@any_shape
def test_many_shapes(**shape: Any) -> None:
    check_shape(**shape)


def check_shape(
    m: int, k: int, n: int, batch: list[int], columns: Any, seed: int
) -> None:
    def make(rows: int, cols: int, by_columns: bool) -> np.ndarray:
        if not by_columns:
            return small(*batch, rows, cols, seed=seed)
        return small(*batch, cols, rows, seed=seed).swapaxes(-1, -2)

    a, b = make(m, k, columns[0]), make(k, n, columns[1])
    out = make(m, n, columns[2])
    matmul(a, b, out)
    assert np.array_equal(out, exact(a, b))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = torch.randint(-3, 4, (3, 40, 30)).to(torch.bfloat16)
    b = torch.randint(-3, 4, (20, 30)).to(torch.bfloat16).T
    result = matmul(a, b, activation="relu")
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.bfloat16
    assert torch.equal(result, torch.relu(a.double() @ b.double()).to(torch.bfloat16))
    out = torch.empty(3, 40, 20)
    assert matmul(a, b, out=out) is out
    assert torch.equal(out, (a.double() @ b.double()).float())
    assert torch.equal(matmul(a[0, 0], b[:, 0]), a[0, 0] @ b[:, 0])


def test_other_arrays() -> None:
    class Foreign:
        """Something that speaks DLPack only."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    a, b = small(20, 30), small(30, 10)
    assert np.array_equal(matmul(Foreign(a), Foreign(b)), exact(a, b))


def test_the_reference_backend_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, bias = small(2, 9, 40), small(2, 40, 11), small(11)
    ours = matmul(a, b, bias=bias, activation="silu")
    monkeypatch.setenv("XETL_BACKEND", "reference")
    theirs = matmul(a, b, bias=bias, activation="silu")
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def refused(code: str, *args: Any, **keywords: Any) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        matmul(*args, **keywords)
    assert caught.value.code == code
    assert caught.value.file == __file__
    return caught.value


def test_wrong_shapes() -> None:
    error = refused("X0827", small(4, 3), small(4, 5))
    assert "(4, 3) by (4, 5)" in error.message
    refused("X0827", small(3), small(4))
    refused("X0827", small(2, 4, 3), small(3, 3, 5))
    error = refused("X0827", small(4, 3), small(3, 5), out=small(5, 4))
    assert "(5, 4)" in error.message
    assert "(4, 5)" in error.message
    refused("X0827", small(4, 3), small(3, 5), bias=small(4))
    refused("X0827", small(4, 3), small(3, 5), bias=small(1, 5))
    refused("X0827", small(0, 3), small(4, 0))
    refused("X0827", small(3), small(3), out=small(1))
    refused("X0827", small(1, 3), small(3), out=small(1)[0:1].reshape(()))


def test_wrong_dtypes() -> None:
    a, b = small(4, 3), small(3, 5)
    refused("X0828", a, b.astype(np.float64))
    refused("X0828", a.astype(np.int32), b.astype(np.int32))
    refused("X0828", a > 0, b > 0)
    refused("X0828", a, b, out=np.empty((4, 5), np.int32))
    refused("X0828", a, b, bias=np.zeros(5))
    refused("X0828", a, b, bias=np.zeros(5, np.int8))
    eights = a.astype(np.int8), b.astype(np.int8)
    refused("X0828", *eights, activation="gelu")
    refused("X0828", *eights, bias=np.zeros(5, np.uint32))
    refused("X0805", a, 2.0)
    refused("X0805", np.float32(1.0), b)
    refused("X0805", a.astype(np.complex64), b)


def test_wrong_activation() -> None:
    error = refused("X0829", small(4, 3), small(3, 5), activation="rleu")
    assert "relu" in (error.help or "")
    refused("X0829", small(4, 3), small(3, 5), activation=np.tanh)
    refused("X0829", small(4, 3), small(3, 5), activation=["relu"])


def test_out_that_shares_memory() -> None:
    a, b = small(6, 6), small(6, 6, seed=1)
    before = a.copy()
    assert "`a`" in refused("X0807", a, b, out=a).message
    assert "`b`" in refused("X0807", a, b, out=b.T).message
    out = small(6, 6, seed=2)
    assert "`bias`" in refused("X0807", a, b, out=out, bias=out[3]).message
    refused("X0807", a[:3], b, out=a[2:5])
    assert np.array_equal(a, before)
    both = small(6, 12)
    matmul(both[:, ::2], b, out=both[:, 1::2])  # side by side, not the same elements
    assert np.array_equal(both[:, 1::2], exact(both[:, ::2], b))


def test_out_that_cannot_be_written() -> None:
    out = np.zeros((6, 6), np.float32)
    out.flags.writeable = False
    refused("X0806", small(6, 6), small(6, 6), out=out)
    one_row = np.lib.stride_tricks.as_strided(np.zeros(6, np.float32), (6, 6), (0, 4))
    refused("X0807", small(6, 6), small(6, 6), out=one_row)


def test_the_package_is_found() -> None:
    assert xetl.ops.matmul is matmul
    assert "ops" in dir(xetl)
