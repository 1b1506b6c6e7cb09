"""The part of the native entries that runs recorded launches on other arrays.

The table is that of `replay.py`. It has a record for each argument and for each array
that is made for the call, the words that arrays must have, the makers of new arrays,
the indices of results, then the launches: the slots of each, and patches for slots with
addresses or numbers.
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_arrays import note_written, refuse_modes
from xetl_cpu.launch.entry_writing import EntryCode, EntryParts, Word
from xetl_cpu.launch.tensor_words import NOTHING, ONLY_RECORDED, P_RECORDS
from xetl_cpu.llvm import I32, I64, PTR


def emit_replay(module: Any, parts: EntryParts) -> None:
    """Emit ``i64 replay(table, objects, count)``: check, make results, run launches.

    It returns 1, or the address of the function's result. Between the check of arrays
    and the first launch no Python code runs, which could change them.
    """
    make, check = _emit_make(module), _emit_check(module, parts)
    run = _emit_run_all(module, parts)
    code = EntryCode(module, layout.REPLAY, I64, [PTR, PTR, I64])
    table, objects, total = code.args
    code.process = table.pointer(layout.T_PROCESS)
    count, given, made, width = (
        table[word]
        for word in (layout.T_PARAMS, layout.T_GIVEN, layout.T_MADE, layout.T_SLOTS)
    )
    code.refuse_if(total - 3 != given)
    with code.when(table[layout.T_SEES_MODES] != 0):
        refuse_modes(code)
    every, seen, ranges = code.room(count), code.room(width), code.room(count << 1)
    with code.loop(given) as loop:
        every[loop.index] = objects[loop.index + 3]
    code.require(check, table, every, seen, ranges, 0, given)
    behind = table.at(8 * layout.HEADER).record(count, layout.RECORD)
    makers, new = behind.record(width, 1), every.record(given, 1)
    code.require(make, makers, made, new)
    begin = table[layout.T_CHANGED]
    wrong = code.call(check, table, every, seen, ranges, begin, count)
    gives = makers.record(made, 2)
    with code.when(wrong == 0):
        wrong = code.call(run, table, every, seen, ranges, gives)
        with code.when(wrong == 0):
            result = _given_back(code, every, gives, table[layout.T_GIVES])
            _release_all(code, new, made)
            code.ret(result.number)
    _release_all(code, new, made)
    code.ret(1)
    code.finish(is_internal=False)


def _emit_make(module: Any) -> Any:
    """Emit ``i64 make(makers, count, new)``: make new arrays.

    Garbage collection is off meanwhile: finalizers might change other arrays. If Python
    code makes the new arrays, the arguments are checked again.
    """
    code = EntryCode(module, "make", I64, [PTR, I64, PTR])
    makers, count, new = code.args
    collects = code.call_c("PyGC_Disable", I32)

    def collect() -> None:
        with code.when(collects != 0):
            code.call_c("PyGC_Enable", I32)

    with code.loop(count) as loop:
        maker = makers.record(loop.index, 2)
        args = maker.pointer(0), maker.pointer(1), code.word(0, PTR)
        obj = code.call_c("PyObject_Call", PTR, *args)
        with code.when(obj == 0):
            code.forget_error()
            _release_all(code, new, loop.index)
            collect()
            code.ret(1)
        new[loop.index] = obj.number
    collect()
    return code.finish()


def _emit_check(module: Any, parts: EntryParts) -> Any:
    """Emit ``i64 check(table, objects, seen, ranges, begin, end)``: check some objects.

    Arrays must have the shapes and strides of the table, and torch must record none of
    them.
    """
    code = EntryCode(module, "check", I64, [PTR, PTR, PTR, PTR, I64, I64])
    table, objects, seen, ranges, begin, end = code.args
    process = table.pointer(layout.T_PROCESS)
    process[P_RECORDS] = NOTHING
    records = table.at(8 * layout.HEADER)
    wanted = records.record(table[layout.T_PARAMS], layout.RECORD)
    with code.loop(end - begin) as loop:
        place = loop.index + begin
        record = records.record(place, layout.RECORD)
        obj, array = objects.pointer(place), record.pointer(layout.R_ARRAY)
        known, itself = record[layout.R_CLASS], array == 0
        kind = obj[layout.OB_TYPE // 8]
        is_known = code.choose(itself, kind, obj.number) == known
        code.refuse_if(~((known == 0) | is_known))
        obj = code.choose(itself, obj, array)
        range_, none = ranges.record(place, 2), code.word(0, PTR)
        code.require(parts.read, obj, record, process, seen, range_, none)
        slot = record[layout.R_SLOT]
        with code.loop(record[layout.R_WIDTH] - 1) as inner:
            word = slot + inner.index + 1
            code.refuse_if(seen[word] != wanted[word])
    with code.when(process[P_RECORDS] != NOTHING):
        process[P_RECORDS] = ONLY_RECORDED
        code.ret(1)
    return code.finish()


def _emit_run_all(module: Any, parts: EntryParts) -> Any:
    """Emit ``i64 run_all(table, objects, seen, ranges, gives)``: run all launches."""
    code = EntryCode(module, "run_all", I64, [PTR] * 5)
    table, objects, seen, ranges, gives = code.args
    code.process = table.pointer(layout.T_PROCESS)
    count, given = (table[i] for i in (layout.T_PARAMS, layout.T_GIVEN))
    records = table.at(8 * layout.HEADER)
    code.require(parts.pairs, count, records, ranges, seen)
    slots = code.kept(layout.MOST_SLOTS)
    first = gives.record(table[layout.T_GIVES], 1)
    with code.loop(table[layout.T_LAUNCHES], first) as loop:
        (launch,) = loop.values
        behind = _fill(code, launch, seen, slots)
        code.require(parts.call, launch[layout.L_KERNEL], code.process, slots, 0)
        loop.next = [behind]
    note_written(code, objects, given, records)
    return code.finish()


def _release_all(code: EntryCode, objects: Word, count: Word) -> None:
    with code.loop(count) as loop:
        code.release(objects.pointer(loop.index))


def _given_back(code: EntryCode, every: Word, gives: Word, count: Word) -> Word:
    """Return a new reference to the only result, to a tuple of all, or to None."""

    def taken(index: Word) -> Word:
        obj = every.pointer(gives[index])
        code.take(obj)
        return obj

    found, none = code.kept(1), code.process.pointer(layout.P_NONE)
    found[0] = none.number
    with code.when(count == 0):
        code.take(none)
    with code.when(count == 1):
        found[0] = taken(code.word(0)).number
    with code.when(count > 1):
        made = code.call_c("PyTuple_New", PTR, count)
        with code.loop(count) as loop:
            code.call_c("PyTuple_SetItem", I32, made, loop.index, taken(loop.index))
        found[0] = made.number
    return found.pointer(0)


def _fill(code: EntryCode, launch: Word, seen: Word, slots: Word) -> Word:
    """Fill the slots of a launch; return the address behind it in the table."""
    count, before = launch[layout.L_SLOTS], launch.at(8 * layout.LAUNCH_HEADER)
    with code.loop(count) as loop:
        slots[loop.index] = before[loop.index]
    patches, number = before.record(count, 1), launch[layout.L_PATCHES]
    with code.loop(number) as loop:
        patch = patches.record(loop.index, layout.PATCH)
        slots[patch[0]] = seen[patch[1]] + patch[2]
    return patches.record(number, layout.PATCH)
