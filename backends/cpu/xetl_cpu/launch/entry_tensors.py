"""The part of `xetl_entry` that reads tensors of torch, and tells autograd of stores.

Where a tensor lies is asked by DLPack's C exchange API. What that does not say is read
in the tensor: its dispatch keys, which only a plain one has, and how much memory its
storage has; and torch is asked whether it is to differentiate it. `tensor_words` has
the addresses.
Source: DLPack 1.3, `dlpack.h`, "DLPackExchangeAPI".
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch import tensor_words as words
from xetl_cpu.launch.entry_writing import EntryCode, Word
from xetl_cpu.llvm import I8, I32, I64, PTR

S_DATA, S_SHAPE, S_STRIDES, S_SHIFT, S_END, SEEN_WORDS = range(6)
"""What is known of an array: addresses of its elements, its sizes and its strides, how
far strides are to be shifted to be in bytes, the first byte that is not its memory."""

_DL_DATA, _DL_DEVICE, DL_RANK, _DL_DTYPE = 0, 8, 16, 20
DL_SHAPE, _DL_STRIDES, DL_OFFSET, DL_WORDS = 24, 32, 40, 6
HOST = 1


def emit_tensor(module: Any) -> Any:
    """``i64 tensor(object, record, process, seen)``: check it, say where it lies."""
    code = EntryCode(module, "tensor", I64, [PTR] * 4)
    obj, record, code.process, seen = code.args
    code.refuse_if(~is_tensor(code, obj))
    implementation = _field(code, obj, words.P_IMPLEMENTATION)
    with code.when(_field(code, implementation, words.P_AUTOGRAD) != 0):
        _check_derivatives(code, obj)
    keys = _field(code, implementation, words.P_KEY_SET)
    plain, inferred = (
        keys == code.process[word] for word in (words.P_PLAIN, words.P_INFERRED)
    )
    code.refuse_if(~(plain | inferred))
    found = code.kept(DL_WORDS)
    with code.when(describe(code, obj, found)):
        code.ret(1)
    require_like(code, found, record)
    put_described(code, found, record, seen)
    # Now: what is copied on a write was copied when it was described.
    storage = _field(code, implementation, words.P_STORAGE)
    code.refuse_if(storage == 0)
    start, size = (
        _field(code, storage, word).number for word in (words.P_START, words.P_SIZE)
    )
    seen[S_END] = start + size
    return code.finish()


def require_like(code: EntryCode, found: Word, record: Word) -> None:
    """Refuse what DLPack describes if device, rank or dtype are other ones."""
    for offset, wanted in (
        (_DL_DEVICE, HOST),
        (DL_RANK, record[layout.R_RANK].sized(I32)),
        (_DL_DTYPE, record[layout.R_DLPACK].sized(I32)),
    ):
        code.refuse_if(found.half(offset) != wanted)


def put_described(code: EntryCode, found: Word, record: Word, seen: Word) -> None:
    """Say where what DLPack describes lies, but for its end; refuse odd addresses."""
    data, shift = first_byte(found), record[layout.R_SHIFT]
    odd = (code.word(1) << shift) - 1
    code.refuse_if((data & odd) != 0)
    seen[S_DATA] = data
    seen[S_SHAPE] = found[DL_SHAPE // 8]
    seen[S_STRIDES] = found[_DL_STRIDES // 8]
    seen[S_SHIFT] = shift


def describe(code: EntryCode, obj: Word, found: Word) -> Word:
    """Put down where a tensor lies; whether that failed."""
    status = code.call_at(code.process[words.P_DESCRIBE], I32, obj, found)
    failed = status != 0
    with code.when(failed):
        code.forget_error()
    return failed


def first_byte(found: Word) -> Word:
    """The address of the elements of a tensor that was described."""
    return found[_DL_DATA // 8] + found[DL_OFFSET // 8]


def note_written(code: EntryCode, objects: Word, count: Word, records: Word) -> None:
    """Tell autograd that the elements of tensors have changed.

    Args:
        code: the entry, behind the kernel.
        objects: those of the call without the grid, ``count`` of them.
        records: theirs.
    """
    has_torch = code.process[words.P_TENSOR] != 0
    with code.loop(code.choose(has_torch, count, 0)) as loop:
        record = records.record(loop.index, layout.RECORD)
        is_array = record[layout.R_KIND] == layout.ARRAY
        changed = is_array & (record[layout.R_STORED] == 1)
        obj = objects.pointer(loop.index)
        with code.when(changed & is_tensor(code, obj)):
            _count_version(code, obj)


def _count_version(code: EntryCode, obj: Word) -> None:
    """Add 1 where torch counts changes; tensors for inference have no counter."""
    implementation = _field(code, obj, words.P_IMPLEMENTATION)
    counter = _field(code, implementation, words.P_VERSION)
    with code.when(counter != 0):
        place, one = counter.at(words.COUNT_AT), code.word(1, I32)
        code.builder.atomic_rmw("add", place.value, one.value, "seq_cst")


def refuse_modes(code: EntryCode) -> None:
    """Leave if a mode, a transform or autocast is on, which must see each function."""
    process = code.process
    code.refuse_if(code.call_at(process[words.P_MODES], I64) != 0)
    for function, key, usual in (
        (words.P_HAS_KEY, words.P_TRANSFORM, 0),
        (words.P_LACKS_KEY, words.P_AUTOCAST, 1),
    ):
        found = code.call_at(process[function], I8, process[key].sized(I32))
        code.refuse_if(found != usual)


def is_tensor(code: EntryCode, obj: Word) -> Word:
    """Whether its class is torch's own; derived ones may say other things."""
    kind = obj[layout.OB_TYPE // 8]
    tensor, parameter = (
        kind == code.process[word] for word in (words.P_TENSOR, words.P_PARAMETER)
    )
    return tensor | parameter


def _check_derivatives(code: EntryCode, obj: Word) -> None:
    """Refuse it if it is differentiated forwards; note it if it is backwards."""
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
    """A word of an object of torch, which is at so many words as the process says."""
    return obj.pointer(code.process[place])


def _is(code: EntryCode, answer: Word, wanted: int) -> Word:
    """Whether an answer is an object of the process; releases it."""
    code.release(answer)
    return answer == code.process[wanted]
