"""Emits the functions for calls of launchers, plans and functions of `xetl.ops`.

They use CPython's vectorcall protocol (`xetl.runtime.native_calls`): ``(object,
arguments, count, names of keywords)``. A launcher or a function compares the form of
the call and the settings with earlier calls, orders the arguments after the grid, and
lets the entry check them and run the kernels. If no earlier call matches, it calls the
Python function of its table.
"""

from __future__ import annotations

from typing import Any

from xetl.runtime import native_calls as calls
from xetl_cpu.launch import entry_arrays
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.entry_writing import EntryCode, Word, call_entry
from xetl_cpu.launch.tensor_words import NOTHING, ONLY_RECORDED, P_RECORDS
from xetl_cpu.llvm import I1, I64, PTR

_COUNT = (1 << 63) - 1
"""The mask of a vectorcall's argument count, without the flag."""

_FIND = "PyDict_GetItemWithError"

_FEW = 4
"""The most earlier calls that are tried without a key of the shapes."""


def emit_plan(module: Any) -> None:
    """Emit a plan's function: its objects are those of the call that was bound."""
    code = EntryCode(module, layout.PLAN, PTR, [PTR, PTR, I64, PTR])
    me, objects, count, names = code.args
    table = me.pointer(calls.TABLE // 8)
    code.process, slow = (table.pointer(i) for i in (calls.P_PROCESS, calls.P_SLOW))
    code.refuse_if((count & _COUNT) != 0)
    code.refuse_if(names != 0)
    bound, count_bound = table.at(8 * calls.P_OBJECTS), table[calls.P_COUNT]
    tensors, found = bound.record(count_bound, 1), code.kept(entry_arrays.DL_WORDS)
    with code.loop(table[calls.P_TENSORS]) as loop:
        known = tensors.record(loop.index, 2)
        tensor = bound.pointer(known[0])
        code.refuse_if(~entry_arrays.is_tensor(code, tensor))
        code.refuse_if(entry_arrays.describe(code, tensor, found))
        code.refuse_if(entry_arrays.first_byte(found) != known[1])
    entry = table.pointer(calls.P_ENTRY).at(layout.BYTES_VALUE)
    code.refuse_if(call_entry(code, entry, bound, count_bound) != 0)
    code.give(table.pointer(calls.P_DONE))
    _leave(code, slow, objects, count, names)


def emit_launch(module: Any) -> None:
    """Emit the function of a launcher, or of a function."""
    attempt = _emit_attempt(module)
    code = EntryCode(module, layout.LAUNCH, PTR, [PTR, PTR, I64, PTR])
    me, objects, count, names = code.args
    table = me.pointer(calls.TABLE // 8)
    code.process = table.pointer(calls.L_PROCESS)
    slow = table.pointer(calls.L_SLOW)
    state = _settings(code)
    given = count & _COUNT
    none = code.process.pointer(layout.P_NO_NAMES)
    known = code.choose(names == 0, none, names)
    latest = _latest(table)
    kinds = _words(latest)[0]
    look = kinds > _FEW
    every = given + known[layout.OB_SIZE // 8]
    key = code.call(_emit_key(module), code.process, objects, every, look)
    failed = code.kept(1)
    failed[0] = 0
    with code.loop(kinds) as loop:
        args = table, latest, loop.index, objects, given, known, state, key, failed
        done = code.call(attempt, *args)
        with code.when((done != 0) | (failed[0] != 0)):
            code.ret(done)
    code.builder.branch(code.refused)
    _leave(code, slow, objects, count, names)


def _emit_key(module: Any) -> Any:
    """Emit ``i64 key(process, objects, count, look)``: a key of all arrays' shapes.

    See `xetl.runtime.shortcuts.shapes_key`. The key is 0 if ``look`` is false.
    """
    code = EntryCode(module, "key", I64, [PTR, PTR, I64, I1])
    code.process, objects, count, look = code.args
    with code.when(~look):
        code.ret(0)
    found, kept = code.kept(entry_arrays.DL_WORDS), code.kept(1)
    kept[0] = 0

    def add(word: Word) -> None:
        kept[0] = kept[0] * calls.KEY_FACTOR + word

    def add_shape(rank: Word, shape: Word) -> None:
        rank = rank.sized(I64)
        add(rank + 1)
        with code.loop(rank) as loop:
            add(shape[loop.index])

    with code.loop(count) as loop:
        obj = objects.pointer(loop.index)
        is_array = obj[layout.OB_TYPE // 8] == code.process[layout.P_NDARRAY]
        with code.when_else(is_array) as (of_numpy, other):
            with of_numpy:
                add_shape(obj.half(layout.RANK), obj.pointer(layout.SHAPE // 8))
            with other, code.when(entry_arrays.is_tensor(code, obj)):
                with code.when(entry_arrays.describe(code, obj, found)):
                    code.ret(0)
                shape = found.pointer(entry_arrays.DL_SHAPE // 8)
                add_shape(found.half(entry_arrays.DL_RANK), shape)
    code.ret(kept[0])
    return code.finish()


def _emit_attempt(module: Any) -> Any:
    """``attempt(table, latest, index, objects, given, names, state, key, failed)``.

    It returns the result of the call, or null: then nothing was done, or ``failed`` is
    not 0.
    """
    kinds = [PTR, PTR, I64, PTR, I64, PTR, PTR, I64, PTR]
    code = EntryCode(module, "attempt", PTR, kinds)
    table, latest, index, objects, given, names, state, key, failed = code.args
    # Python code may have replaced these calls by others, and freed them.
    code.refuse_if(latest != _latest(table))
    words = _words(latest)
    code.refuse_if(index >= words[0])
    record = words.at(8).record(index, calls.CALL_WORDS)
    wanted = record[calls.C_KEY]
    code.refuse_if(~((wanted == 0) | (key == 0) | (wanted == key)))
    code.refuse_if(given != record[calls.C_GIVEN])
    known = record.pointer(calls.C_STATE).at(layout.TUPLE_ITEMS)
    for i in range(layout.VARIABLES + 1):
        code.refuse_if(state[i] != known[i])
    code.refuse_if(names[layout.OB_SIZE // 8] != record[calls.C_NAMES])
    code.take(latest)
    args = table, objects, given, names, record, failed
    checked = code.call(_emit_ordered(module), *args)
    code.release(latest)
    code.ret(checked)
    return code.finish(code.word(0, PTR))


def _emit_ordered(module: Any) -> Any:
    """Emit the rest of an attempt, while its record is kept alive."""
    code = EntryCode(module, "ordered", PTR, [PTR, PTR, I64, PTR, PTR, PTR])
    table, objects, given, names, record, failed = code.args
    process = code.process = table.pointer(calls.L_PROCESS)
    _check_unchanged(code, record.pointer(calls.C_UNCHANGED))
    behind = given + 3
    count = behind + record[calls.C_RESTS]
    ordered = code.room(count)
    _copy(code, table.at(8 * calls.L_GRID), code.word(3), ordered)
    _copy(code, objects, given, ordered.at(8 * 3))
    rest = record.pointer(calls.C_REST).at(layout.TUPLE_ITEMS)
    further = ordered.record(behind, 1)
    _copy(code, rest, record[calls.C_RESTS], further)
    known = record.pointer(calls.C_NAMES_AT).at(layout.BYTES_VALUE)
    _put_named(code, names, known, objects.record(given, 1), further)
    entry = record.pointer(calls.C_ENTRY).at(layout.BYTES_VALUE)
    process[P_RECORDS] = NOTHING
    done = call_entry(code, entry, ordered, count)
    with code.when(done == 1):
        recorded = record.pointer(calls.C_RECORDED)
        only = process[P_RECORDS] == ONLY_RECORDED
        code.refuse_if(~(only & (table[calls.L_RECORDS] != 0)))
        code.refuse_if(recorded == 0)
        result = _call(code, recorded, objects, given, names)
        failed[0] = (result == 0).sized(I64)
        code.ret(result)
    with code.when(done != 0):
        code.ret(done)
    code.give(record.pointer(calls.C_DONE))
    return code.finish(code.word(0, PTR))


def _copy(code: EntryCode, source: Word, count: Word, target: Word) -> None:
    with code.loop(count) as loop:
        target[loop.index] = source[loop.index]


def _put_named(
    code: EntryCode, names: Word, known: Word, values: Word, further: Word
) -> None:
    """Put keyword arguments in their places; leave if the keywords differ."""
    with code.loop(names[layout.OB_SIZE // 8]) as loop:
        record = known.record(loop.index, calls.NAME_WORDS)
        name = names.at(layout.TUPLE_ITEMS)[loop.index]
        code.refuse_if(name != record[calls.N_NAME])
        value, place = values[loop.index], record[calls.N_PLACE]
        is_option = place < 0
        code.refuse_if(is_option & (value != record[calls.N_VALUE]))
        with code.when(~is_option):
            further[place] = value


def _check_unchanged(code: EntryCode, question: Word) -> None:
    """Ask whether captured globals are unchanged, if there are any."""
    with code.when(question != 0):
        answer = code.call_c("PyObject_CallNoArgs", PTR, question)
        with code.when(answer == 0):
            code.forget_error()
            code.builder.branch(code.refused)
        code.release(answer)
        code.refuse_if(answer != code.process[layout.P_TRUE])


def _settings(code: EntryCode) -> Word:
    """Return the state of `xetl.settings.launch_state` as an array of objects."""
    process = code.process
    environ = process.pointer(layout.P_ENVIRON)
    code.refuse_if(environ == 0)
    keys, none = (process.pointer(i) for i in (layout.P_VARIABLES, layout.P_NONE))
    found = code.kept(layout.VARIABLES + 1)
    for index in range(layout.VARIABLES):
        value = code.call_c(_FIND, PTR, environ, keys.pointer(index))
        found[index] = code.choose(value == 0, none, value).number
    where = (process.pointer(i) for i in (layout.P_CONFIG, layout.P_ASSIGNED))
    found[layout.VARIABLES] = code.call_c(_FIND, PTR, *where).number
    return found


def _latest(table: Word) -> Word:
    """Return the only item of the list of earlier calls."""
    known = table.pointer(calls.L_LATEST)
    return known.pointer(layout.LIST_ITEMS // 8).pointer(0)


def _words(latest: Word) -> Word:
    return latest.at(layout.TUPLE_ITEMS).pointer(0).at(layout.BYTES_VALUE)


def _leave(code: EntryCode, slow: Word, *call: Word) -> None:
    """Emit the code for refused calls: Python does them."""
    code.builder.position_at_end(code.refused)
    code.ret(_call(code, slow, *call))


def _call(code: EntryCode, function: Word, *call: Word) -> Word:
    return code.call_c("PyObject_Vectorcall", PTR, function, *call)
