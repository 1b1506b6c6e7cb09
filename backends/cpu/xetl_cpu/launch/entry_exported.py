"""The part of `xetl_entry` that reads arrays of other libraries, by ``__dlpack__``.

The capsule is looked at and kept until the kernel has run: while it lives, the memory
does. What is unusual is refused and left to `xetl.runtime.dlpack`: capsules without a
version or strides, arrays without elements, huge ones.
Source: DLPack 1.0, `dlpack.h`, "DLManagedTensorVersioned".
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import entry_tensors
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch import tensor_words as words
from xetl_cpu.launch.entry_writing import EntryCode
from xetl_cpu.llvm import I32, I64, PTR, VOID, const

Value = Any

_MAJOR, _FLAGS, _TENSOR = 1, 3, 32
"""The version that is known; the word of the flags; bytes to the DLTensor."""

_NOT_TO_WRITE = 3
"""Flags: read-only, or a copy, which nobody would see change."""

_MOST_ROWS, _FARTHEST = 1 << 30, 1 << 26
"""Sizes and strides whose products, and sums of these, are far less than a word."""

_ADDRESSES, _PAGE = 1 << 56, 4096
_MS_ASYNC = 1


def emit_other(module: Any) -> Any:
    """``i64 other(object, record, process, seen, held)``: check it, say where it lies.

    It is a tensor of torch, or says it by a capsule. ``held`` has how many of these
    there are, then these; null: none is to be asked for.
    """
    tensor = entry_tensors.emit_tensor(module)
    code = EntryCode(module, "other", I64, [PTR] * 5)
    obj, record, process, seen, held = code.args
    with code.if_then(entry_tensors.is_tensor(code, process, obj)):
        code.require(tensor, [obj, record, process, seen])
        code.ret(0)
    code.refuse_if(code.is_null(held))
    _refuse_other_arrays(code, process, obj)
    capsule = _ask(code, process, obj)
    count = code.add(code.word(held, 0), 1)
    code.put(held, count, code.ptrtoint(capsule, I64))
    code.put(held, 0, count)
    name = code.pointer(process, layout.P_CAPSULE_NAME)
    made = code.call_c("PyCapsule_GetPointer", PTR, [capsule, name])
    made = entry_tensors.checked(code, made)
    major = code.load(made, typ=I32, align=4)
    code.refuse_if(code.icmp_signed("!=", major, const(I32, _MAJOR)))
    kept = code.is_(code.and_(code.word(made, _FLAGS), _NOT_TO_WRITE), "!=", 0)
    stored = code.is_(code.word(record, layout.R_STORED), "!=", 0)
    code.refuse_if(code.and_(kept, stored))
    found = code.at(made, _TENSOR)
    entry_tensors.require_like(code, found, record)
    offset = code.word(code.at(found, entry_tensors.DL_OFFSET), 0)
    code.refuse_if(code.icmp_unsigned(">", offset, const(I64, _ADDRESSES)))
    entry_tensors.put_described(code, found, record, seen)
    code.put(seen, entry_tensors.S_END, (1 << 63) - 1)
    _require_memory(code, process, record, seen)
    return code.finish()


def _refuse_other_arrays(code: EntryCode, process: Value, obj: Value) -> None:
    """Classes derived from NumPy's and torch's have other rules."""
    kind = code.pointer(obj, layout.OB_TYPE // 8)
    for base in (layout.P_NDARRAY, words.P_TENSOR):
        known = code.pointer(process, base)
        with code.if_then(code.not_(code.is_null(known))):
            found = code.call_c("PyType_IsSubtype", I32, [kind, known])
            code.refuse_if(code.icmp_signed("!=", found, 0))


def _ask(code: EntryCode, process: Value, obj: Value) -> Value:
    """A new reference to what ``__dlpack__`` gives, if the device is the host.

    Both methods may be Python's code, which may launch kernels in between.
    """
    records = code.word(process, words.P_RECORDS)
    method = _attribute(code, process, obj, layout.P_DLPACK_DEVICE)
    device = code.call_c("PyObject_CallNoArgs", PTR, [method])
    code.release(method)
    _require_host(code, process, entry_tensors.checked(code, device))
    method = _attribute(code, process, obj, layout.P_DLPACK)
    version = code.word_at(process, layout.P_MAX_VERSION)
    names = code.pointer(process, layout.P_VERSION_NAMES)
    args = [method, version, const(I64, 0), names]
    capsule = code.call_c("PyObject_Vectorcall", PTR, args)
    code.release(method)
    code.put(process, words.P_RECORDS, records)
    return entry_tensors.checked(code, capsule)


def _attribute(code: EntryCode, process: Value, obj: Value, name: int) -> Value:
    args = [obj, code.pointer(process, name)]
    return entry_tensors.checked(code, code.call_c("PyObject_GetAttr", PTR, args))


def _require_host(code: EntryCode, process: Value, device: Value) -> None:
    """Refuse what is no pair of numbers, the first of which is the host's."""
    plain = code.pointer(process, layout.P_NO_NAMES)
    kind, wanted = (code.word(each, layout.OB_TYPE // 8) for each in (device, plain))
    has_two = code.is_(code.word(device, layout.OB_SIZE // 8), "==", 2)
    is_pair = code.and_(code.is_(kind, "==", wanted), has_two)
    with code.if_then(code.not_(is_pair)):
        code.release(device)
        code.ret(1)
    overflow = code.stack_words(1)
    first = code.pointer(code.at(device, layout.TUPLE_ITEMS), 0)
    number = code.call_c("PyLong_AsLongLongAndOverflow", I64, [first, overflow])
    code.release(device)
    # What is no number has left an error.
    code.call_c("PyErr_Clear", VOID, [])
    code.refuse_if(code.is_(number, "!=", entry_tensors.HOST))


def _require_memory(
    code: EntryCode, process: Value, record: Value, seen: Value
) -> None:
    """Refuse an array whose elements are not all in memory of this process."""
    data = code.word(seen, entry_tensors.S_DATA)
    shape, strides = (
        code.pointer(seen, i) for i in (entry_tensors.S_SHAPE, entry_tensors.S_STRIDES)
    )
    code.refuse_if(code.or_(code.is_null(shape), code.is_null(strides)))
    shift, zero = code.word(record, layout.R_SHIFT), const(I64, 0)
    item = code.shl(1, shift)
    rank = code.word(record, layout.R_RANK)
    with code.counted_loop(rank, carried=[data, code.add(data, item)]) as loop:
        size, stride = (code.word(each, loop.index) for each in (shape, strides))
        rows = code.sub(size, 1)
        code.refuse_if(code.icmp_unsigned(">=", rows, const(I64, _MOST_ROWS)))
        far = code.add(stride, _FARTHEST)
        code.refuse_if(code.icmp_unsigned(">", far, const(I64, 2 * _FARTHEST)))
        reach = code.shl(code.mul(rows, stride), shift)
        is_back = code.is_(reach, "<", 0)
        low, high = loop.values
        low = code.add(low, code.select(is_back, reach, zero))
        high = code.add(high, code.select(is_back, zero, reach))
        loop.next = [low, high]
    low, high = loop.results
    code.refuse_if(code.is_(low, "<=", 0))
    code.refuse_if(code.is_(high, ">", _ADDRESSES))
    # Linux says whether pages exist without touching them.
    start = code.and_(low, -_PAGE)
    args = [start, code.sub(high, start), const(I32, _MS_ASYNC)]
    missing = code.call_c("msync", I32, args)
    code.refuse_if(code.icmp_signed("!=", missing, 0))
