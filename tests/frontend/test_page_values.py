"""docs/language.md, section 2: values: making, computing, reducing them."""

import math

import numpy as np
import pytest
from page import NUMPY, both, computed, matrix, proves

from xetl import xetile
from xetl.xetile import f32, i32, i64

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]


def same(found, expected, **tolerance):
    expected = np.asarray(expected).astype(found.dtype)
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
    else:
        options = {"rtol": 1e-6, "atol": 0} | tolerance
        np.testing.assert_allclose(
            found.astype(np.float64), expected.astype(np.float64), **options
        )


# Elementwise ------------------------------------------------------------------------

ARITHMETIC = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "square": lambda a, b: a**2 + b**3,
    "minus": lambda a, b: -a + abs(b),
    "scalar": lambda a, b: 3 - a * 2 + b,
}
BITS = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | 3 ^ b,
    "not": lambda a, b: ~a ^ b,
    "shift": lambda a, b: (a << 2) + (b >> 1),
}


@proves("arithmetic")
@both
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["i8", "u16", "f16", "f64"])
def test_arithmetic(name, dtype, backend):
    a, b = matrix(dtype, high=5), matrix(dtype, seed=1, high=5)
    if a.dtype.kind == "i":
        a, b = np.clip(a, -4, 4), np.clip(b, -4, 4)
    function = ARITHMETIC[name]
    same(computed(function, a, b, dtype, backend), function(a, b))


@proves("arithmetic")
@both
@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", ["i8", "u8", "u64"])
def test_bits(name, dtype, backend):
    a, b = matrix(dtype), matrix(dtype, seed=1)
    same(computed(BITS[name], a, b, dtype, backend), BITS[name](a, b))


@proves("rule: // and % floor, by zero gives 0")
@both
@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32"])
def test_floor_division(dtype, backend):
    a, b = matrix(dtype, (9, 9)), matrix(dtype, (9, 9), seed=1, low=-3, high=4)
    if dtype[0] == "i":
        a[0, 0], b[0, 0] = np.iinfo(a.dtype).min, -1
    with np.errstate(all="ignore"):
        quotient, rest = a // b, a % b
    quotient[b == 0], rest[b == 0] = 0, 0
    same(computed(lambda a, b: a // b, a, b, dtype, backend), quotient)
    same(computed(lambda a, b: a % b, a, b, dtype, backend), rest)
    same(computed(lambda a, b: a // 3 + a % 4, a, b, dtype, backend), a // 3 + a % 4)


@proves("rule: // and % floor, by zero gives 0")
@both
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_float_floor_division(dtype, backend):
    a, b = matrix(dtype) / 4, matrix(dtype, seed=1) / 2 + NUMPY[dtype].type(0.25)
    b[::2, ::3], b[1::2, ::3] = np.inf, -np.inf
    same(computed(lambda a, b: a // b, a, b, dtype, backend), a // b)
    same(computed(lambda a, b: a % b, a, b, dtype, backend), a % b)


@proves("arithmetic")
@both
def test_division_and_powers(backend):
    a, b = matrix("i32"), np.abs(matrix("i32", seed=1)) + 1
    same(computed(lambda a, b: a / b, a, b, "f32", backend), a / b)
    x, y = matrix("f32", low=1), matrix("f32", seed=1, low=-3, high=4)
    same(computed(lambda a, b: a**b, x, y, "f32", backend), x**y)
    same(computed(lambda a, b: a**0.5, x, y, "f32", backend), x**0.5)
    same(computed(lambda a, b: a**-1, x, y, "f32", backend), 1 / x)
    same(computed(lambda a, b: 2.0**b, x, y, "f32", backend), 2.0**y)
    same(computed(lambda a, b: a**0, x, y, "f32", backend), np.ones_like(x))
    c, d = matrix("i64", high=4), matrix("i64", seed=1)
    same(computed(lambda a, b: a**31 + b**0, c, d, "i64", backend), c**31 + 1)


COMPARISONS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "chained": lambda a, b: (a > 1) & (a <= 5) | ~(b != 2) ^ (b < 3),
}


@proves("rule: i1")
@both
@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["u8", "i64", "f16"])
def test_comparisons(name, dtype, backend):
    a, b = matrix(dtype, (16, 16)), matrix(dtype, (16, 16), seed=1)
    if dtype == "u8":
        a = (a + 250).astype(a.dtype)
    function = COMPARISONS[name]
    same(computed(function, a, b, "i1", backend), function(a, b))


@proves("arithmetic")
@both
def test_chained_comparison_of_vectors(backend):
    a, b = matrix("i32"), matrix("i32", seed=1)
    found = computed(lambda a, b: -2 < a <= b, a, b, "i1", backend)
    same(found, (a > -2) & (a <= b))


@proves("rule: i1")
@both
def test_masks(backend):
    a, b = matrix("i1"), matrix("i1", seed=1)
    same(computed(lambda a, b: a & b | ~a ^ b, a, b, "i1", backend), a & b | ~a ^ b)
    same(
        computed(lambda a, b: (a == b) & (a != (a == a)), a, b, "i1", backend),
        (a == b) & ~a,
    )
    count = computed(lambda a, b: a.to(i32).sum(1)[:, None], a, b, "i32", backend, 1)
    same(count, a.sum(1, keepdims=True))
    same(computed(lambda a, b: xetile.where(a, 1, 0), a, b, "i32", backend), a)
    same(
        computed(lambda a, b: xetile.where(a, 1.5, 0.0), a, b, "f32", backend), a * 1.5
    )
    same(computed(lambda a, b: xetile.where(a, b, a), a, b, "i1", backend), a & b)


@proves("arithmetic")
@both
@pytest.mark.parametrize("dtype", ["i16", "u8", "f16", "f32", "f64"])
def test_choosing(dtype, backend):
    a, b = matrix(dtype), matrix(dtype, seed=1)
    run = lambda f, d=dtype: computed(f, a, b, d, backend)
    same(run(lambda a, b: xetile.minimum(a, b)), np.minimum(a, b))
    same(run(lambda a, b: xetile.maximum(a, 2)), np.maximum(a, 2))
    same(run(lambda a, b: xetile.maximum(3, b)), np.maximum(3, b))
    same(run(lambda a, b: xetile.where(a > b, a, 3)), np.where(a > b, a, 3))
    same(run(lambda a, b: xetile.where(True, a, b)), a)
    same(run(lambda a, b: xetile.abs(a) + abs(b)), abs(a) + abs(b))
    same(run(lambda a, b: xetile.fma(a, b, 2)), a * b + a.dtype.type(2), rtol=2e-3)


@proves("arithmetic")
@both
def test_nan_propagates(backend):
    a = np.array([[1, np.nan, 3, np.nan]], np.float32)
    b = np.array([[np.nan, 2, 1, 5]], np.float32)
    for function in (
        lambda a, b: xetile.minimum(a, b),
        lambda a, b: xetile.maximum(a, b),
    ):
        found = computed(function, a, b, "f32", backend)
        assert list(np.isnan(found[0])) == [True, True, False, True]
    found = computed(lambda a, b: a.max(1, keepdims=True), a, b, "f32", backend, 1)
    assert np.isnan(found).all()


MATH = {
    "exp": (lambda a, b: xetile.exp(a), np.exp),
    "exp2": (lambda a, b: xetile.exp2(a), np.exp2),
    "log": (lambda a, b: xetile.log(a * a + 1), lambda a: np.log(a * a + 1)),
    "log2": (lambda a, b: xetile.log2(a * a + 1), lambda a: np.log2(a * a + 1)),
    "sqrt": (lambda a, b: xetile.sqrt(abs(a)), lambda a: np.sqrt(abs(a))),
    "rsqrt": (lambda a, b: xetile.rsqrt(a * a + 1), lambda a: (a * a + 1) ** -0.5),
    "sin": (lambda a, b: xetile.sin(a), np.sin),
    "cos": (lambda a, b: xetile.cos(a), np.cos),
    "tanh": (lambda a, b: xetile.tanh(a), np.tanh),
    "erf": (lambda a, b: xetile.erf(a), np.vectorize(math.erf)),
    "sigmoid": (lambda a, b: xetile.sigmoid(a), lambda a: 1 / (1 + np.exp(-a))),
    "floor": (lambda a, b: xetile.floor(a / 4), lambda a: np.floor(a / 4)),
    "ceil": (lambda a, b: xetile.ceil(a / 4), lambda a: np.ceil(a / 4)),
    "round": (lambda a, b: xetile.round(a / 2), lambda a: np.round(a / 2)),
    "constants": (
        lambda a, b: xetile.where(a > 0, a * 0 + xetile.pi, xetile.inf),
        lambda a: np.where(a > 0, np.pi, np.inf),
    ),
}


@proves("math")
@both
@pytest.mark.parametrize("name", MATH)
@pytest.mark.parametrize("dtype", FLOATS)
def test_math(name, dtype, backend):
    a = matrix(dtype)
    function, reference = MATH[name]
    found = computed(function, a, a, dtype, backend)
    rtol = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-6, "f64": 1e-13}[dtype]
    same(found, reference(a.astype(np.float64)), rtol=rtol, atol=rtol)


@proves("rule: math on integers is f32")
@both
@pytest.mark.parametrize("dtype", ["i8", "u32", "i64"])
def test_math_on_integers(dtype, backend):
    a = matrix(dtype, high=5)
    found = computed(lambda a, b: xetile.exp(a), a, a, "f32", backend)
    same(found, np.exp(a.astype(np.float64)))


# Making -----------------------------------------------------------------------------


@proves("make")
@both
@pytest.mark.parametrize("dtype", [*INTS, *FLOATS, "i1"])
def test_making(dtype, backend):
    kind = getattr(xetile, dtype)
    a = matrix(dtype, (4, 4))
    wanted = np.full((4, 4), 3).astype(NUMPY[dtype])
    same(
        computed(lambda a, b: xetile.full((4, 4), 3, kind), a, a, dtype, backend),
        wanted,
    )
    same(
        computed(lambda a, b: xetile.zeros((4, 4), kind), a, a, dtype, backend),
        0 * wanted,
    )
    same(
        computed(
            lambda a, b: xetile.full([4, 4], value=3.7, dtype=kind).to(f32),
            a,
            a,
            "f32",
            backend,
        ),
        np.full((4, 4), 3.7).astype(NUMPY[dtype]),
    )


@proves("make")
@proves("rule: scalar ints are 64-bit, arange is i32")
@both
def test_shapes(backend):
    a = matrix("f32", (4, 6))
    run = lambda f, d="f32", c=None: computed(f, a, a, d, backend, c)
    grid = np.arange(4)[:, None] * 10 + np.arange(2, 8)[None, :]
    same(
        run(lambda a, b: xetile.arange(4)[:, None] * 10 + xetile.arange(2, 8), "i32"),
        grid,
    )
    same(run(lambda a, b: a.reshape(6, 4).T), a.reshape(6, 4).T)
    same(run(lambda a, b: xetile.reshape(a.reshape(24), (4, 6))), a)
    same(run(lambda a, b: a.T.reshape((4, 6))), a.T.reshape(4, 6))
    same(run(lambda a, b: a.T.reshape(4, -1)), a.T.reshape(4, 6))
    same(run(lambda a, b: xetile.reshape(a.reshape(-1), (-1, 6))), a)
    same(
        run(lambda a, b: a.sum(0)[None, :] + a.sum(1)[:, None]),
        a.sum(0) + a.sum(1)[:, None],
    )
    same(
        run(lambda a, b: xetile.full((4, 6), 2**40, i64), "i64"), np.full((4, 6), 2**40)
    )

    def attributes(a, b):
        xetile.static_assert(a.shape == (4, 6) and a.ndim == 2 and a.dtype == f32)
        row = a.sum(0)
        xetile.static_assert(row.shape == (6,) and row.ndim == 1 and len(row) == 6)
        return a

    same(run(attributes), a)


# Reductions -------------------------------------------------------------------------

SUMS = {
    "sum": (lambda a, x: a.sum(x, keepdims=True), np.sum),
    "prod": (lambda a, x: a.prod(axis=x, keepdims=True), np.prod),
    "max": (lambda a, x: xetile.max(a, x, True), np.max),
    "min": (lambda a, x: xetile.min(a, axis=x, keepdims=True), np.min),
    "tile_reduce": (lambda a, x: xetile.tile_reduce("add", a, [x]), np.sum),
}


@proves("reduce sugar")
@proves("rule: reductions keep the dtype")
@both
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", ["i8", "i64", "f16", "f32"])
def test_reductions(name, dtype, backend):
    a = matrix(dtype, (4, 6), low=-2, high=3)
    function, reference = SUMS[name]
    for axis in (0, 1, -1):
        expected = reference(a, axis=axis, keepdims=True).astype(a.dtype)
        expected = np.broadcast_to(expected, a.shape)
        found = computed(reduced(function, axis), a, a, dtype, backend)
        same(found, expected)


def reduced(function, axis):
    f = xetile.function(function)
    return lambda a, b: xetile.where(a == a, f(a, axis), f(a, axis))


@proves("reduce sugar")
@both
@pytest.mark.parametrize("dtype", ["i32", "u8", "f16", "f32"])
def test_arg_extrema(dtype, backend):
    a = matrix(dtype, (6, 8), low=-3, high=3)
    run = lambda f, c: computed(f, a, a, "i32", backend, c)
    same(run(lambda a, b: a.argmax(1)[:, None], 1), a.argmax(1)[:, None])
    same(run(lambda a, b: xetile.argmin(a, 1, keepdims=True), 1), a.argmin(1)[:, None])
    found = run(lambda a, b: a.argmax(0)[None, :] + xetile.zeros((6, 8), i32), 8)
    same(found, np.broadcast_to(a.argmax(0), (6, 8)))
    found = run(lambda a, b: xetile.zeros((6, 8), i32) + a.argmin(), 8)
    same(found, np.full((6, 8), a.argmin()))


@proves("reduce sugar")
@both
@pytest.mark.parametrize("dtype", ["i8", "f16", "f32", "f64"])
def test_cumsum(dtype, backend):
    a = matrix(dtype, (5, 6))
    run = lambda f: computed(f, a, a, dtype, backend)
    same(run(lambda a, b: a.cumsum(1)), a.cumsum(1, dtype=a.dtype))
    same(run(lambda a, b: xetile.cumsum(a, axis=-2)), a.cumsum(0, dtype=a.dtype))
    same(
        run(lambda a, b: a.cumsum().reshape(5, 6)),
        a.cumsum(dtype=a.dtype).reshape(5, 6),
    )


@proves("vector")
@both
@pytest.mark.parametrize("kind", ["add", "mul", "max", "min", "and", "or", "xor"])
def test_kinds(kind, backend):
    a = matrix("i32", (3, 5))
    table = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    table |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    expected = np.broadcast_to(table[kind].reduce(a, axis=1, keepdims=True), a.shape)
    found = computed(
        lambda a, b: xetile.tile_broadcast(
            xetile.tile_reduce(kind, a, [1]), [1], (3, 5)
        ),
        *(a, a, "i32", backend),
    )
    same(found, expected)


@proves("vector")
@both
def test_transposes_and_broadcasts(backend):
    a = matrix("f32", (4, 4))
    run = lambda f: computed(f, a, a, "f32", backend)
    same(run(lambda a, b: xetile.tile_transpose(a, [1, 0])), a.T)
    same(run(lambda a, b: xetile.tile_transpose(a)), a.T)
    row = xetile.function(lambda a: xetile.tile_reduce("add", a, 0))
    same(
        run(lambda a, b: xetile.tile_broadcast(row(a), 0, [4, 4])),
        np.tile(a.sum(0), (4, 1)),
    )


# Products ---------------------------------------------------------------------------

MMA = [
    *[("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32")],
    *[("f64", "f64", "f64"), ("i8", "i8", "i32"), ("u8", "i8", "i32")],
    *[("i8", "u8", "i32"), ("u8", "u8", "i32")],
]


@proves("rule: tile_mma accumulators")
@both
@pytest.mark.parametrize(("left", "right", "result"), MMA)
def test_products(left, right, result, backend):
    a, b = matrix(left, (6, 6)), matrix(right, (6, 6), seed=1)
    if left == "u8":
        a[0] = 255
    exact = a.astype(np.float64) @ b.astype(np.float64)
    same(computed(lambda a, b: a @ b, a, b, result, backend), exact)
    same(computed(lambda a, b: xetile.tile_mma(a, b), a, b, result, backend), exact)
    found = computed(lambda a, b: xetile.tile_mma(a, b, a @ b), a, b, result, backend)
    same(found, 2 * exact)


@proves("rule: tile_mma accumulators")
@both
@pytest.mark.parametrize("precision", ["tf32", "bf16x3", "ieee"])
def test_precisions(precision, backend):
    a, b = matrix("f32", (8, 8)), matrix("f32", (8, 8), seed=1)
    found = computed(
        lambda a, b: xetile.tile_mma(a, b, precision=precision), a, b, "f32", backend
    )
    same(found, a @ b)
