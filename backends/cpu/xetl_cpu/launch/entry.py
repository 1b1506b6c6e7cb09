"""Emits `xetl_entry`, which reads a kernel's arguments directly from Python objects.

One function serves all kernels: it reads the table that `launch/fastcall.py` made.
CPython calls it as a builtin, ``(self, objects, count)``, with Python's lock held;
``self`` is the table. It returns the int 0 after the kernel has run. It returns 1, with
nothing written, if an argument does not match the table or is only unusual: the slow
path is general.

    objects   grid x, y, z, then one for each parameter; last constants may be omitted
    check     type, dtype, rank, dimension of stride 1, alignment, writeable, overlap
    run       without the lock, unless releasing it takes longer than the kernel

`fastcall` keeps the machine code in the disk cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl_cpu.build import assemble
from xetl_cpu.image import DEFAULT_IMPORTS, Image, build_image
from xetl_cpu.launch import GRID, PACKED, entry_arrays
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_arrays import emit_other
from xetl_cpu.launch.entry_calls import emit_launch, emit_plan
from xetl_cpu.launch.entry_replay import emit_replay
from xetl_cpu.launch.entry_writing import (
    EntryCode,
    EntryParts,
    Word,
    call_entry,
    emit_call,
)
from xetl_cpu.launch.tensor_words import NOTHING, P_RECORDS
from xetl_cpu.llvm import I1, I32, I64, PTR, ir
from xetl_cpu.targets import find_target

_EQ = 2
"""CPython's number of the comparison ``==``."""


def build_entry() -> Image:
    """Return the machine code of `xetl_entry`, for any processor that has a target."""
    module = ir.Module(layout.ENTRY)
    parts = EntryParts(
        _emit_read(module, _emit_array(module, emit_other(module))),
        _emit_pairs(module, _emit_overlap(module)),
        emit_call(module),
    )
    _emit_run(module, parts)
    emit_replay(module, parts)
    _emit_builtin(module)
    emit_launch(module)
    emit_plan(module)
    code = assemble(str(module), find_target("avx2"))
    symbols = [layout.ENTRY, layout.LAUNCH, layout.PLAN, layout.RUN, layout.REPLAY]
    called = [each.name for each in module.functions if each.is_declaration]
    return build_image(code, symbols, DEFAULT_IMPORTS.union(called))


def _emit_array(module: Any, other_array: Any) -> Any:
    """Emit ``array(object, record, process, slots, range, held)``: check, fill slots.

    It returns 0 or 1 as i64. ``range`` becomes the first byte of the array and the byte
    behind its last one; both are 0 if the array is empty.
    """
    code = EntryCode(module, "array", I64, [PTR] * 6)
    obj, record, code.process, slots, range_, held = code.args
    seen = code.kept(entry_arrays.SEEN_WORDS)
    is_array = obj[layout.OB_TYPE // 8] == code.process[layout.P_NDARRAY]
    with code.when_else(is_array) as (of_numpy, other):
        with of_numpy:
            _see_array(code, obj, record, seen)
        with other:
            code.require(other_array, obj, record, code.process, seen, held)
    slots = slots.record(record[layout.R_SLOT], 1)
    data, up = seen[entry_arrays.S_DATA], seen[entry_arrays.S_SHIFT]
    slots[0] = data
    rank, shift = record[layout.R_RANK], record[layout.R_SHIFT]
    zero, item = code.word(0), code.word(1) << shift
    fields = entry_arrays.S_SHAPE, entry_arrays.S_STRIDES
    shape, strides = map(seen.pointer, fields)
    with code.loop(rank, zero, item, zero) as loop:
        dim = loop.index
        size, stride = shape[dim], strides[dim] << up
        _check_stride(code, record, item, dim, size, stride)
        slots[dim + 1] = size
        slots[dim + rank + 1] = stride >> shift
        reach = (size - 1) * stride
        is_back = reach < 0
        below, above, empty = loop.values
        loop.next = [
            below + code.choose(is_back, reach, 0),
            above + code.choose(is_back, 0, reach),
            empty | (size == 0).sized(I64),
        ]
    below, above, empty = loop.results
    is_empty, end = empty != 0, data + above
    nowhere = (data == 0) | (end > seen[entry_arrays.S_END])
    code.refuse_if(~is_empty & nowhere)
    range_[0] = code.choose(is_empty, 0, data + below)
    range_[1] = code.choose(is_empty, 0, end)
    return code.finish()


def _see_array(code: EntryCode, obj: Word, record: Word, seen: Word) -> None:
    """Check a NumPy array, and write its address, sizes and strides to ``seen``."""
    code.refuse_if(obj.half(layout.RANK) != record[layout.R_RANK].sized(I32))
    code.refuse_if(obj[layout.DESCR // 8] != record[layout.R_OBJECT])
    both = code.word(layout.ALIGNED | layout.WRITEABLE, I32)
    stored = record[layout.R_STORED] != 0
    needed = code.choose(stored, both, layout.ALIGNED)
    code.refuse_if(obj.half(layout.FLAGS) & needed != needed)
    for index, offset in (
        (entry_arrays.S_DATA, layout.DATA),
        (entry_arrays.S_SHAPE, layout.SHAPE),
        (entry_arrays.S_STRIDES, layout.STRIDES),
    ):
        seen[index] = obj[offset // 8]
    seen[entry_arrays.S_SHIFT] = 0
    seen[entry_arrays.S_END] = (1 << 63) - 1


def _check_stride(
    code: EntryCode, record: Word, item: Word, dim: Word, size: Word, stride: Word
) -> None:
    """Refuse strides that are no multiple of an element, or another unit dimension."""
    code.refuse_if((stride & (item - 1)) != 0)
    unit, is_last = record[layout.R_UNIT], dim == record[layout.R_RANK] - 1
    is_unit = code.choose(size > 1, stride == item, is_last)
    code.refuse_if((dim == unit) & ~is_unit)
    code.refuse_if((dim > unit) & is_unit)


def _check_nested(code: EntryCode, record: Word, slots: Word) -> None:
    """Refuse stored arrays whose elements might share memory.

    Each stride must step over all inner dimensions: those behind it, or, if the first
    dimension has stride 1, those before it. Recorded calls do not need this check:
    their strides were checked completely.
    """
    rank, words = record[layout.R_RANK], slots.record(record[layout.R_SLOT], 1)
    count = code.choose(record[layout.R_STORED] != 0, rank, 0)
    column_major = record[layout.R_UNIT] == 0
    with code.loop(count, code.word(1)) as loop:
        (reach,) = loop.values
        dim = code.choose(column_major, loop.index, rank - 1 - loop.index)
        size, stride = words[dim + 1], words[dim + rank + 1]
        stride = code.choose(stride < 0, code.word(0) - stride, stride)
        many = size > 1
        code.refuse_if(many & (stride < reach))
        loop.next = [code.choose(many, reach + (size - 1) * stride, reach)]


def _emit_overlap(module: Any) -> Any:
    """Emit ``i64 overlap(left record, right record, left range, right range, slots)``.

    Arrays that the kernel knows to be equal must be equal; stored arrays must not
    overlap others.
    """
    code = EntryCode(module, "overlap", I64, [PTR] * 5)
    left, right, left_range, right_range, slots = code.args
    for record in (left, right):
        _return_if(code, record[layout.R_KIND] != layout.ARRAY)
    with code.when(left[layout.R_ALIAS] == right[layout.R_ALIAS]):
        starts = [record[layout.R_SLOT] for record in (left, right)]
        with code.loop(left[layout.R_WIDTH]) as loop:
            first, second = (slots[start + loop.index] for start in starts)
            code.refuse_if(first != second)
        code.ret(0)
    stored = left[layout.R_STORED] | right[layout.R_STORED]
    _return_if(code, stored == 0)
    before, after = left_range[1] <= right_range[0], right_range[1] <= left_range[0]
    _return_if(code, before | after)
    _refuse_unless_beside(code, (left, right), (left_range, right_range), slots)
    return code.finish()


def _refuse_unless_beside(
    code: EntryCode, records: Sequence[Word], ranges: Sequence[Word], slots: Word
) -> None:
    """Refuse arrays unless they are blocks of different columns of one matrix.

    Both have the same stride along their first dimension, and the parts of both arrays
    within one step fit into it, one after the other.
    """
    strides: list[Word] = []
    inner: list[Word] = []
    for record, range_ in zip(records, ranges):
        rank = record[layout.R_RANK]
        code.refuse_if(rank < 2)
        first = slots.record(record[layout.R_SLOT], 1)
        strides.append(first[rank + 1] << record[layout.R_SHIFT])
        rows, extent = first[1] - 1, range_[1] - range_[0]
        inner.append(extent - rows * strides[-1])
    stride, other = strides
    code.refuse_if(stride <= 0)
    code.refuse_if(stride != other)
    place = (ranges[1][0] - ranges[0][0]) % stride
    place = code.choose(place < 0, place + stride, place)
    code.refuse_if(place < inner[0])
    code.refuse_if(place + inner[1] > stride)


def _return_if(code: EntryCode, condition: Word) -> None:
    with code.when(condition):
        code.ret(0)


def _emit_builtin(module: Any) -> None:
    """Emit the builtin; ``self`` is a table. It returns 0, 1 or a result."""
    code = EntryCode(module, layout.ENTRY, PTR, [PTR, PTR, I64])
    me, objects, count = code.args
    table = me.at(layout.BYTES_VALUE)
    process = table.pointer(layout.T_PROCESS)
    done = call_entry(code, table, objects, count)
    code.refuse_if(done == 1)
    with code.when(done != 0):
        code.ret(done)
    code.give(process.pointer(layout.P_DONE))
    code.builder.position_at_end(code.refused)
    code.give(process.pointer(layout.P_REFUSED))


def _emit_run(module: Any, parts: EntryParts) -> None:
    """Emit ``i64 run(table, objects, count)``: `checked`, then release what is held."""
    run = _emit_checked(module, parts)
    code = EntryCode(module, layout.RUN, I64, [PTR, PTR, I64])
    table, objects, count = code.args
    held = code.room(table[layout.T_PARAMS] + 1)
    held[0] = 0
    wrong = code.call(run, table, objects, count, held)
    with code.loop(held[0]) as loop:
        code.release(held.pointer(loop.index + 1))
    code.refuse_if(wrong != 0)
    code.finish(is_internal=False)


def _emit_checked(module: Any, parts: EntryParts) -> Any:
    """Emit ``i64 checked(table, objects, count, held)``: check all, run the kernel."""
    code = EntryCode(module, "checked", I64, [PTR, PTR, I64, PTR])
    table, objects, count, held = code.args
    process = code.process = table.pointer(layout.T_PROCESS)
    params, given = table[layout.T_PARAMS], count - 3
    code.refuse_if(given < 0)
    code.refuse_if(given > params)
    slots, ranges = code.room(table[layout.T_SLOTS]), code.room(params << 1)
    slots[PACKED] = 0
    process[P_RECORDS] = NOTHING
    overflow = code.kept(1)
    for axis in range(3):
        slots[GRID + axis] = _read_int(code, objects.pointer(axis), overflow)
    records, objects = table.at(8 * layout.HEADER), objects.at(24)
    where = records, slots, ranges, held
    _look(code, parts.read, (objects, given, params), where)
    with code.when(held[0] > 0):
        # Python code has run, which may have changed other arrays.
        _look(code, parts.read, (objects, given, params), where, again=True)
    code.refuse_if(process[P_RECORDS] != NOTHING)
    code.require(parts.pairs, given, records, ranges, slots)
    kernel, short = table[layout.T_KERNEL], table[layout.T_SHORT]
    code.require(parts.call, kernel, process, slots, short)
    entry_arrays.note_written(code, objects, given, records)
    return code.finish()


def _look(
    code: EntryCode,
    read: Any,
    call: Sequence[Word],
    where: Sequence[Word],
    again: bool = False,
) -> None:
    """Check all objects; ``again``: only those that Python code can change."""
    process = code.process
    (objects, given, params), (records, slots, ranges, held) = call, where
    with code.loop(params) as loop:
        record = records.record(loop.index, layout.RECORD)
        kind, missing = record[layout.R_KIND], loop.index >= given
        code.refuse_if(missing & (kind < layout.CONST))
        with code.when(~missing):
            obj, range_ = objects.pointer(loop.index), ranges.record(loop.index, 2)
            is_read = code.word(1, I1)
            if again:
                of_numpy = obj[layout.OB_TYPE // 8] == process[layout.P_NDARRAY]
                is_known = of_numpy | entry_arrays.is_tensor(code, obj)
                is_read = is_known | (kind != layout.ARRAY)
            with code.when(is_read):
                code.require(read, obj, record, process, slots, range_, held)
            with code.when(kind == layout.ARRAY):
                _check_nested(code, record, slots)


def _emit_read(module: Any, array: Any) -> Any:
    """Emit ``i64 read(object, record, process, slots, range, held)``: check one object.

    It writes the words of the object to the slots.
    """
    code = EntryCode(module, "read", I64, [PTR] * 6)
    obj, record, code.process, slots, range_, held = code.args
    process, overflow = code.process, code.kept(1)
    kind, slot = record[layout.R_KIND], record[layout.R_SLOT]
    known = record.pointer(layout.R_OBJECT)
    with code.when(kind == layout.ARRAY):
        code.require(array, obj, record, process, slots, range_, held)
    with code.when(kind == layout.CONST):
        _require_same(code, obj, known)
    with code.when(kind == layout.CONST_INT):
        code.refuse_if(_read_int(code, obj, overflow) != known)
    with code.when(kind == layout.CONST_FLOAT):
        code.refuse_if(_read_float(code, obj) != known)
    with code.when(kind == layout.CONST_EQUAL):
        _require_equal(code, obj, known)
    with code.when(kind == layout.INT):
        slots[slot] = _read_int(code, obj, overflow)
    with code.when(kind == layout.FLOAT):
        slots[slot] = _read_float(code, obj)
    with code.when(kind == layout.BOOL):
        true, false = (obj == process[i] for i in (layout.P_TRUE, layout.P_FALSE))
        code.refuse_if(~(true | false))
        slots[slot] = true.sized(I64)
    return code.finish()


def _require_same(code: EntryCode, obj: Word, known: Word) -> None:
    """Refuse another object, except a tuple of the same objects."""
    with code.when(obj != known):
        of_tuples = code.process.pointer(layout.P_NO_NAMES)[layout.OB_TYPE // 8]
        for each in (obj, known):
            code.refuse_if(each[layout.OB_TYPE // 8] != of_tuples)
        count, wanted = (each[layout.OB_SIZE // 8] for each in (obj, known))
        code.refuse_if(count != wanted)
        items, others = (each.at(layout.TUPLE_ITEMS) for each in (obj, known))
        with code.loop(count) as loop:
            code.refuse_if(items[loop.index] != others[loop.index])


def _require_equal(code: EntryCode, obj: Word, known: Word) -> None:
    """Refuse an object of another class, or one that is not equal."""
    left, right = (each[layout.OB_TYPE // 8] for each in (obj, known))
    code.refuse_if(left != right)
    args = obj, known, code.word(_EQ, I32)
    equal = code.call_c("PyObject_RichCompareBool", I32, *args)
    with code.when(equal < 0):
        code.forget_error()
        code.ret(1)
    code.refuse_if(equal == 0)


def _read_float(code: EntryCode, obj: Word) -> Word:
    """Return the bits of a float, or of NumPy's f32 or f64 as a float."""
    is_float, is_f32, is_f64 = _classes(code, obj, _FLOATS)
    is_wide = is_float | is_f64
    code.refuse_if(~(is_wide | is_f32))
    wide, narrow = obj[layout.NUMBER // 8], obj.half(layout.NUMBER)
    return code.choose(is_wide, wide, narrow.as_f64())


def _read_int(code: EntryCode, obj: Word, overflow: Word) -> Word:
    """Return the value of an int, or of NumPy's i32 or i64."""
    is_int, is_i32, is_i64 = _classes(code, obj, _INTS)
    found = code.kept(1)
    with code.when_else(is_int) as (python, numpy):
        with python:
            read = "PyLong_AsLongLongAndOverflow"
            found[0] = code.call_c(read, I64, obj, overflow)
            code.refuse_if(overflow.half(0) != 0)
        with numpy:
            code.refuse_if(~(is_i32 | is_i64))
            wide, narrow = obj[layout.NUMBER // 8], obj.half(layout.NUMBER)
            found[0] = code.choose(is_i64, wide, narrow.sized(I64))
    return found[0]


_FLOATS = layout.P_FLOAT, layout.P_F32, layout.P_F64
_INTS = layout.P_INT, layout.P_I32, layout.P_I64


def _classes(code: EntryCode, obj: Word, classes: Sequence[int]) -> list[Word]:
    """Return for each class, by its word of the process, whether it is the object's."""
    kind = obj[layout.OB_TYPE // 8]
    return [kind == code.process[each] for each in classes]


def _emit_pairs(module: Any, overlap: Any) -> Any:
    """Emit ``i64 pairs(count, records, ranges, slots)``: `overlap` of all pairs."""
    code = EntryCode(module, "pairs", I64, [I64, PTR, PTR, PTR])
    count, records, ranges, slots = code.args
    with code.loop(count) as outer:
        left = records.record(outer.index, layout.RECORD)
        left_range = ranges.record(outer.index, 2)
        with code.loop(outer.index) as inner:
            right = records.record(inner.index, layout.RECORD)
            right_range = ranges.record(inner.index, 2)
            code.require(overlap, left, right, left_range, right_range, slots)
    return code.finish()
