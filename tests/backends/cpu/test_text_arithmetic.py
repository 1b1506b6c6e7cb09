"""`arith` and `math` in texts, for every type: equal to reference and to NumPy."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from texts import DTYPES, assert_close, on_vectors, run_both

FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64"]
UNARY = {
    "absf": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "roundeven": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
BINARY = {
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.remf": np.fmod,
    "arith.divf": np.divide,
    "math.atan2": np.arctan2,
    "math.copysign": np.copysign,
    "math.powf": np.power,
}
AWKWARD = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 1e-4]


def floats(dtype, seed):
    values = np.random.default_rng(seed).standard_normal((5, 37)) * 3
    values.ravel()[: len(AWKWARD)] = AWKWARD
    return values.astype(DTYPES[dtype])


def integers(dtype, seed):
    """Random numbers, and every pair of the awkward ones."""
    rng, info = np.random.default_rng(seed), np.iinfo(DTYPES[dtype])
    awkward = [info.min, info.min + 1, -2, -1, 0, 1, 2, 7, info.max - 1, info.max]
    values = rng.integers(info.min, info.max, (5, 37), endpoint=True)
    grid = np.meshgrid(awkward, awkward)[seed % 2].ravel()
    values.ravel()[: len(grid)] = grid
    return values.astype(DTYPES[dtype])


def vector(dtype):
    return f"vector<5x37x{dtype}>"


def apply(op, dtype, *given, to=None):
    """The result of ``%r = op``, the same on both backends."""
    types = [vector(dtype)] * len(given)
    result = vector(to or dtype)
    text = on_vectors(f"%r = {op}", types, result)
    with np.errstate(all="ignore"):
        return run_both(text, *given, np.zeros((5, 37), DTYPES[to or dtype]))[-1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions(name, dtype):
    x = floats(dtype, 0)
    found = apply(f"math.{name} %0 : {vector(dtype)}", dtype, x)
    with np.errstate(all="ignore"):
        assert_close(found, UNARY[name](x.astype(np.float64)).astype(found.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name, dtype):
    x, y = floats(dtype, 0), np.roll(floats(dtype, 1), 3, axis=1)
    found = apply(f"{name} %0, %1 : {vector(dtype)}", dtype, x, y)
    with np.errstate(all="ignore"):
        wide = BINARY[name](x.astype(np.float64), y.astype(np.float64))
        assert_close(found, wide.astype(found.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_others_agree_with_reference(dtype):
    x, y, z = floats(dtype, 0), floats(dtype, 1), floats(dtype, 2)
    type_ = vector(dtype)
    for name in ("erf", "erfc", "round", "rsqrt"):
        apply(f"math.{name} %0 : {type_}", dtype, x)
    apply(f"math.fma %0, %1, %2 : {type_}", dtype, x, y, z)
    apply(f"vector.fma %0, %1, %2 : {type_}", dtype, x, y, z)
    for predicate in ("true", "false", "one", "ueq", "ord", "uno", "ult"):
        apply(f"arith.cmpf {predicate}, %0, %1 : {type_}", dtype, x, y, to="i1")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_nothing_traps(dtype):
    """Dividing by 0 gives 0; the least number by -1 wraps; shifts shift out."""
    x, y = integers(dtype, 0), integers(dtype, 1)
    type_, names = vector(dtype), ["add", "sub", "mul", "and", "or", "xor", "shl"]
    names = [f"{name}i" for name in names] + ["divsi", "divui", "remsi", "remui"]
    names += [
        "floordivsi",
        "ceildivsi",
        "ceildivui",
        "shrsi",
        "shrui",
        "maxsi",
        "maxui",
        "minsi",
    ]
    for name in names:
        apply(f"arith.{name} %0, %1 : {type_}", dtype, x, y)
    for name in ("absi", "ctlz", "cttz", "ctpop"):
        apply(f"math.{name} %0 : {type_}", dtype, x)
    apply(f"math.ipowi %0, %1 : {type_}", dtype, x, y)
    quotient = apply(f"arith.divsi %0, %1 : {type_}", dtype, x, y)
    assert not quotient[y == 0].any()


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_products_of_twice_the_width(dtype, sign):
    x, y = integers(dtype, 0), integers(dtype, 1)
    type_ = vector(dtype)
    body = f"%low, %r = arith.mul{sign}i_extended %0, %1 : {type_}"
    *_, high = run_both(on_vectors(body, [type_] * 2, type_), x, y, np.zeros_like(x))
    bits = 8 * x.itemsize
    if sign == "u":
        unsigned = np.dtype(f"u{x.dtype}")
        x, y, high = (v.view(unsigned) for v in (x, y, high))
    exact = [(int(a) * int(b)) >> bits for a, b in zip(x.flat, y.flat)]
    assert high.ravel().tolist() == exact


@pytest.mark.parametrize("to", ["f16", "bf16"])
@pytest.mark.parametrize("sign", ["s", "u"])
def test_long_integers_are_rounded_once(to, sign):
    """A number next to a tie: by way of f64 or f32 it would become the tie."""
    bits = {"f16": 11, "bf16": 8}[to]
    x = np.zeros((5, 37), np.int64)
    ties = [((2 << bits) + 2) << shift for shift in ((2, 3) if to == "f16" else (52,))]
    x.ravel()[:9] = [tie + step for tie in ties * 3 for step in (-1, 0, 1)][:9]
    found = apply(
        f"arith.{sign}itofp %0 : {vector('i64')} to {vector(to)}", "i64", x, to=to
    )
    exact = [_rounded(int(v), bits) for v in x.flat]
    assert [Fraction(float(v)) for v in found.astype(np.float64).flat] == exact


def _rounded(value, bits):
    """To ``bits`` significant bits, to nearest even."""
    shift = max(value.bit_length() - bits, 0)
    return Fraction(round(Fraction(value, 1 << shift)) << shift)


@pytest.mark.parametrize("dtype", ["i1", *INTEGERS, *FLOATS])
def test_casts(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "i1" else 100, (5, 37)).astype(DTYPES[dtype])
    for to in INTEGERS + FLOATS:
        op = _cast(dtype, to)
        if op is not None:
            found = apply(f"{op} %0 : {vector(dtype)} to {vector(to)}", dtype, x, to=to)
            assert_close(found, x.astype(np.float64).astype(found.dtype))


def _cast(source, to):
    """The cast that keeps numbers without sign, if there is one."""
    widths = {name: int(name.lstrip("bfi")) for name in DTYPES if name != "index"}
    if source in FLOATS and to in FLOATS:
        if widths[source] == widths[to]:
            return None
        return "arith.extf" if widths[source] < widths[to] else "arith.truncf"
    if source in FLOATS:
        return "arith.fptosi"
    if to in FLOATS:
        return "arith.uitofp"
    if widths[source] == widths[to]:
        return None
    return "arith.extui" if widths[source] < widths[to] else "arith.trunci"


def test_sixteen_bits_are_rounded_after_each_operation():
    """1 + 1/256 + 1/256 is 1 in bf16, where the ties go to even."""
    body = "%s = arith.addf %0, %1 : {0}\n%r = arith.addf %s, %1 : {0}"
    type_ = vector("bf16")
    one = np.ones((5, 37), ml_dtypes.bfloat16)
    small = (one.astype("f4") / 256).astype(ml_dtypes.bfloat16)
    text = on_vectors(body.format(type_), [type_] * 2, type_)
    assert np.all(run_both(text, one, small, np.zeros_like(one))[-1] == one)


@pytest.mark.parametrize("name", ["divsi", "remui", "floordivsi", "ceildivui"])
@pytest.mark.parametrize("number", [0, -1])
def test_constants_that_trap_are_divided_by(name, number):
    for shape in (16, 20):  # 20: four of the lanes of a vector
        type_ = f"vector<{shape}xi32>"
        text = f"""
        func.func @k(%a: memref<{shape}xi32>, %b: memref<{shape}xi32>) {{
          %zero = arith.constant 0 : index
          %v = vector.load %a[%zero] : memref<{shape}xi32>, {type_}
          %c = arith.constant dense<{number}> : {type_}
          %r = arith.{name} %v, %c : {type_}
          %s = arith.{name} %c, %c : {type_}
          %t = arith.addi %r, %s : {type_}
          vector.store %t, %b[%zero] : memref<{shape}xi32>, {type_}
          return
        }}"""
        run_both(text, integers("i32", 0).ravel()[:shape], np.zeros(shape, "i4"))
