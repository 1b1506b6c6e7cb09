"""The part of `xetl_entry` that reads arrays of other libraries, by ``__dlpack__``.

The capsule is kept until the kernel has run: the memory lives as long as the capsule.
Unusual cases are refused and left to `xetl.runtime.dlpack`: capsules without a version
or strides, arrays without elements, huge arrays.
Source: DLPack 1.0, `dlpack.h`, "DLManagedTensorVersioned".
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import entry_tensors
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch import tensor_words as words
from xetl_cpu.launch.entry_writing import EntryCode, Word
from xetl_cpu.llvm import I32, I64, PTR

_MAJOR, _FLAGS, _TENSOR = 1, 3, 32
"""The known major version; the index of the word of flags; bytes to the DLTensor."""

_NOT_TO_WRITE = 3
"""Flags: read-only, or a copy, in which nobody would see changes."""

_MOST_ROWS, _FARTHEST = 1 << 30, 1 << 26
"""Limits of sizes and strides: products and sums of these do not overflow a word."""

_ADDRESSES, _PAGE = 1 << 56, 4096
_MS_ASYNC = 1


def emit_other(module: Any) -> Any:
    """Emit ``i64 other(object, record, process, seen, held)``: check and describe it.

    The object is a tensor of torch, or exports a capsule. ``held`` has the number of
    capsules, then the capsules; null: no capsule may be requested.
    """
    tensor = entry_tensors.emit_tensor(module)
    code = EntryCode(module, "other", I64, [PTR] * 5)
    obj, record, code.process, seen, held = code.args
    with code.when(entry_tensors.is_tensor(code, obj)):
        code.require(tensor, obj, record, code.process, seen)
        code.ret(0)
    code.refuse_if(held == 0)
    _refuse_other_arrays(code, obj)
    capsule = _ask(code, obj)
    count = held[0] + 1
    held[count] = capsule.number
    held[0] = count
    name = code.process.pointer(layout.P_CAPSULE_NAME)
    made = code.checked(code.call_c("PyCapsule_GetPointer", PTR, capsule, name))
    code.refuse_if(made.half(0) != _MAJOR)
    kept = (made[_FLAGS] & _NOT_TO_WRITE) != 0
    code.refuse_if(kept & (record[layout.R_STORED] != 0))
    found = made.at(_TENSOR)
    entry_tensors.require_like(code, found, record)
    code.refuse_if(found[entry_tensors.DL_OFFSET // 8].exceeds(_ADDRESSES))
    entry_tensors.put_described(code, found, record, seen)
    seen[entry_tensors.S_END] = (1 << 63) - 1
    _require_memory(code, record, seen)
    return code.finish()


def _refuse_other_arrays(code: EntryCode, obj: Word) -> None:
    """Refuse classes derived from NumPy's and torch's: these have other rules."""
    kind = obj.pointer(layout.OB_TYPE // 8)
    for base in (layout.P_NDARRAY, words.P_TENSOR):
        known = code.process.pointer(base)
        with code.when(known != 0):
            code.refuse_if(code.call_c("PyType_IsSubtype", I32, kind, known) != 0)


def _ask(code: EntryCode, obj: Word) -> Word:
    """Return a new reference to the capsule of ``__dlpack__``, for the host's device.

    Both methods may be Python code, which may launch kernels in between.
    """
    process = code.process
    records = process[words.P_RECORDS]
    method = _attribute(code, obj, layout.P_DLPACK_DEVICE)
    device = code.call_c("PyObject_CallNoArgs", PTR, method)
    code.release(method)
    _require_host(code, code.checked(device))
    method = _attribute(code, obj, layout.P_DLPACK)
    version = process.at(8 * layout.P_MAX_VERSION)
    names = process.pointer(layout.P_VERSION_NAMES)
    args = method, version, code.word(0), names
    capsule = code.call_c("PyObject_Vectorcall", PTR, *args)
    code.release(method)
    process[words.P_RECORDS] = records
    return code.checked(capsule)


def _attribute(code: EntryCode, obj: Word, name: int) -> Word:
    place = code.process.pointer(name)
    return code.checked(code.call_c("PyObject_GetAttr", PTR, obj, place))


def _require_host(code: EntryCode, device: Word) -> None:
    """Refuse an object that is no pair of numbers with the host's device type first."""
    plain = code.process.pointer(layout.P_NO_NAMES)
    kind, wanted = (each[layout.OB_TYPE // 8] for each in (device, plain))
    with code.when(~((kind == wanted) & (device[layout.OB_SIZE // 8] == 2))):
        code.release(device)
        code.ret(1)
    first = device.at(layout.TUPLE_ITEMS).pointer(0)
    number = code.call_c("PyLong_AsLongLongAndOverflow", I64, first, code.kept(1))
    code.release(device)
    code.forget_error()  # what is no number has left one
    code.refuse_if(number != entry_tensors.HOST)


def _require_memory(code: EntryCode, record: Word, seen: Word) -> None:
    """Refuse an array unless all its elements are in mapped memory of this process."""
    data = seen[entry_tensors.S_DATA]
    fields = entry_tensors.S_SHAPE, entry_tensors.S_STRIDES
    shape, strides = map(seen.pointer, fields)
    code.refuse_if((shape == 0) | (strides == 0))
    shift = record[layout.R_SHIFT]
    end = data + (code.word(1) << shift)
    with code.loop(record[layout.R_RANK], data, end) as loop:
        rows, stride = shape[loop.index] - 1, strides[loop.index]
        code.refuse_if(rows.exceeds(_MOST_ROWS - 1))
        code.refuse_if((stride + _FARTHEST).exceeds(2 * _FARTHEST))
        reach = (rows * stride) << shift
        is_back = reach < 0
        low, high = loop.values
        loop.next = [
            low + code.choose(is_back, reach, 0),
            high + code.choose(is_back, 0, reach),
        ]
    low, high = loop.results
    code.refuse_if(low <= 0)
    code.refuse_if(high > _ADDRESSES)
    # msync tells whether pages are mapped without touching them.
    start = low & -_PAGE
    args = start, high - start, code.word(_MS_ASYNC, I32)
    code.refuse_if(code.call_c("msync", I32, *args) != 0)
