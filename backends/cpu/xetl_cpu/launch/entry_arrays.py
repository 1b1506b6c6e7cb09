"""The part of `xetl_entry` that reads tensors of torch and arrays of other libraries.

Of a tensor, DLPack's C exchange API returns the address, sizes and strides. Other facts
are read from the tensor's memory: its dispatch keys, which must be those of a plain
tensor, and the size of its storage. Torch is asked whether it is to differentiate the
tensor. `tensor_words` has the addresses.

Other arrays give a capsule by ``__dlpack__``. It is kept until the kernel has run: the
memory lives as long as the capsule. Unusual cases are refused and left to
`xetl.runtime.dlpack`: capsules without a version or strides, arrays without elements,
huge arrays.
Source: DLPack 1.3, `dlpack.h`, "DLPackExchangeAPI", "DLManagedTensorVersioned".
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch import tensor_words as words
from xetl_cpu.launch.entry_writing import EntryCode, Word
from xetl_cpu.llvm import I8, I32, I64, PTR

S_DATA, S_SHAPE, S_STRIDES, S_SHIFT, S_END, SEEN_WORDS = range(6)
"""Words for each array: the address of its elements, the addresses of its sizes and its
strides, the shift that makes strides bytes, and the end of its memory."""

_DL_DATA, _DL_DEVICE, DL_RANK, _DL_DTYPE = 0, 8, 16, 20
DL_SHAPE, _DL_STRIDES, DL_OFFSET, DL_WORDS = 24, 32, 40, 6
HOST = 1


def emit_tensor(module: Any) -> Any:
    """Emit ``i64 tensor(object, record, process, seen)``: check and describe it."""
    code = EntryCode(module, "tensor", I64, [PTR] * 4)
    obj, record, code.process, seen = code.args
    code.refuse_if(~is_tensor(code, obj))
    implementation = _field(code, obj, words.P_IMPLEMENTATION)
    with code.when(_field(code, implementation, words.P_AUTOGRAD) != 0):
        _check_derivatives(code, obj)
    keys = _field(code, implementation, words.P_KEY_SET)
    plain, inferred = code.process[words.P_PLAIN], code.process[words.P_INFERRED]
    code.refuse_if(~((keys == plain) | (keys == inferred)))
    found = code.kept(DL_WORDS)
    with code.when(describe(code, obj, found)):
        code.ret(1)
    require_like(code, found, record)
    put_described(code, found, record, seen)
    # Read last: a copy-on-write storage was copied when the tensor was described.
    storage = _field(code, implementation, words.P_STORAGE)
    code.refuse_if(storage == 0)
    start, size = (_field(code, storage, w) for w in (words.P_START, words.P_SIZE))
    seen[S_END] = start.number + size.number
    return code.finish()


def require_like(code: EntryCode, found: Word, record: Word) -> None:
    """Refuse a DLPack description with another device, rank or dtype."""
    for offset, wanted in (
        (_DL_DEVICE, HOST),
        (DL_RANK, record[layout.R_RANK].sized(I32)),
        (_DL_DTYPE, record[layout.R_DLPACK].sized(I32)),
    ):
        code.refuse_if(found.half(offset) != wanted)


def put_described(code: EntryCode, found: Word, record: Word, seen: Word) -> None:
    """Write address, sizes and strides to ``seen``, not the end; check alignment."""
    data, shift = first_byte(found), record[layout.R_SHIFT]
    odd = (code.word(1) << shift) - 1
    code.refuse_if((data & odd) != 0)
    seen[S_DATA] = data
    seen[S_SHAPE] = found[DL_SHAPE // 8]
    seen[S_STRIDES] = found[_DL_STRIDES // 8]
    seen[S_SHIFT] = shift


def describe(code: EntryCode, obj: Word, found: Word) -> Word:
    """Let DLPack describe a tensor; return whether that failed."""
    status = code.call_at(code.process[words.P_DESCRIBE], I32, obj, found)
    failed = status != 0
    with code.when(failed):
        code.forget_error()
    return failed


def first_byte(found: Word) -> Word:
    """Return the address of the first element of a described tensor."""
    return found[_DL_DATA // 8] + found[DL_OFFSET // 8]


def note_written(code: EntryCode, objects: Word, count: Word, records: Word) -> None:
    """Tell autograd that the elements of tensors have changed.

    Args:
        code: the entry, after the kernel has run.
        objects: the objects of the call without the grid; there are ``count``.
        records: the records of the objects.
    """
    has_torch = code.process[words.P_TENSOR] != 0
    with code.loop(code.choose(has_torch, count, 0)) as loop:
        record = records.record(loop.index, layout.RECORD)
        is_array = record[layout.R_KIND] == layout.ARRAY
        changed = is_array & (record[layout.R_STORED] == 1)
        obj = objects.pointer(loop.index)
        with code.when(changed & is_tensor(code, obj)):
            # Increment torch's version counter; tensors for inference have none.
            implementation = _field(code, obj, words.P_IMPLEMENTATION)
            counter = _field(code, implementation, words.P_VERSION)
            with code.when(counter != 0):
                place, one = counter.at(words.COUNT_AT), code.word(1, I32)
                code.builder.atomic_rmw("add", place.value, one.value, "seq_cst")


def refuse_modes(code: EntryCode) -> None:
    """Refuse if a mode, a transform or a trace is on, which must see each function."""
    process = code.process
    code.refuse_if(code.call_at(process[words.P_MODES], I64) != 0)
    for function, key, usual in (
        (words.P_HAS_KEY, words.P_TRANSFORM, 0),
        (words.P_HAS_KEY, words.P_TRACE, 0),
        (words.P_LACKS_KEY, words.P_AUTOCAST, 1),
    ):
        found = code.call_at(process[function], I8, process[key].sized(I32))
        code.refuse_if(found != usual)


def is_tensor(code: EntryCode, obj: Word) -> Word:
    """Whether the class is torch's own; derived classes may behave differently."""
    kind = obj[layout.OB_TYPE // 8]
    tensor, parameter = code.process[words.P_TENSOR], code.process[words.P_PARAMETER]
    return (kind == tensor) | (kind == parameter)


def _check_derivatives(code: EntryCode, obj: Word) -> None:
    """Refuse a tensor in forward mode; record one that requires a gradient."""
    process = code.process
    name = process.pointer(words.P_REQUIRES_GRAD)
    needs = code.checked(code.call_c("PyObject_GetAttr", PTR, obj, name))
    with code.when(~_is(code, needs, layout.P_FALSE)):
        enabled = process.pointer(words.P_GRAD_ENABLED)
        answer = code.checked(code.call_c("PyObject_CallNoArgs", PTR, enabled))
        with code.when(~_is(code, answer, layout.P_FALSE)):
            process[words.P_RECORDS] = words.ONE_RECORDED
    forward, name = (process.pointer(w) for w in (words.P_FORWARD, words.P_LEVEL))
    level = code.call_c("PyDict_GetItemWithError", PTR, forward, name)
    code.refuse_if(level != process[words.P_NO_LEVEL])


def _field(code: EntryCode, obj: Word, place: int) -> Word:
    """Return the word of an object of torch at the index that ``process`` has."""
    return obj.pointer(code.process[place])


def _is(code: EntryCode, answer: Word, wanted: int) -> Word:
    """Return whether an answer is the wanted object; release the answer."""
    code.release(answer)
    return answer == code.process[wanted]


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
    tensor = emit_tensor(module)
    code = EntryCode(module, "other", I64, [PTR] * 5)
    obj, record, code.process, seen, held = code.args
    with code.when(is_tensor(code, obj)):
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
    require_like(code, found, record)
    code.refuse_if(found[DL_OFFSET // 8].exceeds(_ADDRESSES))
    put_described(code, found, record, seen)
    seen[S_END] = (1 << 63) - 1
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
    code.refuse_if(number != HOST)


def _require_memory(code: EntryCode, record: Word, seen: Word) -> None:
    """Refuse an array unless all its elements are in mapped memory of this process."""
    data = seen[S_DATA]
    fields = S_SHAPE, S_STRIDES
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
