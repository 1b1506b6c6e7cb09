"""Arithmetic of floats: `arith`, comparisons and select, and the `math` dialect.

f8, f16 and bf16 are computed in f32 and rounded once; f32 and f64 are what NumPy gives,
which is IEEE.  Functions of `math` are computed in f64, rounded to f32 and then to the
type.  Source: MLIR, `arith` and `math`; docs/language.md: math is within 16 ulp, this
is within one.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from xetl.dialects.base import is_vector
from xetl_reference.values import (
    BF16,
    F8E4M3,
    F8E5M2,
    F32,
    F64,
    Array,
    Binary,
    DType,
    Function,
    Meaning,
    bits_of,
    dtype_of,
    is_narrow,
    on_arrays,
    unsigned,
)


def maximum(a: Array, b: Array) -> Array:
    """Return the larger number; NaN if either is NaN; +0 is larger than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller number; NaN if either is NaN; -0 is smaller than +0."""
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


_BINARY: dict[str, Function] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maximumf": maximum,
    "minimumf": minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "negf": np.negative,
}


def elementwise(function: Function) -> Meaning:
    """``function`` of floats, computed in f32 at least."""
    return lambda op: on_arrays(op, in_f32(function, dtype_of(op.results[0].type)))


_PREDICATES: dict[str, Binary] = {
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": operator.ne,
    "uno": lambda a, b: (a != a) | (b != b),
    "false": lambda a, b: (a != a) & (a == a),
    "true": lambda a, b: (a != a) | (a == a),
}


def _cmpf(op: Any) -> Binary:
    test = _PREDICATES[op.predicate_name]
    if is_vector(op.lhs.type):
        return test
    dtype = dtype_of(op.lhs.type)
    return lambda a, b: bool(test(np.asarray(a, dtype), np.asarray(b, dtype))[()])


def _choose(condition: bool, a: Any, b: Any) -> Any:
    return a if condition else b


def _select(op: Any) -> Function:
    return np.where if is_vector(op.condition.type) else _choose


def widen(values: Array) -> Array:
    """f8, f16 and bf16 as f32, others as they are."""
    return values.astype(F32) if is_narrow(values.dtype) else values


def narrow(values: Array, dtype: DType) -> Array:
    """Round to ``dtype``, to nearest even, once."""
    if values.dtype == dtype:
        return values
    if values.dtype == F64 and dtype in (BF16, F8E4M3, F8E5M2):
        # ml_dtypes goes by way of f32 and would round twice.
        return round_to_odd(values).astype(dtype)
    return values.astype(dtype)


def round_to_odd(values: Array) -> Array:
    """Round f64 to odd in f32, so that a second rounding equals a single one.

    Inexact results get an odd last bit, so that no tie can arise.
    Source: Boldo and Melquiond, "When double rounding is odd".
    """
    near = np.asarray(values.astype(F32))
    return _odd(near, values - near.astype(F64))


def _odd(near: Array, error: Array) -> Array:
    """Return rounded numbers with an odd last bit where ``error`` was lost."""
    is_even = near.view(f"i{near.dtype.itemsize}") & 1 == 0
    away = np.copysign(np.inf, error).astype(near.dtype)
    wrong = (error != 0) & np.isfinite(error) & is_even
    return np.where(wrong, np.nextafter(near, away), near)


def round_to_tf32(values: Array) -> Array:
    """f32 with 10 bits of fraction, to nearest even."""
    bits = values.astype(F32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    special = ~np.isfinite(values)
    return np.where(special, values, rounded.astype(np.uint32).view(F32))


def in_f32(function: Function, dtype: DType) -> Function:
    """Return ``function`` of floats, computed in f32 for narrower types."""
    if not is_narrow(dtype):
        return function

    def rounded(*values: Array) -> Array:
        return function(*(value.astype(F32) for value in values)).astype(dtype)

    return rounded


def in_f64(function: Function, dtype: DType) -> Function:
    """Return ``function`` computed in f64, rounded to f32 and then to the type."""
    if dtype == F64:
        return function

    def rounded(*values: Array) -> Array:
        result = function(*(value.astype(F64) for value in values)).astype(F32)
        return result.astype(dtype, copy=False)

    return rounded


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` with one rounding, for f32 and narrower; nearly so for f64."""
    if a.dtype == F64:
        # The product's rounding error is added last: wrong by an ulp at the very most.
        product = a * b
        # What ``a * b`` lost. Source: Dekker, with Veltkamp's splitting.
        splitter = 134217729.0
        ah = splitter * a - (splitter * a - a)
        bh = splitter * b - (splitter * b - b)
        al, bl = a - ah, b - bh
        lost = al * bl - (((product - ah * bh) - al * bh) - ah * bl)
        total = product + c
        correction = _sum_error(product, c, total) + lost
        return np.where(np.isfinite(correction), total + correction, total)
    product = a.astype(F64) * b.astype(F64)  # exact: 48 bits at most
    total = product + c.astype(F64)
    odd = _odd(np.asarray(total), _sum_error(product, c.astype(F64), total))
    return odd.astype(F32).astype(a.dtype, copy=False)


def _sum_error(a: Array, b: Array, total: Array) -> Array:
    """Return the rounding error of ``total = a + b``. Source: Knuth, TwoSum."""
    part = total - a
    return (a - (total - part)) + (b - part)


def _round_away(x: Array) -> Array:
    """Round to nearest, ties away from zero."""
    whole = np.trunc(x)
    return whole + np.copysign(np.where(np.abs(x - whole) >= 0.5, 1.0, 0.0), x)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


_AS_NUMPY = (
    *("cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "floor"),
    *("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
"""Functions that have the same name in NumPy."""
_INVERSE = ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")
"""Functions whose inverses have names such as arccos in NumPy."""

_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in _AS_NUMPY},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _INVERSE},
    "absf": np.abs,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "powf": np.power,
    "round": _round_away,
    "roundeven": np.rint,
    "rsqrt": _rsqrt,
}


def _float(function: Function) -> Meaning:
    return lambda op: on_arrays(op, in_f64(function, dtype_of(op.results[0].type)))


# Integers ---------------------------------------------------------------------------


def _leading_zeros(x: Array) -> Array:
    bits, left = bits_of(x.dtype), unsigned(x)
    count = np.full(x.shape, bits, x.dtype)
    while np.any(left):
        count = count - (left != 0).astype(x.dtype)
        left = left >> 1
    return count


def _trailing_zeros(x: Array) -> Array:
    """The bits below the lowest that is set."""
    return _ones(~x & (x - 1))


def _ones(x: Array) -> Array:
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


def _power(x: Array, exponent: Array) -> Array:
    """Compute a power by squaring, wrapping; a negative exponent inverts, truncated."""
    result, left, base = np.ones_like(x), np.maximum(exponent, 0), x
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
    **{f"arith.{name}": elementwise(function) for name, function in _BINARY.items()},
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    **{f"math.{name}": _float(function) for name, function in _FUNCTIONS.items()},
    **{f"math.{name}": _integer(function) for name, function in _INTEGER.items()},
    "math.fma": _integer(fused_multiply_add),
    "vector.fma": _integer(fused_multiply_add),
}
