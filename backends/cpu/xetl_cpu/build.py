"""From a lowered module to machine code: emit, optimise a little, assemble, flatten.

``cpu.packed_memory`` chooses the memory of a packed operand: memory that the launch
passes in (`launch/workspace.py`), or else the workspace. Memory from the launch starts
with a header that identifies what is packed there, and how. If the header differs from
what this launch would pack, the kernel returns at once, before it writes anything:

    header = [address, strides, facts ..., layout ...]   (8 bytes each)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp

from xetl.codegen.emitter import EmitTable, Strided, constant
from xetl.codegen.types import I8, I32, I64, PTR, Value, append_blocks, byte_width, ll
from xetl.dialects.base import ints_of, memref_type
from xetl.errors import InternalError
from xetl.imports import import_whole, late
from xetl_cpu.dialect import BarrierOp, FibersOp, PackedMemoryOp
from xetl_cpu.emit import parallel
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.emit.kernel import bytes_of, emit_kernel
from xetl_cpu.launch import PACKED, PACKED_WORDS, WORKSPACE
from xetl_cpu.launch.workspace import FILLED, HEADER_WORDS, NONE, NUMBER_SHIFT
from xetl_cpu.llvm import FINAL, const, vector
from xetl_cpu.targets import Target, target_machine

_HEADER = 8 * HEADER_WORDS


def _emit_packed_memory(em: KernelEmitter, op: PackedMemoryOp) -> None:
    """Choose the memory of a packed operand; write nothing but the header."""
    if em.is_checked:
        raise InternalError("memory is reserved after its size was checked")
    b = em.builder
    count, own_count = em.get(op.count), em.get(op.own_count)
    element = memref_type(op.memory).element_type
    width = byte_width(element)
    size, own_size = (bytes_of(b, one, width) for one in (count, own_count))
    brought = _brought(em)
    is_brought = b.icmp_signed("!=", brought.state, NONE)
    is_filled = b.icmp_signed("==", brought.state, FILLED)
    needed = b.add(size, _HEADER)
    _use_what_is_brought(em, op, needed, brought, is_brought, is_filled)
    em.packed += 1
    inside = b.gep(em.slot(WORKSPACE, PTR), [em.used], source_etype=I8)
    behind = b.gep(brought.header, [_HEADER], source_etype=I8)
    address = b.select(is_brought, behind, inside)
    is_wanted = em.get(op.is_wanted)
    is_own = b.and_(is_wanted, b.not_(is_brought))
    em.used = b.select(is_own, b.add(em.used, own_size), em.used)
    is_there = b.or_(is_wanted, is_brought)
    em.set(op.memory, Strided(address, (count,), (constant(1),), element))
    em.set(op.is_missing, b.and_(is_there, b.not_(is_filled)))
    em.set(op.is_there, is_there)
    em.set(op.is_own, is_own)


class _Brought(NamedTuple):
    """Memory that the launch passes in for an operand; state NONE: it passes none."""

    header: Value
    size: Value
    state: Value


def _brought(em: KernelEmitter) -> _Brought:
    """Load the entry for the next operand from the launch's table."""
    b = em.builder
    table = em.slot(PACKED, PTR)
    is_given = b.icmp_unsigned("!=", table, ll.Constant(PTR, None))
    first = em.packed * PACKED_WORDS

    def loaded() -> list[Value]:
        places = [b.word_at(table, first + i) for i in range(PACKED_WORDS)]
        return [b.load(place, typ=I64, align=8) for place in places]

    ways = (loaded, lambda: [constant(0)] * PACKED_WORDS)
    address, size, state = b.one_of(is_given, ways, "brought")
    return _Brought(b.inttoptr(address, PTR), size, state)


def _use_what_is_brought(
    em: KernelEmitter,
    op: PackedMemoryOp,
    needed: Value,
    brought: _Brought,
    is_brought: Value,
    is_filled: Value,
) -> None:
    """Return from the kernel if the memory is too small or holds other data.

    The returned number is negative: the needed bytes and the index of the operand. If
    the memory is not filled yet, set its header.
    """
    b = em.builder
    header = brought.header
    names = "check", "compare", "write", "wrong", "done"
    check, compare, write, wrong, done = append_blocks(b, "packed", *names)
    b.cbranch(is_brought, check, done)
    b.position_at_end(check)
    is_small = b.icmp_signed("<", brought.size, needed)
    large = b.append_basic_block("packed.large")
    b.cbranch(is_small, wrong, large)
    b.position_at_end(large)
    words = _words(em, op)
    b.cbranch(is_filled, compare, write)
    b.position_at_end(compare)
    held = b.load(header, typ=words.type, align=8)
    differs = b.bitcast(b.icmp_signed("!=", held, words), ll.IntType(HEADER_WORDS))
    b.cbranch(b.icmp_unsigned("!=", differs, 0), wrong, done)
    b.position_at_end(write)
    b.store(words, header, align=8)
    b.branch(done)
    b.position_at_end(wrong)
    b.ret(b.neg(b.add(needed, em.packed << NUMBER_SHIFT)))
    b.position_at_end(done)


def _words(em: KernelEmitter, op: PackedMemoryOp) -> Value:
    """Return the words of the header in one vector: that is less code to compile."""
    source = em.strided(op.source)
    words: list[Value] = [em.builder.ptrtoint(source.address, I64), *source.strides]
    words += em.all(op.facts)
    words += [constant(word) for word in ints_of(op.layout)]
    words += [constant(0)] * (HEADER_WORDS - len(words))
    known = [one.constant if isinstance(one, ll.Constant) else 0 for one in words]
    header = const(vector(I64, HEADER_WORDS), known)
    for place, word in enumerate(words):
        if not isinstance(word, ll.Constant):
            header = em.builder.insert_element(header, word, const(I32, place))
    assert header.type.count == HEADER_WORDS
    return header


_FIBERS = "xetl_cpu.emit.fibers"
_TABLE: EmitTable = {
    PackedMemoryOp: _emit_packed_memory,
    FibersOp: late(_FIBERS, "emit_fibers"),
    BarrierOp: late(_FIBERS, "emit_barrier"),
}

_BINDING = "llvmlite.binding"


def llvm_text(module: ModuleOp, target: Target) -> str:
    """Return the LLVM IR as emitted, before any optimisation."""
    return str(emit_kernel(module, target, parallel.TABLE | _TABLE))


def optimised(text: str, target: Target) -> Any:
    """Parse LLVM IR and run the few passes that matter.

    The loops already have the form that we want, so LLVM's vectorisers and unrollers
    are left out: they would only cost time (measured: 45 ms more for a micro-kernel).
    """
    binding: Any = import_whole(_BINDING)
    machine = target_machine(target)
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the code: {error}") from None
    heads = (line for line in text.splitlines() if line.startswith("define"))
    if any(map(_is_unfinished, heads)):
        options = binding.create_pipeline_tuning_options(speed_level=1)
        builder = binding.create_pass_builder(machine, options)
        inline = binding.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.run(module, builder)
        passes = binding.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        for function in module.functions:
            known = b" ".join(function.attributes).decode()
            if not function.is_declaration and _is_unfinished(known):
                passes.run(function, builder)
    return module


def _is_unfinished(attributes: str) -> bool:
    """Whether LLVM's passes improve a function with these attributes."""
    return FINAL not in attributes and "optnone" not in attributes


def assemble(text: str, target: Target) -> bytes:
    """Compile LLVM IR to a relocatable object."""
    return target_machine(target).emit_object(optimised(text, target))


def assembly(text: str, target: Target) -> str:
    """Compile LLVM IR to assembly text."""
    return target_machine(target).emit_assembly(optimised(text, target))
