"""A function of `entry.py` being written: words of memory, and calls of CPython."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.llvm import I8, I64, PTR, VOID, Builder, as_word, ir

Value = Any


class EntryParts(NamedTuple):
    """Functions that builtins are made of; each gives 0, or 1: use the slow path.

    Attributes:
        read: ``(object, record, process, slots, range)``, checks an argument.
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

    def release(self, process: Value, obj: Value) -> None:
        """Give up a reference."""
        self.call_at(self.word(process, layout.P_DECREF), VOID, [obj])

    def give(self, process: Value, obj: Value) -> None:
        """Return a new reference."""
        self.call_at(self.word(process, layout.P_INCREF), VOID, [obj])
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
