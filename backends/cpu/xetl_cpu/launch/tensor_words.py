"""Facts about torch for the native entry, if torch is loaded and has DLPack's C API."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from xetl.language.dtypes import DType

new_words: list[int] = []
"""The initial words of the process; `fastcall` allocates them when all are defined."""
_kept: list[Any] = []


def new_word(value: int = 0) -> int:
    """Define a new word of the process; return its number."""
    new_words.append(value)
    return len(new_words) - 1


def word_of(kept: object) -> int:
    """Define a word with the address of an object; return its number."""
    _kept.append(kept)
    return new_word(id(kept))


# 0: torch is not loaded, or not yet.
P_TENSOR, P_PARAMETER, P_DESCRIBE, P_REQUIRES_GRAD = (new_word() for _ in range(4))
P_GRAD_ENABLED, P_FORWARD, P_LEVEL, P_NO_LEVEL = (new_word() for _ in range(4))
P_MODES, P_HAS_KEY, P_LACKS_KEY = (new_word() for _ in range(3))
"""Functions that return which modes and dispatch keys are active."""
P_TRANSFORM, P_TRACE, P_AUTOCAST = (new_word() for _ in range(3))  # keys of what may be
P_PLAIN, P_INFERRED = new_word(), new_word()
"""The dispatch keys of plain tensors on the host, and of inference tensors."""
P_IMPLEMENTATION = new_word()  # at which word of a tensor it is
P_KEY_SET, P_STORAGE, P_AUTOGRAD, P_VERSION = (new_word() for _ in range(4))  # of that
P_START, P_SIZE = new_word(), new_word()  # of the storage
P_RECORDS = new_word()  # written by the entry: `NOTHING`, or why it refuses a call

NOTHING, ONE_RECORDED, ONLY_RECORDED = range(3)
"""Whether torch is to differentiate an argument; the last: that is the only
mismatch."""

_MODES = "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv"
_HAS_KEY = "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE"
_LACKS_KEY = "_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE"

COUNT_AT = 16
"""Bytes to the count in torch's version counter."""

_NAMES = {P_REQUIRES_GRAD: "requires_grad", P_LEVEL: "_current_level"}
_NO_LEVEL = -1

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_OTHER_CODES = {"bf16": 4, "f8e4m3": 10, "f8e5m2": 12}
"""Source: DLPack 1.1, DLDataTypeCode."""

_MAJOR = 1
_DESCRIBE_AT = 40
"""Bytes to `dltensor_from_py_object_no_sync` in DLPackExchangeAPI."""


def dlpack_dtype(dtype: DType) -> int:
    """Return a DLDataType as one number: its code, its bits, and one lane."""
    code = _OTHER_CODES.get(dtype.name, _CODES[dtype.kind])
    return code | 8 * dtype.itemsize << 8 | 1 << 16


def find_torch(words: Any) -> None:
    """Fill in the words of torch once it is loaded; until then tensors are slow."""
    torch: Any = sys.modules.get("torch")
    if torch is None or words[P_TENSOR] or torch in _refused:
        return
    try:
        describe = _exchange_function(torch.Tensor.__dlpack_c_exchange_api__)
        objects, places = _objects(torch), _places(torch)
        library = ctypes.CDLL("libc10.so")  # the one that is loaded
        functions = {
            P_MODES: address_of(library[_MODES]),
            P_HAS_KEY: address_of(library[_HAS_KEY]),
            P_LACKS_KEY: address_of(library[_LACKS_KEY]),
            P_TRANSFORM: int(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode),
            P_TRACE: int(torch._C._parse_dispatch_key("Tracer")),
            P_AUTOCAST: int(torch._C.DispatchKey.AutocastCPU),
        }
    except (AttributeError, OSError):  # it is older, or another
        describe, objects, places, functions = 0, dict[int, Any](), None, {}
    if not describe or places is None:
        _refused.append(torch)
        return
    _kept.append(objects)
    for word, kept in objects.items():
        words[word] = id(kept)
    for word, place in {**places, **functions}.items():
        words[word] = place
    words[P_DESCRIBE] = describe
    words[P_TENSOR] = id(torch.Tensor)


def _objects(torch: Any) -> dict[int, Any]:
    """Return objects that the entry calls, reads or compares with."""
    forward = torch.autograd.forward_ad
    if type(forward._current_level) is not int:
        raise AttributeError
    return {
        P_PARAMETER: torch.nn.Parameter,
        P_GRAD_ENABLED: torch.is_grad_enabled,
        P_FORWARD: forward.__dict__,
        P_NO_LEVEL: _NO_LEVEL,
        **{word: sys.intern(name) for word, name in _NAMES.items()},
    }


def _places(torch: Any) -> dict[int, int] | None:
    """Return where fields are in tensors, and their keys; None if not all are found.

    Fields are searched in tensors for which torch returns the values.
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
    places[P_AUTOGRAD] = meta = _place_of_derivatives(torch)
    places[P_VERSION] = None if meta is None else _place_of_version(torch, meta + 2)
    found = {word: place for word, place in places.items() if place is not None}
    if len(found) < len(places):
        return None
    return {**found, P_PLAIN: keys[0], P_INFERRED: keys[3]}


def _place_of_derivatives(torch: Any) -> int | None:
    """Return the word of a tensor's implementation that is 0 without autograd."""
    pairs = [(torch.empty(5), torch.empty(5, requires_grad=True)) for _ in range(4)]
    found = [
        place
        for place in range(8)
        if not any(word_at(without._cdata + 8 * place) for without, _ in pairs)
        and all(word_at(needed._cdata + 8 * place) for _, needed in pairs)
    ]
    return found[0] if len(found) == 1 else None


def _place_of_version(torch: Any, place: int) -> int | None:
    """Return ``place`` if the version counter is there, else None."""
    for count in (3, 5):
        tensor = torch.empty(1)
        for _ in range(count):
            tensor.zero_()
        counter = word_at(tensor._cdata + 8 * place)
        if not 1 << 16 < counter < 1 << 47 or counter % 8:
            return None
        if ctypes.c_uint32.from_address(counter + COUNT_AT).value != tensor._version:
            return None
    return place


def _place(addresses: Sequence[int], values: Sequence[int], count: int) -> int | None:
    """Return the first word, at all addresses, that has these values, if unique."""
    found = [
        place
        for place in range(count)
        if all(
            word_at(address + 8 * place) == value
            for address, value in zip(addresses, values)
        )
    ]
    return found[0] if len(found) == 1 else None


def word_at(address: int) -> int:
    """Return the word in memory at an address."""
    return ctypes.c_int64.from_address(address).value


def address_of(function: Any) -> int:
    """Return the address of the code of a function that ctypes knows."""
    return cast("int", ctypes.cast(function, ctypes.c_void_p).value)


def _exchange_function(capsule: object) -> int:
    """Return the address of the function that describes a tensor; 0 if unsupported."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    api = cast("int", get(capsule, b"dlpack_exchange_api"))
    if ctypes.c_uint32.from_address(api).value != _MAJOR:
        return 0
    return ctypes.c_uint64.from_address(api + _DESCRIBE_AT).value


_refused: list[Any] = []
