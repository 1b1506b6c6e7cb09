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
from xetl_cpu.llvm import I32, I64, PTR, VOID, const, counted_loop, load, store

Value = Any


def emit_replay(module: Any, parts: EntryParts) -> None:
    """``i64 replay(table, objects, count)``: check all, make results, run the launches.

    1, or the address of what the function gives. From the look at arrays to the first
    launch no code of Python runs, which could change them.
    """
    make, check = _emit_make(module), _emit_check(module, parts)
    run = _emit_run_all(module, parts)
    code = EntryCode(module, layout.REPLAY, I64, [PTR, PTR, I64])
    builder = code.builder
    table, objects, total = code.args
    process = code.pointer(table, layout.T_PROCESS)
    count, given, made, width = (
        code.word(table, word)
        for word in (layout.T_PARAMS, layout.T_GIVEN, layout.T_MADE, layout.T_SLOTS)
    )
    code.refuse_if(code.is_(builder.sub(total, const(I64, 3)), "!=", given))
    with builder.if_then(code.is_(code.word(table, layout.T_SEES_MODES), "!=", 0)):
        refuse_modes(code, process)
    every = builder.alloca(I64, size=count)
    seen = builder.alloca(I64, size=width)
    ranges = builder.alloca(I64, size=builder.shl(count, const(I64, 1)))
    with counted_loop(builder, given, name="given") as loop:
        behind = builder.add(loop.index, const(I64, 3))
        code.put(every, loop.index, code.word(objects, behind))
        loop.next = []
    code.require(check, [table, every, seen, ranges, const(I64, 0), given])
    behind = code.element(code.at(table, 8 * layout.HEADER), count, layout.RECORD)
    makers, new = code.element(behind, width, 1), code.element(every, given, 1)
    code.require(make, [process, makers, made, new])
    begin = code.word(table, layout.T_CHANGED)
    wrong = builder.call(check, [table, every, seen, ranges, begin, count])
    gives = code.element(makers, made, 2)
    with builder.if_then(code.is_(wrong, "==", 0)):
        wrong = builder.call(run, [table, every, seen, ranges, gives])
        with builder.if_then(code.is_(wrong, "==", 0)):
            result = _given_back(code, process, every, gives, table)
            _release_all(code, process, new, made)
            builder.ret(builder.ptrtoint(result, I64))
    _release_all(code, process, new, made)
    builder.branch(code.refused)
    builder.position_at_end(code.refused)
    code.ret(1)


def _emit_make(module: Any) -> Any:
    """``i64 make(process, makers, count, new)``: new arrays.

    Meanwhile nothing is collected: what finalizers do might change other arrays. Those
    are looked at once more where Python code makes the new ones.
    """
    code = EntryCode(module, "make", I64, [PTR, PTR, I64, PTR])
    builder = code.builder
    process, makers, count, new = code.args
    collects = code.call(code.word(process, layout.P_COLLECT_NOT), I32, [])

    def collect() -> None:
        with builder.if_then(builder.icmp_signed("!=", collects, const(I32, 0))):
            code.call(code.word(process, layout.P_COLLECT), I32, [])

    with counted_loop(builder, count, name="made") as loop:
        maker = code.element(makers, loop.index, 2)
        null = builder.inttoptr(const(I64, 0), PTR)
        args = [code.pointer(maker, 0), code.pointer(maker, 1), null]
        obj = code.call(code.word(process, layout.P_CALL), PTR, args)
        with builder.if_then(code.is_null(obj)):
            code.call(code.word(process, layout.P_CLEAR_ERROR), VOID, [])
            _release_all(code, process, new, loop.index)
            collect()
            builder.branch(code.refused)
        code.put(new, loop.index, builder.ptrtoint(obj, I64))
        loop.next = []
    collect()
    return code.finish()


def _emit_check(module: Any, parts: EntryParts) -> Any:
    """``i64 check(table, objects, seen, ranges, begin, end)``: look at some objects.

    Arrays have the shapes and strides of the table, and torch records none of them.
    """
    code = EntryCode(module, "check", I64, [PTR, PTR, PTR, PTR, I64, I64])
    builder = code.builder
    table, objects, seen, ranges, begin, end = code.args
    process = code.pointer(table, layout.T_PROCESS)
    code.put(process, P_RECORDS, NOTHING)
    records = code.at(table, 8 * layout.HEADER)
    wanted = code.element(records, code.word(table, layout.T_PARAMS), layout.RECORD)
    with counted_loop(builder, builder.sub(end, begin), name="operand") as loop:
        place = builder.add(loop.index, begin)
        record = code.element(records, place, layout.RECORD)
        range_ = code.element(ranges, place, 2)
        obj = code.pointer(objects, place)
        array = code.pointer(record, layout.R_ARRAY)
        given = builder.ptrtoint(obj, I64)
        kind = code.word(obj, layout.OB_TYPE // 8)
        known = code.word(record, layout.R_CLASS)
        itself = code.is_null(array)
        is_known = code.is_(builder.select(itself, kind, given), "==", known)
        code.refuse_unless(builder.or_(code.is_(known, "==", 0), is_known))
        obj = builder.select(itself, obj, array)
        code.require(parts.read, [obj, record, process, seen, range_])
        slot = code.word(record, layout.R_SLOT)
        others = builder.sub(code.word(record, layout.R_WIDTH), const(I64, 1))
        with counted_loop(builder, others, name="word") as inner:
            word = builder.add(builder.add(slot, inner.index), const(I64, 1))
            same = code.is_(code.word(seen, word), "==", code.word(wanted, word))
            code.refuse_unless(same)
    is_recorded = code.is_(code.word(process, P_RECORDS), "!=", NOTHING)
    with builder.if_then(is_recorded):
        code.put(process, P_RECORDS, ONLY_RECORDED)
        code.ret(1)
    return code.finish()


def _emit_run_all(module: Any, parts: EntryParts) -> Any:
    """``i64 run_all(table, objects, seen, ranges, gives)``: all launches."""
    code = EntryCode(module, "run_all", I64, [PTR] * 5)
    builder = code.builder
    table, objects, seen, ranges, gives = code.args
    process = code.pointer(table, layout.T_PROCESS)
    count, given = (code.word(table, i) for i in (layout.T_PARAMS, layout.T_GIVEN))
    records = code.at(table, 8 * layout.HEADER)
    code.require(parts.pairs, [count, records, ranges, seen])
    slots = builder.alloca(I64, size=const(I64, layout.MOST_SLOTS))
    launches = code.word(table, layout.T_LAUNCHES)
    first = code.element(gives, code.word(table, layout.T_GIVES), 1)
    start = builder.ptrtoint(first, I64)
    with counted_loop(builder, launches, carried=[start], name="launch") as loop:
        launch = builder.inttoptr(loop.values[0], PTR)
        behind = _fill(code, launch, seen, slots)
        kernel = code.word(launch, layout.L_KERNEL)
        code.require(parts.call, [kernel, process, slots, const(I64, 0)])
        loop.next = [builder.ptrtoint(behind, I64)]
    note_written(code, process, (objects, given, records))
    return code.finish()


def _release_all(code: EntryCode, process: Value, objects: Value, count: Value) -> None:
    with counted_loop(code.builder, count, name="released") as loop:
        code.release(process, code.pointer(objects, loop.index))


def _given_back(
    code: EntryCode, process: Value, every: Value, gives: Value, table: Value
) -> Value:
    """A new reference to the only result, to a tuple of all, or to None."""
    builder = code.builder
    count = code.word(table, layout.T_GIVES)

    def taken(index: Value) -> Value:
        obj = code.pointer(every, code.word(gives, index))
        code.call(code.word(process, layout.P_INCREF), VOID, [obj])
        return obj

    found = builder.alloca(PTR)
    none = code.pointer(process, layout.P_NONE)
    store(builder, none, found, 8)
    with builder.if_then(code.is_(count, "==", 0)):
        code.call(code.word(process, layout.P_INCREF), VOID, [none])
    with builder.if_then(code.is_(count, "==", 1)):
        store(builder, taken(const(I64, 0)), found, 8)
    with builder.if_then(code.is_(count, ">", 1)):
        made = code.call(code.word(process, layout.P_NEW_TUPLE), PTR, [count])
        put = code.word(process, layout.P_SET_ITEM)
        with counted_loop(builder, count, name="given back") as loop:
            code.call(put, I32, [made, loop.index, taken(loop.index)])
        store(builder, made, found, 8)
    return load(builder, found, PTR, 8)


def _fill(code: EntryCode, launch: Value, seen: Value, slots: Value) -> Value:
    """Make the slots of a launch; gives what is behind it in the table."""
    builder = code.builder
    count = code.word(launch, layout.L_SLOTS)
    before = code.at(launch, 8 * layout.LAUNCH_HEADER)
    with counted_loop(builder, count, name="slot") as loop:
        code.put(slots, loop.index, code.word(before, loop.index))
    patches = code.element(before, count, 1)
    number = code.word(launch, layout.L_PATCHES)
    with counted_loop(builder, number, name="patch") as loop:
        patch = code.element(patches, loop.index, layout.PATCH)
        found = code.word(seen, code.word(patch, 1))
        value = builder.add(found, code.word(patch, 2))
        code.put(slots, code.word(patch, 0), value)
    return code.element(patches, number, layout.PATCH)
