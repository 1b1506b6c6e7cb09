"""Float arithmetic, comparisons and select of `arith`.

f16 and bf16 are computed in f32 and rounded once (rounding.py); f32 and f64 are what
NumPy gives, which is IEEE. Source: MLIR, `arith`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xetl_reference.rounding import in_f32
from xetl_reference.values import (
    Array,
    Binary,
    Function,
    Meaning,
    dtype_of,
    is_vector,
    on_arrays,
)


def maximum(a: Array, b: Array) -> Array:
    """The larger one; NaN if either is, and +0 is larger than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    """The smaller one; NaN if either is, and -0 is smaller than +0."""
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

    def meaning(op: Any) -> Function:
        return on_arrays(op, in_f32(function, dtype_of(op.results[0].type)))

    return meaning


def _unordered(a: Any, b: Any) -> Any:
    return (a != a) | (b != b)


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
    "uno": _unordered,
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


MEANINGS: dict[str, Meaning] = {
    **{f"arith.{name}": elementwise(function) for name, function in _BINARY.items()},
    "arith.cmpf": _cmpf,
    "arith.select": _select,
}
