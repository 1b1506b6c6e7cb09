"""Emission of atomic operations on one element a lane.

One instruction where every device has it: integers of 32 and 64 bits, sums of f32 in
memory of the device, exchanges of both. Else the word that holds the element is read,
combined and swapped until nobody comes in between; that word has 4 bytes at least,
since no device swaps fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from xetl.codegen.arith import narrow, widen
from xetl.codegen.emitter import constant
from xetl.codegen.llvm import ll
from xetl.codegen.types import (
    F32,
    F64,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    is_narrow_float,
)
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.reduction_kinds import ON_INTEGERS
from xetl_xegpu import simt
from xetl_xegpu.emit.combining import combine
from xetl_xegpu.emit.emitter import KernelEmitter, Table
from xetl_xegpu.emit.ending import allowed
from xetl_xegpu.emit.memory import always, pointer


def _atomic(em: KernelEmitter, op: simt.AtomicOp) -> None:
    b = em.builder
    value, mask = em.get(op.value), allowed(em, em.get(op.mask))
    if always(mask):
        em.set(op.result, _update(em, op, value))
        return
    before = b.block
    with b.if_then(mask):
        old = _update(em, op, value)
        inside = b.block
    result = b.phi(value.type)
    result.add_incoming(ll.Constant(value.type, _zero(value.type)), before)
    result.add_incoming(old, inside)
    em.set(op.result, result)


def _zero(type_: Any) -> float:
    return 0 if isinstance(type_, ll.IntType) else 0.0


def _instruction(kind: str) -> str | None:
    """LLVM's name, which there is not for products."""
    if kind in ("assign", "mul"):
        return "xchg" if kind == "assign" else None
    return ON_INTEGERS[kind].instruction


def _update(em: KernelEmitter, op: simt.AtomicOp, value: Any) -> Any:
    """Do it and give the old value."""
    kind, type_ = op.kind.data, value.type
    if kind == "assign" and type_ in (F32, F64):
        return _exchange(em, op, value)
    name = _instruction(kind) if _is_word(op.value.type) else None
    if kind == "add" and type_ == F32 and not op.is_local:
        name = "fadd"
    address = em.get(op.address)
    if name is not None:
        at = pointer(em, address, op.is_local)
        return em.builder.atomic_rmw(name, at, value, "monotonic")
    if em.device.emulated and not op.is_local and type_ != I1:
        return _called(em, op, address, value)
    return _swapped(em, op, address, value)


def _called(em: KernelEmitter, op: simt.AtomicOp, address: Any, value: Any) -> Any:
    """As `_swapped`, by a function for each kind and type.

    OpenCL's driver for CPUs takes a tenth of a second to build each loop.
    """
    name = f"xetl_atomic_{op.kind.data}_{op.value.type}"
    function = em.module.globals.get(name)
    if function is None:
        signature = ll.FunctionType(value.type, [I64, value.type])
        function = ll.Function(em.module, signature, name)
        function.calling_convention = "spir_func"
        function.attributes.add("nounwind")
        function.attributes.add("noinline")
        kernel = em.builder
        em.builder = ll.IRBuilder(function.append_basic_block("entry"))
        em.builder.ret(_swapped(em, op, *function.args))
        em.builder = kernel
    return em.builder.call(function, [address, value], cconv="spir_func")


def _swapped(em: KernelEmitter, op: simt.AtomicOp, address: Any, value: Any) -> Any:
    """Read, combine and swap the word until nobody comes in between."""
    kind, type_ = op.kind.data, value.type

    def change(old: Any) -> Any:
        return _combined(em, op.value.type, kind, old, value)

    if type_ in (F64, I64):
        return _swap(em, op, address, _Whole(em, type_, I64), change)
    if type_ in (F32, I32):
        return _swap(em, op, address, _Whole(em, type_, I32), change)
    start = em.builder.and_(address, constant(~3))
    return _swap(em, op, start, _Part(em, type_, address), change)


def _exchange(em: KernelEmitter, op: simt.AtomicOp, value: Any) -> Any:
    """Bits are exchanged, whatever they mean."""
    bits = I32 if value.type == F32 else I64
    at = pointer(em, em.get(op.address), op.is_local)
    word = em.builder.bitcast(value, bits)
    old = em.builder.atomic_rmw("xchg", at, word, "monotonic")
    return em.builder.bitcast(old, value.type)


def _is_word(type_: Attribute) -> bool:
    """Whether devices have instructions for such integers."""
    return isinstance(type_, IndexType) or integer_width(type_) in (32, 64)


def _combined(
    em: KernelEmitter, type_: Attribute, kind: str, old: Any, value: Any
) -> Any:
    if kind == "assign":
        return value
    if not is_narrow_float(type_):
        return combine(em, kind, old, value)
    result = combine(em, kind, widen(em, old), widen(em, value))
    return narrow(em, result, type_)


@dataclass(frozen=True)
class _Whole:
    """A word that is the element."""

    em: KernelEmitter
    type: Any
    word: Any

    def read(self, word: Any) -> Any:
        """The element in a word."""
        return self.em.builder.bitcast(word, self.type)

    def write(self, word: Any, element: Any) -> Any:
        """The word with another element."""
        return self.em.builder.bitcast(element, self.word)


@dataclass(frozen=True)
class _Part:
    """A word of 4 bytes of which the element is one or two."""

    em: KernelEmitter
    type: Any
    address: Any
    word: Any = I32

    def _shift(self) -> Any:
        """Bits below the element: of little-endian bytes."""
        b = self.em.builder
        byte = b.and_(b.trunc(self.address, I32), I32(3))
        return b.shl(byte, I32(3))

    def _bits(self) -> Any:
        """The element as it is in memory."""
        return {I1: I8, HALF: I16}.get(self.type, self.type)

    def read(self, word: Any) -> Any:
        """The element in a word."""
        b = self.em.builder
        bits = b.trunc(b.lshr(word, self._shift()), self._bits())
        if self.type == I1:
            return b.icmp_signed("!=", bits, I8(0))
        return b.bitcast(bits, self.type)

    def write(self, word: Any, element: Any) -> Any:
        """The word with another element."""
        b, bits = self.em.builder, self._bits()
        if self.type == I1:
            element = b.zext(element, I8)
        placed = b.shl(b.zext(b.bitcast(element, bits), I32), self._shift())
        hole = b.shl(I32((1 << bits.width) - 1), self._shift())
        return b.or_(b.and_(word, b.not_(hole)), placed)


def _swap(
    em: KernelEmitter,
    op: simt.AtomicOp,
    address: Any,
    form: _Whole | _Part,
    change: Callable[[Any], Any],
) -> Any:
    """Swap the word until nobody came in between; gives the old element."""
    b = em.builder
    at = pointer(em, address, op.is_local)
    first = b.load(at, typ=form.word, align=form.word.width // 8)
    before = b.block
    again, done = (b.append_basic_block(name) for name in ("swap", "swapped"))
    b.branch(again)
    b.position_at_end(again)
    expected = b.phi(form.word)
    expected.add_incoming(first, before)
    old = form.read(expected)
    new = form.write(expected, change(old))
    swapped = b.cmpxchg(at, expected, new, "monotonic", "monotonic")
    expected.add_incoming(b.extract_value(swapped, 0), b.block)
    b.cbranch(b.extract_value(swapped, 1), done, again)
    b.position_at_end(done)
    return old


TABLE: Table = {simt.AtomicOp: _atomic}
