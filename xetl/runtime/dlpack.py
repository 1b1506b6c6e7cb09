"""Reading the description of an array out of a DLPack capsule.

The capsule is only looked at, never consumed: while it lives, the memory does.
Layouts of the structures: dlpack.h, version 1.0.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from xetl.runtime.strides import row_major

CPU = 1
_READONLY, _COPIED = 1, 2
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "i"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_Query = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_Pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_IsValid = _Query(("PyCapsule_IsValid", ctypes.pythonapi))
_GetPointer = _Pointer(("PyCapsule_GetPointer", ctypes.pythonapi))


@dataclass(frozen=True, slots=True)
class Described:
    """What a capsule says; ``dtype`` is our name, ``None`` if we have none."""

    address: int
    dtype: str | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool
    keep: object


def read(obj: Any) -> Described:
    """Ask ``obj`` for a capsule and read it."""
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # made before versions existed
        capsule = obj.__dlpack__()
    flags, tensor = _open(capsule)
    shape = tuple(tensor.shape[: tensor.rank])
    strides = (
        tuple(tensor.strides[: tensor.rank]) if tensor.strides else row_major(shape)
    )
    return Described(
        (tensor.data or 0) + tensor.byte_offset,
        _dtype_name(tensor),
        shape,
        strides,
        # What is written to a copy would be lost: it may as well not be written.
        bool(flags & (_READONLY | _COPIED)),
        (obj, capsule),
    )


def _open(capsule: object) -> tuple[int, Any]:
    if _IsValid(capsule, b"dltensor_versioned"):
        address = _GetPointer(capsule, b"dltensor_versioned")
        versioned = _Versioned.from_address(address)
        return versioned.flags, versioned.tensor
    return 0, _Tensor.from_address(_GetPointer(capsule, b"dltensor"))


def _dtype_name(tensor: Any) -> str | None:
    if tensor.lanes != 1 or tensor.code not in _CODES:
        return None
    bits = 1 if tensor.code == 6 else tensor.bits
    name = f"{_CODES[tensor.code]}{bits}"
    known = "i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"
    return name if name in known.split() else None
