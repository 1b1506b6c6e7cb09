"""Functions of numbers and bits against NumPy in float64, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import NUMPY, computed
from xetl import xetile

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
SHAPE = (3, 40)

# Of one number: what NumPy calls it, and the range to test.
OF_ONE = {
    "trunc": (np.trunc, -40, 40),
    "log1p": (np.log1p, -0.9, 50),
    "expm1": (np.expm1, -20, 20),
    "log10": (np.log10, 1e-6, 1e6),
    "cbrt": (np.cbrt, -1e6, 1e6),
    "tan": (np.tan, -1.5, 1.5),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -50, 50),
    "sinh": (np.sinh, -20, 20),
    "cosh": (np.cosh, -20, 20),
}
OF_TWO = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "hypot": np.hypot,
}


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units of the last place of the result's dtype."""
    step = np.spacing(np.abs(exact).astype(found.dtype)).astype(np.float64)
    return float(np.max(np.abs(found.astype(np.float64) - exact) / step))


@ALL
def test_of_one_number(backend: str) -> None:
    """One kernel for all of them: within the 16 ulp that the page states."""
    rng = np.random.default_rng(0)
    for name, (exact, low, high) in OF_ONE.items():
        a = rng.uniform(low, high, SHAPE).astype(np.float32)
        a[0, :3] = low, high, (low + high) / 2
        function = getattr(xetile, name)
        found = computed(lambda a, b, f=function: f(a), a, a, "f32", backend)
        assert ulps(found, exact(a.astype(np.float64))) <= 16, name


@ALL
@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_numbers(name: str, backend: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-9, 9, SHAPE).astype(np.float32) for _ in range(2))
    function, exact = getattr(xetile, name), OF_TWO[name]
    found = computed(lambda a, b: function(a, b), a, b, "f32", backend)
    assert ulps(found, exact(a.astype(np.float64), b.astype(np.float64))) <= 16


@ALL
def test_sixteen_bits_are_rounded_once(backend: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.uniform(-9, 9, SHAPE).astype(NUMPY["f16"]) for _ in range(2))
    found = computed(lambda a, b: xetile.hypot(a, b), a, b, "f16", backend)
    exact = np.hypot(a.astype(np.float64), b.astype(np.float64))
    assert ulps(found, exact) <= 0.51


@ALL
def test_edges_of_hypot(backend: str) -> None:
    inf, nan = np.inf, np.nan
    a = np.array([[0, 0, 3e38, inf, inf, nan, 1e-30, -0.0]], np.float32)
    b = np.array([[0, 5, 3e38, nan, inf, 1.0, 1e-30, -0.0]], np.float32)
    found = computed(lambda a, b: xetile.hypot(a, b), a, b, "f32", backend)
    with np.errstate(over="ignore"):
        expected = np.hypot(a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@xetile.function
def kinds(a, b):
    return xetile.isnan(a).to(xetile.i32) + 2 * xetile.isinf(a).to(xetile.i32)


@ALL
def test_nan_and_infinity_are_found(backend: str) -> None:
    a = np.array([[np.nan, np.inf, -np.inf, 0, 1, -1, 3e38, -0.0]], np.float32)
    found = computed(kinds, a, a, "i32", backend)
    np.testing.assert_array_equal(found, np.isnan(a) + 2 * np.isinf(a))


@ALL
@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u64"])
def test_bits_are_counted(dtype: str, backend: str) -> None:
    kind = np.dtype(NUMPY[dtype])
    a = np.random.default_rng(3).integers(0, 256, (4, 16 * kind.itemsize), np.uint8)
    a = a.view(kind)
    a[0, :2] = 0, 1
    bits = 8 * kind.itemsize
    digits = [[np.binary_repr(int(x), bits)[-bits:] for x in row] for row in a]
    clz = [[len(d) - len(d.lstrip("0")) for d in row] for row in digits]
    ctz = [[len(d) - len(d.rstrip("0")) for d in row] for row in digits]
    for name, expected in (
        ("popcount", np.bitwise_count(a.view(f"u{kind.itemsize}"))),
        ("clz", clz),
        ("ctz", ctz),
    ):
        function = getattr(xetile, name)
        found = computed(lambda a, b, f=function: f(a), a, a, "i32", backend)
        np.testing.assert_array_equal(found, expected, err_msg=name)


@ALL
@pytest.mark.parametrize("dtype", ["u32", "i32", "u64"])
def test_upper_half_of_a_product(dtype: str, backend: str) -> None:
    kind = np.dtype(NUMPY[dtype])
    bits = 8 * kind.itemsize
    raw = np.random.default_rng(4).integers(
        0, 256, (2, 4, 16 * kind.itemsize), np.uint8
    )
    a, b = raw.view(kind)
    found = computed(lambda a, b: xetile.umulhi(a, b), a, b, dtype, backend)
    whole = a.view(f"u{kind.itemsize}").astype(object) * b.view(f"u{kind.itemsize}")
    np.testing.assert_array_equal(found.view(f"u{kind.itemsize}"), whole >> bits)


@ALL
@pytest.mark.parametrize(
    ("one", "other"), [("f32", "i32"), ("u16", "f16"), ("f64", "u64")]
)
def test_bits_as_another_dtype(one: str, other: str, backend: str) -> None:
    a = np.arange(64).reshape(4, 16).astype(NUMPY[one])
    to = getattr(xetile, other)
    found = computed(lambda a, b: a.to(to, bitcast=True), a, a, other, backend)
    np.testing.assert_array_equal(found, a.view(NUMPY[other]))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_a_dtype_makes_a_number(backend: str) -> None:
    """It wraps or rounds as the dtype does; of a vector it is `.to`."""
    a = np.arange(32, dtype=np.int32).reshape(2, 16)
    numbers = lambda a, b: (
        xetile.f32(a) + xetile.u8(259) + xetile.i8(200) + xetile.f16(0.1)
    )
    found = computed(numbers, a, a, "f32", backend)
    np.testing.assert_allclose(
        found, a + 3 - 56 + np.float32(np.float16(0.1)), rtol=1e-6
    )
