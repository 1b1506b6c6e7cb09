"""The part of the native entries that runs recorded launches on other arrays.

The table is that of `replay.py`: a record of each operand and the words it must have,
then each launch: its slots as they were, and which of them hold addresses or numbers.
"""

from __future__ import annotations

from typing import Any

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_tensors import note_written
from xetl_cpu.launch.entry_writing import EntryCode, EntryParts
from xetl_cpu.llvm import I64, PTR, const, counted_loop

Value = Any


def emit_replay(module: Any, parts: EntryParts) -> Any:
    """``i64 replay(table, operands, count)``: check all operands, run the launches."""
    code = EntryCode(module, "replay", I64, [PTR, PTR, I64])
    builder = code.builder
    table, objects, count = code.args
    process = code.pointer(table, layout.T_PROCESS)
    code.refuse_if(code.is_(count, "!=", code.word(table, layout.T_PARAMS)))
    width = code.word(table, layout.T_SLOTS)
    seen = builder.alloca(I64, size=width)
    ranges = builder.alloca(I64, size=builder.shl(count, const(I64, 1)))
    slots = builder.alloca(I64, size=const(I64, layout.MOST_SLOTS))
    records = code.at(table, 8 * layout.HEADER)
    with counted_loop(builder, count, name="operand") as loop:
        record = code.element(records, loop.index, layout.RECORD)
        obj = code.pointer(objects, loop.index)
        range_ = code.element(ranges, loop.index, 2)
        code.require(parts.read, [obj, record, process, seen, range_])
    wanted = code.element(records, count, layout.RECORD)
    _check_same(code, records, count, wanted, seen)
    code.require(parts.pairs, [count, records, ranges, seen])
    first = builder.ptrtoint(code.element(wanted, width, 1), I64)
    launches = code.word(table, layout.T_LAUNCHES)
    with counted_loop(builder, launches, carried=[first], name="launch") as loop:
        launch = builder.inttoptr(loop.values[0], PTR)
        behind = _fill(code, launch, seen, slots)
        kernel = code.word(launch, layout.L_KERNEL)
        code.require(parts.call, [kernel, process, slots])
        loop.next = [builder.ptrtoint(behind, I64)]
    note_written(code, process, (objects, count, records))
    return code.finish()


def _check_same(
    code: EntryCode, records: Value, count: Value, wanted: Value, seen: Value
) -> None:
    """Refuse arrays of other shapes or strides; addresses and numbers may differ."""
    builder = code.builder
    with counted_loop(builder, count, name="compared") as outer:
        record = code.element(records, outer.index, layout.RECORD)
        slot = code.word(record, layout.R_SLOT)
        others = builder.sub(code.word(record, layout.R_WIDTH), const(I64, 1))
        with counted_loop(builder, others, name="word") as inner:
            place = builder.add(builder.add(slot, inner.index), const(I64, 1))
            same = code.is_(code.word(seen, place), "==", code.word(wanted, place))
            code.refuse_unless(same)


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
