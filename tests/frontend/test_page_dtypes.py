"""docs/language.md, section 2: dtypes of results, and what conversions do."""

import numpy as np
import pytest
from page import NUMPY, both, computed, matrix, proves

from xetl import xetile
from xetl.errors import TileTypeError
from xetl.xetile import bf16, f16, f32, f64, i1, i8, i32, i64, tf32, u8, u32

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


# Dtypes -----------------------------------------------------------------------------


@proves("rule: scalars take the vector's dtype")
@both
def test_scalars(backend):
    i, h = matrix("i32"), matrix("f16")
    same(computed(lambda a, b: a * 0.5, i, i, "f32", backend), i * 0.5)
    same(computed(lambda a, b: a * 0.5 + 1, h, h, "f16", backend), h * 0.5 + 1)
    same(computed(lambda a, b: 7 // a, i + 20, i, "i32", backend), 7 // (i + 20))
    same(computed(lambda a, b: a / 2, i, i, "f32", backend), i / 2)


@proves("rule: scalars take the vector's dtype")
@both
@pytest.mark.parametrize(("dtype", "sum"), [("bf16", 2.0**63), ("f16", np.inf)])
def test_integers_of_more_than_64_bits(dtype, sum, backend):
    x = matrix(dtype)
    same(computed(lambda a, b: a + 2**63, x, x, dtype, backend), np.full(x.shape, sum))


@proves("rule: // and % floor, by zero gives 0")
@both
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_narrow_floats_round_once(dtype, backend):
    rng, numpy = np.random.default_rng(0), getattr(xetile, dtype).numpy
    a = (rng.standard_normal((64, 32)) * 40).astype(numpy)
    b = (rng.standard_normal((64, 32)) * 3).astype(numpy)
    b[b == 0] = 1
    wide, by = a.astype(np.float64), b.astype(np.float64)
    for function, wanted in (
        (lambda a, b: a // b, np.floor(wide / by)),
        (lambda a, b: a % b, wide - np.floor(wide / by) * by),
        (lambda a, b: (a * 0 + b) ** 3, by**3),
        (lambda a, b: (a * 0 + b) ** 7, by**7),
    ):
        with np.errstate(over="ignore"):
            same(computed(function, a, b, numpy, backend), wanted, equal_nan=True)


PAIRS = [
    *[("bf16", "f32", "f32"), ("f16", "f64", "f64"), ("i8", "u8", "i16")],
    *[("i8", "i64", "i64"), ("u8", "u32", "u32"), ("u32", "i32", "i64")],
    *[("i64", "f16", "f16"), ("u8", "bf16", "bf16"), ("u64", "f32", "f32")],
]


@proves("rule: vector with vector promotes as NumPy")
@both
@pytest.mark.parametrize(("left", "right", "result"), PAIRS)
def test_promotion(left, right, result, backend):
    a, b = matrix(left), matrix(right, seed=1)
    expected = a.astype(NUMPY[result]) + b.astype(NUMPY[result])
    same(computed(lambda a, b: a + b, a, b, result, backend), expected)
    same(computed(lambda a, b: b + a, a, b, result, backend), expected)


@proves("rule: vector with vector promotes as NumPy")
@pytest.mark.parametrize("pair", [("f16", "bf16"), ("u64", "i8"), ("i1", "i32")])
def test_no_common_dtype(pair):
    a, b = matrix(pair[0]), matrix(pair[1])
    with pytest.raises(TileTypeError, match="no common dtype"):
        computed(lambda a, b: a + b, a, b, "f32", "reference")


@proves("rule: .to")
@both
@pytest.mark.parametrize("source", [*INTS, *FLOATS, "i1"])
def test_to(source, backend):
    a = matrix(source)
    targets = {"i8": i8, "u8": u8, "i32": i32, "i64": i64, "f16": f16, "f32": f32}
    targets |= {"f64": f64, "bf16": bf16, "i1": i1, "u32": u32}
    for name, dtype in targets.items():
        if NUMPY[source] != np.bool_ and np.asarray(a).dtype.kind not in "iu":
            a = np.abs(a)
        with np.errstate(all="ignore"):
            expected = a.astype(NUMPY[name])
        found = computed(to_dtype(dtype), a, a, name, backend)
        same(found, expected)


def to_dtype(dtype):
    return lambda a, b: a.to(dtype)


@proves("rule: .to")
@both
def test_to_truncates_and_wraps(backend):
    a = np.array([[1.9, -1.9, 0.5, -0.5]], np.float32)
    same(computed(lambda a, b: a.to(i32), a, a, "i32", backend), [[1, -1, 0, 0]])
    n = np.array([[300, -1, 256, 127]], np.int32)
    same(computed(lambda a, b: a.to(i8), n, n, "i8", backend), n.astype(np.int8))
    same(computed(lambda a, b: a.to(u8), n, n, "u8", backend), n.astype(np.uint8))
    same(computed(lambda a, b: a.to(i1), a, n, "i1", backend), [[True] * 4])


@proves("rule: the op carries the sign")
@both
def test_signs(backend):
    a, b = matrix("u8") + np.uint8(200), matrix("u8", seed=1) + np.uint8(100)
    same(
        computed(lambda a, b: xetile.maximum(a, b), a, b, "u8", backend),
        np.maximum(a, b),
    )
    same(computed(lambda a, b: a // b, a, b, "u8", backend), a // b)
    same(computed(lambda a, b: a >> 3, a, b, "u8", backend), a >> 3)
    same(computed(lambda a, b: a.to(f32), a, b, "f32", backend), a)
    same(
        computed(lambda a, b: a.to(i32) - b.to(i32), a, b, "i32", backend),
        a.astype(int) - b,
    )
    found = computed(lambda a, b: a.max(1, keepdims=True), a, b, "u8", backend, 1)
    same(found, a.max(1, keepdims=True))


@proves("dtypes")
def test_names_of_dtypes():
    for short, long in (("f32", "float32"), ("bf16", "bfloat16"), ("i1", "bool_")):
        assert getattr(xetile, short) is getattr(xetile, long)
    assert {d.name for d in (tf32, xetile.index, xetile.u16)} == {
        "tf32",
        "index",
        "u16",
    }
