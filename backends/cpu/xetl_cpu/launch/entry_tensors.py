"""The part of `xetl_entry` that reads tensors of torch, and tells autograd of stores.

Where a tensor lies is asked by DLPack's C exchange API. What that does not say is read
in the tensor: its dispatch keys, which only a plain one has, and how much memory its
storage has; and torch is asked whether it is to differentiate it. `tensor_words` has
the addresses.
Source: DLPack 1.3, `dlpack.h`, "DLPackExchangeAPI".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch import tensor_words as words
from xetl_cpu.launch.entry_writing import EntryCode
from xetl_cpu.llvm import I8, I32, I64, PTR, VOID, const

Value = Any

S_DATA, S_SHAPE, S_STRIDES, S_SHIFT, S_END, SEEN_WORDS = range(6)
"""What is known of an array: addresses of its elements, its sizes and its strides, how
far strides are to be shifted to be in bytes, the first byte that is not its memory."""

_DL_DATA, _DL_DEVICE, DL_RANK, _DL_DTYPE = 0, 8, 16, 20
DL_SHAPE, _DL_STRIDES, DL_OFFSET, DL_WORDS = 24, 32, 40, 6
HOST = 1


def emit_tensor(module: Any) -> Any:
    """``i64 tensor(object, record, process, seen)``: check it, say where it lies."""
    code = EntryCode(module, "tensor", I64, [PTR] * 4)
    obj, record, process, seen = code.args
    code.refuse_unless(is_tensor(code, process, obj))
    implementation = _field(code, process, obj, words.P_IMPLEMENTATION)
    derivatives = _field(code, process, implementation, words.P_AUTOGRAD)
    with code.if_then(code.not_(code.is_null(derivatives))):
        _check_derivatives(code, process, obj)
    keys = code.ptrtoint(_field(code, process, implementation, words.P_KEY_SET), I64)
    plain, inferred = (
        code.is_(keys, "==", code.word(process, word))
        for word in (words.P_PLAIN, words.P_INFERRED)
    )
    code.refuse_unless(code.or_(plain, inferred))
    with code.goto_entry_block():
        found = code.stack_array(I64, DL_WORDS)
    with code.if_then(describe(code, process, obj, found)):
        code.ret(1)
    require_like(code, found, record)
    put_described(code, found, record, seen)
    # Now: what is copied on a write was copied when it was described.
    storage = _field(code, process, implementation, words.P_STORAGE)
    code.refuse_if(code.is_null(storage))
    start, size = (
        code.ptrtoint(_field(code, process, storage, word), I64)
        for word in (words.P_START, words.P_SIZE)
    )
    code.put(seen, S_END, code.add(start, size))
    return code.finish()


def require_like(code: EntryCode, found: Value, record: Value) -> None:
    """Refuse what DLPack describes if device, rank or dtype are other ones."""
    for offset, wanted in (
        (_DL_DEVICE, const(I32, HOST)),
        (DL_RANK, code.trunc(code.word(record, layout.R_RANK), I32)),
        (_DL_DTYPE, code.trunc(code.word(record, layout.R_DLPACK), I32)),
    ):
        is_ = code.load(code.at(found, offset), typ=I32, align=4)
        code.refuse_if(code.icmp_signed("!=", is_, wanted))


def put_described(code: EntryCode, found: Value, record: Value, seen: Value) -> None:
    """Say where what DLPack describes lies, but for its end; refuse odd addresses."""
    data, shift = first_byte(code, found), code.word(record, layout.R_SHIFT)
    odd = code.sub(code.shl(1, shift), 1)
    code.refuse_if(code.is_(code.and_(data, odd), "!=", 0))
    code.put(seen, S_DATA, data)
    code.put(seen, S_SHAPE, code.word(code.at(found, DL_SHAPE), 0))
    code.put(seen, S_STRIDES, code.word(code.at(found, _DL_STRIDES), 0))
    code.put(seen, S_SHIFT, shift)


def describe(code: EntryCode, process: Value, obj: Value, found: Value) -> Value:
    """Put down where a tensor lies; whether that failed."""
    function = code.word(process, words.P_DESCRIBE)
    status = code.call_at(function, I32, [obj, found])
    failed = code.icmp_signed("!=", status, 0)
    with code.if_then(failed):
        code.call_c("PyErr_Clear", VOID, [])
    return failed


def first_byte(code: EntryCode, found: Value) -> Value:
    """The address of the elements of a tensor that was described."""
    offset = code.word(code.at(found, DL_OFFSET), 0)
    return code.add(code.word(code.at(found, _DL_DATA), 0), offset)


def note_written(code: EntryCode, process: Value, given: Sequence[Value]) -> None:
    """Tell autograd that the elements of tensors have changed.

    Args:
        code: the entry, behind the kernel.
        process: what all kernels share.
        given: the objects of the call without the grid, how many there are, and their
            records.
    """
    objects, count, records = given
    has_torch = code.is_(code.word(process, words.P_TENSOR), "!=", 0)
    count = code.select(has_torch, count, 0)
    with code.counted_loop(count, name="written") as loop:
        record = code.element(records, loop.index, layout.RECORD)
        is_array = code.is_(code.word(record, layout.R_KIND), "==", layout.ARRAY)
        stored = code.is_(code.word(record, layout.R_STORED), "==", 1)
        obj = code.pointer(objects, loop.index)
        changed = code.and_(is_array, stored)
        with code.if_then(code.and_(changed, is_tensor(code, process, obj))):
            _count_version(code, process, obj)


def _count_version(code: EntryCode, process: Value, obj: Value) -> None:
    """Add 1 where torch counts changes; tensors for inference have no counter."""
    implementation = _field(code, process, obj, words.P_IMPLEMENTATION)
    counter = _field(code, process, implementation, words.P_VERSION)
    with code.if_then(code.not_(code.is_null(counter))):
        place = code.at(counter, words.COUNT_AT)
        code.atomic_rmw("add", place, const(I32, 1), "seq_cst")


def refuse_modes(code: EntryCode, process: Value) -> None:
    """Leave if a mode, a transform or autocast is on, which must see each function."""
    modes = code.call_at(code.word(process, words.P_MODES), I64, [])
    code.refuse_if(code.is_(modes, "!=", 0))
    for function, key, usual in (
        (words.P_HAS_KEY, words.P_TRANSFORM, 0),
        (words.P_LACKS_KEY, words.P_AUTOCAST, 1),
    ):
        number = code.trunc(code.word(process, key), I32)
        found = code.call_at(code.word(process, function), I8, [number])
        code.refuse_if(code.icmp_signed("!=", found, usual))


def is_tensor(code: EntryCode, process: Value, obj: Value) -> Value:
    """Whether its class is torch's own; derived ones may say other things."""
    kind = code.word(code.at(obj, layout.OB_TYPE), 0)
    tensor, parameter = (
        code.is_(kind, "==", code.word(process, word))
        for word in (words.P_TENSOR, words.P_PARAMETER)
    )
    return code.or_(tensor, parameter)


def _check_derivatives(code: EntryCode, process: Value, obj: Value) -> None:
    """Refuse it if it is differentiated forwards; note it if it is backwards."""
    name = code.pointer(process, words.P_REQUIRES_GRAD)
    needs = checked(code, code.call_c("PyObject_GetAttr", PTR, [obj, name]))
    with code.if_then(code.not_(_is(code, process, needs, layout.P_FALSE))):
        enabled = code.pointer(process, words.P_GRAD_ENABLED)
        answer = checked(code, code.call_c("PyObject_CallNoArgs", PTR, [enabled]))
        off = _is(code, process, answer, layout.P_FALSE)
        with code.if_then(code.not_(off)):
            code.put(process, words.P_RECORDS, words.ONE_RECORDED)
    where = code.pointer(process, words.P_FORWARD)
    name = code.pointer(process, words.P_LEVEL)
    level = code.call_c("PyDict_GetItemWithError", PTR, [where, name])
    none = code.word(process, words.P_NO_LEVEL)
    code.refuse_if(code.is_(code.ptrtoint(level, I64), "!=", none))


def _field(code: EntryCode, process: Value, obj: Value, place: int) -> Value:
    """A word of an object of torch, which is at so many words as the process says."""
    return code.pointer(obj, code.word(process, place))


def checked(code: EntryCode, answer: Value) -> Value:
    """Refuse after an exception."""
    with code.if_then(code.is_null(answer)):
        code.call_c("PyErr_Clear", VOID, [])
        code.ret(1)
    return answer


def _is(code: EntryCode, process: Value, answer: Value, wanted: int) -> Value:
    """Whether an answer is an object of the process; releases it."""
    address = code.ptrtoint(answer, I64)
    code.release(answer)
    return code.is_(address, "==", code.word(process, wanted))
