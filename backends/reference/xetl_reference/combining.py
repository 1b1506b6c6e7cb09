"""Combining values by a kind (add, maxui, ...): one with one, or all along dimensions.

f16, bf16 and f32 are summed in f64, rounded to f32 and then to the type: "accumulates
in f32 and rounds once" without the error of any order. Integers wrap.
Source: docs/xetile.md, section 3, tile_reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xetl.dialects.combining import normalize_kind
from xetl_reference.floats import maximum, minimum
from xetl_reference.rounding import in_f32, in_f64
from xetl_reference.values import (
    BOOL,
    F64,
    Array,
    Binary,
    DType,
    Function,
    is_narrow,
    signed,
    unsigned,
)

_FLOAT: dict[str, Function] = {
    "add": np.add,
    "mul": np.multiply,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
    "minimumf": minimum,
    "maximumf": maximum,
}
_INTEGER: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "minui": np.minimum,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_BITS: dict[str, Any] = {
    # i1 counts modulo 2, and true is -1 as a signed number.
    **{"add": np.logical_xor, "mul": np.logical_and, "xor": np.logical_xor},
    **{"and": np.logical_and, "minui": np.logical_and, "maxsi": np.logical_and},
    **{"or": np.logical_or, "maxui": np.logical_or, "minsi": np.logical_or},
}
_FLOAT_REDUCE: dict[str, Any] = {
    **_FLOAT,
    # The sign of a zero is not specified here, and a ufunc is what reduces.
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}


def _is_float(dtype: DType) -> bool:
    return dtype.kind == "f" or is_narrow(dtype)


def combine(kind: str, dtype: DType) -> Binary:
    """The function that combines an old value with a new one, elementwise."""
    name = normalize_kind(kind)
    if name == "assign":
        return lambda old, new: new
    if _is_float(dtype):
        return in_f32(_FLOAT[name], dtype)
    if dtype == BOOL:
        return _BITS[name]
    function = _INTEGER[name]
    if name in ("minui", "maxui"):
        return lambda old, new: signed(function(unsigned(old), unsigned(new)))
    return function


def reduction(kind: str, dtype: DType) -> Binary:
    """The function that combines all elements along axes: ``f(values, axes)``.

    The axes keep size 1.
    """
    name = normalize_kind(kind)
    if _is_float(dtype):
        return _float_reduction(name, dtype)
    if dtype == BOOL:
        return _reduce(_BITS[name], BOOL)
    reduce = _reduce(_INTEGER[name], None)
    if name in ("minui", "maxui"):
        return lambda values, axes: signed(reduce(unsigned(values), axes))
    return reduce


def scan(kind: str, dtype: DType) -> Binary:
    """The function that combines up to and with each element: ``f(values, axis)``."""
    name = normalize_kind(kind)
    if _is_float(dtype):
        return _float_scan(_FLOAT_REDUCE[name], dtype)
    ufunc = _BITS[name] if dtype == BOOL else _INTEGER[name]
    if name in ("minui", "maxui"):
        return lambda values, axis: signed(ufunc.accumulate(unsigned(values), axis))
    return lambda values, axis: ufunc.accumulate(values, axis, dtype=dtype)


def _float_scan(ufunc: Any, dtype: DType) -> Binary:
    def run(values: Array, axis: int) -> Array:
        def along(wide: Array) -> Array:
            return ufunc.accumulate(wide, axis)

        return in_f64(along, dtype)(values)

    return run


def _reduce(ufunc: Any, dtype: DType | None) -> Function:
    def run(values: Array, axes: Sequence[int]) -> Array:
        kept = values.dtype if dtype is None else dtype
        for axis in axes:
            values = ufunc.reduce(values, axis=axis, keepdims=True, dtype=kept)
        return values

    return run


def _float_reduction(name: str, dtype: DType) -> Function:
    reduce = _reduce(_FLOAT_REDUCE[name], F64)

    def run(values: Array, axes: Sequence[int]) -> Array:
        def along(wide: Array) -> Array:
            return reduce(wide, axes)

        return in_f64(along, dtype)(values)

    return run
