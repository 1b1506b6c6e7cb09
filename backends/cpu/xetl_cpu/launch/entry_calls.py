"""Emits what answers calls of launchers and plans (`xetl.runtime.native_calls`).

Both are called as CPython's vectorcall has it: ``(object, arguments, count, names of
keywords)``. A launcher looks at the form of the call and at the settings, puts the
arguments in order behind the grid, and lets the entry check them and run the kernel;
what no earlier call was like is left to the Python function of its table.
"""

from __future__ import annotations

from typing import Any

from xetl.runtime import native_calls as calls
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_writing import EntryCode
from xetl_cpu.llvm import I64, PTR, VOID, const, counted_loop

Value = Any

_COUNT = (1 << 63) - 1
"""Of a vectorcall's number of arguments: without the flag."""


def emit_plan(module: Any, run: Any) -> None:
    """A plan: its objects are those of the call that was bound."""
    code = EntryCode(module, layout.PLAN, PTR, [PTR, PTR, I64, PTR])
    me, objects, count, names = code.args
    table = code.pointer(me, calls.TABLE // 8)
    process, slow = (code.pointer(table, i) for i in (calls.P_PROCESS, calls.P_SLOW))
    code.refuse_if(code.is_(code.builder.and_(count, const(I64, _COUNT)), "!=", 0))
    code.refuse_unless(code.is_null(names))
    bound = code.at(table, 8 * calls.P_OBJECTS)
    entry = code.at(code.pointer(table, calls.P_ENTRY), layout.BYTES_VALUE)
    wrong = code.builder.call(run, [entry, bound, code.word(table, calls.P_COUNT)])
    code.refuse_if(code.is_(wrong, "!=", 0))
    _give(code, process, code.pointer(table, calls.P_DONE))
    _leave(code, process, slow, (objects, count, names))


def emit_launch(module: Any, run: Any) -> None:
    """A launcher."""
    attempt = _emit_attempt(module, run)
    code = EntryCode(module, layout.LAUNCH, PTR, [PTR, PTR, I64, PTR])
    builder = code.builder
    me, objects, count, names = code.args
    table = code.pointer(me, calls.TABLE // 8)
    process = code.pointer(table, calls.L_PROCESS)
    slow = code.pointer(table, calls.L_SLOW)
    state = _settings(code, process)
    given = builder.and_(count, const(I64, _COUNT))
    none = code.pointer(process, layout.P_NO_NAMES)
    known = builder.select(code.is_null(names), none, names)
    latest = _latest(code, table)
    with counted_loop(builder, code.word(_words(code, latest), 0), name="call") as loop:
        args = [table, latest, loop.index, objects, given, known, state]
        done = builder.call(attempt, args)
        with builder.if_then(builder.not_(code.is_null(done))):
            _give(code, process, done)
        loop.next = []
    builder.branch(code.refused)
    _leave(code, process, slow, (objects, count, names))


def _emit_attempt(module: Any, run: Any) -> Any:
    """``object attempt(table, latest, index, objects, given, names, state)``.

    What the launch gives, or null: nothing was done.
    """
    code = EntryCode(module, "attempt", PTR, [PTR, PTR, I64, PTR, I64, PTR, PTR])
    builder = code.builder
    table, latest, index, _, given, names, state = code.args
    process = code.pointer(table, calls.L_PROCESS)
    # Python code may have put other calls in place of these, and freed them.
    code.refuse_if(builder.icmp_unsigned("!=", latest, _latest(code, table)))
    words = _words(code, latest)
    code.refuse_if(code.is_(index, ">=", code.word(words, 0)))
    record = code.element(code.at(words, 8), index, calls.CALL_WORDS)
    code.refuse_if(code.is_(given, "!=", code.word(record, calls.C_GIVEN)))
    wanted = code.pointer(record, calls.C_STATE)
    code.refuse_if(builder.icmp_unsigned("!=", state, wanted))
    named = code.word(names, layout.OB_SIZE // 8)
    code.refuse_if(code.is_(named, "!=", code.word(record, calls.C_NAMES)))
    code.call(code.word(process, layout.P_INCREF), VOID, [latest])
    checked = builder.call(_emit_ordered(module, run), [*code.args, record])
    code.call(code.word(process, layout.P_DECREF), VOID, [latest])
    builder.ret(checked)
    builder.position_at_end(code.refused)
    builder.ret(builder.inttoptr(const(I64, 0), PTR))
    code.function.linkage = "internal"
    return code.function


def _emit_ordered(module: Any, run: Any) -> Any:
    """The rest of an attempt, while its record cannot be freed."""
    kinds = [PTR, PTR, I64, PTR, I64, PTR, PTR, PTR]
    code = EntryCode(module, "ordered", PTR, kinds)
    builder = code.builder
    table, latest, _, objects, given, names, _, record = code.args
    process = code.pointer(table, calls.L_PROCESS)
    _check_unchanged(code, process, code.pointer(record, calls.C_UNCHANGED))
    behind = builder.add(given, const(I64, 3))
    count = builder.add(behind, code.word(record, calls.C_RESTS))
    ordered = builder.alloca(I64, size=count)
    _copy(code, code.at(table, 8 * calls.L_GRID), const(I64, 3), ordered)
    _copy(code, objects, given, code.at(ordered, 8 * 3))
    rest = code.at(code.pointer(record, calls.C_REST), layout.TUPLE_ITEMS)
    further = code.element(ordered, behind, 1)
    _copy(code, rest, code.word(record, calls.C_RESTS), further)
    known = code.element(_words(code, latest), code.word(record, calls.C_NAMES_AT), 1)
    _put_named(code, names, known, code.element(objects, given, 1), further)
    entry = code.at(code.pointer(record, calls.C_ENTRY), layout.BYTES_VALUE)
    wrong = builder.call(run, [entry, ordered, count])
    code.refuse_if(code.is_(wrong, "!=", 0))
    builder.ret(code.pointer(record, calls.C_DONE))
    builder.position_at_end(code.refused)
    builder.ret(builder.inttoptr(const(I64, 0), PTR))
    code.function.linkage = "internal"
    return code.function


def _copy(code: EntryCode, source: Value, count: Value, target: Value) -> None:
    with counted_loop(code.builder, count, name="copy") as loop:
        code.put(target, loop.index, code.word(source, loop.index))
        loop.next = []


def _put_named(
    code: EntryCode, names: Value, known: Value, values: Value, further: Value
) -> None:
    """Put arguments by keyword in their places; leaves if these are other keywords."""
    builder = code.builder
    count = code.word(names, layout.OB_SIZE // 8)
    with counted_loop(builder, count, name="named") as loop:
        record = code.element(known, loop.index, calls.NAME_WORDS)
        name = code.word(code.at(names, layout.TUPLE_ITEMS), loop.index)
        code.refuse_if(code.is_(name, "!=", code.word(record, calls.N_NAME)))
        value, place = code.word(values, loop.index), code.word(record, calls.N_PLACE)
        is_option = code.is_(place, "<", 0)
        differs = code.is_(value, "!=", code.word(record, calls.N_VALUE))
        code.refuse_if(builder.and_(is_option, differs))
        with builder.if_then(builder.not_(is_option)):
            code.put(further, place, value)
        loop.next = []


def _check_unchanged(code: EntryCode, process: Value, question: Value) -> None:
    """Ask whether captured globals are what they were, if there are any."""
    builder = code.builder
    with builder.if_then(builder.not_(code.is_null(question))):
        call = code.word(process, layout.P_CALL_NONE)
        answer = code.call(call, PTR, [question])
        with builder.if_then(code.is_null(answer)):
            code.call(code.word(process, layout.P_CLEAR_ERROR), VOID, [])
            builder.branch(code.refused)
        code.call(code.word(process, layout.P_DECREF), VOID, [answer])
        address = builder.ptrtoint(answer, I64)
        code.refuse_if(code.is_(address, "!=", code.word(process, layout.P_TRUE)))


def _settings(code: EntryCode, process: Value) -> Value:
    """The dictionary of assigned settings; leaves if a variable might say otherwise."""
    find = code.word(process, layout.P_FIND)
    environ = code.pointer(process, layout.P_ENVIRON)
    code.refuse_if(code.is_null(environ))
    keys = code.pointer(process, layout.P_VARIABLES)
    for index in range(layout.VARIABLES):
        found = code.call(find, PTR, [environ, code.pointer(keys, index)])
        code.refuse_unless(code.is_null(found))
    config = code.pointer(process, layout.P_CONFIG)
    return code.call(find, PTR, [config, code.pointer(process, layout.P_ASSIGNED)])


def _latest(code: EntryCode, table: Value) -> Value:
    """The one item of the list of earlier calls."""
    known = code.pointer(table, calls.L_LATEST)
    return code.pointer(code.pointer(known, layout.LIST_ITEMS // 8), 0)


def _words(code: EntryCode, latest: Value) -> Value:
    records = code.pointer(code.at(latest, layout.TUPLE_ITEMS), 0)
    return code.at(records, layout.BYTES_VALUE)


def _give(code: EntryCode, process: Value, answer: Value) -> None:
    code.call(code.word(process, layout.P_INCREF), VOID, [answer])
    code.builder.ret(answer)


def _leave(code: EntryCode, process: Value, slow: Value, call: Any) -> None:
    """Where calls are refused: let Python do it."""
    code.builder.position_at_end(code.refused)
    vectorcall = code.word(process, layout.P_VECTORCALL)
    code.builder.ret(code.call(vectorcall, PTR, [slow, *call]))
