"""Element types, and the promotion of two types.

The rules are those of ``docs/design`` "Rules of types and edges": NumPy's promotion
among floats and among ints. Pairs that NumPy would silently widen beyond 64 bits, and
the pair of 16-bit floats, are refused.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from xetl.errors import TileTypeError, did_you_mean
from xetl.imports import import_whole
from xetl.records import record

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__: list[str] = ["DType", "bool_", "index"]
__all__ += ["i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
__all__ += ["bf16", "f8e4m3", "f8e5m2", "f16", "f32", "f64", "tf32"]
__all__ += ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
__all__ += ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64"]
__all__ += ["tfloat32"]

Kind = Literal["f", "i", "u", "b"]


@record(frozen=True)
class DType:
    """An element type: ``f32``, ``u8``, ...

    ``kind`` is ``f`` (float), ``i`` (signed), ``u`` (unsigned) or ``b`` (i1).
    """

    name: str
    bits: int
    kind: Kind

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point one."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether the type is a number without fraction; i1 is not one."""
        return self.kind in "iu"

    @property
    def is_bool(self) -> bool:
        """Whether the type is i1."""
        return self.kind == "b"

    @property
    def itemsize(self) -> int:
        """Bytes an element takes in memory."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of arrays of this type; tf32 is stored as float32."""
        return _numpy_dtype(self.name)

    @classmethod
    def of(cls, dtype: DTypeLike | str | DType) -> DType:
        """Return the type of a NumPy or torch dtype, or of any name of a dtype.

        Raises:
            TileTypeError: there is no such element type.
        """
        found = cls.find(dtype)
        if found is None:
            name = _name_of(dtype)
            problem = f"`{name}` is not a dtype of xetl"
            raise TileTypeError(problem, code="X0301", help=did_you_mean(name, BY_NAME))
        return found

    @staticmethod
    def find(dtype: DTypeLike | str | DType) -> DType | None:
        """Do the same as `of`, but return None if there is no such element type."""
        return dtype if isinstance(dtype, DType) else BY_NAME.get(_name_of(dtype))


def is_foreign(value: object) -> bool:
    """Whether a value is a dtype object of NumPy or torch: ``torch.float32``."""
    kind = type(value)
    is_torch = kind.__module__ == "torch" and kind.__name__ == "dtype"
    return is_torch or isinstance(value, np.dtype)


def _name_of(dtype: DTypeLike | str | DType) -> str:
    if not isinstance(dtype, str):
        with contextlib.suppress(TypeError):  # a torch dtype prints its name
            return np.dtype(cast("DTypeLike", dtype)).name
    return str(dtype).removeprefix("torch.")


@functools.cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name in _ML_DTYPES:
        # Imported late: most programs do not need it, and imports must be fast.
        return np.dtype(getattr(import_whole("ml_dtypes"), _ML_DTYPES[name]))
    return np.dtype(_NUMPY_NAMES[name])


i1 = DType("i1", 1, "b")
i8 = DType("i8", 8, "i")
i16 = DType("i16", 16, "i")
i32 = DType("i32", 32, "i")
i64 = DType("i64", 64, "i")
u8 = DType("u8", 8, "u")
u16 = DType("u16", 16, "u")
u32 = DType("u32", 32, "u")
u64 = DType("u64", 64, "u")
f8e4m3 = DType("f8e4m3", 8, "f")
f8e5m2 = DType("f8e5m2", 8, "f")
f16 = DType("f16", 16, "f")
bf16 = DType("bf16", 16, "f")
tf32 = DType("tf32", 32, "f")
f32 = DType("f32", 32, "f")
f64 = DType("f64", 64, "f")
index = DType("index", 64, "i")

bool_ = i1
int8, int16, int32, int64 = i8, i16, i32, i64
uint8, uint16, uint32, uint64 = u8, u16, u32, u64
float16, bfloat16, tfloat32, float32, float64 = f16, bf16, tf32, f32, f64
float8_e4m3fn, float8_e5m2 = f8e4m3, f8e5m2

SMALL_FLOATS = (f8e4m3, f8e5m2)
"""Types for storage: computations with them run in f32."""

ALL = (
    *(i1, i8, i16, i32, i64, u8, u16, u32, u64),
    *(*SMALL_FLOATS, f16, bf16, tf32, f32, f64, index),
)

_NUMPY_NAMES = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{"tf32": "float32", "index": "int64"},
}
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_LONG_NAMES = {
    (_NUMPY_NAMES | _ML_DTYPES)[dtype.name]: dtype
    for dtype in ALL
    if dtype not in (tf32, index)
}
_MLIR_NAMES = {"f8E4M3FN": f8e4m3, "f8E5M2": f8e5m2}
BY_NAME: dict[str, DType] = (
    {dtype.name: dtype for dtype in ALL} | _LONG_NAMES | _MLIR_NAMES
)
"""The dtype of every name: our names, NumPy's, torch's and MLIR's."""

_SIGNED = {8: i8, 16: i16, 32: i32, 64: i64}


def promote(left: DType, right: DType) -> DType:
    """Return the dtype of an operation on two vectors.

    Raises:
        TileTypeError: the pair has no common type: i1 with a number, f16 with
            bf16, f8e4m3 with f8e5m2, u64 with a signed integer, tf32 with anything
            else.
    """
    if left == right:
        return left
    if left.is_bool or right.is_bool:
        raise _no_common(left, right, "an i1 vector is a mask, not a number")
    if left.is_float and right.is_float:
        if {left, right} in ({f16, bf16}, {*SMALL_FLOATS}):
            raise _no_common(left, right, "neither holds all values of the other")
        if tf32 in (left, right):
            raise _no_common(left, right, "tf32 is an operand of tile_mma only")
        return left if left.bits > right.bits else right
    if left.is_float or right.is_float:
        return left if left.is_float else right
    return _promote_integers(left, right)


def _promote_integers(left: DType, right: DType) -> DType:
    # `index` counts as the signed 64-bit integer it is on every target.
    left, right = (i64 if dtype == index else dtype for dtype in (left, right))
    if left.kind == right.kind:
        return left if left.bits > right.bits else right
    signed, unsigned = (left, right) if left.kind == "i" else (right, left)
    if unsigned.bits == 64:
        raise _no_common(left, right, "no integer holds all values of both")
    return _SIGNED[max(signed.bits, 2 * unsigned.bits)]


def _no_common(left: DType, right: DType, why: str) -> TileTypeError:
    problem = f"{left} and {right} have no common dtype"
    help_ = "convert one of them with `.to(...)`"
    return TileTypeError(problem, code="X0302", notes=[why], help=help_)
