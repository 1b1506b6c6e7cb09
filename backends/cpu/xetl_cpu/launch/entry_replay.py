"""The part of the native entries that runs recorded launches on other arrays.

The table is that of `replay.py`: a record of each argument and of each array that is
made for the call, the words that arrays must have, how the new ones are made, which of
all are given back, then each launch: its slots as they were, and which of them hold
addresses or numbers.
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_tensors import note_written, refuse_modes
from xetl_cpu.launch.entry_writing import EntryCode, EntryParts
from xetl_cpu.launch.tensor_words import NOTHING, ONLY_RECORDED, P_RECORDS
from xetl_cpu.llvm import I32, I64, PTR, VOID, const

Value = Any


def emit_replay(module: Any, parts: EntryParts) -> None:
    """``i64 replay(table, objects, count)``: check all, make results, run the launches.

    1, or the address of what the function gives. From the look at arrays to the first
    launch no code of Python runs, which could change them.
    """
    make, check = _emit_make(module), _emit_check(module, parts)
    run = _emit_run_all(module, parts)
    code = EntryCode(module, layout.REPLAY, I64, [PTR, PTR, I64])
    table, objects, total = code.args
    process = code.pointer(table, layout.T_PROCESS)
    count, given, made, width = (
        code.word(table, word)
        for word in (layout.T_PARAMS, layout.T_GIVEN, layout.T_MADE, layout.T_SLOTS)
    )
    code.refuse_if(code.is_(code.sub(total, 3), "!=", given))
    with code.if_then(code.is_(code.word(table, layout.T_SEES_MODES), "!=", 0)):
        refuse_modes(code, process)
    every = code.alloca(I64, size=count)
    seen = code.alloca(I64, size=width)
    ranges = code.alloca(I64, size=code.shl(count, 1))
    with code.counted_loop(given, name="given") as loop:
        behind = code.add(loop.index, 3)
        code.put(every, loop.index, code.word(objects, behind))
        loop.next = []
    code.require(check, [table, every, seen, ranges, const(I64, 0), given])
    behind = code.element(code.at(table, 8 * layout.HEADER), count, layout.RECORD)
    makers, new = code.element(behind, width, 1), code.element(every, given, 1)
    code.require(make, [makers, made, new])
    begin = code.word(table, layout.T_CHANGED)
    wrong = code.call(check, [table, every, seen, ranges, begin, count])
    gives = code.element(makers, made, 2)
    with code.if_then(code.is_(wrong, "==", 0)):
        wrong = code.call(run, [table, every, seen, ranges, gives])
        with code.if_then(code.is_(wrong, "==", 0)):
            result = _given_back(code, process, every, gives, table)
            _release_all(code, new, made)
            code.ret(code.ptrtoint(result, I64))
    _release_all(code, new, made)
    code.branch(code.refused)
    code.position_at_end(code.refused)
    code.ret(1)


def _emit_make(module: Any) -> Any:
    """``i64 make(makers, count, new)``: new arrays.

    Meanwhile nothing is collected: what finalizers do might change other arrays. Those
    are looked at once more where Python code makes the new ones.
    """
    code = EntryCode(module, "make", I64, [PTR, I64, PTR])
    makers, count, new = code.args
    collects = code.call_c("PyGC_Disable", I32, [])

    def collect() -> None:
        with code.if_then(code.icmp_signed("!=", collects, 0)):
            code.call_c("PyGC_Enable", I32, [])

    with code.counted_loop(count, name="made") as loop:
        maker = code.element(makers, loop.index, 2)
        null = code.inttoptr(const(I64, 0), PTR)
        args = [code.pointer(maker, 0), code.pointer(maker, 1), null]
        obj = code.call_c("PyObject_Call", PTR, args)
        with code.if_then(code.is_null(obj)):
            code.call_c("PyErr_Clear", VOID, [])
            _release_all(code, new, loop.index)
            collect()
            code.branch(code.refused)
        code.put(new, loop.index, code.ptrtoint(obj, I64))
        loop.next = []
    collect()
    return code.finish()


def _emit_check(module: Any, parts: EntryParts) -> Any:
    """``i64 check(table, objects, seen, ranges, begin, end)``: look at some objects.

    Arrays have the shapes and strides of the table, and torch records none of them.
    """
    code = EntryCode(module, "check", I64, [PTR, PTR, PTR, PTR, I64, I64])
    table, objects, seen, ranges, begin, end = code.args
    process = code.pointer(table, layout.T_PROCESS)
    code.put(process, P_RECORDS, NOTHING)
    records = code.at(table, 8 * layout.HEADER)
    wanted = code.element(records, code.word(table, layout.T_PARAMS), layout.RECORD)
    with code.counted_loop(code.sub(end, begin), name="operand") as loop:
        place = code.add(loop.index, begin)
        record = code.element(records, place, layout.RECORD)
        range_ = code.element(ranges, place, 2)
        obj = code.pointer(objects, place)
        array = code.pointer(record, layout.R_ARRAY)
        given = code.ptrtoint(obj, I64)
        kind = code.word(obj, layout.OB_TYPE // 8)
        known = code.word(record, layout.R_CLASS)
        itself = code.is_null(array)
        is_known = code.is_(code.select(itself, kind, given), "==", known)
        code.refuse_unless(code.or_(code.is_(known, "==", 0), is_known))
        obj = code.select(itself, obj, array)
        none = code.inttoptr(const(I64, 0), PTR)
        code.require(parts.read, [obj, record, process, seen, range_, none])
        slot = code.word(record, layout.R_SLOT)
        others = code.sub(code.word(record, layout.R_WIDTH), 1)
        with code.counted_loop(others, name="word") as inner:
            word = code.add(code.add(slot, inner.index), 1)
            same = code.is_(code.word(seen, word), "==", code.word(wanted, word))
            code.refuse_unless(same)
    is_recorded = code.is_(code.word(process, P_RECORDS), "!=", NOTHING)
    with code.if_then(is_recorded):
        code.put(process, P_RECORDS, ONLY_RECORDED)
        code.ret(1)
    return code.finish()


def _emit_run_all(module: Any, parts: EntryParts) -> Any:
    """``i64 run_all(table, objects, seen, ranges, gives)``: all launches."""
    code = EntryCode(module, "run_all", I64, [PTR] * 5)
    table, objects, seen, ranges, gives = code.args
    process = code.pointer(table, layout.T_PROCESS)
    count, given = (code.word(table, i) for i in (layout.T_PARAMS, layout.T_GIVEN))
    records = code.at(table, 8 * layout.HEADER)
    code.require(parts.pairs, [count, records, ranges, seen])
    slots = code.alloca(I64, size=const(I64, layout.MOST_SLOTS))
    launches = code.word(table, layout.T_LAUNCHES)
    first = code.element(gives, code.word(table, layout.T_GIVES), 1)
    start = code.ptrtoint(first, I64)
    with code.counted_loop(launches, carried=[start], name="launch") as loop:
        launch = code.inttoptr(loop.values[0], PTR)
        behind = _fill(code, launch, seen, slots)
        kernel = code.word(launch, layout.L_KERNEL)
        code.require(parts.call, [kernel, process, slots, const(I64, 0)])
        loop.next = [code.ptrtoint(behind, I64)]
    note_written(code, process, (objects, given, records))
    return code.finish()


def _release_all(code: EntryCode, objects: Value, count: Value) -> None:
    with code.counted_loop(count, name="released") as loop:
        code.release(code.pointer(objects, loop.index))


def _given_back(
    code: EntryCode, process: Value, every: Value, gives: Value, table: Value
) -> Value:
    """A new reference to the only result, to a tuple of all, or to None."""
    count = code.word(table, layout.T_GIVES)

    def taken(index: Value) -> Value:
        obj = code.pointer(every, code.word(gives, index))
        code.take(obj)
        return obj

    found = code.alloca(PTR)
    none = code.pointer(process, layout.P_NONE)
    code.store(none, found, 8)
    with code.if_then(code.is_(count, "==", 0)):
        code.take(none)
    with code.if_then(code.is_(count, "==", 1)):
        code.store(taken(const(I64, 0)), found, 8)
    with code.if_then(code.is_(count, ">", 1)):
        made = code.call_c("PyTuple_New", PTR, [count])
        with code.counted_loop(count, name="given back") as loop:
            code.call_c("PyTuple_SetItem", I32, [made, loop.index, taken(loop.index)])
        code.store(made, found, 8)
    return code.load(found, typ=PTR, align=8)


def _fill(code: EntryCode, launch: Value, seen: Value, slots: Value) -> Value:
    """Make the slots of a launch; gives what is behind it in the table."""
    count = code.word(launch, layout.L_SLOTS)
    before = code.at(launch, 8 * layout.LAUNCH_HEADER)
    with code.counted_loop(count, name="slot") as loop:
        code.put(slots, loop.index, code.word(before, loop.index))
    patches = code.element(before, count, 1)
    number = code.word(launch, layout.L_PATCHES)
    with code.counted_loop(number, name="patch") as loop:
        patch = code.element(patches, loop.index, layout.PATCH)
        found = code.word(seen, code.word(patch, 1))
        value = code.add(found, code.word(patch, 2))
        code.put(slots, code.word(patch, 0), value)
    return code.element(patches, number, layout.PATCH)
