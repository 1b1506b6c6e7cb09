"""Emission of loads, stores and atomics of one element a lane, and of cache hints.

An atomic is one instruction if every device has it: for integers of 32 and 64 bits,
sums of f32 in memory of the device, exchanges of both. Other atomics are loops of
compare-and-exchange on the word of the element. The word has at least 4 bytes, because
devices cannot swap fewer.

Cache hints are decorations of a pointer. LLVM takes them from the metadata
`spirv.Decorations` of the instruction that makes the pointer. If that is an inttoptr,
LLVM puts a cast between it and a call, and Intel's compiler does not look past it. So a
call gets an offset from the null pointer (ocloc 26.27). Source of the numbers:
SPV_INTEL_cache_controls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from xdsl.ir import SSAValue

from xetl.codegen import types
from xetl.codegen.arith import in_f32
from xetl.codegen.emitter import EmitTable, constant, is_constant
from xetl.codegen.memref import instruction_of
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import shared_check
from xetl_xegpu.emit.emitter import GLOBAL, KernelEmitter, chosen, combine, new_function
from xetl_xegpu.emit.workgroup import allowed
from xetl_xegpu.limits import Hints, Kind, legal_hints
from xetl_xegpu.simt.memory_ops import AccessOp

_RELAXED = ("monotonic", "monotonic")
"""The order of memory if an exchange succeeds, and if it fails."""

METADATA = "spirv.Decorations"
_DECORATIONS: dict[Kind, int] = {"load": 6442, "store": 6443}
_WORDS: dict[Kind, tuple[str, ...]] = {
    "load": ("uncached", "cached", "streaming", "read_invalidate"),
    "store": ("uncached", "write_through", "write_back", "streaming"),
}
"""Words by decoration; their positions are the numbers of SPIR-V."""

EXTENSION = "SPV_INTEL_cache_controls"


def pointer_for_call(
    em: KernelEmitter, address: types.Value, kind: Kind, hints: Hints | None
) -> types.Value:
    """Return a pointer to global memory as an argument of a builtin, with its hints."""
    if hints is None:
        return em.builder.inttoptr(address, GLOBAL)
    place = em.builder.gep(
        types.ll.Constant(GLOBAL, None), [address], source_etype=types.I8
    )
    return hinted(em, place, kind, hints)


def hinted(
    em: KernelEmitter, pointer: types.Value, kind: Kind, hints: Hints | None
) -> types.Value:
    """Add cache hints to the instruction that makes a pointer; return the pointer.

    Raises:
        InternalError: the device has no such message.
    """
    if hints is None:
        return pointer
    if hints not in legal_hints(em.device.name, kind):
        raise InternalError(f"`{em.device.name}` has no {kind} that is {hints}")
    numbers = [
        (_DECORATIONS[kind], level, _WORDS[kind].index(word))
        for level, word in enumerate(hints)
    ]
    parts = [em.module.add_metadata([*map(types.I32, each)]) for each in numbers]
    assert isinstance(pointer, types.ll.Instruction)
    pointer.set_metadata(METADATA, em.module.add_metadata(parts))
    return pointer


def problem_with_decorations(instruction: types.ll.Instruction) -> str | None:
    """Return why LLVM or Intel's compiler would ignore decorations. None: they do not.

    LLVM writes any numbers into a module, and ends the process on other operands.
    """
    found: Any = instruction.metadata.get(METADATA)
    if found is None:
        return None
    if instruction.opname not in ("inttoptr", "getelementptr"):
        return f"a `{instruction.opname}` makes no pointer that can be decorated"
    if any(isinstance(each, types.ll.Constant) for each in instruction.operands[1:]):
        return "LLVM drops a place at a constant distance, and its decorations"
    said = [_numbers(each) for each in found.operands]
    kinds = {numbers[0] for numbers in said if numbers is not None}
    levels = [numbers[1] for numbers in said if numbers is not None]
    if None in said or len(kinds) != 1 or len(set(levels)) != len(levels):
        return "a pointer asks each cache for one thing"
    return None


def _numbers(decoration: Any) -> tuple[int, int] | None:
    """Return decoration and level. Return None if they, or the word, are unknown."""
    values = [getattr(each, "constant", None) for each in decoration.operands]
    for kind, number in _DECORATIONS.items():
        for level, word in product((0, 1), range(len(_WORDS[kind]))):
            if values == [number, level, word]:
                return number, level
    return None


def pointer(em: KernelEmitter, op: AccessOp, address: types.Value) -> types.Value:
    """Return a pointer to an address in memory of the device or of the workgroup."""
    if not op.is_local:
        return em.builder.inttoptr(address, GLOBAL)
    if em.slm is None:
        raise InternalError("a kernel without local memory accesses it")
    if op in em.log_ids:
        size = types.byte_width(op.element)
        last = types.I64(em.slm_bytes - size)
        told = em.status_words(), types.I32(em.log_ids[op])
        address = em.call(shared_check(size), [address, last, *told])
    return em.builder.gep(em.slm, [address], source_etype=types.I8)


def always(mask: types.Value) -> bool:
    """Whether the mask is the constant true."""
    return is_constant(mask, 1)


def where(em: KernelEmitter, mask: types.Value) -> AbstractContextManager[object]:
    """Emit what follows for the lanes of a mask, without a branch if it is true."""
    return nullcontext() if always(mask) else em.builder.if_then(mask)


def as_bool(b: types.Builder, number: types.Value) -> types.Value:
    """Return whether an integer is not 0."""
    return b.icmp_signed("!=", number, number.type(0))


def _load(em: KernelEmitter, op: simt.LoadOp) -> None:
    """Emit a load without a branch: masked lanes read memory that always exists."""
    b = em.builder
    address, mask, fill = em.all([op.address, op.mask, op.fill])
    mask = allowed(em, mask)
    if not always(mask):
        readable = constant(0) if op.is_local else em.status_words()
        address = b.select(mask, address, readable)
    element = op.result.type
    at = hinted(em, pointer(em, op, address), "load", op.hints)
    value = b.load(at, typ=types.memory_type(element), align=types.byte_width(element))
    if fill.type == types.I1:
        value = as_bool(b, value)
    em.set(op.result, value if always(mask) else b.select(mask, value, fill))


def _store(em: KernelEmitter, op: simt.StoreOp) -> None:
    b = em.builder
    value, address, mask = em.all([op.value, op.address, op.mask])
    mask = allowed(em, mask)
    if value.type == types.I1:
        value = b.zext(value, types.I8)
    with where(em, mask):
        at = hinted(em, pointer(em, op, address), "store", op.hints)
        b.store(value, at, align=types.byte_width(op.value.type))


def _atomic(em: KernelEmitter, op: simt.AtomicOp) -> types.Value:
    value, mask = em.get(op.value), allowed(em, em.get(op.mask))
    update = partial(_update, em, op, value)
    zero = types.repeated(value.type, 0)
    return update() if always(mask) else chosen(em.builder, mask, update, zero)


def _update(em: KernelEmitter, op: simt.AtomicOp, value: types.Value) -> types.Value:
    """Emit the atomic and return the old value."""
    kind, type_ = op.kind.data, value.type
    if op.expected is not None:
        return _compared(em, op, op.expected, value)
    if kind == "assign" and type_ in (types.F32, types.F64):
        return _exchange(em, op, value)
    has_one = kind != "mul" and type_ in (types.I32, types.I64)
    name = instruction_of(kind) if has_one else None
    if kind == "add" and type_ == types.F32 and not op.is_local:
        name = "fadd"
    address = em.get(op.address)
    if name is not None:
        at = pointer(em, op, address)
        return em.builder.atomic_rmw(name, at, value, "monotonic")
    if em.device.emulated and not op.is_local and type_ != types.I1:
        return _called(em, op, address, value)
    return _swapped(em, op, address, value)


def _called(
    em: KernelEmitter, op: simt.AtomicOp, address: types.Value, value: types.Value
) -> types.Value:
    """Do the same as `_swapped` by a function, one for each kind and type.

    OpenCL's driver for CPUs takes a tenth of a second to build each loop.
    """
    name = f"xetl_atomic_{op.kind.data}_{op.value.type}"
    function = em.module.globals.get(name)
    if function is None:
        signature = types.ll.FunctionType(value.type, [types.I64, value.type])
        function = new_function(em.module, name, signature, "noinline")
        kernel = em.builder
        em.builder = types.ll.IRBuilder(function.append_basic_block("entry"))
        em.builder.ret(_swapped(em, op, *function.args))
        em.builder = kernel
    return em.builder.call(function, [address, value], cconv="spir_func")


def _swapped(
    em: KernelEmitter, op: simt.AtomicOp, address: types.Value, value: types.Value
) -> types.Value:
    """Emit a loop of compare-and-exchange on the word of the element.

    Returns:
        The old element.
    """
    b, compute = em.builder, partial(combine, em, op.kind.data)
    if value.type in _WORD_OF:
        form = _whole(b, value.type)
    else:
        form = _part(b, value.type, address)
        address = b.and_(address, constant(~3))
    at = pointer(em, op, address)
    first = b.load(at, typ=form.word, align=form.word.width // 8)
    before = b.block
    again, done = (b.append_basic_block(name) for name in ("swap", "swapped"))
    b.branch(again)
    b.position_at_end(again)
    expected = b.phi(form.word)
    expected.add_incoming(first, before)
    old, new = form.read(expected), value
    if op.kind.data != "assign":
        new = in_f32(em, op.value.type, compute, old, value)
    swapped = b.cmpxchg(at, expected, form.write(expected, new), *_RELAXED)
    expected.add_incoming(b.extract_value(swapped, 0), b.block)
    b.cbranch(b.extract_value(swapped, 1), done, again)
    b.position_at_end(done)
    return old


def _exchange(em: KernelEmitter, op: simt.AtomicOp, value: types.Value) -> types.Value:
    """Exchange a float as an integer of the same bits."""
    at = pointer(em, op, em.get(op.address))
    word = em.builder.bitcast(value, _WORD_OF[value.type])
    old = em.builder.atomic_rmw("xchg", at, word, "monotonic")
    return em.builder.bitcast(old, value.type)


def _compared(
    em: KernelEmitter, op: simt.AtomicOp, expected: SSAValue, value: types.Value
) -> types.Value:
    """Exchange the element if memory has the bits of ``expected``."""
    b, word = em.builder, _WORD_OF[value.type]
    at = pointer(em, op, em.get(op.address))
    wanted, new = (b.bitcast(each, word) for each in (em.get(expected), value))
    found = b.cmpxchg(at, wanted, new, *_RELAXED)
    return b.bitcast(b.extract_value(found, 0), value.type)


_WORD_OF: dict[types.Type, types.Type] = {
    **{types.F32: types.I32, types.I32: types.I32},
    **{types.F64: types.I64, types.I64: types.I64},
}
"""The integer of the same bits, for elements that fill a word."""


class _Form(NamedTuple):
    """An element in its word: how to read it, and how to write another one there."""

    word: types.Type
    read: Callable[[types.Value], types.Value]
    write: Callable[[types.Value, types.Value], types.Value]


def _whole(b: types.Builder, type_: types.Type) -> _Form:
    """Return the form of an element that fills its word."""
    word = _WORD_OF[type_]

    def read(old: types.Value) -> types.Value:
        return b.bitcast(old, type_)

    def write(_: types.Value, element: types.Value) -> types.Value:
        return b.bitcast(element, word)

    return _Form(word, read, write)


def _part(b: types.Builder, type_: types.Type, address: types.Value) -> _Form:
    """Return the form of an element of one or two bytes at an address."""
    narrow: dict[types.Type, types.Type] = {types.I1: types.I8, types.HALF: types.I16}
    bits = narrow.get(type_, type_)

    def shift() -> types.Value:
        """Return the bits below the element in its little-endian word."""
        byte = b.and_(b.trunc(address, types.I32), types.I32(3))
        return b.shl(byte, types.I32(3))

    def read(word: types.Value) -> types.Value:
        found = b.trunc(b.lshr(word, shift()), bits)
        is_bool = type_ == types.I1
        return as_bool(b, found) if is_bool else b.bitcast(found, type_)

    def write(word: types.Value, element: types.Value) -> types.Value:
        if type_ == types.I1:
            element = b.zext(element, types.I8)
        placed = b.shl(b.zext(b.bitcast(element, bits), types.I32), shift())
        hole = b.shl(types.I32((1 << bits.width) - 1), shift())
        return b.or_(b.and_(word, b.not_(hole)), placed)

    return _Form(types.I32, read, write)


TABLE: EmitTable = {
    simt.LoadOp: _load,
    simt.StoreOp: _store,
    simt.LocalBaseOp: lambda _, op: constant(op.offset.value.data),
    simt.AtomicOp: _atomic,
}
