"""Emits what answers calls of launchers, plans and functions of `xetl.ops`.

They are called as CPython's vectorcall has it (`xetl.runtime.native_calls`):
``(object, arguments, count, names of keywords)``. A launcher or a function looks at the
form of the call and at the settings, puts the arguments in order behind the grid, and
lets the entry check them and run what is to be run; what no earlier call was like is
left to the Python function of its table.
"""

from __future__ import annotations

from typing import Any

from xetl.runtime import native_calls as calls
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_tensors import (
    DL_RANK,
    DL_SHAPE,
    DL_WORDS,
    describe,
    first_byte,
    is_tensor,
)
from xetl_cpu.launch.entry_writing import EntryCode, call_entry
from xetl_cpu.launch.tensor_words import NOTHING, ONLY_RECORDED, P_RECORDS
from xetl_cpu.llvm import I1, I32, I64, PTR, VOID, const

Value = Any

_COUNT = (1 << 63) - 1
"""Of a vectorcall's number of arguments: without the flag."""

_FIND = "PyDict_GetItemWithError"

_FEW = 4
"""Earlier calls that are tried without a look at the shapes of this one."""


def emit_plan(module: Any) -> None:
    """A plan: its objects are those of the call that was bound."""
    code = EntryCode(module, layout.PLAN, PTR, [PTR, PTR, I64, PTR])
    me, objects, count, names = code.args
    table = code.pointer(me, calls.TABLE // 8)
    process, slow = (code.pointer(table, i) for i in (calls.P_PROCESS, calls.P_SLOW))
    code.refuse_if(code.is_(code.and_(count, _COUNT), "!=", 0))
    code.refuse_unless(code.is_null(names))
    bound = code.at(table, 8 * calls.P_OBJECTS)
    count_bound = code.word(table, calls.P_COUNT)
    tensors = code.element(bound, count_bound, 1)
    found = code.stack_array(I64, DL_WORDS)
    with code.counted_loop(code.word(table, calls.P_TENSORS)) as loop:
        known = code.element(tensors, loop.index, 2)
        tensor = code.pointer(bound, code.word(known, 0))
        code.refuse_unless(is_tensor(code, process, tensor))
        code.refuse_if(describe(code, process, tensor, found))
        code.refuse_if(code.is_(first_byte(code, found), "!=", code.word(known, 1)))
    entry = code.at(code.pointer(table, calls.P_ENTRY), layout.BYTES_VALUE)
    wrong = call_entry(code, entry, bound, count_bound)
    code.refuse_if(code.is_(wrong, "!=", 0))
    code.give(code.pointer(table, calls.P_DONE))
    _leave(code, slow, (objects, count, names))


def emit_launch(module: Any) -> None:
    """A launcher, or a function."""
    attempt = _emit_attempt(module)
    code = EntryCode(module, layout.LAUNCH, PTR, [PTR, PTR, I64, PTR])
    me, objects, count, names = code.args
    table = code.pointer(me, calls.TABLE // 8)
    process = code.pointer(table, calls.L_PROCESS)
    slow = code.pointer(table, calls.L_SLOW)
    state = _settings(code, process)
    given = code.and_(count, _COUNT)
    none = code.pointer(process, layout.P_NO_NAMES)
    known = code.select(code.is_null(names), none, names)
    latest = _latest(code, table)
    kinds = code.word(_words(code, latest), 0)
    look = code.is_(kinds, ">", _FEW)
    every = code.add(given, code.word(known, layout.OB_SIZE // 8))
    key = code.call(_emit_key(module), [process, objects, every, look])
    failed = code.alloca(I64)
    code.put(failed, 0, 0)
    with code.counted_loop(kinds, name="call") as loop:
        args = [table, latest, loop.index, objects, given, known, state, key, failed]
        done = code.call(attempt, args)
        has_failed = code.is_(code.word(failed, 0), "!=", 0)
        with code.if_then(code.or_(code.not_(code.is_null(done)), has_failed)):
            code.ret(done)
        loop.next = []
    code.branch(code.refused)
    _leave(code, slow, (objects, count, names))


def _emit_key(module: Any) -> Any:
    """``i64 key(process, objects, count, look)``: of the shapes of all arrays.

    See `xetl.runtime.shortcuts.shapes_key`; 0 if nobody is to look.
    """
    code = EntryCode(module, "key", I64, [PTR, PTR, I64, I1])
    process, objects, count, look = code.args
    with code.if_then(code.not_(look)):
        code.ret(0)
    found = code.stack_array(I64, DL_WORDS)
    kept = code.alloca(I64)
    code.store(const(I64, 0), kept, 8)

    def add(word: Value) -> None:
        key = code.mul(code.load(kept, typ=I64, align=8), calls.KEY_FACTOR)
        code.store(code.add(key, word), kept, 8)

    def add_shape(rank: Value, shape: Value) -> None:
        add(code.add(rank, 1))
        with code.counted_loop(rank, name="extent") as loop:
            add(code.word(shape, loop.index))

    with code.counted_loop(count, name="object") as loop:
        obj = code.pointer(objects, loop.index)
        kind = code.word(obj, layout.OB_TYPE // 8)
        is_array = code.is_(kind, "==", code.word(process, layout.P_NDARRAY))
        with code.if_else(is_array) as (of_numpy, other):
            with of_numpy:
                rank = code.load(code.at(obj, layout.RANK), typ=I32, align=4)
                shape = code.pointer(obj, layout.SHAPE // 8)
                add_shape(code.sext(rank, I64), shape)
            with other, code.if_then(is_tensor(code, process, obj)):
                failed = describe(code, process, obj, found)
                with code.if_then(failed):
                    code.ret(0)
                rank = code.load(code.at(found, DL_RANK), typ=I32, align=4)
                shape = code.pointer(found, DL_SHAPE // 8)
                add_shape(code.sext(rank, I64), shape)
    code.ret(code.load(kept, typ=I64, align=8))
    code.function.linkage = "internal"
    code.position_at_end(code.refused)
    code.unreachable()
    return code.function


def _emit_attempt(module: Any) -> Any:
    """``attempt(table, latest, index, objects, given, names, state, key, failed)``.

    What the call gives, or null: nothing was done, or ``failed`` is not 0.
    """
    kinds = [PTR, PTR, I64, PTR, I64, PTR, PTR, I64, PTR]
    code = EntryCode(module, "attempt", PTR, kinds)
    table, latest, index, objects, given, names, state, key, failed = code.args
    # Python code may have put other calls in place of these, and freed them.
    code.refuse_if(code.icmp_unsigned("!=", latest, _latest(code, table)))
    words = _words(code, latest)
    code.refuse_if(code.is_(index, ">=", code.word(words, 0)))
    record = code.element(code.at(words, 8), index, calls.CALL_WORDS)
    wanted = code.word(record, calls.C_KEY)
    any_key = code.or_(code.is_(wanted, "==", 0), code.is_(key, "==", 0))
    code.refuse_unless(code.or_(any_key, code.is_(wanted, "==", key)))
    code.refuse_if(code.is_(given, "!=", code.word(record, calls.C_GIVEN)))
    wanted = code.at(code.pointer(record, calls.C_STATE), layout.TUPLE_ITEMS)
    for i in range(layout.VARIABLES + 1):
        code.refuse_if(code.is_(code.word(state, i), "!=", code.word(wanted, i)))
    named = code.word(names, layout.OB_SIZE // 8)
    code.refuse_if(code.is_(named, "!=", code.word(record, calls.C_NAMES)))
    code.take(latest)
    args = [table, objects, given, names, record, failed]
    checked = code.call(_emit_ordered(module), args)
    code.release(latest)
    code.ret(checked)
    code.position_at_end(code.refused)
    code.ret(code.inttoptr(const(I64, 0), PTR))
    code.function.linkage = "internal"
    return code.function


def _emit_ordered(module: Any) -> Any:
    """The rest of an attempt, while its record cannot be freed."""
    code = EntryCode(module, "ordered", PTR, [PTR, PTR, I64, PTR, PTR, PTR])
    table, objects, given, names, record, failed = code.args
    process = code.pointer(table, calls.L_PROCESS)
    _check_unchanged(code, process, code.pointer(record, calls.C_UNCHANGED))
    behind = code.add(given, 3)
    count = code.add(behind, code.word(record, calls.C_RESTS))
    ordered = code.alloca(I64, size=count)
    _copy(code, code.at(table, 8 * calls.L_GRID), const(I64, 3), ordered)
    _copy(code, objects, given, code.at(ordered, 8 * 3))
    rest = code.at(code.pointer(record, calls.C_REST), layout.TUPLE_ITEMS)
    further = code.element(ordered, behind, 1)
    _copy(code, rest, code.word(record, calls.C_RESTS), further)
    known = code.at(code.pointer(record, calls.C_NAMES_AT), layout.BYTES_VALUE)
    _put_named(code, names, known, code.element(objects, given, 1), further)
    entry = code.at(code.pointer(record, calls.C_ENTRY), layout.BYTES_VALUE)
    code.put(process, P_RECORDS, NOTHING)
    done = call_entry(code, entry, ordered, count)
    with code.if_then(code.is_(done, "==", 1)):
        recorded = code.pointer(record, calls.C_RECORDED)
        only = code.is_(code.word(process, P_RECORDS), "==", ONLY_RECORDED)
        may_record = code.is_(code.word(table, calls.L_RECORDS), "!=", 0)
        code.refuse_unless(code.and_(only, may_record))
        code.refuse_if(code.is_null(recorded))
        result = _call(code, recorded, (objects, given, names))
        code.put(failed, 0, code.zext(code.is_null(result), I64))
        code.ret(result)
    with code.if_then(code.is_(done, "!=", 0)):
        code.ret(code.inttoptr(done, PTR))
    code.give(code.pointer(record, calls.C_DONE))
    code.position_at_end(code.refused)
    code.ret(code.inttoptr(const(I64, 0), PTR))
    code.function.linkage = "internal"
    return code.function


def _copy(code: EntryCode, source: Value, count: Value, target: Value) -> None:
    with code.counted_loop(count, name="copy") as loop:
        code.put(target, loop.index, code.word(source, loop.index))
        loop.next = []


def _put_named(
    code: EntryCode, names: Value, known: Value, values: Value, further: Value
) -> None:
    """Put arguments by keyword in their places; leaves if these are other keywords."""
    count = code.word(names, layout.OB_SIZE // 8)
    with code.counted_loop(count, name="named") as loop:
        record = code.element(known, loop.index, calls.NAME_WORDS)
        name = code.word(code.at(names, layout.TUPLE_ITEMS), loop.index)
        code.refuse_if(code.is_(name, "!=", code.word(record, calls.N_NAME)))
        value, place = code.word(values, loop.index), code.word(record, calls.N_PLACE)
        is_option = code.is_(place, "<", 0)
        differs = code.is_(value, "!=", code.word(record, calls.N_VALUE))
        code.refuse_if(code.and_(is_option, differs))
        with code.if_then(code.not_(is_option)):
            code.put(further, place, value)
        loop.next = []


def _check_unchanged(code: EntryCode, process: Value, question: Value) -> None:
    """Ask whether captured globals are what they were, if there are any."""
    with code.if_then(code.not_(code.is_null(question))):
        answer = code.call_c("PyObject_CallNoArgs", PTR, [question])
        with code.if_then(code.is_null(answer)):
            code.call_c("PyErr_Clear", VOID, [])
            code.branch(code.refused)
        code.release(answer)
        address = code.ptrtoint(answer, I64)
        code.refuse_if(code.is_(address, "!=", code.word(process, layout.P_TRUE)))


def _settings(code: EntryCode, process: Value) -> Value:
    """What `xetl.settings.launch_state` has, as an array of objects."""
    environ = code.pointer(process, layout.P_ENVIRON)
    code.refuse_if(code.is_null(environ))
    keys = code.pointer(process, layout.P_VARIABLES)
    none = code.pointer(process, layout.P_NONE)
    found = code.stack_array(I64, layout.VARIABLES + 1)
    for index in range(layout.VARIABLES):
        value = code.call_c(_FIND, PTR, [environ, code.pointer(keys, index)])
        value = code.select(code.is_null(value), none, value)
        code.put(found, index, code.ptrtoint(value, I64))
    config = code.pointer(process, layout.P_CONFIG)
    name = code.pointer(process, layout.P_ASSIGNED)
    assigned = code.call_c(_FIND, PTR, [config, name])
    code.put(found, layout.VARIABLES, code.ptrtoint(assigned, I64))
    return found


def _latest(code: EntryCode, table: Value) -> Value:
    """The one item of the list of earlier calls."""
    known = code.pointer(table, calls.L_LATEST)
    return code.pointer(code.pointer(known, layout.LIST_ITEMS // 8), 0)


def _words(code: EntryCode, latest: Value) -> Value:
    records = code.pointer(code.at(latest, layout.TUPLE_ITEMS), 0)
    return code.at(records, layout.BYTES_VALUE)


def _leave(code: EntryCode, slow: Value, call: Any) -> None:
    """Where calls are refused: let Python do it."""
    code.position_at_end(code.refused)
    code.ret(_call(code, slow, call))


def _call(code: EntryCode, function: Value, call: Any) -> Value:
    return code.call_c("PyObject_Vectorcall", PTR, [function, *call])
