"""Functions that combine values by a kind (add, maxui, ...), elementwise or along axes.

f16, bf16 and f32 are summed in f64, then rounded to f32 and to the type: the result of
"accumulates in f32 and rounds once" without the error of any order. Integers wrap.
Source: docs/xetile.md, section 3, tile_reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, normalize_kind
from xetl_reference.floats import in_f32, in_f64, maximum, minimum
from xetl_reference.values import (
    BOOL,
    Array,
    Binary,
    DType,
    Function,
    is_narrow,
    signed,
    unsigned,
)

_ELEMENTWISE: dict[str, Function] = {"minimumf": minimum, "maximumf": maximum}
"""`arith` orders -0 before +0. The ufuncs, which reductions use, do not."""


def _is_float(dtype: DType) -> bool:
    return dtype.kind == "f" or is_narrow(dtype)


def combine(kind: str, dtype: DType) -> Binary:
    """Return the function that combines an old value with a new one, elementwise."""
    name = normalize_kind(kind)
    if name == "assign":
        return lambda old, new: new
    function: Function = _ufunc(name, dtype)
    if _is_float(dtype):
        return in_f32(_ELEMENTWISE.get(name, function), dtype)
    if _is_unsigned(name, dtype):
        return lambda old, new: signed(function(unsigned(old), unsigned(new)))
    return function


def reduction(kind: str, dtype: DType) -> Binary:
    """Return the function ``f(values, axes)`` that combines all elements along axes.

    The axes keep size 1.
    """
    name = normalize_kind(kind)
    # NumPy's own sum starts from +0.
    start = {"initial": ON_FLOATS[name].identity} if _is_float(dtype) else {}
    return _along(name, dtype, _reduce(_ufunc(name, dtype), **start))


def scan(kind: str, dtype: DType) -> Binary:
    """Return the function ``f(values, axis)`` of an inclusive scan."""
    name = normalize_kind(kind)
    ufunc = _ufunc(name, dtype)

    def run(values: Array, axes: int) -> Array:
        return ufunc.accumulate(values, axes, dtype=values.dtype)

    return _along(name, dtype, run)


def _along(name: str, dtype: DType, run: Function) -> Binary:
    """Return ``run`` for values of a type and axes: of floats in f64."""
    if _is_float(dtype):
        return lambda values, axes: in_f64(partial(run, axes=axes), dtype)(values)
    if _is_unsigned(name, dtype):
        return lambda values, axes: signed(run(unsigned(values), axes))
    return run


def _is_unsigned(name: str, dtype: DType) -> bool:
    return name in ("minui", "maxui") and dtype != BOOL


def _ufunc(kind: str, dtype: DType) -> Any:
    if _is_float(dtype):
        return getattr(np, ON_FLOATS[kind].numpy)
    on = ON_INTEGERS[kind]
    return getattr(np, (ON_INTEGERS[on.on_bits] if dtype == BOOL else on).numpy)


def _reduce(ufunc: Any, **start: float) -> Function:
    """Return a reduction that starts with the first element, or with ``initial``."""

    def run(values: Array, axes: Sequence[int]) -> Array:
        kept = values.dtype
        for axis in axes:
            values = ufunc.reduce(values, axis, kept, keepdims=True, **start)
        return values

    return run
