"""Read the description of an array from a DLPack capsule.

The capsule is read, but never consumed: the memory lives as long as the capsule.
Source of the structures: dlpack.h, version 1.0.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from xetl.errors import a_kind
from xetl.language.strides import row_major

CPU = 1
_READONLY, _COPIED = 1, 2
_BOOL = 6
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", _BOOL: "i"}
_SMALL_FLOATS = {10: "f8e4m3", 12: "f8e5m2"}
"""Of eight bits.  Source: DLPack 1.1, DLDataTypeCode."""

_MAJOR = 1
"""The version of the capsules that are requested."""

_MOST_DIMS = 64
"""NumPy's limit, and the one of most libraries."""

_ADDRESSES = 1 << 56
"""The end of user addresses on x86-64 with five levels of page tables."""

_MS_ASYNC = 1


class WrongDlpackError(Exception):
    """An object does not follow the DLPack protocol."""


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
_msync = ctypes.CDLL(None).msync
_msync.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def device_of(obj: Any) -> tuple[int, int]:
    """Return type and index of the device of an array; a WrongDlpackError if untold."""
    try:
        kind, index = obj.__dlpack_device__()
        return int(kind), int(index)
    except Exception as error:  # code of other libraries may raise anything
        problem = f"its `__dlpack_device__` fails: {_said(error)}"
        raise WrongDlpackError(problem) from None


def read(obj: Any) -> tuple[Any, ...]:
    """Ask ``obj`` for a capsule and read it.

    Return address, the dtype's name in xetl (None if it has none), shape, strides,
    readonly, and what to keep.

    Raises:
        WrongDlpackError: its capsule does not follow the protocol.
    """
    capsule = _ask(obj)
    flags, tensor = _open(capsule)
    if tensor.device_type != CPU:
        raise WrongDlpackError(f"its capsule is of device {tensor.device_type}")
    shape, strides = _extents(tensor)
    dtype = _dtype_name(tensor)
    address = (tensor.data or 0) + tensor.byte_offset
    if dtype is not None and 0 not in shape:
        _check_memory(address, tensor.bits // 8, shape, strides)
    # Writes to a copy would be lost, so a copy counts as read-only.
    readonly = bool(flags & (_READONLY | _COPIED))
    return address, dtype, shape, strides, readonly, (obj, capsule)


def _ask(obj: Any) -> object:
    try:
        try:
            return obj.__dlpack__(max_version=(1, 0))
        except TypeError:  # the class is older than the parameter
            return obj.__dlpack__()
    except Exception as error:  # code of other libraries may raise anything
        raise WrongDlpackError(f"its `__dlpack__` fails: {_said(error)}") from None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _open(capsule: object) -> tuple[int, Any]:
    if _IsValid(capsule, b"dltensor_versioned"):
        address = _GetPointer(capsule, b"dltensor_versioned")
        versioned = _Versioned.from_address(address)
        if versioned.major != _MAJOR:
            problem = f"its capsule is of version {versioned.major} of DLPack"
            raise WrongDlpackError(problem)
        return versioned.flags, versioned.tensor
    if _IsValid(capsule, b"dltensor"):
        return 0, _Tensor.from_address(_GetPointer(capsule, b"dltensor"))
    for used in (b"used_dltensor", b"used_dltensor_versioned"):
        if _IsValid(capsule, used):
            raise WrongDlpackError("its capsule was consumed before")
    problem = f"its `__dlpack__` gives {a_kind(capsule)}, no capsule of DLPack"
    raise WrongDlpackError(problem)


def _extents(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = tensor.rank
    if not 0 <= rank <= _MOST_DIMS:
        raise WrongDlpackError(f"its capsule has {rank} dimensions")
    if rank and not tensor.shape:
        raise WrongDlpackError("its capsule has no shape")
    shape = tuple(tensor.shape[:rank]) if rank else ()
    if any(size < 0 for size in shape):
        raise WrongDlpackError(f"its capsule has the shape {shape}")
    strides = tuple(tensor.strides[:rank]) if rank and tensor.strides else None
    return shape, row_major(shape) if strides is None else strides


def _check_memory(
    address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """Check that all elements lie in memory of this process."""
    reaches = [(n - 1) * stride * itemsize for n, stride in zip(shape, strides)]
    low = address + sum(min(reach, 0) for reach in reaches)
    high = address + sum(max(reach, 0) for reach in reaches) + itemsize
    start = low - low % mmap.PAGESIZE
    # `msync` fails for pages that are not mapped, and does not touch those that are.
    is_inside = 0 < low < high <= _ADDRESSES
    if not is_inside or _msync(start, high - start, _MS_ASYNC) != 0:
        raise WrongDlpackError(
            f"its elements (shape {shape}, strides {strides}) reach memory that this "
            "process does not have"
        )


def _dtype_name(tensor: Any) -> str | None:
    if tensor.lanes != 1 or tensor.code not in _CODES:
        return _SMALL_FLOATS.get(tensor.code) if tensor.lanes == 1 else None
    if tensor.code == _BOOL and tensor.bits != 8:
        return None
    bits = 1 if tensor.code == _BOOL else tensor.bits
    name = f"{_CODES[tensor.code]}{bits}"
    known = "i1 i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"
    return name if name in known.split() else None
