"""Integer arithmetic on opencl:cpu against NumPy: it wraps and never traps."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import (
    DTYPES,
    Elementwise,
    Form,
    edges,
    elementwise,
)
from tests.backends.xegpu.emit.on_opencl import Program
from xetl_reference.integers import ON_ARRAYS

TYPES = ("i8", "i16", "i32", "i64")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
UNARY = {
    "math.absi": np.abs,
    "math.ctpop": lambda a: _bits(a).sum(-1),
    "math.ctlz": lambda a: _leading(_bits(a)),
    "math.cttz": lambda a: _leading(_bits(a)[:, ::-1]),
}
COUNT = 512
COUNTS = (1, 4)
"""Numbers a lane has: a scalar, a vector."""


def _bits(a: np.ndarray) -> np.ndarray:
    """Bits of each number, the highest first."""
    raw = a.view(np.uint8).reshape(len(a), -1)[:, ::-1]
    return np.unpackbits(raw, axis=1).astype(a.dtype)


def _leading(bits: np.ndarray) -> np.ndarray:
    return np.where(bits.any(1), bits.argmax(1), bits.shape[1])


def binary(name: str, type_: str) -> Form:
    return (f"arith.{name} %0, %1 : {{0}}", (type_, type_), type_)


def compare(predicate: str, type_: str) -> Form:
    return (f"arith.cmpi {predicate}, %0, %1 : {{0}}", (type_, type_), "i1")


def unary(name: str, type_: str) -> Form:
    return (f"{name} %0 : {{0}}", (type_,), type_)


@cache
def programs(type_: str, count: int) -> Elementwise:
    forms = [binary(name, type_) for name in ON_ARRAYS]
    forms += [compare(predicate, type_) for predicate in PREDICATES]
    forms += [unary(name, type_) for name in UNARY]
    return Elementwise(forms, count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("type_", TYPES)
def test_binary(type_: str, count: int):
    program, dtype = programs(type_, count), DTYPES[type_]
    a, b = edges(dtype, COUNT, 1), edges(dtype, COUNT, 2)
    for name, meaning in ON_ARRAYS.items():
        right = b
        if name.startswith("sh"):  # too large an amount is unspecified
            right = b & (8 * a.itemsize - 1)
        with np.errstate(all="ignore"):
            expected = meaning(a, right).astype(dtype)
        found = program(binary(name, type_), a, right)
        np.testing.assert_array_equal(found, expected, name)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("type_", TYPES)
def test_comparisons(type_: str, count: int):
    program = programs(type_, count)
    a, b = edges(DTYPES[type_], COUNT, 3), edges(DTYPES[type_], COUNT, 4)
    b[::3] = a[::3]
    signs = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}
    signs |= {"gt": "greater", "ge": "greater_equal"}
    for predicate in PREDICATES:
        meaning = getattr(np, signs[predicate[-2:]])
        kind = "u" if predicate[0] == "u" else "i"
        left, right = (each.view(f"{kind}{each.itemsize}") for each in (a, b))
        found = program(compare(predicate, type_), a, b)
        np.testing.assert_array_equal(found, meaning(left, right), predicate)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("type_", TYPES)
def test_unary(type_: str, count: int):
    program, a = programs(type_, count), edges(DTYPES[type_], COUNT, 5)
    for name, meaning in UNARY.items():
        found = program(unary(name, type_), a)
        np.testing.assert_array_equal(found, meaning(a).astype(a.dtype), name)


BOOLEAN = {
    "addi": np.logical_xor,
    "subi": np.logical_xor,
    "muli": np.logical_and,
    "andi": np.logical_and,
    "ori": np.logical_or,
    "xori": np.logical_xor,
    "maxui": np.logical_or,
    "minui": np.logical_and,
    "maxsi": np.logical_and,  # true is -1
    "minsi": np.logical_or,
}


@pytest.mark.parametrize("count", COUNTS)
def test_booleans(count: int):
    forms = [binary(name, "i1") for name in BOOLEAN]
    forms += [compare(predicate, "i1") for predicate in PREDICATES]
    program = Elementwise(forms, count)
    a, b = edges(np.bool_, 256, 1), edges(np.bool_, 256, 2)
    for name, meaning in BOOLEAN.items():
        found = program(binary(name, "i1"), a, b)
        np.testing.assert_array_equal(found, meaning(a, b), name)
    for predicate in PREDICATES:
        sign = -1 if predicate[0] == "s" else 1
        left, right = a.astype(int) * sign, b.astype(int) * sign
        signs = {"eq": "__eq__", "ne": "__ne__"}
        method = signs.get(predicate, f"__{predicate[1:]}__")
        found = program(compare(predicate, "i1"), a, b)
        np.testing.assert_array_equal(found, getattr(left, method)(right), predicate)


WIDTHS = [(a, b) for a in ("i1", *TYPES) for b in ("i1", *TYPES) if a != b]


def _width(type_: str) -> int:
    return int(type_[1:])


@pytest.mark.parametrize("count", COUNTS)
def test_widths(count: int):
    forms: list[tuple[Form, str]] = []
    for source, result in WIDTHS:
        grows = _width(result) > _width(source)
        for name in ("extsi", "extui") if grows else ("trunci",):
            form = (f"arith.{name} %0 : {{0}} to {{r}}", (source,), result)
            forms.append((form, name))
    program = Elementwise([form for form, _ in forms], count)
    for form, name in forms:
        _, (source,), result = form
        a = edges(DTYPES[source], COUNT, 6)
        if name == "trunci":
            expected = (a & 1) != 0 if result == "i1" else a.astype(DTYPES[result])
        elif name == "extui":
            unsigned = a if source == "i1" else a.view(f"u{a.itemsize}")
            expected = unsigned.astype(DTYPES[result])
        else:
            wide = a.astype(DTYPES[result])
            expected = -wide if source == "i1" else wide
        np.testing.assert_array_equal(program(form, a), expected, f"{form}")


DIVISORS = (2, 3, -3, 7, 16)
DIVISIONS = ("divsi", "floordivsi", "ceildivsi", "remsi", "divui", "remui")


def by_constant(name: str, divisor: int) -> Form:
    text = f"arith.{name} %0, %divisor : {{0}}"
    return (f"{text} // by {divisor}", ("i32",), "i32")


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("divisor", DIVISORS)
def test_divisors_that_are_constants(divisor: int, count: int):
    dense = (
        f"dense<{divisor}> : vector<{count}xi32>" if count > 1 else f"{divisor} : i32"
    )
    constant = f"%divisor = arith.constant {dense}\n      %result = "
    texts = [
        elementwise(f"k{n}", by_constant(name, divisor), count)
        for n, name in enumerate(DIVISIONS)
    ]
    program = Program("\n".join(t.replace("%result = ", constant) for t in texts))
    a = edges(np.int32, COUNT, 8)
    for n, name in enumerate(DIVISIONS):
        out = np.zeros_like(a)
        program(f"k{n}", a, out, groups=COUNT // (16 * count))
        expected = ON_ARRAYS[name](a, np.full_like(a, divisor))
        np.testing.assert_array_equal(out, expected.astype(np.int32), name)
