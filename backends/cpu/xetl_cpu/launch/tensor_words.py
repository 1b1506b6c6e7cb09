"""What the native entry must know of torch, if it is loaded and has DLPack's C API."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, cast

from xetl.language.dtypes import DType

_FIRST = 30  # behind the words of `fastcall`
(
    P_TENSOR,  # 0: there is no torch, or not yet
    P_PARAMETER,
    P_DESCRIBE,
    P_REQUIRES_GRAD,
    P_IS_NEG,
    P_STORAGE,
    P_DATA,
    P_GRAD_ENABLED,
    P_INCREMENT,
    P_FORWARD,
    P_LEVEL,
    P_NO_LEVEL,
    P_GETATTR,
    P_CALL,
    P_CALL_ONE,
    P_CALL_METHOD,
    P_SIZE,
    P_DICT_GET,
    P_NEW_TUPLE,
    P_SET_ITEM,
    P_DECREF,
    P_CLEAR,
    PROCESS_WORDS,
) = range(_FIRST, _FIRST + 23)

_FUNCTIONS = {
    P_GETATTR: "PyObject_GetAttr",
    P_CALL: "PyObject_CallNoArgs",
    P_CALL_ONE: "PyObject_CallOneArg",
    P_CALL_METHOD: "PyObject_VectorcallMethod",
    P_SIZE: "PyObject_Size",
    P_DICT_GET: "PyDict_GetItem",
    P_NEW_TUPLE: "PyTuple_New",
    P_SET_ITEM: "PyTuple_SetItem",
    P_DECREF: "Py_DecRef",
    P_CLEAR: "PyErr_Clear",
}
_NAMES = {
    P_REQUIRES_GRAD: "requires_grad",
    P_IS_NEG: "is_neg",
    P_STORAGE: "untyped_storage",
    P_DATA: "data_ptr",
    P_LEVEL: "_current_level",
}
_NO_LEVEL = -1

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_OTHER_CODES = {"bf16": 4, "f8e4m3": 10, "f8e5m2": 12}
"""Source: DLPack 1.1, DLDataTypeCode."""

_MAJOR = 1
_DESCRIBE_AT = 40
"""Bytes to `dltensor_from_py_object_no_sync` in DLPackExchangeAPI."""


def dlpack_dtype(dtype: DType) -> int:
    """A DLDataType as one number: its code, its bits, and one lane."""
    code = _OTHER_CODES.get(dtype.name, _CODES[dtype.kind])
    return code | 8 * dtype.itemsize << 8 | 1 << 16


def find_torch(words: Any) -> None:
    """Fill in the words of torch, once it is loaded; without them tensors go slowly."""
    torch: Any = sys.modules.get("torch")
    if torch is None or words[P_TENSOR] or torch in _refused:
        return
    try:
        describe = _exchange_function(torch.Tensor.__dlpack_c_exchange_api__)
        objects = _objects(torch)
    except AttributeError:  # it is older, or another
        describe, objects = 0, dict[int, Any]()
    if not describe:
        _refused.append(torch)
        return
    _kept.append(objects)
    for word, name in _FUNCTIONS.items():
        function = getattr(ctypes.pythonapi, name)
        words[word] = cast("int", ctypes.cast(function, ctypes.c_void_p).value)
    for word, kept in objects.items():
        words[word] = id(kept)
    words[P_DESCRIBE] = describe
    words[P_TENSOR] = id(torch.Tensor)


def _objects(torch: Any) -> dict[int, Any]:
    """What the entry calls, reads or compares with."""
    forward = torch.autograd.forward_ad
    if type(forward._current_level) is not int:
        raise AttributeError
    return {
        P_PARAMETER: torch.nn.Parameter,
        P_GRAD_ENABLED: torch.is_grad_enabled,
        P_INCREMENT: torch._C._increment_version,
        P_FORWARD: forward.__dict__,
        P_NO_LEVEL: _NO_LEVEL,
        **{word: sys.intern(name) for word, name in _NAMES.items()},
    }


def _exchange_function(capsule: object) -> int:
    """The address of the function that describes a tensor; 0: there is none."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    api = cast("int", get(capsule, b"dlpack_exchange_api"))
    if ctypes.c_uint32.from_address(api).value != _MAJOR:
        return 0
    return ctypes.c_uint64.from_address(api + _DESCRIBE_AT).value


_kept: list[Any] = []
_refused: list[Any] = []
