"""The `math` dialect: computed in f64, rounded to f32 and then to the type.

Source: MLIR, `math`; docs/language.md: math is within 16 ulp, this is within one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xetl_reference.floats import fused_multiply_add, in_f64
from xetl_reference.values import (
    Array,
    Function,
    Meaning,
    bits_of,
    dtype_of,
    on_arrays,
    unsigned,
)

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _round_away(x: Array) -> Array:
    """To nearest, ties away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign(np.where(np.abs(x - whole) >= 0.5, 1.0, 0.0), x)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


_FUNCTIONS: dict[str, Function] = {
    "absf": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "powf": np.power,
    "round": _round_away,
    "roundeven": np.rint,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


def _float(function: Function) -> Meaning:
    def meaning(op: Any) -> Function:
        return on_arrays(op, in_f64(function, dtype_of(op.results[0].type)))

    return meaning


def _fma(op: Any) -> Function:
    return on_arrays(op, fused_multiply_add)


# Integers ---------------------------------------------------------------------------


def _leading_zeros(x: Array) -> Array:
    bits, left = bits_of(x.dtype), unsigned(x)
    count = np.full(x.shape, bits, x.dtype)
    while np.any(left):
        count = count - (left != 0).astype(x.dtype)
        left = left >> 1
    return count


def _trailing_zeros(x: Array) -> Array:
    bits = bits_of(x.dtype)
    lowest = unsigned(x & -x)
    count = bits - 1 - _leading_zeros(lowest.view(x.dtype))
    return np.where(x == 0, bits, count).astype(x.dtype)


def _ones(x: Array) -> Array:
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


def _power(x: Array, exponent: Array) -> Array:
    """By squaring, wrapping; a negative exponent gives the inverse, truncated."""
    result, left = np.ones_like(x), np.maximum(exponent, 0)
    base = x
    while np.any(left):
        result = np.where(left & 1 != 0, result * base, result)
        base, left = base * base, left >> 1
    odd = exponent & 1 != 0
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0))
    return np.where(exponent < 0, inverse, result).astype(x.dtype)


_INTEGER: dict[str, Function] = {
    "absi": np.abs,
    "ctlz": _leading_zeros,
    "cttz": _trailing_zeros,
    "ctpop": _ones,
    "ipowi": _power,
}


def _integer(function: Function) -> Meaning:
    return lambda op: on_arrays(op, function)


MEANINGS: dict[str, Meaning] = {
    **{f"math.{name}": _float(function) for name, function in _FUNCTIONS.items()},
    **{f"math.{name}": _integer(function) for name, function in _INTEGER.items()},
    "math.fma": _fma,
    "vector.fma": _fma,
}
