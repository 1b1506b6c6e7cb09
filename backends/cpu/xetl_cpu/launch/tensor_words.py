"""What the native entry must know of torch, if it is loaded and has DLPack's C API."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from xetl.language.dtypes import DType

_FIRST = 30  # behind the words of `fastcall`
(
    P_TENSOR,  # 0: there is no torch, or not yet
    P_PARAMETER,
    P_DESCRIBE,
    P_REQUIRES_GRAD,
    P_GRAD_ENABLED,
    P_INCREMENT,
    P_FORWARD,
    P_LEVEL,
    P_NO_LEVEL,
    P_GETATTR,
    P_CALL_ONE,
    P_NEW_TUPLE,
    P_SET_ITEM,
    P_PLAIN,  # the dispatch keys of tensors on the host, and of those for inference
    P_INFERRED,
    P_IMPLEMENTATION,  # at which word of a tensor it is
    P_KEY_SET,  # and of that these
    P_STORAGE,
    P_START,  # and of the storage these
    P_SIZE,
    PROCESS_WORDS,
) = range(_FIRST, _FIRST + 21)

_FUNCTIONS = {
    P_GETATTR: "PyObject_GetAttr",
    P_CALL_ONE: "PyObject_CallOneArg",
    P_NEW_TUPLE: "PyTuple_New",
    P_SET_ITEM: "PyTuple_SetItem",
}
_NAMES = {
    P_REQUIRES_GRAD: "requires_grad",
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
        objects, places = _objects(torch), _places(torch)
    except AttributeError:  # it is older, or another
        describe, objects, places = 0, dict[int, Any](), None
    if not describe or places is None:
        _refused.append(torch)
        return
    _kept.append(objects)
    for word, name in _FUNCTIONS.items():
        function = getattr(ctypes.pythonapi, name)
        words[word] = cast("int", ctypes.cast(function, ctypes.c_void_p).value)
    for word, kept in objects.items():
        words[word] = id(kept)
    for word, place in places.items():
        words[word] = place
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


def _places(torch: Any) -> dict[int, int] | None:
    """Where things are in tensors, and their keys; None: they cannot be found.

    They are looked for in tensors of which torch says them.
    """
    memory = np.zeros(4242, np.uint8)
    numpys = torch.from_numpy(memory)[1:]  # in memory of which nothing else is known
    with torch.inference_mode():
        inferred = torch.empty(3)
    tensors = [torch.empty(5, 1), torch.empty(2, 3).T, numpys]
    keys = [torch._C._dispatch_keys(each).raw_repr() for each in (*tensors, inferred)]
    if keys[:3] != [keys[0]] * 3:
        return None
    implementations = [each._cdata for each in tensors]
    storages = [each.untyped_storage() for each in tensors]
    addresses = [each._cdata for each in storages]
    places = {
        P_IMPLEMENTATION: _place([id(each) for each in tensors], implementations, 4),
        P_KEY_SET: _place(implementations, keys[:3], 24),
        P_STORAGE: _place(implementations, addresses, 8),
        P_START: _place(addresses, [each.data_ptr() for each in storages], 8),
        P_SIZE: _place(addresses, [each.nbytes() for each in storages], 8),
    }
    found = {word: place for word, place in places.items() if place is not None}
    if len(found) < len(places):
        return None
    return {**found, P_PLAIN: keys[0], P_INFERRED: keys[3]}


def _place(addresses: Sequence[int], values: Sequence[int], count: int) -> int | None:
    """The one of the first words at all addresses that has these values."""
    found = [
        place
        for place in range(count)
        if all(
            ctypes.c_int64.from_address(address + 8 * place).value == value
            for address, value in zip(addresses, values)
        )
    ]
    return found[0] if len(found) == 1 else None


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
