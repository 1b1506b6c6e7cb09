"""Integer operations against Python's integers."""

import numpy as np
import pytest
from op_harness import INTEGERS, evaluate, some_integers

from xetl.dialects.literals import wrap


def _trunc(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _unsigned(function):
    def run(a, b, bits):
        mask = (1 << bits) - 1
        return function(a & mask, b & mask)

    return run


def _ignore_bits(function):
    return lambda a, b, bits: function(a, b)


MEANING = {
    "addi": _ignore_bits(lambda a, b: a + b),
    "subi": _ignore_bits(lambda a, b: a - b),
    "muli": _ignore_bits(lambda a, b: a * b),
    "andi": _ignore_bits(lambda a, b: a & b),
    "ori": _ignore_bits(lambda a, b: a | b),
    "xori": _ignore_bits(lambda a, b: a ^ b),
    "divsi": _ignore_bits(_trunc),
    "remsi": _ignore_bits(lambda a, b: a - _trunc(a, b) * b if b else 0),
    "floordivsi": _ignore_bits(lambda a, b: a // b if b else 0),
    "ceildivsi": _ignore_bits(lambda a, b: -(-a // b) if b else 0),
    "divui": _unsigned(lambda a, b: a // b if b else 0),
    "remui": _unsigned(lambda a, b: a % b if b else 0),
    "ceildivui": _unsigned(lambda a, b: -(-a // b) if b else 0),
    "maxsi": _ignore_bits(max),
    "minsi": _ignore_bits(min),
    "maxui": _unsigned(max),
    "minui": _unsigned(min),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", MEANING)
def test_binary(name, dtype):
    a, b = some_integers(np.random.default_rng(0), dtype, 100)
    bits = 8 * a.itemsize
    wanted = [wrap(MEANING[name](int(x), int(y), bits), bits) for x, y in zip(a, b)]
    text = f"arith.{name} {{0}}, {{1}} : {{t0}}"
    assert evaluate(text, a, b).tolist() == wanted
    for i in range(0, len(a), 17):
        assert evaluate(text, a[i], b[i]) == wanted[i]


@pytest.mark.parametrize("name", [*MEANING, "shli", "shrsi"])
def test_index_names(name):
    short = name.replace("i", "", 1) if name in ("addi", "subi", "muli") else name
    short = {"andi": "and", "ori": "or", "xori": "xor", "shli": "shl"}.get(short, short)
    short = short.removesuffix("i") if short[-2:] in ("si", "ui") else short
    a, b = np.int64(-77), np.int64(5)
    one = evaluate(f"index.{short} {{0}}, {{1}}", a, b, index=True)
    assert one == evaluate(f"arith.{name} {{0}}, {{1}} : {{t0}}", a, b, index=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    rng = np.random.default_rng(1)
    a, _ = some_integers(rng, dtype, 100)
    bits = 8 * a.itemsize
    b = rng.integers(0, bits, len(a)).astype(dtype)
    mask = (1 << bits) - 1
    meaning = {
        "shli": lambda x, y: x << y,
        "shrsi": lambda x, y: x >> y,
        "shrui": lambda x, y: (x & mask) >> y,
    }
    for name, function in meaning.items():
        wanted = [wrap(function(int(x), int(y)), bits) for x, y in zip(a, b)]
        text = f"arith.{name} {{0}}, {{1}} : {{t0}}"
        assert evaluate(text, a, b).tolist() == wanted, name
        assert evaluate(text, a[3], b[3]) == wanted[3]
        evaluate(text, a, np.full_like(a, -1))  # unspecified, but nothing fails


@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons(dtype):
    a, b = some_integers(np.random.default_rng(2), dtype, 100)
    unsigned = np.dtype(f"uint{8 * a.itemsize}")
    u, v = a.view(unsigned), b.view(unsigned)
    meaning = {
        **{"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b},
        **{"sgt": a > b, "sge": a >= b, "ult": u < v, "ule": u <= v},
        **{"ugt": u > v, "uge": u >= v},
    }
    for name, wanted in meaning.items():
        text = f"arith.cmpi {name}, {{0}}, {{1}} : {{t0}}"
        assert (evaluate(text, a, b, dtype=bool) == wanted).all(), name
        assert evaluate(text, a[7], b[7], dtype=bool) == wanted[7]


def test_bits():
    """i1 counts modulo 2, and true is -1 as a signed number."""
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    meaning = {
        **{"addi": a ^ b, "subi": a ^ b, "muli": a & b, "andi": a & b, "ori": a | b},
        **{"xori": a ^ b, "maxui": a | b, "minui": a & b, "maxsi": a & b},
        "minsi": a | b,
    }
    for name, wanted in meaning.items():
        text = f"arith.{name} {{0}}, {{1}} : {{t0}}"
        assert evaluate(text, a, b).tolist() == wanted.tolist(), name
        assert evaluate(text, a[1], b[1]) == wanted[1]
    less = evaluate("arith.cmpi slt, {0}, {1} : {t0}", a, b)
    assert less.tolist() == [False, False, True, False]
    assert (
        evaluate("arith.cmpi ult, {0}, {1} : {t0}", a, b).tolist() == (~a & b).tolist()
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_math_of_integers(dtype):
    a, b = some_integers(np.random.default_rng(3), dtype, 50)
    bits = 8 * a.itemsize
    mask = (1 << bits) - 1
    texts = [f"{int(x) & mask:0{bits}b}" for x in a]
    assert evaluate("math.ctpop {0} : {t0}", a).tolist() == [
        t.count("1") for t in texts
    ]
    leading = [len(t) - len(t.lstrip("0")) for t in texts]
    assert evaluate("math.ctlz {0} : {t0}", a).tolist() == leading
    trailing = [len(t) - len(t.rstrip("0")) for t in texts]
    assert evaluate("math.cttz {0} : {t0}", a).tolist() == trailing
    absolute = [wrap(abs(int(x)), bits) for x in a]
    assert evaluate("math.absi {0} : {t0}", a).tolist() == absolute
    exponent = np.abs(b) % 7
    powers = [wrap(int(x) ** int(y), bits) for x, y in zip(a, exponent)]
    assert evaluate("math.ipowi {0}, {1} : {t0}", a, exponent).tolist() == powers
    negative = evaluate("math.ipowi {0}, {1} : {t0}", a, np.full_like(a, -3))
    assert negative.tolist() == [{1: 1, -1: -1}.get(int(x), 0) for x in a]
