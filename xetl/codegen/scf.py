"""Emission of ``scf.for``, ``scf.if`` and ``scf.while`` as blocks and phis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from xetl.analysis.control_flow import constant_trips, yielded
from xetl.codegen.emitter import EmitTable, Emitter, Strided, is_constant
from xetl.codegen.memref import ACCESSES, accessed, compute_rows, refine
from xetl.codegen.types import Value, append_blocks, ll
from xetl.dialects.base import around, constant_index, memref_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, scf

_POINTERS = 8
"""General registers that hold pointers to rows; x86-64 has 16 in all."""


def _for(em: Emitter, op: scf.ForOp) -> None:
    """Emit a loop that tests its condition before each iteration."""
    b, body = em.builder, op.body.block
    lower, upper, step, *inits = em.all(op.operands)
    compute_rows(em, op)
    # In a short loop, one jump per iteration matters.
    is_inner = not any(each.regions for each in op.body.block.ops)
    if is_inner and not op.init_args and (constant_index(op.step) or 0) > 0:
        _emit_tested_below(em, op)
        return
    before = b.block
    head, inside, after = append_blocks(b, "for", "head", "body", "end")
    b.branch(head)
    b.position_at_end(head)
    induction = b.phi(lower.type)
    induction.add_incoming(lower, before)
    carried = [_phi(em, init, before) for init in inits]
    more = b.icmp_signed("<", induction, upper)
    if not _is_positive_constant(step):
        more = b.and_(more, b.icmp_signed(">", step, step.type(0)))
    b.cbranch(more, inside, after)
    b.position_at_end(inside)
    _bind(em, body.args, [induction, *carried])
    em.emit_block(body)
    _close(carried, em.all(yielded(body)), b.block)
    _count_on(em, op, induction, step)
    b.branch(head)
    b.position_at_end(after)
    _bind(em, op.results, carried)


def _emit_tested_below(em: Emitter, op: scf.ForOp) -> None:
    """Emit a loop that tests before the first iteration and after each."""
    b, body = em.builder, op.body.block
    lower, upper, step = em.all(op.operands)
    before = b.block
    inside, after = append_blocks(b, "for", "body", "end")
    b.cbranch(b.icmp_signed("<", lower, upper), inside, after)
    b.position_at_end(inside)
    induction = b.phi(lower.type)
    induction.add_incoming(lower, before)
    _bind(em, body.args, [induction])
    em.emit_block(body)
    onward = _count_on(em, op, induction, step)
    b.cbranch(b.icmp_signed("<", onward, upper), inside, after)
    b.position_at_end(after)


def _count_on(em: Emitter, op: scf.ForOp, induction: Any, step: Value) -> Value:
    """Emit the increment of the loop counter at the end of the body."""
    onward = em.builder.add(induction, step)
    is_hidden = _goes_along_a_row(op) or _accesses_many_rows(op)
    onward = em.hidden(onward) if is_hidden else onward
    induction.add_incoming(onward, em.builder.block)
    return onward


def _goes_along_a_row(loop: scf.ForOp) -> bool:
    """Whether a loop accesses elements that are adjacent in memory.

    x86 has addressing modes for them, so there is no product for strength reduction to
    remove. LLVM would still analyse each address, which takes a quarter of the compile
    time. Nested loops, where it reduces the addresses of rows, and loops of constant
    trip count are not hidden from it.
    """
    if isinstance(loop.parent_op(), scf.ForOp) or constant_trips(loop) is not None:
        return False
    waiting: list[SSAValue] = [loop.body.block.args[0]]
    return all(
        _is_along_a_row(use.operation, value, waiting)
        for value in waiting
        for use in value.uses
    )


def _accesses_many_rows(loop: scf.ForOp) -> bool:
    """Whether an iteration accesses more rows than there are registers for pointers.

    Strength reduction would keep a pointer to each row in memory, in this loop and in
    each loop around it. In nested loops a product for each row takes less time (a block
    of 16 x 16 that is transposed: 160 cycles in place of 450).
    """
    if len(list(around(loop, scf.ForOp))) < 3:
        return False
    accesses = (op for op in loop.body.block.ops if isinstance(op, ACCESSES))
    strides = (strides_of(memref_type(accessed(op))) for op in accesses)
    return sum(s is None or s[:-1] == [None] for s in strides) > _POINTERS


def _is_along_a_row(op: Operation, index: SSAValue, sums: list[SSAValue]) -> bool:
    """Whether one use of the index keeps accesses adjacent.

    A use that adds a constant is appended to ``sums``, whose uses are checked as well.
    """
    if isinstance(op, arith.AddiOp) and constant_index(op.rhs) is not None:
        sums.append(op.result)
        return True
    if isinstance(op, ACCESSES):
        steps = strides_of(memref_type(accessed(op)))
        return index not in op.indices[:-1] and steps is not None and steps[-1] == 1
    return isinstance(op, arith.SubiOp)


def _is_positive_constant(step: Value) -> bool:
    number = getattr(step, "constant", None)
    return isinstance(number, int) and number > 0


def _phi(em: Emitter, init: Value | Strided, block: ll.Block) -> Value | Strided:
    """Make a phi that starts with ``init``; a memref has one for each of its values."""

    def start(part: Value) -> Value:
        phi = em.builder.phi(part.type)
        phi.add_incoming(part, block)
        return phi

    if not isinstance(init, Strided):
        return start(init)
    return rebuild(init, [start(part) for part in flatten(init)])


def _close(phis: Any, values: list[Value], block: ll.Block) -> None:
    """Add the value at the end of ``block`` to each phi."""
    for phi, value in zip(phis, values):
        for part, next_part in zip(flatten(phi), flatten(value)):
            assert isinstance(part, ll.PhiInstr)
            part.add_incoming(next_part, block)


def _bind(
    em: Emitter, values: Sequence[SSAValue], emitted: Sequence[Value | Strided]
) -> None:
    for value, item in zip(values, emitted):
        if isinstance(item, Strided):
            item = refine(item, memref_type(value))
        em.set(value, item)


def _if(em: Emitter, op: scf.IfOp) -> None:
    b = em.builder
    condition = em.get(op.condition)
    if is_constant(condition, 0) and not op.else_region.blocks:
        return
    yes, no, after = append_blocks(b, "if", "then", "else", "end")
    b.cbranch(condition, yes, no)
    ends: list[tuple[ll.Block, list[Value]]] = []
    for block, region in ((yes, op.then_region), (no, op.else_region)):
        b.position_at_end(block)
        results: list[Value] = []
        if region.blocks:
            em.emit_block(region.block)
            results = em.all(yielded(region.block))
        ends.append((b.block, results))
        b.branch(after)
    b.position_at_end(after)
    (yes, first), (no, second) = ends
    phis = [_phi(em, each, yes) for each in first]
    _close(phis, second, no)
    _bind(em, op.results, phis)


def _while(em: Emitter, op: scf.WhileOp) -> None:
    b = em.builder
    inits = em.all(op.operands)
    before = b.block
    head, inside, after = append_blocks(b, "while", "head", "body", "end")
    b.branch(head)
    b.position_at_end(head)
    carried = [_phi(em, init, before) for init in inits]
    _bind(em, op.before.block.args, carried)
    em.emit_block(op.before.block)
    condition = op.before.block.last_op
    assert isinstance(condition, scf.ConditionOp)
    flag, *passed = em.all(condition.operands)
    b.cbranch(flag, inside, after)
    b.position_at_end(inside)
    _bind(em, op.after.block.args, passed)
    em.emit_block(op.after.block)
    _close(carried, em.all(yielded(op.after.block)), b.block)
    b.branch(head)
    b.position_at_end(after)
    _bind(em, op.results, passed)


def _nothing(em: Emitter, op: Operation) -> None:
    """Emit nothing for a terminator: the parent operation reads its operands."""


def flatten(value: Value | Strided) -> list[Value]:
    """Return the LLVM values of an emitted value (a memref has several)."""
    if isinstance(value, Strided):
        return [value.address, *value.sizes, *value.strides]
    return [value]


def rebuild(like: Value | Strided, parts: Sequence[Value]) -> Value | Strided:
    """The inverse of `flatten`."""
    if not isinstance(like, Strided):
        return parts[0]
    rank = len(like.sizes)
    return Strided(
        parts[0], tuple(parts[1 : 1 + rank]), tuple(parts[1 + rank :]), like.element
    )


TABLE: EmitTable = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    scf.YieldOp: _nothing,
    scf.ConditionOp: _nothing,
    scf.ReduceOp: _nothing,
}
