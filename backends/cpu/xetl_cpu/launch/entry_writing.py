"""Writes a function of `entry.py`: words of memory, and calls of CPython.

Also emits how the entry runs a kernel: threads, memory, and Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Any, NamedTuple

from xetl.codegen.types import declare
from xetl.records import record
from xetl_cpu import launch as slot
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.llvm import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Type,
    Value,
    as_word,
    ir,
)


def _operator(name: str) -> Callable[[Word, Word | int], Word]:
    """Return an operator that writes one of LLVM's instructions."""

    def write(self: Word, other: Word | int) -> Word:
        instruction = getattr(self.code.builder, name)
        return Word(self.code, instruction(self.value, bare(other)))

    return write


def _comparison(sign: str) -> Callable[[Word, Any], Word]:
    """Return an operator that compares two numbers or addresses."""

    def write(self: Word, other: Any) -> Word:
        right = other.number if isinstance(other, Word) else other
        compare = self.code.builder.icmp_signed
        return Word(self.code, compare(sign, self.number.value, bare(right)))

    return write


class Word:
    """A number or an address in a function; operators on it write instructions.

    Numbers are signed.  For an address, ``w[i]`` is the i-th word of 64 bits there.
    """

    __slots__ = ("code", "value")

    def __init__(self, code: EntryCode, value: Value) -> None:
        self.code, self.value = code, value

    __add__ = _operator("add")
    __sub__ = _operator("sub")
    __mul__ = _operator("mul")
    __floordiv__ = _operator("sdiv")
    __mod__ = _operator("srem")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("ashr")
    __and__ = _operator("and_")
    __or__ = _operator("or_")

    __lt__ = _comparison("<")
    __le__ = _comparison("<=")
    __gt__ = _comparison(">")
    __ge__ = _comparison(">=")

    # As with NumPy's arrays, a comparison does not return a bool.
    def __eq__(self, other: object) -> Word:  # type: ignore[override]
        return _comparison("==")(self, other)

    def __ne__(self, other: object) -> Word:  # type: ignore[override]
        return _comparison("!=")(self, other)

    def __invert__(self) -> Word:
        return Word(self.code, self.code.builder.not_(self.value))

    @property
    def number(self) -> Word:
        """An address as a number; a number as it is."""
        if self.value.type != PTR:
            return self
        return Word(self.code, self.code.builder.ptrtoint(self.value, I64))

    def exceeds(self, other: Word | int) -> Word:
        """Whether it is larger, both as unsigned numbers: negative ones are large."""
        write = self.code.builder.icmp_unsigned
        return Word(self.code, write(">", self.value, bare(other)))

    def sized(self, type_: Type) -> Word:
        """Return the number in another size."""
        builder = self.code.builder
        wider = builder.zext if self.value.type == I1 else builder.sext
        write = wider if type_ == I64 else builder.trunc
        return Word(self.code, write(self.value, type_))

    def as_f64(self) -> Word:
        """Return the bits of an f64 that has the value of this f32."""
        builder = self.code.builder
        wide = builder.fpext(builder.bitcast(self.value, F32), F64)
        return Word(self.code, builder.bitcast(wide, I64))

    def at(self, offset: Word | int) -> Word:
        """Return the address ``offset`` bytes further."""
        builder = self.code.builder
        return Word(self.code, builder.gep(self.value, [bare(offset)], source_etype=I8))

    def record(self, index: Word, words: int) -> Word:
        """Return the address of record ``index``, if records have ``words`` words."""
        return self.at(index * (8 * words))

    def __getitem__(self, index: Word | int) -> Word:
        return self._loaded(index, I64)

    def pointer(self, index: Word | int) -> Word:
        """Load a word as an address."""
        return self._loaded(index, PTR)

    def _loaded(self, index: Word | int, type_: Type) -> Word:
        builder = self.code.builder
        place = builder.word_at(self.value, bare(index))
        return Word(self.code, builder.load(place, typ=type_, align=8))

    def half(self, offset: int) -> Word:
        """Load the 32 bits at ``offset`` bytes from an address."""
        place = self.at(offset).value
        return Word(self.code, self.code.builder.load(place, typ=I32, align=4))

    def __setitem__(self, index: Word | int, value: Word | int) -> None:
        builder = self.code.builder
        place = builder.word_at(self.value, bare(index))
        builder.store(as_word(bare(value)), place, 8)


def bare(word: Word | int) -> Any:
    """Return the LLVM value of a word; return an int as it is."""
    return word if isinstance(word, int) else word.value


@record()
class EntryLoop:
    """A loop: its counter, and the words it carries in this and the next iteration."""

    index: Word
    values: list[Word]
    next: list[Word] = field(default_factory=list[Word])
    results: list[Word] = field(default_factory=list[Word])


class EntryParts(NamedTuple):
    """Functions that builtins call; each returns 0, or 1 for the slow path.

    Attributes:
        read: ``(object, record, process, slots, range, held)``, checks an argument.
        pairs: ``(count, records, ranges, slots)``, refuses arrays that overlap.
        call: ``(kernel, process, slots, short)``, runs a kernel.
    """

    read: Any
    pairs: Any
    call: Any


class EntryCode:
    """A function being written; all refusals leave through one block."""

    process: Word
    """The words that all kernels share, once the function has set their address."""

    def __init__(
        self, module: Any, name: str, result: Any, params: Sequence[Any]
    ) -> None:
        self.function = ir.Function(module, ir.FunctionType(result, list(params)), name)
        self.builder = Builder(self.function.append_basic_block("entry"))
        self.args = [Word(self, each) for each in self.function.args]
        self.refused = self.function.append_basic_block("refused")

    def word(self, number: int, type_: Type = I64) -> Word:
        """Return a constant; 0 as an address is null."""
        made = None if type_ == PTR else number
        return Word(self, ir.Constant(type_, made))

    def room(self, count: Word) -> Word:
        """Allocate words on the stack, each time this code runs."""
        place = self.builder.alloca(I64, size=count.value)
        place.type = PTR  # llvmlite still says which words
        return Word(self, place)

    def kept(self, count: int) -> Word:
        """Allocate words on the stack once for the whole function."""
        return Word(self, self.builder.stack_words(count))

    def choose(self, condition: Word, one: Word | int, other: Word | int) -> Word:
        """Return one word or another."""
        chosen = self.builder.select(condition.value, bare(one), bare(other))
        return Word(self, chosen)

    def when(self, condition: Word) -> AbstractContextManager[Any]:
        """Run code written inside if a condition holds."""
        return self.builder.if_then(condition.value)

    def when_else(self, condition: Word) -> AbstractContextManager[Any]:
        """Write the two sides of a branch."""
        return self.builder.if_else(condition.value)

    @contextmanager
    def loop(self, count: Word, *carried: Word) -> Generator[EntryLoop]:
        """Write a loop of ``count`` iterations, which carry words."""
        values = [each.value for each in carried]
        with self.builder.counted_loop(count.value, carried=values) as inner:
            words = [Word(self, each) for each in inner.values]
            loop = EntryLoop(Word(self, inner.index), words)
            yield loop
            inner.next = [each.value for each in loop.next]
        loop.results = [Word(self, each) for each in inner.results]

    def refuse_if(self, condition: Word) -> None:
        """Leave through the block ``refused`` if a condition holds."""
        onward = self.builder.append_basic_block("onward")
        self.builder.cbranch(condition.value, self.refused, onward)
        self.builder.position_at_end(onward)

    def require(self, function: Any, *args: Word | int) -> None:
        """Leave through the block ``refused`` if a function of the module returns 1."""
        self.refuse_if(self.call(function, *args) != 0)

    def call(self, function: Any, *args: Word | int) -> Word:
        """Call a function of the module."""
        return Word(self, self.builder.call(function, [as_word(bare(a)) for a in args]))

    def call_c(self, name: str, result: Type, *args: Word) -> Word:
        """Call a C function, or one of CPython, which the loader finds by its name."""
        types = [each.value.type for each in args]
        return self.call(declare(self.function.module, name, result, types), *args)

    def call_at(self, address: Word, result: Type, *args: Word) -> Word:
        """Call a C function by its address."""
        kind = ir.FunctionType(result, [each.value.type for each in args])
        place = self.builder.inttoptr(address.value, kind.as_pointer())
        return self.call(place, *args)

    def checked(self, answer: Word) -> Word:
        """Return 1 if the answer is null, after clearing the exception."""
        with self.when(answer == 0):
            self.forget_error()
            self.builder.ret(1)
        return answer

    def forget_error(self) -> None:
        """Clear the current exception."""
        self.call_c("PyErr_Clear", VOID)

    def take(self, obj: Word) -> None:
        """Take a reference."""
        self.call_c("Py_IncRef", VOID, obj)

    def release(self, obj: Word) -> None:
        """Give up a reference."""
        self.call_c("Py_DecRef", VOID, obj)

    def give(self, obj: Word) -> None:
        """Return a new reference."""
        self.take(obj)
        self.ret(obj)

    def ret(self, value: Word | int) -> None:
        """Return a value."""
        self.builder.ret(bare(value))

    def finish(self, refused: Word | int = 1, *, is_internal: bool = True) -> Any:
        """Return 0 from the open block, and ``refused`` from refusals."""
        if not self.builder.block.is_terminated:
            self.ret(0)
        self.builder.position_at_end(self.refused)
        self.ret(refused)
        if is_internal:
            self.function.linkage = "internal"
        return self.function


def call_entry(code: EntryCode, table: Word, objects: Word, count: Word) -> Word:
    """Call the function of a table; return 0, 1 for a refusal, or a new reference."""
    return code.call_at(table[layout.T_RUN], PTR, table, objects, count)


def emit_call(module: Any) -> Any:
    """Emit ``i64 call(kernel, process, slots, short)``: set up the slots and run it.

    It sets threads and workspace. The slot of packed memory is kept if it is set. Up to
    ``short`` programs run with Python's lock held.
    """
    code = EntryCode(module, "call", I64, [I64, PTR, PTR, I64])
    kernel, process, slots, short = code.args
    limit = process[layout.P_LIMIT]
    code.refuse_if(limit == 0)
    is_long = ~_is_short(code, slots, short)
    team = code.kept(1)
    team[0] = 1
    with code.when(is_long):
        team[0] = _threads(code, process, limit)
    threads = team[0]
    slots[slot.POOL] = code.choose(threads <= 1, 0, process[layout.P_POOL])
    slots[slot.THREADS] = threads
    slots[slot.WORKSPACE] = 0
    slots[slot.WORKSPACE_BYTES] = 0
    key = process[layout.P_KEY].sized(I32)
    pair = code.call_c("pthread_getspecific", PTR, key)
    with code.when(pair != 0):
        slots[slot.WORKSPACE] = pair[0]
        slots[slot.WORKSPACE_BYTES] = pair[1]
        own = slots[slot.PACKED]
        slots[slot.PACKED] = code.choose(own == 0, pair[2], own)
    result = code.kept(1)
    with code.when_else(is_long) as (unlocked, locked):
        with unlocked:
            _count(process, 1)
            state = code.call_at(process[layout.P_SAVE_THREAD], PTR)
            result[0] = code.call_at(kernel, I64, slots)
            code.call_at(process[layout.P_RESTORE_THREAD], VOID, state)
            _count(process, -1)
        with locked:
            result[0] = code.call_at(kernel, I64, slots)
    code.refuse_if(result[0] != 0)
    return code.finish()


def _is_short(code: EntryCode, slots: Word, short: Word) -> Word:
    """Whether there are at most ``short`` programs; ``short`` cannot overflow."""
    found, programs = code.word(0, I1), code.word(1)
    for axis in range(3):
        size = slots[slot.GRID + axis]
        programs = programs * size
        found = found | size.exceeds(short) | programs.exceeds(short)
    return ~found


def _count(process: Word, step: int) -> None:
    """Count a launch; Python's lock is held, so no other thread counts."""
    launches = process.pointer(layout.P_FAST_LAUNCHES)
    launches[0] = launches[0] + step


def _threads(code: EntryCode, process: Word, limit: Word) -> Word:
    """Return the threads of a launch, as `launch.threads.ThreadLayer.team` does."""
    result = code.kept(1)
    result[0] = limit
    asked = process[layout.P_ASKED]
    with code.when(asked != 0):
        _lower(code, result, code.call_at(asked, I32).sized(I64))
    openmp = process[layout.P_OPENMP]
    with code.when(openmp != 0):
        set_ = code.call_at(openmp, I32).sized(I64)
        with code.when(~((set_ == process[layout.P_USUAL]) | (set_ == limit))):
            _lower(code, result, set_)
    slow = process.pointer(layout.P_SLOW_LAUNCHES)[0]
    others = slow + process.pointer(layout.P_FAST_LAUNCHES)[0]
    with code.when(others > 0):
        share = result[0] // (others + 1)
        result[0] = code.choose(share < 1, 1, share)
    return result[0]


def _lower(code: EntryCode, place: Word, limit: Word) -> None:
    """Make the number at ``place`` no larger than ``limit``, if that is positive."""
    count = place[0]
    place[0] = code.choose((limit > 0) & (limit < count), limit, count)
