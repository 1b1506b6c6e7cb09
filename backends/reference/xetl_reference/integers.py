"""Integer arithmetic: `arith` and `index`; casts between integers, `index` and floats.

Integers wrap; division by zero gives 0. If a float does not fit an integer, the result
is unspecified, but there is no error.
Source: MLIR, `arith`; docs/language.md, "Rules of types and edges".
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from xetl.dialects.base import is_tf32, is_vector, shape_of
from xetl.dialects.literals import wrap
from xetl_reference.floats import narrow, round_to_tf32
from xetl_reference.values import (
    BOOL,
    F32,
    F64,
    Array,
    Binary,
    DType,
    Function,
    Meaning,
    Unary,
    bits_of,
    dtype_of,
    is_narrow,
    on_arrays,
    signed,
    unsigned,
)

# Arrays -----------------------------------------------------------------------------


def _divsi(a: Array, b: Array) -> Array:
    towards_zero = (np.fmod(a, b) != 0) & ((a < 0) != (b < 0))
    return np.floor_divide(a, b) + towards_zero.astype(a.dtype)


def _ceildivsi(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0).astype(a.dtype)


def _shift(function: Any) -> Function:
    """Return a shift with an unsigned amount; large amounts shift out all bits."""

    def run(a: Array, b: Array) -> Array:
        amount = np.minimum(unsigned(b), np.uint64(bits_of(a.dtype)))
        return function(a, amount.astype(a.dtype))

    return run


def _as_unsigned(function: Function) -> Binary:
    return lambda a, b: signed(function(unsigned(a), unsigned(b)))


ON_ARRAYS: dict[str, Function] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "divsi": _divsi,
    "remsi": np.fmod,
    "floordivsi": np.floor_divide,
    "ceildivsi": _ceildivsi,
    "divui": _as_unsigned(np.floor_divide),
    "remui": _as_unsigned(np.remainder),
    "ceildivui": _as_unsigned(_ceildivsi),
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": _as_unsigned(np.maximum),
    "minui": _as_unsigned(np.minimum),
    "shli": _shift(np.left_shift),
    "shrsi": _shift(np.right_shift),
    "shrui": _shift(_as_unsigned(np.right_shift)),
}

_ON_BITS: dict[str, Function] = {
    # i1 counts modulo 2; as a signed number true is -1.
    **dict.fromkeys(("addi", "subi", "xori"), np.logical_xor),
    **dict.fromkeys(("muli", "andi", "minui", "maxsi"), np.logical_and),
    **dict.fromkeys(("ori", "maxui", "minsi"), np.logical_or),
}

# Scalars are Python ints: most of them are offsets, and these are fast ---------------


def _div(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ON_INTS: dict[str, Binary] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": int.__and__,
    "ori": int.__or__,
    "xori": int.__xor__,
    "maxsi": max,
    "minsi": min,
    "divsi": _div,
    "remsi": lambda a, b: a - _div(a, b) * b if b else 0,
    "floordivsi": lambda a, b: a // b if b else 0,
    "ceildivsi": lambda a, b: -(-a // b) if b else 0,
}


def _scalar(name: str, bits: int) -> Function | None:
    exact = _ON_INTS.get(name)
    if exact is None or bits == 1:
        return None
    half = 1 << (bits - 1)

    def run(a: int, b: int) -> int:
        result = exact(a, b)
        return result if -half <= result < half else wrap(result, bits)

    return run


def binary(name: str) -> Meaning:
    """Return the meaning of an operation of `arith` on two integers, by ``name``."""

    def meaning(op: Any) -> Binary:
        type_ = op.results[0].type
        dtype = dtype_of(type_)
        function = (_ON_BITS if dtype == BOOL else ON_ARRAYS)[name]
        fast = None if is_vector(type_) else _scalar(name, bits_of(dtype))
        return on_arrays(op, function) if fast is None else fast

    return meaning


# Comparisons ------------------------------------------------------------------------

_BIT_COMPARE = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compare(predicate: str, type_: Any) -> Binary:
    """Return the function of ``cmpi predicate`` on values of a type."""
    dtype = dtype_of(type_)
    kind, sign = predicate[-2:], predicate[:-2]
    if dtype == BOOL and sign == "s":
        kind = _BIT_COMPARE[kind]  # true is -1
    test: Binary = getattr(operator, kind)
    if sign != "u" or dtype == BOOL:
        return test
    if is_vector(type_):
        return lambda a, b: test(unsigned(a), unsigned(b))
    mask = (1 << bits_of(dtype)) - 1
    return lambda a, b: test(a & mask, b & mask)


def _cmpi(op: Any) -> Function:
    return compare(op.predicate_name, op.lhs.type)


def _extend(values: Array, dtype: DType) -> Array:
    """Sign-extend; true becomes -1."""
    wide = values.astype(dtype)
    return -wide if values.dtype == BOOL else wide


def _extend_unsigned(values: Array, dtype: DType) -> Array:
    return unsigned(values).astype(dtype)


def _truncate(values: Array, dtype: DType) -> Array:
    return (values & 1) != 0 if dtype == BOOL else values.astype(dtype)


def _resize(values: Array, dtype: DType, extend: Function = _extend) -> Array:
    """Cast to or from `index`: extend or truncate."""
    wider = bits_of(dtype) > bits_of(values.dtype)
    return extend(values, dtype) if wider else _truncate(values, dtype)


def _to_float(values: Array, dtype: DType) -> Array:
    """Round integers to nearest, once; the bits that f64 loses are sticky."""
    if not is_narrow(dtype):
        return values.astype(dtype)
    if values.dtype.itemsize == 8:  # bytes
        low = values & 0xFFF
        rough = values - low + np.where(low != 0, 0x800, 0).astype(values.dtype)
        values = np.where(np.abs(values) < 1 << 53, values, rough)
    return narrow(values.astype(F64), dtype)


def _from_signed(values: Array, dtype: DType) -> Array:
    return _to_float(-values.astype(np.int8) if values.dtype == BOOL else values, dtype)


def _from_unsigned(values: Array, dtype: DType) -> Array:
    return _to_float(unsigned(values), dtype)


def _to_signed(values: Array, dtype: DType) -> Array:
    whole = np.trunc(values.astype(F64))
    return _truncate(np.asarray(whole).astype(np.int64), dtype)


def _to_unsigned(values: Array, dtype: DType) -> Array:
    """Truncate through i64, or through u64 if the number needs the 64th bit."""
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
    **dict.fromkeys(
        ("arith.index_castui", "index.castu"),
        partial(_resize, extend=_extend_unsigned),
    ),
}


def _cast(function: Any) -> Meaning:
    return lambda op: on_arrays(
        op, partial(function, dtype=dtype_of(op.results[0].type))
    )


def _index_cast(op: Any) -> Unary:
    source, dtype = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if is_vector(op.results[0].type) or BOOL in (source, dtype):
        return on_arrays(op, partial(_resize, dtype=dtype))
    bits = bits_of(dtype)
    return lambda value: wrap(value, bits)


def _truncf(op: Any) -> Function:
    if is_tf32(op.results[0].type):
        return on_arrays(op, _to_tf32)
    return _cast(narrow)(op)


def _to_tf32(values: Array) -> Array:
    return round_to_tf32(narrow(values, F32))


def _bitcast(op: Any) -> Function:
    dtype = dtype_of(op.results[0].type)

    def run(values: Array) -> Array:
        return values if BOOL in (dtype, values.dtype) else values.view(dtype)

    return on_arrays(op, run)


def _vector_bitcast(op: Any) -> Unary:
    dtype, shape = dtype_of(op.results[0].type), shape_of(op.results[0].type)
    return lambda values: np.ascontiguousarray(values).view(dtype).reshape(shape)


MEANINGS: dict[str, Meaning] = {
    **{f"arith.{name}": binary(name) for name in ON_ARRAYS},
    **{f"index.{name.removesuffix('i')}": binary(name) for name in ON_ARRAYS},
    "arith.cmpi": _cmpi,
    "index.cmp": _cmpi,
    "index.sizeof": lambda op: lambda: 64,
    **{name: _cast(function) for name, function in _CASTS.items()},
    "arith.truncf": _truncf,
    "arith.index_cast": _index_cast,
    "index.casts": _index_cast,
    "arith.bitcast": _bitcast,
    "vector.bitcast": _vector_bitcast,
}
