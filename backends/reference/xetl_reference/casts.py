"""Casts between integers, `index` and floats.  Source: MLIR, `arith`.

Where a float does not fit an integer the result is unspecified, but nothing fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xetl_reference.floats import narrow, round_to_tf32
from xetl_reference.values import (
    BOOL,
    F32,
    F64,
    Array,
    DType,
    Function,
    Meaning,
    Unary,
    bits_of,
    dtype_of,
    is_narrow,
    is_tf32,
    is_vector,
    on_arrays,
    shape_of,
    unsigned,
    wrap,
)


def _extend(values: Array, dtype: DType) -> Array:
    """Keep the sign; true is -1."""
    wide = values.astype(dtype)
    return -wide if values.dtype == BOOL else wide


def _extend_unsigned(values: Array, dtype: DType) -> Array:
    return unsigned(values).astype(dtype)


def _truncate(values: Array, dtype: DType) -> Array:
    return (values & 1) != 0 if dtype == BOOL else values.astype(dtype)


def _resize(values: Array, dtype: DType) -> Array:
    """To or from `index`, whichever is wider, with sign."""
    wider = bits_of(dtype) > bits_of(values.dtype)
    return _extend(values, dtype) if wider else _truncate(values, dtype)


def _resize_unsigned(values: Array, dtype: DType) -> Array:
    wider = bits_of(dtype) > bits_of(values.dtype)
    return _extend_unsigned(values, dtype) if wider else _truncate(values, dtype)


def _to_float(values: Array, dtype: DType) -> Array:
    """By way of f32 to the 16-bit types: computed in f32, rounded once."""
    if is_narrow(dtype):
        return values.astype(F32).astype(dtype)
    return values.astype(dtype)


def _from_signed(values: Array, dtype: DType) -> Array:
    return _to_float(-values.astype(np.int8) if values.dtype == BOOL else values, dtype)


def _from_unsigned(values: Array, dtype: DType) -> Array:
    return _to_float(unsigned(values), dtype)


def _to_signed(values: Array, dtype: DType) -> Array:
    whole = np.trunc(values.astype(F64))
    return _truncate(np.asarray(whole).astype(np.int64), dtype)


def _to_unsigned(values: Array, dtype: DType) -> Array:
    """Through i64; what needs the 64th bit through u64."""
    whole = np.asarray(np.trunc(values.astype(F64)))
    high = whole >= 2.0**63
    low = np.where(high, 0.0, whole).astype(np.int64)
    large = np.where(high, whole, 0.0).astype(np.uint64).view(np.int64)
    return _truncate(np.where(high, large, low), dtype)


_CASTS: dict[str, Any] = {
    "arith.extsi": _extend,
    "arith.extui": _extend_unsigned,
    "arith.trunci": _truncate,
    "arith.extf": narrow,
    "arith.sitofp": _from_signed,
    "arith.uitofp": _from_unsigned,
    "arith.fptosi": _to_signed,
    "arith.fptoui": _to_unsigned,
    "arith.index_castui": _resize_unsigned,
    "index.castu": _resize_unsigned,
}


def _cast(function: Any) -> Meaning:
    def meaning(op: Any) -> Function:
        dtype = dtype_of(op.results[0].type)

        def run(values: Array) -> Array:
            return function(values, dtype)

        return on_arrays(op, run)

    return meaning


def _index_cast(op: Any) -> Unary:
    source, dtype = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if is_vector(op.results[0].type) or BOOL in (source, dtype):

        def resize(values: Array) -> Array:
            return _resize(values, dtype)

        return on_arrays(op, resize)
    bits = bits_of(dtype)
    return lambda value: wrap(value, bits)


def _truncf(op: Any) -> Function:
    type_ = op.results[0].type
    dtype = dtype_of(type_)

    def run(values: Array) -> Array:
        return narrow(values, dtype)

    def to_tf32(values: Array) -> Array:
        return round_to_tf32(narrow(values, dtype))

    return on_arrays(op, to_tf32 if is_tf32(type_) else run)


def _bitcast(op: Any) -> Function:
    dtype = dtype_of(op.results[0].type)

    def run(values: Array) -> Array:
        return values if BOOL in (dtype, values.dtype) else values.view(dtype)

    return on_arrays(op, run)


def _vector_bitcast(op: Any) -> Unary:
    dtype, shape = dtype_of(op.results[0].type), shape_of(op.results[0].type)
    return lambda values: np.ascontiguousarray(values).view(dtype).reshape(shape)


MEANINGS: dict[str, Meaning] = {
    **{name: _cast(function) for name, function in _CASTS.items()},
    "arith.truncf": _truncf,
    "arith.index_cast": _index_cast,
    "index.casts": _index_cast,
    "arith.bitcast": _bitcast,
    "vector.bitcast": _vector_bitcast,
}
