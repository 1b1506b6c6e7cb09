"""Float arithmetic on opencl:cpu against NumPy."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import (
    DTYPES,
    Elementwise,
    Form,
    assert_same,
    edges,
)

TYPES = ("f16", "bf16", "f32", "f64")
COUNT = 512
COUNTS = (1, 4)
"""Numbers a lane has: a scalar, a vector."""
BINARY = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
UNARY = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a),
}
PREDICATES = {
    "oeq": lambda a, b: a == b,
    "one": lambda a, b: (a < b) | (a > b),
    "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b,
    "ogt": lambda a, b: a > b,
    "oge": lambda a, b: a >= b,
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "une": lambda a, b: a != b,
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ord": lambda a, b: (a == a) & (b == b),
    "uno": lambda a, b: (a != a) | (b != b),
}


def binary(name: str, type_: str) -> Form:
    return (f"arith.{name} %0, %1 : {{0}}", (type_, type_), type_)


def unary(name: str, type_: str) -> Form:
    return (f"{name} %0 : {{0}}", (type_,), type_)


def compare(predicate: str, type_: str) -> Form:
    return (f"arith.cmpf {predicate}, %0, %1 : {{0}}", (type_, type_), "i1")


def fma(type_: str) -> Form:
    return ("math.fma %0, %1, %2 : {0}", (type_,) * 3, type_)


def select(type_: str) -> Form:
    return ("arith.select %0, %1, %2 : {0}, {1}", ("i1", type_, type_), type_)


@cache
def programs(type_: str, count: int) -> Elementwise:
    forms = [binary(name, type_) for name in BINARY]
    forms += [unary(name, type_) for name in UNARY]
    forms += [compare(name, type_) for name in PREDICATES]
    return Elementwise([*forms, fma(type_)], count)


def rounded(values: np.ndarray, type_: str) -> np.ndarray:
    return values.astype(DTYPES[type_])


def wide(values: np.ndarray) -> np.ndarray:
    """The 16-bit types compute in f32."""
    return values.astype(np.float32) if values.itemsize == 2 else values


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("type_", TYPES)
def test_operations_round_once(type_: str, count: int):
    program, dtype = programs(type_, count), DTYPES[type_]
    a, b = edges(dtype, COUNT, 1), edges(dtype, COUNT, 2)
    with np.errstate(all="ignore"):
        for name, meaning in BINARY.items():
            expected = rounded(meaning(wide(a), wide(b)), type_)
            found = program(binary(name, type_), a, b)
            assert_same(found, expected, name)
        for name, meaning in UNARY.items():
            expected = rounded(meaning(wide(a)), type_)
            assert_same(program(unary(name, type_), a), expected, name)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("type_", TYPES)
def test_comparisons(type_: str, count: int):
    program, dtype = programs(type_, count), DTYPES[type_]
    a, b = edges(dtype, COUNT, 3), edges(dtype, COUNT, 4)
    b[::3] = a[::3]
    for name, meaning in PREDICATES.items():
        with np.errstate(invalid="ignore"):
            expected = meaning(wide(a), wide(b))
        found = program(compare(name, type_), a, b)
        assert_same(found, expected, name)


@pytest.mark.parametrize("type_", TYPES)
def test_fma_rounds_once(type_: str):
    rng = np.random.default_rng(5)
    a, b, c = (rounded(rng.standard_normal(COUNT), type_) for _ in range(3))
    exact = [
        float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
        for x, y, z in zip(a, b, c)
    ]
    found = programs(type_, 1)(fma(type_), a, b, c)
    expected = np.array(exact)
    if type_ in ("f16", "bf16"):
        expected = expected.astype(np.float32)
    assert_same(found, rounded(expected, type_), type_)


@pytest.mark.parametrize("count", COUNTS)
def test_selections(count: int):
    program = Elementwise([select(type_) for type_ in DTYPES], count)
    for type_, dtype in DTYPES.items():
        c = edges(np.bool_, COUNT, 1)
        a, b = edges(dtype, COUNT, 2), edges(dtype, COUNT, 3)
        found = program(select(type_), c, a, b)
        assert_same(found, np.where(c, a, b), type_)


def test_a_single_condition_chooses_vectors():
    text = "arith.select %on, %0, %1 : {0}"
    form = (text, ("f32", "f32"), "f32")
    program = Elementwise([form], 4)
    a, b = edges(np.float32, 64, 1), edges(np.float32, 64, 2)
    assert_same(program(form, a, b), a, text)


CASTS = [(a, b) for a in TYPES for b in TYPES if a != b]


def cast(source: str, result: str) -> Form | None:
    bits = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
    if bits[source] == bits[result]:
        return None
    name = "extf" if bits[source] < bits[result] else "truncf"
    return (f"arith.{name} %0 : {{0}} to {{r}}", (source,), result)


@pytest.mark.parametrize("count", COUNTS)
def test_casts_round_once(count: int):
    forms = [form for pair in CASTS if (form := cast(*pair)) is not None]
    program = Elementwise(forms, count)
    rng = np.random.default_rng(7)
    for form in forms:
        _, (source,), result = form
        a = edges(DTYPES[source], 1024, 8)
        spread = rng.standard_normal(256) * 2.0 ** rng.integers(-20, 15, 256)
        a[256:512] = spread.astype(a.dtype)
        if source == "f64" and result in ("f16", "bf16"):
            # Just above the middle of two neighbours: f32 would round it there first.
            middle = 1 + 2.0 ** -(11 if result == "f16" else 8)
            a[:64] = middle + 2.0**-40
        expected = _to_bf16(a) if result == "bf16" else a.astype(DTYPES[result])
        found = program(form, a)
        # Numbers too small for the result's normal ones may be flushed.
        small = np.abs(expected.astype(np.float64)) < 2.0**-126
        if result == "f16":
            small = np.abs(expected.astype(np.float64)) < 2.0**-14
        same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | small
        assert same.all(), (form, a[~same][:4], found[~same][:4], expected[~same][:4])


INTEGERS = ("i1", "i8", "i16", "i32", "i64")


@pytest.mark.parametrize("count", COUNTS)
def test_integers_become_floats(count: int):
    forms: list[Form] = [
        (f"arith.{name} %0 : {{0}} to {{r}}", (source,), result)
        for name in ("sitofp", "uitofp")
        for source in INTEGERS
        for result in TYPES
    ]
    program = Elementwise(forms, count)
    for form in forms:
        text, (source,), result = form
        a = edges(DTYPES[source], 1024, 9)
        numbers = a
        if "uitofp" in text and source != "i1":
            numbers = a.view(f"u{a.itemsize}")
        if "sitofp" in text and source == "i1":
            numbers = -a.astype(np.int8)
        exact = numbers.astype(np.longdouble)
        with np.errstate(over="ignore"):
            if result == "bf16":  # ml_dtypes goes through f32
                expected = _to_bf16(exact)
            else:
                expected = exact.astype(DTYPES[result])
        assert_same(program(form, a), expected, form)


def _to_bf16(exact: np.ndarray) -> np.ndarray:
    """Rounded once, half to even."""
    mantissa, exponent = np.frexp(exact)  # ml_dtypes rounds to f32 first
    return np.ldexp(np.rint(mantissa * 256), exponent - 8).astype(DTYPES["bf16"])


@pytest.mark.parametrize("count", COUNTS)
def test_floats_become_integers(count: int):
    forms: list[Form] = [
        (f"arith.{name} %0 : {{0}} to {{r}}", (source,), result)
        for name in ("fptosi", "fptoui")
        for source in TYPES
        for result in INTEGERS[1:]
    ]
    program = Elementwise(forms, count)
    rng = np.random.default_rng(3)
    for form in forms:
        text, (source,), result = form
        info = np.iinfo(DTYPES[result])
        low, high = (info.min, info.max) if "fptosi" in text else (0, 2 * info.max)
        span = min(high, 6e4)
        numbers = rng.uniform(max(low, -6e4), span, 512).astype(DTYPES[source])
        expected = np.trunc(numbers.astype(np.float64))
        inside = (expected >= low) & (expected <= high)
        numbers[~inside] = 1
        expected[~inside] = 1
        unsigned = np.dtype(f"u{np.dtype(DTYPES[result]).itemsize}")
        whole = expected.astype(DTYPES[result] if "fptosi" in text else unsigned)
        found = program(form, numbers).view(whole.dtype)
        assert_same(found, whole, form)
