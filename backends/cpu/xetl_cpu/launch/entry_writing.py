"""A function of `entry.py` being written: words of memory, and calls of CPython.

At the end, how the entry runs a kernel: threads, memory, and whose lock is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xetl.codegen.types import declare
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.slots import (
    GRID,
    PACKED,
    POOL,
    THREADS,
    WORKSPACE,
    WORKSPACE_BYTES,
)
from xetl_cpu.llvm import I1, I8, I32, I64, PTR, VOID, Builder, as_word, const, ir

Value = Any


class EntryParts(NamedTuple):
    """Functions that builtins are made of; each gives 0, or 1: use the slow path.

    Attributes:
        read: ``(object, record, process, slots, range, held)``, checks an argument.
        pairs: ``(count, records, ranges, slots)``, refuses arrays that overlap.
        call: ``(kernel, process, slots, short)``, runs a kernel.
    """

    read: Any
    pairs: Any
    call: Any


class EntryCode(Builder):
    """A function being written: words of memory, and one way out for refusals."""

    def __init__(
        self, module: Any, name: str, result: Any, params: Sequence[Any]
    ) -> None:
        kind = ir.FunctionType(result, list(params))
        function = ir.Function(module, kind, name)
        self.args = function.args
        super().__init__(function.append_basic_block("entry"))
        self.refused = function.append_basic_block("refused")

    def at(self, pointer: Value, offset: int | Value) -> Value:
        """``pointer`` moved by bytes."""
        return self.gep(pointer, [offset], source_etype=I8)

    def word(self, pointer: Value, index: int | Value) -> Value:
        """The 64-bit word at ``pointer[index]``."""
        return self.load(self.word_at(pointer, index), typ=I64, align=8)

    def pointer(self, pointer: Value, index: int | Value) -> Value:
        """The word at ``pointer[index]``, as a pointer."""
        return self.load(self.word_at(pointer, index), typ=PTR, align=8)

    def put(self, pointer: Value, index: int | Value, value: Value | int) -> None:
        """Store a word at ``pointer[index]``."""
        self.store(as_word(value), self.word_at(pointer, index), 8)

    def is_(self, left: Value, predicate: str, right: Value | int) -> Value:
        """Compare two signed words."""
        return self.icmp_signed(predicate, left, right)

    def refuse_if(self, condition: Value) -> None:
        """Leave through the block ``refused``."""
        onward = self.append_basic_block("onward")
        self.cbranch(condition, self.refused, onward)
        self.position_at_end(onward)

    def refuse_unless(self, condition: Value) -> None:
        """Leave unless ``condition`` holds."""
        self.refuse_if(self.not_(condition))

    def require(self, function: Any, args: Sequence[Value]) -> None:
        """Leave through the block ``refused`` if a function of the module gives 1."""
        wrong = self.call(function, args)
        self.refuse_if(self.is_(wrong, "!=", 0))

    def call_c(self, name: str, result: Any, args: Sequence[Value]) -> Value:
        """Call a function of C, or of CPython, which loading looks up by its name."""
        params = [arg.type for arg in args]
        return self.call(declare(self.module, name, result, params), args)

    def call_at(self, address: Value, result: Any, args: Sequence[Value]) -> Value:
        """Call a C function by its address."""
        kind = ir.FunctionType(result, [arg.type for arg in args])
        function = self.inttoptr(address, kind.as_pointer())
        return self.call(function, args)

    def element(self, base: Value, index: Value, words: int) -> Value:
        """The record of so many words at ``base[index]``."""
        return self.at(base, self.mul(index, 8 * words))

    def is_null(self, pointer: Value) -> Value:
        """Whether a pointer is one to nothing."""
        return self.is_(self.ptrtoint(pointer, I64), "==", 0)

    def take(self, obj: Value) -> None:
        """Make one reference more."""
        self.call_c("Py_IncRef", VOID, [obj])

    def release(self, obj: Value) -> None:
        """Give up a reference."""
        self.call_c("Py_DecRef", VOID, [obj])

    def give(self, obj: Value) -> None:
        """Return a new reference."""
        self.take(obj)
        self.ret(obj)

    def finish(self, *, is_internal: bool = True) -> Any:
        """End with 0, refusals with 1."""
        self.ret(0)
        self.position_at_end(self.refused)
        self.ret(1)
        if is_internal:
            self.function.linkage = "internal"
        return self.function


def call_entry(code: EntryCode, table: Value, objects: Value, count: Value) -> Value:
    """Call what a table says: 0, 1 for a refusal, or the address of a new reference."""
    run = code.word(table, layout.T_RUN)
    return code.call_at(run, I64, [table, objects, count])


def emit_call(module: Any) -> Any:
    """``i64 call(kernel, process, slots, short)``: slots of threads and workspace, run.

    That of packed memory is left alone if it says that there is some. Up to ``short``
    programs run with Python's lock held.
    """
    code = EntryCode(module, "call", I64, [I64, PTR, PTR, I64])
    kernel, process, slots, short = code.args
    limit = code.word(process, layout.P_LIMIT)
    code.refuse_if(code.is_(limit, "==", 0))
    is_long = code.not_(_is_short(code, slots, short))
    team = _new_word(code, 1)
    with code.if_then(is_long):
        code.store(_threads(code, process, limit), team, 8)
    threads = code.load(team, typ=I64, align=8)
    serial = code.is_(threads, "<=", 1)
    pool = code.word(process, layout.P_POOL)
    code.put(slots, POOL, code.select(serial, 0, pool))
    code.put(slots, THREADS, threads)
    code.put(slots, WORKSPACE, 0)
    code.put(slots, WORKSPACE_BYTES, 0)
    key = code.trunc(code.word(process, layout.P_KEY), I32)
    pair = code.call_c("pthread_getspecific", PTR, [key])
    has_workspace = code.is_(code.ptrtoint(pair, I64), "!=", 0)
    with code.if_then(has_workspace):
        code.put(slots, WORKSPACE, code.word(pair, 0))
        code.put(slots, WORKSPACE_BYTES, code.word(pair, 1))
        own = code.word(slots, PACKED)
        is_none = code.is_(own, "==", 0)
        code.put(slots, PACKED, code.select(is_none, code.word(pair, 2), own))
    result = _new_word(code, 0)
    with code.if_else(is_long) as (unlocked, locked):
        with unlocked:
            _count(code, process, 1)
            state = code.call_at(code.word(process, layout.P_SAVE_THREAD), PTR, [])
            code.store(code.call_at(kernel, I64, [slots]), result, 8)
            code.call_at(code.word(process, layout.P_RESTORE_THREAD), VOID, [state])
            _count(code, process, -1)
        with locked:
            code.store(code.call_at(kernel, I64, [slots]), result, 8)
    code.refuse_if(code.is_(code.load(result, typ=I64, align=8), "!=", 0))
    return code.finish()


def _is_short(code: EntryCode, slots: Value, short: Value) -> Value:
    """Whether there are no more programs than that; it is far less than a word."""
    found, programs = const(I1, 1), const(I64, 1)
    for axis in range(3):
        size = code.word(slots, GRID + axis)
        programs = code.mul(programs, size)
        for count in (size, programs):
            few = code.icmp_unsigned("<=", count, short)
            found = code.and_(found, few)
    return found


def _new_word(code: EntryCode, value: int) -> Value:
    """Where a word can be kept."""
    with code.goto_entry_block():
        place = code.alloca(I64)
    code.store(const(I64, value), place, 8)
    return place


def _count(code: EntryCode, process: Value, step: int) -> None:
    """One launch more or less: Python's lock is held, so nobody else counts."""
    launches = code.pointer(process, layout.P_FAST_LAUNCHES)
    code.put(launches, 0, code.add(code.word(launches, 0), step))


def _threads(code: EntryCode, process: Value, limit: Value) -> Value:
    """As `launch.threads.ThreadLayer.team`: what may be used, and what is free."""
    result = _new_word(code, 0)
    code.store(limit, result, 8)
    asked = code.word(process, layout.P_ASKED)
    with code.if_then(code.is_(asked, "!=", 0)):
        _lower(code, result, code.sext(code.call_at(asked, I32, []), I64))
    openmp = code.word(process, layout.P_OPENMP)
    with code.if_then(code.is_(openmp, "!=", 0)):
        set_ = code.sext(code.call_at(openmp, I32, []), I64)
        usual = code.is_(set_, "==", code.word(process, layout.P_USUAL))
        is_set = code.not_(code.or_(usual, code.is_(set_, "==", limit)))
        with code.if_then(is_set):
            _lower(code, result, set_)
    slow = code.word(code.pointer(process, layout.P_SLOW_LAUNCHES), 0)
    launches = code.pointer(process, layout.P_FAST_LAUNCHES)
    others = code.add(slow, code.word(launches, 0))
    with code.if_then(code.is_(others, ">", 0)):
        teams = code.add(others, 1)
        share = code.sdiv(code.load(result, typ=I64, align=8), teams)
        none = code.is_(share, "<", 1)
        code.store(code.select(none, 1, share), result, 8)
    return code.load(result, typ=I64, align=8)


def _lower(code: EntryCode, place: Value, limit: Value) -> None:
    """Make the number at ``place`` no larger than ``limit``, if that is positive."""
    count = code.load(place, typ=I64, align=8)
    fewer = code.and_(code.is_(limit, ">", 0), code.is_(limit, "<", count))
    code.store(code.select(fewer, limit, count), place, 8)
