"""A function of `entry.py` being written: words of memory, and calls of CPython."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xetl_cpu.launch import fastcall as layout
from xetl_cpu.llvm import I64, PTR, VOID, const, ir, load, store

Builder = Any
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


class EntryCode:
    """A function being written: words of memory, and one way out for refusals."""

    def __init__(
        self, module: Any, name: str, result: Any, params: Sequence[Any]
    ) -> None:
        kind = ir.FunctionType(result, list(params))
        self.function = ir.Function(module, kind, name)
        self.args = self.function.args
        self.builder: Builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.refused = self.function.append_basic_block("refused")

    def at(self, pointer: Value, offset: int | Value) -> Value:
        """``pointer`` moved by bytes."""
        offset = const(I64, offset) if isinstance(offset, int) else offset
        return self.builder.gep(pointer, [offset], source_etype=ir.IntType(8))

    def word(self, pointer: Value, index: int | Value) -> Value:
        """The 64-bit word at ``pointer[index]``."""
        return load(self.builder, self._place(pointer, index), I64, 8)

    def pointer(self, pointer: Value, index: int | Value) -> Value:
        """The word at ``pointer[index]``, as a pointer."""
        return load(self.builder, self._place(pointer, index), PTR, 8)

    def put(self, pointer: Value, index: int | Value, value: Value | int) -> None:
        """Store a word at ``pointer[index]``."""
        word = const(I64, value) if isinstance(value, int) else value
        store(self.builder, word, self._place(pointer, index), 8)

    def _place(self, pointer: Value, index: int | Value) -> Value:
        index = const(I64, index) if isinstance(index, int) else index
        return self.builder.gep(pointer, [index], source_etype=I64)

    def is_(self, left: Value, predicate: str, right: Value | int) -> Value:
        """Compare two signed words."""
        right = const(I64, right) if isinstance(right, int) else right
        return self.builder.icmp_signed(predicate, left, right)

    def refuse_if(self, condition: Value) -> None:
        """Leave through the block ``refused``."""
        onward = self.builder.append_basic_block("onward")
        self.builder.cbranch(condition, self.refused, onward)
        self.builder.position_at_end(onward)

    def refuse_unless(self, condition: Value) -> None:
        """Leave unless ``condition`` holds."""
        self.refuse_if(self.builder.not_(condition))

    def require(self, function: Any, args: Sequence[Value]) -> None:
        """Leave through the block ``refused`` if a function of the module gives 1."""
        wrong = self.builder.call(function, args)
        self.refuse_if(self.is_(wrong, "!=", 0))

    def call(self, address: Value, result: Any, args: Sequence[Value]) -> Value:
        """Call a C function by its address."""
        kind = ir.FunctionType(result, [arg.type for arg in args])
        function = self.builder.inttoptr(address, kind.as_pointer())
        return self.builder.call(function, args)

    def element(self, base: Value, index: Value, words: int) -> Value:
        """The record of so many words at ``base[index]``."""
        return self.at(base, self.builder.mul(index, const(I64, 8 * words)))

    def is_null(self, pointer: Value) -> Value:
        """Whether a pointer is one to nothing."""
        return self.is_(self.builder.ptrtoint(pointer, I64), "==", 0)

    def ret(self, value: int) -> None:
        """Return a constant."""
        self.builder.ret(const(I64, value))

    def release(self, process: Value, obj: Value) -> None:
        """Give up a reference."""
        self.call(self.word(process, layout.P_DECREF), VOID, [obj])

    def give(self, process: Value, obj: Value) -> None:
        """Return a new reference."""
        self.call(self.word(process, layout.P_INCREF), VOID, [obj])
        self.builder.ret(obj)

    def finish(self, *, is_internal: bool = True) -> Any:
        """End with 0, refusals with 1."""
        self.ret(0)
        self.builder.position_at_end(self.refused)
        self.ret(1)
        if is_internal:
            self.function.linkage = "internal"
        return self.function


def call_entry(code: EntryCode, table: Value, objects: Value, count: Value) -> Value:
    """Call what a table says: 0, 1 for a refusal, or the address of a new reference."""
    run = code.word(table, layout.T_RUN)
    return code.call(run, I64, [table, objects, count])
