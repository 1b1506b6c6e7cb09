"""Emission of loads, stores and atomics of one element a lane, and of cache hints.

An atomic is one instruction where every device has it: integers of 32 and 64 bits, sums
of f32 in memory of the device, exchanges of both. Else the word that holds the element
is read, combined and swapped until nobody comes in between; that word has 4 bytes at
least, since no device swaps fewer.

What a message asks of the caches is decorations of its pointer. LLVM takes them from
the metadata `spirv.Decorations` of the instruction that makes the pointer. Between a
pointer made of a number and a call it puts a cast, past which Intel's compiler does not
look: a call gets a place counted from null instead (ocloc 26.27). Source of the
numbers: SPV_INTEL_cache_controls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue

from xetl.codegen.arith import narrow, widen
from xetl.codegen.emitter import constant, is_constant
from xetl.codegen.types import (
    F32,
    F64,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    Type,
    Value,
    byte_width,
    is_narrow_float,
    ll,
    memory_type,
)
from xetl.dialects.base import integer_width
from xetl.dialects.reduction_kinds import ON_INTEGERS
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import shared_check
from xetl_xegpu.emit.emitter import GLOBAL, KernelEmitter, Table, combine
from xetl_xegpu.emit.workgroup import allowed
from xetl_xegpu.limits import Hints, Kind, legal_hints
from xetl_xegpu.simt.memory_ops import AccessOp

METADATA = "spirv.Decorations"
_DECORATIONS: dict[Kind, int] = {"load": 6442, "store": 6443}
_WORDS: dict[Kind, tuple[str, ...]] = {
    "load": ("uncached", "cached", "streaming", "read_invalidate"),
    "store": ("uncached", "write_through", "write_back", "streaming"),
}
"""Their places are the numbers."""

EXTENSION = "SPV_INTEL_cache_controls"


def pointer_for_call(
    em: KernelEmitter, address: Value, kind: Kind, hints: Hints | None
) -> Value:
    """A pointer to global memory that a builtin is given."""
    if hints is None:
        return em.builder.inttoptr(address, GLOBAL)
    place = em.builder.gep(ll.Constant(GLOBAL, None), [address], source_etype=I8)
    return hinted(em, place, kind, hints)


def hinted(em: KernelEmitter, pointer: Value, kind: Kind, hints: Hints | None) -> Value:
    """The instruction that makes a pointer, and what its accesses ask of the caches.

    Raises:
        InternalError: the device has no such message.
    """
    if hints is None:
        return pointer
    if hints not in legal_hints(em.device.name, kind):
        raise InternalError(f"`{em.device.name}` has no {kind} that is {hints}")
    parts = [
        em.module.add_metadata(
            [I32(_DECORATIONS[kind]), I32(level), I32(_WORDS[kind].index(word))]
        )
        for level, word in enumerate(hints)
    ]
    assert isinstance(pointer, ll.Instruction)
    pointer.set_metadata(METADATA, em.module.add_metadata(parts))
    return pointer


def problem_with_decorations(instruction: ll.Instruction) -> str | None:
    """What LLVM, or Intel's compiler, would not see of an instruction's decorations.

    LLVM writes any numbers into a module, and ends the process over other operands.
    """
    found: Any = instruction.metadata.get(METADATA)
    if found is None:
        return None
    if instruction.opname not in ("inttoptr", "getelementptr"):
        return f"a `{instruction.opname}` makes no pointer that can be decorated"
    if any(isinstance(each, ll.Constant) for each in instruction.operands[1:]):
        return "LLVM drops a place at a constant distance, and its decorations"
    said = [_numbers(each) for each in found.operands]
    kinds = {numbers[0] for numbers in said if numbers is not None}
    levels = [numbers[1] for numbers in said if numbers is not None]
    if None in said or len(kinds) != 1 or len(set(levels)) != len(levels):
        return "a pointer asks each cache for one thing"
    return None


def _numbers(decoration: Any) -> tuple[int, int] | None:
    """Decoration and level, if they and the word are known ones."""
    values = [getattr(each, "constant", None) for each in decoration.operands]
    for kind, number in _DECORATIONS.items():
        for level, word in product((0, 1), range(len(_WORDS[kind]))):
            if values == [number, level, word]:
                return number, level
    return None


def pointer(em: KernelEmitter, op: AccessOp, address: Value) -> Value:
    """A pointer to an address of memory of the device, or of the workgroup."""
    if not op.is_local:
        return em.builder.inttoptr(address, GLOBAL)
    if em.slm is None:
        raise InternalError("a kernel without local memory accesses it")
    if op in em.log_ids:
        size = byte_width(op.element)
        last = I64(em.slm_bytes - size)
        told = em.status_words(), I32(em.log_ids[op])
        address = em.call(shared_check(size), [address, last, *told])
    return em.builder.gep(em.slm, [address], source_etype=I8)


def always(mask: Value) -> bool:
    """Whether the mask is known to be set."""
    return is_constant(mask, 1)


def _load(em: KernelEmitter, op: simt.LoadOp) -> None:
    """Lanes that are masked read what is always there: no branch is needed."""
    b = em.builder
    address, mask, fill = em.all([op.address, op.mask, op.fill])
    mask = allowed(em, mask)
    if not always(mask):
        address = b.select(mask, address, _safe_address(em, op.is_local))
    element = op.result.type
    at = hinted(em, pointer(em, op, address), "load", op.hints)
    value = b.load(at, typ=memory_type(element), align=byte_width(element))
    if fill.type == I1:
        value = b.icmp_signed("!=", value, I8(0))
    em.set(op.result, value if always(mask) else b.select(mask, value, fill))


def _safe_address(em: KernelEmitter, is_local: bool) -> Value:
    """8 bytes that may be read at any time."""
    if is_local:
        return constant(0)
    return em.status_words()


def _store(em: KernelEmitter, op: simt.StoreOp) -> None:
    b = em.builder
    value, address, mask = em.all([op.value, op.address, op.mask])
    mask = allowed(em, mask)
    if value.type == I1:
        value = b.zext(value, I8)

    def store() -> None:
        at = hinted(em, pointer(em, op, address), "store", op.hints)
        b.store(value, at, align=byte_width(op.value.type))

    if always(mask):
        store()
        return
    with b.if_then(mask):
        store()


def _local_base(em: KernelEmitter, op: simt.LocalBaseOp) -> None:
    em.set(op.result, constant(op.offset.value.data))


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


def _zero(type_: Type) -> float:
    return 0 if isinstance(type_, ll.IntType) else 0.0


def _instruction(kind: str) -> str | None:
    """LLVM's name, which there is not for products."""
    if kind in ("assign", "mul"):
        return "xchg" if kind == "assign" else None
    return ON_INTEGERS[kind].instruction


def _update(em: KernelEmitter, op: simt.AtomicOp, value: Value) -> Value:
    """Do it and give the old value."""
    kind, type_ = op.kind.data, value.type
    if op.expected is not None:
        return _compared(em, op, op.expected, value)
    if kind == "assign" and type_ in (F32, F64):
        return _exchange(em, op, value)
    name = _instruction(kind) if _is_word(op.value.type) else None
    if kind == "add" and type_ == F32 and not op.is_local:
        name = "fadd"
    address = em.get(op.address)
    if name is not None:
        at = pointer(em, op, address)
        return em.builder.atomic_rmw(name, at, value, "monotonic")
    if em.device.emulated and not op.is_local and type_ != I1:
        return _called(em, op, address, value)
    return _swapped(em, op, address, value)


def _called(
    em: KernelEmitter, op: simt.AtomicOp, address: Value, value: Value
) -> Value:
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


def _swapped(
    em: KernelEmitter, op: simt.AtomicOp, address: Value, value: Value
) -> Value:
    """Read, combine and swap the word until nobody comes in between."""
    kind, type_ = op.kind.data, value.type

    def change(old: Value) -> Value:
        return _combined(em, op.value.type, kind, old, value)

    if type_ in (F64, I64):
        return _swap(em, op, address, _Whole(em, type_, I64), change)
    if type_ in (F32, I32):
        return _swap(em, op, address, _Whole(em, type_, I32), change)
    start = em.builder.and_(address, constant(~3))
    return _swap(em, op, start, _Part(em, type_, address), change)


def _exchange(em: KernelEmitter, op: simt.AtomicOp, value: Value) -> Value:
    """Bits are exchanged, whatever they mean."""
    bits = I32 if value.type == F32 else I64
    at = pointer(em, op, em.get(op.address))
    word = em.builder.bitcast(value, bits)
    old = em.builder.atomic_rmw("xchg", at, word, "monotonic")
    return em.builder.bitcast(old, value.type)


def _compared(
    em: KernelEmitter, op: simt.AtomicOp, expected: SSAValue, value: Value
) -> Value:
    """Exchange where memory has the bits of ``expected``."""
    b, type_ = em.builder, value.type
    bits = I32 if type_ in (F32, I32) else I64
    at = pointer(em, op, em.get(op.address))
    wanted, new = (b.bitcast(each, bits) for each in (em.get(expected), value))
    found = b.cmpxchg(at, wanted, new, "monotonic", "monotonic")
    return b.bitcast(b.extract_value(found, 0), type_)


def _is_word(type_: Attribute) -> bool:
    """Whether devices have instructions for such integers."""
    return isinstance(type_, IndexType) or integer_width(type_) in (32, 64)


def _combined(
    em: KernelEmitter, type_: Attribute, kind: str, old: Value, value: Value
) -> Value:
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
    type: Type
    word: Type

    def read(self, word: Value) -> Value:
        """The element in a word."""
        return self.em.builder.bitcast(word, self.type)

    def write(self, word: Value, element: Value) -> Value:
        """The word with another element."""
        return self.em.builder.bitcast(element, self.word)


@dataclass(frozen=True)
class _Part:
    """A word of 4 bytes of which the element is one or two."""

    em: KernelEmitter
    type: Type
    address: Value
    word: Type = I32

    def _shift(self) -> Value:
        """Bits below the element: of little-endian bytes."""
        b = self.em.builder
        byte = b.and_(b.trunc(self.address, I32), I32(3))
        return b.shl(byte, I32(3))

    def _bits(self) -> Type:
        """The element as it is in memory."""
        narrow: dict[Type, Type] = {I1: I8, HALF: I16}
        return narrow.get(self.type, self.type)

    def read(self, word: Value) -> Value:
        """The element in a word."""
        b = self.em.builder
        bits = b.trunc(b.lshr(word, self._shift()), self._bits())
        if self.type == I1:
            return b.icmp_signed("!=", bits, I8(0))
        return b.bitcast(bits, self.type)

    def write(self, word: Value, element: Value) -> Value:
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
    address: Value,
    form: _Whole | _Part,
    change: Callable[[Value], Value],
) -> Value:
    """Swap the word until nobody came in between; gives the old element."""
    b = em.builder
    at = pointer(em, op, address)
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


TABLE: Table = {
    simt.LoadOp: _load,
    simt.StoreOp: _store,
    simt.LocalBaseOp: _local_base,
    simt.AtomicOp: _atomic,
}
