"""Emission of ``cpu.fibers``: the subgroups of a program take turns on one thread.

Each fiber has a stack and scratch of its own in the thread's scratch:

    [switchboard | fiber 0: scratch, stack | fiber 1: scratch, stack | ...]
    switchboard = [saved stack pointer of the program, of fiber 0, of fiber 1, ...]

The program resumes every fiber in turn until each has set its stack pointer to 0, which
means that it has ended. A barrier switches back to the program: when a fiber is
resumed, all others have reached the barrier. So barriers work inside any control flow.

A switch saves the callee-saved registers of the System V ABI (x86-64).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.codegen.emitter import constant
from xetl.codegen.types import I8, I64, PTR, Type, Value, append_blocks, ll
from xetl_cpu.dialect import BarrierOp, FibersOp
from xetl_cpu.emit import parallel
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.emit.kernel import STACK_BYTES, buffer_bytes, lines, room_for
from xetl_cpu.llvm import VOID, Builder, define

# Bytes, not assembly: so compiling a kernel does not load an assembler.
_SWITCH = bytes.fromhex(
    "55 53 4154 4155 4156 4157"  # push rbp, rbx, r12, r13, r14, r15
    "488927 488b26"  # mov [rdi], rsp; mov rsp, [rsi]
    "415f 415e 415d 415c 5b 5d c3"  # pop r15, r14, r13, r12, rbx, rbp; ret
)
"""``switch(save, load)``: save the context, and restore another one."""

_START = bytes.fromhex(
    "4c89e7 4c89ee"  # mov rdi, r12; mov rsi, r13
    "41ffd6 0f0b"  # call r14; ud2
)
"""The first code of a new fiber; its saved registers hold function and arguments."""

_SWITCHBOARD, _BUFFERS, _LOG, _PROGRAM, _CAPTURED = 0, 1, 2, 3, 6


def _machine_code(em: KernelEmitter, name: str, code: bytes) -> Value:
    """Return the address of machine code in the text section."""
    known = em.module.globals.get(name)
    if known is None:
        type_ = ll.ArrayType(I8, len(code))
        known = ll.GlobalVariable(em.module, type_, name)
        known.global_constant, known.linkage = True, "internal"
        known.initializer = ll.Constant(type_, bytearray(code))
        known.section, known.align = ".text", 16
    return known


def _switch(em: KernelEmitter, b: Builder, save: Value, load: Value) -> None:
    address = b.ptrtoint(_machine_code(em, "xetl_switch", _SWITCH), I64)
    # Called through an integer, because llvmlite calls only values of function type.
    function = b.inttoptr(address, ll.FunctionType(VOID, [PTR, PTR]).as_pointer())
    b.call(function, [save, load])


def emit_fibers(em: KernelEmitter, op: FibersOp) -> None:
    """Make the fibers, then resume them in turn until all are over."""
    b, count = em.builder, op.fibers()
    board = b.gep(em.scratch, [em.scratch_used], source_etype=I8)
    em.scratch_used += room_for(op)
    outside, parts = parallel.captured_parts(em, op)
    buffers = b.gep(board, [lines(8 * count + 16)], source_etype=I8)
    context = parallel.store_context(em, [board, buffers, em.log, *em.program, *parts])
    body = _emit_body(em, op, outside)
    with b.counted_loop(count, name="fiber") as fiber:
        _prepare(em, op, (context, board, buffers), body, fiber.index)
    _take_turns(em, board, count)


def _stride(op: FibersOp) -> int:
    return buffer_bytes(op) + STACK_BYTES


def _prepare(
    em: KernelEmitter,
    op: FibersOp,
    places: tuple[Value, Value, Value],
    body: Value,
    number: Value,
) -> None:
    """Make a stack that looks as if the fiber had just switched away."""
    b, (context, board, buffers) = em.builder, places
    end = b.mul(b.add(number, 1), _stride(op))
    address = b.ptrtoint(b.gep(buffers, [end], source_etype=I8), I64)
    top = b.inttoptr(b.and_(address, -16), PTR)
    start = b.ptrtoint(_machine_code(em, "xetl_fiber_start", _START), I64)
    frame = {-1: start, -4: context, -5: number, -6: body}
    for index in range(-7, 0):
        value = frame.get(index, constant(0))
        b.store(value, b.word_at(top, index), align=8)
    pointer = b.word_at(top, -7)
    b.store(pointer, b.word_at(board, b.add(number, 1)), align=8)


def _take_turns(em: KernelEmitter, board: Value, count: int) -> None:
    """Resume all fibers, round after round, until a round resumes none."""
    b = em.builder
    again, after = append_blocks(b, "round", "next", "end")
    b.branch(again)
    b.position_at_end(again)
    zero = constant(0)
    with b.counted_loop(count, carried=[zero], name="turn") as turn:
        own = b.word_at(board, b.add(turn.index, 1))
        alive = b.icmp_signed("!=", b.load(own, typ=I64), zero)
        with b.if_then(alive):
            _switch(em, b, board, own)
        turn.next = [b.add(turn.values[0], b.zext(alive, I64))]
    (resumed,) = turn.results
    b.cbranch(b.icmp_signed("!=", resumed, zero), again, after)
    b.position_at_end(after)


def _emit_body(em: KernelEmitter, op: FibersOp, outside: list[SSAValue]) -> Value:
    """Emit ``void fiber(context, number)``, which switches away at its end."""
    name = str(em.module.get_unique_name("xetl_fiber"))
    body = define(em.module, name, VOID, [("context", PTR), ("number", I64)])
    body.attributes.add("noinline")
    context, number = body.args
    inner = em.inside(body)
    b = inner.builder

    def field(index: int, type_: Type) -> Value:
        return b.load(b.word_at(context, index), typ=type_, align=8)

    board, buffers = field(_SWITCHBOARD, PTR), field(_BUFFERS, PTR)
    inner.log = field(_LOG, PTR)
    inner.program = [field(_PROGRAM + axis, I64) for axis in range(3)]
    skip = b.mul(number, _stride(op))
    inner.scratch = b.gep(buffers, [skip], source_etype=I8)
    parallel.load_captured(em, inner, context, outside, _CAPTURED)
    own = b.word_at(board, b.add(number, 1))
    inner.fiber = (board, own)
    over = b.append_basic_block("over")
    inner.next_trip = over
    inner.set(op.body.block.args[0], number)
    inner.emit_block(op.body.block)
    b.branch(over)
    b.position_at_end(over)
    with b.goto_entry_block():
        nowhere = b.alloca(I64)
    nowhere.type = PTR
    b.store(constant(0), own, align=8)
    # The context that is saved here is never restored: the program sees the 0.
    _switch(inner, b, nowhere, board)
    b.unreachable()
    return body


def emit_barrier(em: KernelEmitter, op: BarrierOp) -> None:
    """Switch back to the program, which resumes this fiber after the others."""
    assert em.fiber is not None
    board, own = em.fiber
    _switch(em, em.builder, own, board)
