"""The Python values that represent values of the IR, and constants as such values.

A vector is a NumPy array of its shape. Integers are signless in the IR, and signed
here; i1 is NumPy's bool; bf16 and f8 come from ml_dtypes. A scalar integer, an address
or an `index` is a Python int (signed, within its width), a scalar i1 a Python bool, a
scalar float a NumPy scalar. Source: docs/xetile.md, section 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from xetl.dialects.base import is_vector, shape_of
from xetl.dialects.literals import wrap
from xetl.dialects.upstream.elementwise import bit_width, is_integer
from xetl.errors import InternalError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
DType: TypeAlias = np.dtype[Any]
Function: TypeAlias = Callable[..., Any]
"""Computes the result of an operation from the values of its operands: a value, a tuple
for several results, None for no result."""
Unary: TypeAlias = Callable[[Any], Any]
Binary: TypeAlias = Callable[[Any, Any], Any]
Meaning: TypeAlias = Callable[[Any], Function]
"""Returns the function of an operation, by its types and attributes."""

F8E4M3: DType = np.dtype(ml_dtypes.float8_e4m3fn)
F8E5M2: DType = np.dtype(ml_dtypes.float8_e5m2)
BF16: DType = np.dtype(ml_dtypes.bfloat16)
BOOL: DType = np.dtype(np.bool_)
F16: DType = np.dtype(np.float16)
F32: DType = np.dtype(np.float32)
F64: DType = np.dtype(np.float64)

_FLOATS: dict[type[Attribute], DType] = {
    builtin.Float8E4M3FNType: F8E4M3,
    builtin.Float8E5M2Type: F8E5M2,
    builtin.BFloat16Type: BF16,
    builtin.Float16Type: F16,
    builtin.Float32Type: F32,
    builtin.Float64Type: F64,
    builtin.FloatTF32Type: F32,
}

_INTEGERS: dict[int, DType] = {
    1: BOOL,
    **{bits: np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
}


@cache
def dtype_of(type_: Attribute) -> DType:
    """The NumPy dtype of the elements of a type."""
    element: Attribute = getattr(type_, "element_type", type_)
    if is_integer(element):
        found = _INTEGERS.get(bit_width(element))
    else:
        found = _FLOATS.get(type(element))
    if found is None:
        raise InternalError(f"the reference backend has no elements of type {element}")
    return found


def bits_of(dtype: DType) -> int:
    """Bits of an element in the IR."""
    return 1 if dtype == BOOL else 8 * dtype.itemsize


def is_narrow(dtype: DType) -> bool:
    """Whether arithmetic on the type is done in f32."""
    return dtype in (F16, BF16, F8E4M3, F8E5M2)


def unsigned(values: Array, kind: str = "u") -> Array:
    """Return a view with unsigned integers of the same bits; i1 stays."""
    bits = values.dtype
    return values if bits == BOOL else values.view(np.dtype(f"{kind}{bits.itemsize}"))


def signed(values: Array) -> Array:
    """Return a view with signed integers of the same bits; i1 stays."""
    return unsigned(values, "i")


def unbox(values: Any) -> Any:
    """Return the scalar in an array of rank 0, in our form of scalars."""
    array = np.asarray(values)
    return array[()] if array.dtype.kind in "fV" else array.item()


def as_scalar(value: Any, dtype: DType) -> Any:
    """Convert a number to our form of scalars."""
    if dtype == BOOL:
        return bool(value)
    if dtype.kind == "i":
        return wrap(int(value), 8 * dtype.itemsize)
    return dtype.type(value)


def on_arrays(op: Operation, function: Unary | Binary | Function) -> Function:
    """Return ``function`` of arrays, adapted to scalars if the operation has these."""
    if is_vector(op.results[0].type):
        return function
    dtypes = [dtype_of(operand.type) for operand in op.operands]

    def scalar(*values: Any) -> Any:
        return unbox(function(*map(np.asarray, values, dtypes)))

    return scalar


def always(function: Function) -> Meaning:
    """Return the meaning of operations whose function is always the same."""
    return lambda op: function


def same(op: Operation) -> Unary:
    """The meaning of operations that return their operand."""
    return lambda source: source


def nothing(op: Operation) -> Function:
    """The meaning of operations without a result that do nothing here."""
    return lambda *operands: None


def constant_value(attribute: Attribute, type_: Attribute) -> Any:
    """The value of a constant; arrays are read-only."""
    dtype = dtype_of(type_)
    if isinstance(attribute, builtin.IntegerAttr | builtin.FloatAttr):
        return as_scalar(attribute.value.data, dtype)
    if not isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        raise InternalError(f"a constant of an unknown kind: {attribute}")
    data = attribute.data.data
    if dtype == BOOL:
        flat = np.frombuffer(data, np.uint8) != 0
    else:
        flat = np.frombuffer(data, np.uint8).view(dtype)
    shape = shape_of(type_)
    values = np.full(shape, flat[0]) if flat.size == 1 else flat.reshape(shape)
    values = values.astype(dtype, copy=False)
    values.flags.writeable = False
    return values


def padding_value(attribute: Attribute | None, dtype: DType) -> Any:
    """Return the padding of a load as an element; zero by default."""
    if isinstance(attribute, builtin.IntegerAttr | builtin.FloatAttr):
        return np.asarray(attribute.value.data).astype(dtype)[()]
    return np.zeros((), dtype)[()]
