"""Emits `xetl_entry`: a kernel's arguments straight out of Python objects.

One function serves all kernels: it walks the table that `launch/fastcall.py` made. As a
builtin it is called ``(self, objects, count)``, holding Python's lock; ``self`` is the
table. It returns the int 0 when the kernel has run, and 1, with nothing written, when
anything is not as the table says or merely unusual: the slow path is general.

    objects   grid x, y, z, then one for each parameter; constants at the end may miss
    check     type, dtype, rank, which stride is 1, alignment, writeable, overlap
    run       with the lock released, unless that takes longer than the kernel

`fastcall` keeps the machine code in the disk cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl_cpu.build import assemble
from xetl_cpu.image import DEFAULT_IMPORTS, Image, build_image
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_calls import emit_launch, emit_plan
from xetl_cpu.launch.entry_exported import emit_other
from xetl_cpu.launch.entry_replay import emit_replay
from xetl_cpu.launch.entry_tensors import (
    S_DATA,
    S_END,
    S_SHAPE,
    S_SHIFT,
    S_STRIDES,
    SEEN_WORDS,
    is_tensor,
    note_written,
)
from xetl_cpu.launch.entry_writing import EntryCode, EntryParts, call_entry, emit_call
from xetl_cpu.launch.slots import GRID, PACKED
from xetl_cpu.launch.tensor_words import NOTHING, P_RECORDS
from xetl_cpu.llvm import I32, I64, PTR, VOID, const, ir
from xetl_cpu.targets import find_target

_EQ = 2
"""Of CPython: which comparison."""

Value = Any


def build_entry() -> Image:
    """The machine code of `xetl_entry`, for any processor that has a target."""
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
    """``i64 array(object, record, process, slots, range, held)``: check, fill slots.

    ``range`` becomes the first byte of the array and the first behind it, both 0 if it
    is empty.
    """
    code = EntryCode(module, "array", I64, [PTR] * 6)
    obj, record, process, slots, range_, held = code.args
    zero = const(I64, 0)
    seen = code.stack_array(I64, SEEN_WORDS)
    kind = code.word(code.at(obj, layout.OB_TYPE), 0)
    is_array = code.is_(kind, "==", code.word(process, layout.P_NDARRAY))
    with code.if_else(is_array) as (of_numpy, other):
        with of_numpy:
            _see_array(code, obj, record, seen)
        with other:
            code.require(other_array, [obj, record, process, seen, held])
    eight = const(I64, 3)  # words to bytes, as a shift
    slots = code.at(slots, code.shl(code.word(record, layout.R_SLOT), eight))
    data, up = code.word(seen, S_DATA), code.word(seen, S_SHIFT)
    code.put(slots, 0, data)
    rank = code.word(record, layout.R_RANK)
    item = code.shl(1, code.word(record, layout.R_SHIFT))
    shape, strides = code.pointer(seen, S_SHAPE), code.pointer(seen, S_STRIDES)
    with code.counted_loop(rank, carried=[zero, item, zero], name="dim") as loop:
        dim = loop.index
        size, stride = code.word(shape, dim), code.shl(code.word(strides, dim), up)
        _check_stride(code, record, item, dim, size, stride)
        steps = code.ashr(stride, code.word(record, layout.R_SHIFT))
        code.put(slots, code.add(dim, 1), size)
        place = code.add(code.add(dim, rank), 1)
        code.put(slots, place, steps)
        reach = code.mul(code.sub(size, 1), stride)
        is_back = code.is_(reach, "<", 0)
        below, above, empty = loop.values
        below = code.add(below, code.select(is_back, reach, zero))
        above = code.add(above, code.select(is_back, zero, reach))
        empty = code.or_(empty, code.zext(code.is_(size, "==", 0), I64))
        loop.next = [below, above, empty]
    below, above, empty = loop.results
    is_empty = code.is_(empty, "!=", 0)
    _put_range(code, is_empty, (data, below, above), seen, range_)
    _check_nested(code, record, rank, item, (shape, strides, up))
    return code.finish()


def _put_range(
    code: EntryCode, is_empty: Value, lies: Sequence[Value], seen: Value, range_: Value
) -> None:
    """Say which bytes an array has, and refuse those that are not there."""
    data, below, above = lies
    zero, end = const(I64, 0), code.add(data, above)
    nowhere = code.or_(
        code.is_(data, "==", 0), code.is_(end, ">", code.word(seen, S_END))
    )
    code.refuse_if(code.and_(code.not_(is_empty), nowhere))
    code.put(range_, 0, code.select(is_empty, zero, code.add(data, below)))
    code.put(range_, 1, code.select(is_empty, zero, end))


def _see_array(code: EntryCode, obj: Value, record: Value, seen: Value) -> None:
    """Check what stands in an array of NumPy, and say where it lies."""
    rank = code.load(code.at(obj, layout.RANK), typ=I32, align=4)
    wanted = code.trunc(code.word(record, layout.R_RANK), I32)
    code.refuse_if(code.icmp_signed("!=", rank, wanted))
    descr = code.word(code.at(obj, layout.DESCR), 0)
    code.refuse_if(code.is_(descr, "!=", code.word(record, layout.R_OBJECT)))
    stored = code.is_(code.word(record, layout.R_STORED), "!=", 0)
    both = const(I32, layout.ALIGNED | layout.WRITEABLE)
    needed = code.select(stored, both, layout.ALIGNED)
    flags = code.load(code.at(obj, layout.FLAGS), typ=I32, align=4)
    held = code.and_(flags, needed)
    code.refuse_if(code.icmp_signed("!=", held, needed))
    for index, offset in (
        (S_DATA, layout.DATA),
        (S_SHAPE, layout.SHAPE),
        (S_STRIDES, layout.STRIDES),
    ):
        code.put(seen, index, code.word(code.at(obj, offset), 0))
    code.put(seen, S_SHIFT, 0)
    code.put(seen, S_END, (1 << 63) - 1)


def _check_stride(
    code: EntryCode, record: Value, item: Value, dim: Value, size: Value, stride: Value
) -> None:
    """Refuse odd strides, and those of another unit dimension."""
    few = code.is_(size, "<=", 1)
    mask = code.sub(item, 1)
    code.refuse_if(code.is_(code.and_(stride, mask), "!=", 0))
    unit = code.word(record, layout.R_UNIT)
    is_unit = code.or_(code.is_(stride, "==", item), few)
    at_unit = code.is_(dim, "==", unit)
    code.refuse_if(code.and_(at_unit, code.not_(is_unit)))
    behind = code.is_(dim, ">", unit)
    code.refuse_if(code.and_(behind, is_unit))


def _check_nested(
    code: EntryCode, record: Value, rank: Value, item: Value, lies: Sequence[Value]
) -> None:
    """Refuse stored arrays whose elements might share memory.

    Each stride must step over all of the dimensions inside it: those behind it, or,
    where the first dimension is the one of stride 1, those before it.
    """
    shape, strides, up = lies
    stored = code.is_(code.word(record, layout.R_STORED), "!=", 0)
    count = code.select(stored, rank, 0)
    column_major = code.is_(code.word(record, layout.R_UNIT), "==", 0)
    last = code.sub(rank, 1)
    with code.counted_loop(count, carried=[item], name="nested") as loop:
        reach = loop.values[0]
        backward = code.sub(last, loop.index)
        dim = code.select(column_major, loop.index, backward)
        size, stride = code.word(shape, dim), code.shl(code.word(strides, dim), up)
        many, back = code.is_(size, ">", 1), code.sub(0, stride)
        stride = code.select(code.is_(stride, "<", 0), back, stride)
        code.refuse_if(code.and_(many, code.is_(stride, "<", reach)))
        steps = code.mul(code.sub(size, 1), stride)
        loop.next = [code.select(many, code.add(reach, steps), reach)]


def _emit_overlap(module: Any) -> Any:
    """``i64 overlap(left record, right record, left range, right range, slots)``.

    Views the kernel knows to be the same must be; others that matter must lie apart.
    """
    code = EntryCode(module, "overlap", I64, [PTR] * 5)
    left, right, left_range, right_range, slots = code.args
    for record in (left, right):
        kind = code.word(record, layout.R_KIND)
        _return_if(code, code.is_(kind, "!=", layout.ARRAY))
    left_alias, right_alias = (code.word(r, layout.R_ALIAS) for r in (left, right))
    same = code.is_(left_alias, "==", right_alias)
    with code.if_then(same):
        width = code.word(left, layout.R_WIDTH)
        starts = [code.word(record, layout.R_SLOT) for record in (left, right)]
        with code.counted_loop(width, name="same") as loop:
            first, second = (
                code.word(slots, code.add(start, loop.index)) for start in starts
            )
            code.refuse_if(code.is_(first, "!=", second))
        code.ret(0)
    stored = code.or_(
        code.word(left, layout.R_STORED), code.word(right, layout.R_STORED)
    )
    _return_if(code, code.is_(stored, "==", 0))
    before = code.is_(code.word(left_range, 1), "<=", code.word(right_range, 0))
    after = code.is_(code.word(right_range, 1), "<=", code.word(left_range, 0))
    _return_if(code, code.or_(before, after))
    _refuse_unless_beside(code, (left, right), (left_range, right_range), slots)
    return code.finish()


def _refuse_unless_beside(
    code: EntryCode, records: Sequence[Value], ranges: Sequence[Value], slots: Value
) -> None:
    """Refuse arrays unless they are blocks of different columns of one matrix.

    Both step equally far along their first dimensions, and what lies in a step, of one
    and then of the other, fits into it.
    """
    strides: list[Value] = []
    inner: list[Value] = []
    for record, range_ in zip(records, ranges):
        rank = code.word(record, layout.R_RANK)
        code.refuse_if(code.is_(rank, "<", 2))
        first = code.element(slots, code.word(record, layout.R_SLOT), 1)
        steps = code.word(first, code.add(rank, 1))
        stride = code.shl(steps, code.word(record, layout.R_SHIFT))
        rows = code.sub(code.word(first, 1), 1)
        extent = code.sub(code.word(range_, 1), code.word(range_, 0))
        inner.append(code.sub(extent, code.mul(rows, stride)))
        strides.append(stride)
    stride, other = strides
    code.refuse_unless(code.is_(stride, ">", 0))
    code.refuse_if(code.is_(stride, "!=", other))
    apart = code.sub(code.word(ranges[1], 0), code.word(ranges[0], 0))
    place = code.srem(apart, stride)
    upper = code.add(place, stride)
    place = code.select(code.is_(place, "<", 0), upper, place)
    code.refuse_if(code.is_(place, "<", inner[0]))
    code.refuse_if(code.is_(code.add(place, inner[1]), ">", stride))


def _return_if(code: EntryCode, condition: Value) -> None:
    with code.if_then(condition):
        code.ret(0)


def _emit_builtin(module: Any) -> None:
    """The builtin, whose ``self`` is a table; gives 0, 1, or what a function gives."""
    code = EntryCode(module, layout.ENTRY, PTR, [PTR, PTR, I64])
    me, objects, count = code.args
    table = code.at(me, layout.BYTES_VALUE)
    process = code.pointer(table, layout.T_PROCESS)
    done = call_entry(code, table, objects, count)
    code.refuse_if(code.is_(done, "==", 1))
    with code.if_then(code.is_(done, "!=", 0)):
        code.ret(code.inttoptr(done, PTR))
    code.give(code.pointer(process, layout.P_DONE))
    code.position_at_end(code.refused)
    code.give(code.pointer(process, layout.P_REFUSED))


def _emit_run(module: Any, parts: EntryParts) -> None:
    """``i64 run(table, objects, count)``: `checked`, then nothing is held any more."""
    run = _emit_checked(module, parts)
    code = EntryCode(module, layout.RUN, I64, [PTR, PTR, I64])
    table, objects, count = code.args
    held = code.alloca(I64, size=code.add(code.word(table, layout.T_PARAMS), 1))
    code.put(held, 0, 0)
    wrong = code.call(run, [table, objects, count, held])
    with code.counted_loop(code.word(held, 0), start=0, name="held") as loop:
        code.release(code.pointer(held, code.add(loop.index, 1)))
        loop.next = []
    code.refuse_if(code.is_(wrong, "!=", 0))
    code.finish(is_internal=False)


def _emit_checked(module: Any, parts: EntryParts) -> Any:
    """``i64 checked(table, objects, count, held)``: check all, and run the kernel."""
    code = EntryCode(module, "checked", I64, [PTR, PTR, I64, PTR])
    table, objects, count, held = code.args
    process = code.pointer(table, layout.T_PROCESS)
    params = code.word(table, layout.T_PARAMS)
    given = code.sub(count, 3)
    code.refuse_if(code.is_(given, "<", 0))
    code.refuse_if(code.is_(given, ">", params))
    slots = code.alloca(I64, size=code.word(table, layout.T_SLOTS))
    ranges = code.alloca(I64, size=code.shl(params, 1))
    code.put(slots, PACKED, 0)
    code.put(process, P_RECORDS, NOTHING)
    overflow = code.alloca(I32)
    for axis in range(3):
        size = _read_int(code, process, code.pointer(objects, axis), overflow)
        code.put(slots, GRID + axis, size)
    records = code.at(table, 8 * layout.HEADER)
    where = records, slots, ranges, held
    _look(code, parts.read, (objects, given, params), where)
    with code.if_then(code.is_(code.word(held, 0), ">", 0)):
        # Code of Python has run, which may have changed the others.
        _look(code, parts.read, (objects, given, params), where, again=True)
    code.refuse_if(code.is_(code.word(process, P_RECORDS), "!=", NOTHING))
    code.require(parts.pairs, [given, records, ranges, slots])
    kernel = code.word(table, layout.T_KERNEL)
    short = code.word(table, layout.T_SHORT)
    code.require(parts.call, [kernel, process, slots, short])
    note_written(code, process, (code.at(objects, 24), given, records))
    return code.finish()


def _look(
    code: EntryCode,
    read: Any,
    call: Sequence[Value],
    where: Sequence[Value],
    again: bool = False,
) -> None:
    """Check all objects; ``again``: but those that hold what they have said."""
    process = code.pointer(code.args[0], layout.T_PROCESS)
    (objects, given, params), (records, slots, ranges, held) = call, where
    with code.counted_loop(params, name="param") as loop:
        record = code.element(records, loop.index, layout.RECORD)
        kind = code.word(record, layout.R_KIND)
        missing = code.is_(loop.index, ">=", given)
        constant = code.is_(kind, ">=", layout.CONST)
        code.refuse_if(code.and_(missing, code.not_(constant)))
        with code.if_then(code.not_(missing)):
            obj = code.pointer(objects, code.add(loop.index, 3))
            range_ = code.element(ranges, loop.index, 2)
            args = [obj, record, process, slots, range_, held]
            if again:
                class_ = code.word(obj, layout.OB_TYPE // 8)
                of_numpy = code.is_(class_, "==", code.word(process, layout.P_NDARRAY))
                is_known = code.or_(of_numpy, is_tensor(code, process, obj))
                is_array = code.is_(kind, "==", layout.ARRAY)
                with code.if_then(code.or_(is_known, code.not_(is_array))):
                    code.require(read, args)
            else:
                code.require(read, args)


def _emit_read(module: Any, array: Any) -> Any:
    """``i64 read(object, record, process, slots, range, held)``: check one object.

    Its words go into the slots.
    """
    code = EntryCode(module, "read", I64, [PTR] * 6)
    obj, record, process, slots, range_, held = code.args
    overflow = code.alloca(I32)
    kind = code.word(record, layout.R_KIND)
    slot = code.word(record, layout.R_SLOT)
    with code.if_then(code.is_(kind, "==", layout.ARRAY)):
        code.require(array, [obj, record, process, slots, range_, held])
    with code.if_then(code.is_(kind, "==", layout.CONST)):
        _require_same(code, process, obj, code.pointer(record, layout.R_OBJECT))
    with code.if_then(code.is_(kind, "==", layout.CONST_INT)):
        value = _read_int(code, process, obj, overflow)
        code.refuse_if(code.is_(value, "!=", code.word(record, layout.R_OBJECT)))
    with code.if_then(code.is_(kind, "==", layout.CONST_FLOAT)):
        value = _read_float(code, process, obj)
        code.refuse_if(code.is_(value, "!=", code.word(record, layout.R_OBJECT)))
    with code.if_then(code.is_(kind, "==", layout.CONST_EQUAL)):
        _require_equal(code, obj, code.pointer(record, layout.R_OBJECT))
    with code.if_then(code.is_(kind, "==", layout.INT)):
        code.put(slots, slot, _read_int(code, process, obj, overflow))
    with code.if_then(code.is_(kind, "==", layout.FLOAT)):
        code.put(slots, slot, _read_float(code, process, obj))
    with code.if_then(code.is_(kind, "==", layout.BOOL)):
        address = code.ptrtoint(obj, I64)
        true = code.is_(address, "==", code.word(process, layout.P_TRUE))
        false = code.is_(address, "==", code.word(process, layout.P_FALSE))
        code.refuse_unless(code.or_(true, false))
        code.put(slots, slot, code.zext(true, I64))
    return code.finish()


def _require_same(code: EntryCode, process: Value, obj: Value, known: Value) -> None:
    """Refuse another object, but for a tuple of the same ones."""
    is_other = code.is_(code.ptrtoint(obj, I64), "!=", code.ptrtoint(known, I64))
    with code.if_then(is_other):
        empty = code.pointer(process, layout.P_NO_NAMES)
        of_tuples = code.word(empty, layout.OB_TYPE // 8)
        for each in (obj, known):
            kind = code.word(each, layout.OB_TYPE // 8)
            code.refuse_if(code.is_(kind, "!=", of_tuples))
        count, wanted = (code.word(each, layout.OB_SIZE // 8) for each in (obj, known))
        code.refuse_if(code.is_(count, "!=", wanted))
        items, others = (code.at(each, layout.TUPLE_ITEMS) for each in (obj, known))
        with code.counted_loop(count) as loop:
            item, other = (code.word(each, loop.index) for each in (items, others))
            code.refuse_if(code.is_(item, "!=", other))


def _require_equal(code: EntryCode, obj: Value, known: Value) -> None:
    """Refuse an object of another class, or that is not equal."""
    left, right = (code.word(each, layout.OB_TYPE // 8) for each in (obj, known))
    code.refuse_if(code.is_(left, "!=", right))
    args = [obj, known, const(I32, _EQ)]
    equal = code.call_c("PyObject_RichCompareBool", I32, args)
    with code.if_then(code.icmp_signed("<", equal, 0)):
        code.call_c("PyErr_Clear", VOID, [])
        code.ret(1)
    code.refuse_if(code.icmp_signed("==", equal, 0))


def _check_type(code: EntryCode, process: Value, obj: Value, wanted: int) -> None:
    kind = code.word(code.at(obj, layout.OB_TYPE), 0)
    code.refuse_if(code.is_(kind, "!=", code.word(process, wanted)))


def _read_float(code: EntryCode, process: Value, obj: Value) -> Value:
    _check_type(code, process, obj, layout.P_FLOAT)
    return code.word(code.at(obj, layout.FLOAT_VALUE), 0)


def _read_int(code: EntryCode, process: Value, obj: Value, overflow: Value) -> Value:
    _check_type(code, process, obj, layout.P_INT)
    value = code.call_c("PyLong_AsLongLongAndOverflow", I64, [obj, overflow])
    large = code.load(overflow, typ=I32, align=4)
    code.refuse_if(code.icmp_signed("!=", large, 0))
    return value


def _emit_pairs(module: Any, overlap: Any) -> Any:
    """``i64 pairs(count, records, ranges, slots)``: `overlap` of each two objects."""
    code = EntryCode(module, "pairs", I64, [I64, PTR, PTR, PTR])
    count, records, ranges, slots = code.args
    with code.counted_loop(count, name="left") as outer:
        left = code.element(records, outer.index, layout.RECORD)
        left_range = code.element(ranges, outer.index, 2)
        with code.counted_loop(outer.index, name="right") as inner:
            right = code.element(records, inner.index, layout.RECORD)
            right_range = code.element(ranges, inner.index, 2)
            code.require(overlap, [left, right, left_range, right_range, slots])
    return code.finish()
