"""Float operations against NumPy in more precision."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from op_harness import FLOATS, evaluate, some_floats, type_name

from xetl_reference.floats import narrow


def same(found, wanted):
    """Equal bit by bit, but for what kind of NaN it is."""
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[found.dtype.itemsize]
    equal = np.asarray(found).view(bits) == np.asarray(wanted).view(bits)
    return bool((equal | (np.isnan(found) & np.isnan(wanted))).all())


def exactly(function, dtype, *arrays):
    """Computed in f32 or f64, rounded once to the type."""
    wide = np.float64 if dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        return function(*(a.astype(wide) for a in arrays)).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("remf", np.fmod),
        ("maxnumf", np.fmax),
        ("minnumf", np.fmin),
    ],
)
def test_binary(name, function, dtype):
    a, b = some_floats(np.random.default_rng(0), dtype, 200)
    text = f"arith.{name} {{0}}, {{1}} : {{t0}}"
    wanted = exactly(function, dtype, a, b)
    found = evaluate(text, a, b)
    if name in ("maxnumf", "minnumf"):
        assert np.array_equal(found, wanted, equal_nan=True)  # of zeros either one
    else:
        assert same(found, wanted)
    assert same(evaluate(text, a[12], b[12]), wanted[12])


@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_with_nan_and_zeros(dtype):
    a = np.array([0.0, -0.0, 0.0, -0.0, np.nan, 1, 2, -np.inf], dtype)
    b = np.array([-0.0, 0.0, 0.0, -0.0, 1, np.nan, 3, 5], dtype)
    largest = np.array([0.0, 0.0, 0.0, -0.0, np.nan, np.nan, 3, 5], dtype)
    least = np.array([-0.0, -0.0, 0.0, -0.0, np.nan, np.nan, 2, -np.inf], dtype)
    assert same(evaluate("arith.maximumf {0}, {1} : {t0}", a, b), largest)
    assert same(evaluate("arith.minimumf {0}, {1} : {t0}", a, b), least)
    assert same(evaluate("arith.maximumf {0}, {1} : {t0}", a[0], b[0]), largest[0])
    assert same(evaluate("arith.negf {0} : {t0}", a), -a)


@pytest.mark.parametrize("dtype", FLOATS)
def test_comparisons(dtype):
    a, b = some_floats(np.random.default_rng(1), dtype, 50)
    x, y = a.astype(np.float64), b.astype(np.float64)
    none = np.isnan(x) | np.isnan(y)
    ordered = {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y}
    ordered["ne"] = x != y
    meaning = {f"o{name}": test & ~none for name, test in ordered.items()}
    meaning |= {f"u{name}": test | none for name, test in ordered.items()}
    meaning |= {"ord": ~none, "uno": none, "true": none | True, "false": none & False}
    for name, wanted in meaning.items():
        text = f"arith.cmpf {name}, {{0}}, {{1}} : {{t0}}"
        assert (evaluate(text, a, b, dtype=bool) == wanted).all(), name
        for i in (0, 6, 54):
            assert evaluate(text, a[i], b[i], dtype=bool) == wanted[i], name


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_select(dtype):
    a, b = np.arange(6).reshape(2, 3).astype(dtype), np.full((2, 3), 9, dtype)
    mask = np.array([[1, 0, 1], [0, 0, 1]], bool)
    text = "arith.select {0}, {1}, {2} : {t0}, {t1}"
    assert (evaluate(text, mask, a, b, like=a) == np.where(mask, a, b)).all()
    for one in (True, False):
        text = "arith.select {0}, {1}, {2} : {t1}"
        found = evaluate(text, np.bool_(one), a, b, like=a)
        assert (found == (a if one else b)).all()


# Functions --------------------------------------------------------------------------

EXACT = {
    "absf": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "roundeven": round,
    "trunc": math.trunc,
    "round": lambda x: math.copysign(math.floor(abs(Fraction(x)) + Fraction(1, 2)), x),
}
FUNCTIONS = {
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
    "cos": math.cos,
    "cosh": math.cosh,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": math.expm1,
    "log": math.log,
    "log10": math.log10,
    "log1p": math.log1p,
    "log2": math.log2,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tan": math.tan,
    "tanh": math.tanh,
}


def rounded(values, dtype):
    """f64 to f32 to the type: each function is exact in f32, then rounded."""
    values = np.array(values, np.float64)
    if dtype == np.float64:
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_rounding_functions(name, dtype):
    x = np.array([-2.5, -1.5, -0.75, -0.5, 0.25, 0.5, 1.5, 2.5, 1000.5, 3], dtype)
    wanted = rounded([EXACT[name](float(v)) for v in x], dtype)
    found = evaluate(f"math.{name} {{0}} : {{t0}}", x)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    x = np.linspace(0.01, 0.99, 77).astype(dtype)
    wanted = rounded([FUNCTIONS[name](float(v)) for v in x], dtype)
    found = evaluate(f"math.{name} {{0}} : {{t0}}", x)
    ulps = 4 if dtype == np.float64 else 1
    error = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    step = float(ml_dtypes.finfo(dtype).eps) * np.abs(wanted.astype(np.float64))
    assert (error <= ulps * step).all()
    one = evaluate(f"math.{name} {{0}} : {{t0}}", x[5])
    assert one == found[5]
    assert one.dtype == dtype


def test_functions_outside_their_domain_are_silent():
    x = np.array([-1.0, 0.0, np.inf, -np.inf, np.nan, 1e30], np.float32)
    with np.errstate(all="ignore"):
        assert np.array_equal(
            evaluate("math.log {0} : {t0}", x), np.log(x), equal_nan=True
        )
        assert evaluate("math.rsqrt {0} : {t0}", x)[1] == np.inf
        assert evaluate("math.exp {0} : {t0}", x)[5] == np.inf


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two(dtype):
    a = np.array([0.5, 2.0, 3.0, 0.1], dtype)
    b = np.array([2.0, -1.0, 0.5, -3.0], dtype)
    pairs = [(float(x), float(y)) for x, y in zip(a, b)]
    for name, function in {
        "powf": math.pow,
        "atan2": math.atan2,
        "copysign": math.copysign,
    }.items():
        wanted = rounded([function(x, y) for x, y in pairs], dtype)
        found = evaluate(f"math.{name} {{0}}, {{1}} : {{t0}}", a, b)
        np.testing.assert_array_max_ulp(
            found.astype(np.float64), wanted.astype(np.float64), 2
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_fma_rounds_once(dtype):
    rng = np.random.default_rng(5)
    a, b, c = rng.standard_normal((3, 2000)).astype(dtype)
    c[:1000] = -(a * b)[:1000]  # what is left is the product's own rounding error
    found = evaluate("math.fma {0}, {1}, {2} : {t0}", a, b, c)
    for x, y, z, result in zip(a, b, c, found):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert result == np.float32(_nearest(exact)).astype(dtype)


def _nearest(exact):
    """The f32 next to a fraction; f64 is wide enough unless it is near a tie."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(s)) for s in (-np.inf, np.inf)]
    return min([near, *around], key=lambda v: abs(Fraction(float(v)) - exact))


# Casts ------------------------------------------------------------------------------


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_between_floats(source, target):
    wide = np.dtype(target).itemsize > np.dtype(source).itemsize
    narrower = np.dtype(target).itemsize < np.dtype(source).itemsize
    if not (wide or narrower):
        return
    a, _ = some_floats(np.random.default_rng(2), source, 300)
    name = "extf" if wide else "truncf"
    found = evaluate(f"arith.{name} {{0}} : {{t0}} to {{r}}", a, dtype=target)
    with np.errstate(all="ignore"):
        assert same(found, narrow(a, np.dtype(target)))
    assert same(
        evaluate(f"arith.{name} {{0}} : {{t0}} to {{r}}", a[11], dtype=target),
        found[11],
    )


def test_f64_to_bf16_rounds_once():
    """Just above a tie of bf16, by less than f32 can tell."""
    x = np.array(
        [1.0 + 2.0**-8 + 2.0**-40, 1.0 + 2.0**-8 - 2.0**-40, -1.00390625 - 1e-9]
    )
    found = evaluate("arith.truncf {0} : {t0} to {r}", x, dtype=ml_dtypes.bfloat16)
    assert found.astype(float).tolist() == [1.0078125, 1.0, -1.0078125]


@pytest.mark.parametrize("integer", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("dtype", FLOATS)
def test_between_integers_and_floats(integer, dtype):
    info = np.iinfo(integer)
    x = np.array([info.min, -5, -1, 0, 1, 100, info.max], integer)
    unsigned = x.view(np.dtype(f"uint{8 * x.itemsize}"))
    for name, values in {"sitofp": x, "uitofp": unsigned}.items():
        found = evaluate(f"arith.{name} {{0}} : {{t0}} to {{r}}", x, dtype=dtype)
        with np.errstate(over="ignore"):
            wide = values.astype(np.float64 if dtype == np.float64 else np.float32)
            assert same(found, wide.astype(dtype)), name
    y = np.array([-3.9, -0.5, 0.0, 0.5, 2.5, 99.9], dtype)
    found = evaluate("arith.fptosi {0} : {t0} to {r}", y, dtype=integer)
    assert found.tolist() == [int(float(v)) for v in y]
    found = evaluate("arith.fptoui {0} : {t0} to {r}", y[2:], dtype=integer)
    assert found.tolist() == [int(float(v)) for v in y[2:]]


def test_large_unsigned_numbers():
    x = np.array([2.0**63, 2.0**63 + 2.0**12, 2.0**64 - 2.0**12])
    found = evaluate("arith.fptoui {0} : {t0} to {r}", x, dtype=np.int64)
    assert found.view(np.uint64).tolist() == [int(v) for v in x]
    bad = np.array([np.nan, np.inf, -np.inf, 1e300])
    evaluate("arith.fptosi {0} : {t0} to {r}", bad, dtype=np.int32)  # only no warning


@pytest.mark.parametrize("source", [np.bool_, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("target", [np.bool_, np.int8, np.int16, np.int32, np.int64])
def test_between_integers(source, target):
    bits = [1 if d == np.bool_ else 8 * np.dtype(d).itemsize for d in (source, target)]
    if bits[0] == bits[1]:
        return
    x = np.array([0, 1, 1, 0] if bits[0] == 1 else [0, 1, -1, 77], source)
    if bits[0] > bits[1]:
        found = evaluate("arith.trunci {0} : {t0} to {r}", x, dtype=target)
        wanted = (x & 1) != 0 if bits[1] == 1 else x.astype(target)
        assert found.tolist() == wanted.tolist()
        return
    negative = -x.astype(np.int8) if bits[0] == 1 else x
    positive = x if bits[0] == 1 else x.view(np.dtype(f"uint{bits[0]}"))
    for name, values in {"extsi": negative, "extui": positive}.items():
        found = evaluate(f"arith.{name} {{0}} : {{t0}} to {{r}}", x, dtype=target)
        assert found.tolist() == values.astype(target).tolist()
        one = evaluate(f"arith.{name} {{0}} : {{t0}} to {{r}}", x[1], dtype=target)
        assert one == found[1]


def test_index_casts():
    x = np.array([-1, 5, 2**31 + 7], np.int64)
    text = "arith.{} {{0}} : {{t0}} to {{r}}"
    narrow_ = evaluate(text.format("index_cast"), x, dtype=np.int32, index=True)
    assert narrow_.tolist() == [-1, 5, 7 - 2**31]
    back = evaluate(text.format("index_castui"), narrow_, dtype=np.int64, index=True)
    assert back.tolist() == [2**32 - 1, 5, 2**31 + 7]
    for i in range(3):
        one = evaluate(text.format("index_cast"), x[i], dtype=np.int32, index=True)
        assert one == narrow_[i]


def test_bitcasts():
    x = np.array([[1.0, -0.0], [np.pi, 2.5]], np.float32)
    found = evaluate("arith.bitcast {0} : {t0} to {r}", x, dtype=np.int32)
    assert (found == x.view(np.int32)).all()
    found = evaluate(
        "vector.bitcast {0} : {t0} to {r}", x, dtype=np.int16, shape=(2, 4)
    )
    assert (found == x.view(np.int16)).all()
    assert type_name(np.int16) == "i16"
