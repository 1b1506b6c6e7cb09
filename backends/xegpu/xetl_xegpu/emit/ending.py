"""How a workgroup ends when one of its subgroups finds that an assertion fails.

Others may wait for it at a barrier, so it cannot just end: GPUs would wait for ever,
and opencl:cpu, which runs one subgroup behind the other, goes on with wrong numbers. It
goes on to the next barrier as one that is dead: it loads what is always there, stores
nothing and prints nothing. Before, it leaves word in shared memory; behind the barrier
all read it, and all end.

Word is left in one of two places by turns. Somebody slow still reads of the last
barrier when somebody fast leaves word of the next one.

On its way a dead subgroup may take another branch than it would have, and come to
another barrier, or to the end. A barrier of a GPU is over when all have come to one,
whichever it is, so all meet once more at the end.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import I32, I64
from xetl_xegpu import simt
from xetl_xegpu.emit.emitter import LINE, LOCAL, Ending, KernelEmitter
from xetl_xegpu.emit.subgroup import shuffle

_BARRIERS = (simt.BarrierOp, simt.BarrierWaitOp, simt.NamedBarrierOp)


def own_bytes(kernel: simt.FuncOp) -> int:
    """Shared memory of a kernel beside its own; 0 if nobody may wait for a dead one."""
    kinds = {type(op) for op in kernel.walk()}
    is_needed = simt.AssertOp in kinds and not kinds.isdisjoint(_BARRIERS)
    return LINE if is_needed else 0


def begin(em: KernelEmitter, kernel: simt.FuncOp) -> None:
    """Prepare for failures, if somebody may wait for who has failed."""
    if not own_bytes(kernel):
        return
    b, name = em.builder, f"{kernel.sym_name.data}.dead"
    words = ll.GlobalVariable(em.module, ll.ArrayType(I32, 2), name, addrspace=3)
    words.linkage, words.align = "internal", LINE
    words.initializer = ll.Constant(words.value_type, ll.Undefined)
    words.type = LOCAL  # llvmlite would compare what it points to
    em.ending = Ending(em.private_array(I32, 1), em.private_array(I32, 1), words)
    _put(em, em.ending.alive, 1)
    _put(em, em.ending.turn, 0)
    for turn in range(2):
        b.store(I32(0), _word(em, em.ending, I64(turn)), align=4)
    em.meet()


def _put(em: KernelEmitter, where: Any, value: int) -> None:
    em.builder.store(I32(value), where, align=4)


def _number(em: KernelEmitter, where: Any) -> Any:
    return em.builder.load(where, typ=I32, align=4)


def _word(em: KernelEmitter, ending: Ending, turn: Any) -> Any:
    return em.builder.gep(ending.words, [turn], source_etype=I32)


def allowed(em: KernelEmitter, mask: Any) -> Any:
    """The lanes of a mask, as long as the subgroup is alive."""
    if em.ending is None:
        return mask
    b = em.builder
    alive = b.icmp_signed("!=", _number(em, em.ending.alive), I32(0))
    return b.and_(mask, alive)


def fail(em: KernelEmitter) -> None:
    """End here, or at the next barrier."""
    if em.ending is None:
        em.builder.ret_void()
        return
    turn = em.builder.zext(_number(em, em.ending.turn), I64)
    em.builder.store(I32(1), _word(em, em.ending, turn), align=4)
    _put(em, em.ending.alive, 0)


def leave_together(em: KernelEmitter) -> None:
    """Behind a barrier: end, if somebody is dead."""
    if em.ending is None:
        return
    b, ending = em.builder, em.ending
    turn = _number(em, ending.turn)
    found = _number(em, _word(em, ending, b.zext(turn, I64)))
    b.store(b.xor(turn, I32(1)), ending.turn, align=4)
    # Known to be the same in all lanes: drivers see that nobody is left behind.
    is_over = b.icmp_signed("!=", shuffle(em, found, I32(0)), I32(0))
    with b.if_then(is_over):
        b.ret_void()


def end(em: KernelEmitter) -> None:
    """At the end of the kernel."""
    if em.ending is not None:
        em.meet()
    em.builder.ret_void()
