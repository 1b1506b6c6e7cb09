"""Elementary functions on opencl:cpu: within the language's bounds of float64's."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import DTYPES, Elementwise, Form

Meaning = Callable[..., float]
BOUNDS = {"exp": 4.0, "sqrt": 2.0}
"""Units in the last place; the others have 16 (docs/language.md)."""
POSITIVE, UNIT, ANY = (1e-3, 80.0), (-0.999, 0.999), (-9.0, 9.0)

FUNCTIONS: dict[str, tuple[Meaning, tuple[float, float]]] = {
    "exp": (math.exp, ANY),
    "exp2": (lambda x: 2.0**x, ANY),
    "log": (math.log, POSITIVE),
    "log2": (math.log2, POSITIVE),
    "log10": (math.log10, POSITIVE),
    "log1p": (math.log1p, POSITIVE),
    "expm1": (math.expm1, ANY),
    "sqrt": (math.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / math.sqrt(x), POSITIVE),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), ANY),
    "sin": (math.sin, ANY),
    "cos": (math.cos, ANY),
    "tan": (math.tan, ANY),
    "asin": (math.asin, UNIT),
    "acos": (math.acos, UNIT),
    "atan": (math.atan, ANY),
    "sinh": (math.sinh, ANY),
    "cosh": (math.cosh, ANY),
    "tanh": (math.tanh, ANY),
    "asinh": (math.asinh, ANY),
    "acosh": (math.acosh, (1.01, 90.0)),
    "atanh": (math.atanh, UNIT),
    "erf": (math.erf, ANY),
    "erfc": (math.erfc, ANY),
    "powf": (math.pow, POSITIVE),
    "atan2": (math.atan2, ANY),
}
PAIRS = ("powf", "atan2")


def form(name: str, type_: str) -> Form:
    operands = "%0, %1" if name in PAIRS else "%0"
    types = (type_, type_) if name in PAIRS else (type_,)
    return (f"math.{name} {operands} : {{0}}", types, type_)


@cache
def program(type_: str, count: int) -> Elementwise:
    return Elementwise([form(name, type_) for name in FUNCTIONS], count)


def units(found: np.ndarray, exact: np.ndarray, type_: str) -> float:
    """The largest error, in units in the last place of the exact result."""
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[type_]
    _, exponent = np.frexp(exact)
    error = np.abs(found.astype(np.float64) - exact)
    return float((error / np.ldexp(1.0, exponent - digits)).max())


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("type_", ["f32", "f64", "f16", "bf16"])
def test_errors_are_within_the_bounds(type_: str, count: int):
    rng = np.random.default_rng(1)
    for name, (meaning, (low, high)) in FUNCTIONS.items():
        given = [rng.uniform(low, high, 512).astype(DTYPES[type_])]
        if name in PAIRS:
            given.append(rng.uniform(-3, 3, 512).astype(DTYPES[type_]))
        wide = [each.astype(np.float64) for each in given]
        exact = np.array([meaning(*numbers) for numbers in zip(*wide)])
        if type_ == "f16":  # what is too small or too large for it
            normal = (np.abs(exact) > 2.0**-14) & (np.abs(exact) < 65504)
        else:
            normal = np.abs(exact) > 1e-30
        found = program(type_, count)(form(name, type_), *given)
        error = units(found[normal], exact[normal], type_)
        # Of the narrow types the f32 result is rounded once more.
        bound = BOUNDS.get(name, 16.0) if type_ in ("f32", "f64") else 0.51
        assert error <= bound, f"{name} of {type_}: {error:.2f} units"


EDGES = {
    "exp": [(-math.inf, 0), (math.inf, math.inf), (100.0, math.inf), (0.0, 1)],
    "log": [(0.0, -math.inf), (-1.0, math.nan), (math.inf, math.inf), (1.0, 0)],
    "sqrt": [(0.0, 0), (-1.0, math.nan), (math.inf, math.inf)],
    "tanh": [(40.0, 1), (-40.0, -1), (math.inf, 1), (0.0, 0)],
    "erf": [(9.0, 1), (-9.0, -1), (math.inf, 1), (0.0, 0)],
}


@pytest.mark.parametrize("type_", ["f32", "f64", "f16", "bf16"])
def test_edges(type_: str):
    for name, cases in EDGES.items():
        given = np.full(512, 0.5, DTYPES[type_])
        for index, (value, _) in enumerate(cases):
            given[index] = value
        given[len(cases)] = math.nan
        found = program(type_, 1)(form(name, type_), given).astype(np.float64)
        expected = [result for _, result in cases]
        if type_ == "f64" and name == "exp":
            expected[2] = math.exp(100)
        if type_ == "bf16" and name == "exp":
            expected[2] = math.inf
        np.testing.assert_allclose(
            found[: len(cases)], expected, rtol=1e-15, err_msg=name
        )
        assert math.isnan(found[len(cases)]), name
