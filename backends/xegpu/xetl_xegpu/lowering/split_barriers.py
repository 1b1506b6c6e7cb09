"""split-barriers: subgroups compute while they wait for one another.

*What*: a barrier of the workgroup is split into two halves, as far apart as possible: a
subgroup arrives right after its last memory access before the barrier, and waits right
before its first access after it.
*Why*: the slowest subgroup decides when a barrier is over. Products next to the barrier
need not wait for it.
*When it is right*: only operations without effects, and prefetches, get between the
halves. A barrier orders accesses to memory; no access moves over it, and operations
keep their order.
*When it is worth it*: for `ENOUGH` products at least. The second half needs two more
fences (ocloc 26.27); their cost was not measured on a GPU.
*Halves that the user wrote* (named barriers for all subgroups) stay halves if there is
no other arrival between them. All barriers are whole, and none is split, if

* there are named barriers for some subgroups: beside whole barriers, Intel's compiler
  gives the halves the number of the first named barrier, 1 (ocloc 26.27);
* the kernel asserts: all subgroups must see a failure at the same barrier.

before: %v = simt.load ... {space = "local"}   after: %v = simt.load ...
        %c = simt.dpas %a, %v, ...                    simt.barrier_arrive
        simt.barrier                                  %c = simt.dpas %a, %v, ...
        simt.store ... {space = "local"}              simt.barrier_wait
                                                      simt.store ...
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free

from xetl.dialects.base import operations_in
from xetl.ir.builder import Pass
from xetl_xegpu import simt

ENOUGH = 8
"""The fewest products between the halves."""

_WHOLE_ONLY = (simt.NamedBarrierOp, simt.AssertOp)
_HALVES = (simt.BarrierArriveOp, simt.BarrierWaitOp)


class SplitBarriersPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, simt.FuncOp):
            if not _halves_are_apart(kernel):
                # Make halves whole: all subgroups meet at the waits.
                for arrival in operations_in(kernel, simt.BarrierArriveOp):
                    Rewriter.erase_op(arrival)
                for wait in operations_in(kernel, simt.BarrierWaitOp):
                    Rewriter.replace_op(wait, simt.BarrierOp(location=wait.location))
            if not operations_in(kernel, *_WHOLE_ONLY):
                for barrier in operations_in(kernel, simt.BarrierOp):
                    _split(barrier)


def _split(op: simt.BarrierOp) -> None:
    """Arrive before the operations that may cross, and wait after them.

    Keep the barrier if too few of them are products.
    """
    before, after = list(_crossing(op, -1)), list(_crossing(op, +1))
    inner = (each for op in (*before, *after) for each in op.walk())
    if sum(isinstance(each, simt.PRODUCTS) for each in inner) < ENOUGH:
        return
    first = before[-1] if before else op
    last = after[-1] if after else op
    arrive = simt.BarrierArriveOp(location=op.location)
    wait = simt.BarrierWaitOp(location=op.location)
    Rewriter.insert_op(arrive, InsertPoint.before(first))
    Rewriter.insert_op(wait, InsertPoint.after(last))
    Rewriter.erase_op(op)


def _crossing(op: Operation, step: int) -> Iterator[Operation]:
    """Yield the operations next to a barrier that may cross it, the nearest first."""
    beside = op.next_op if step > 0 else op.prev_op
    while beside is not None and _may_cross(beside):
        yield beside
        beside = beside.next_op if step > 0 else beside.prev_op


def _may_cross(op: Operation) -> bool:
    if op.has_trait(IsTerminator):
        return False
    return isinstance(op, simt.BlockPrefetchOp) or is_side_effect_free(op)


def _halves_are_apart(kernel: simt.FuncOp) -> bool:
    """Whether no subgroup arrives at a second barrier before it waits at the first."""
    if operations_in(kernel, *_WHOLE_ONLY):
        return False
    blocks = {half.parent_block() for half in operations_in(kernel, *_HALVES)}
    return all(block is not None and _alternate(block) for block in blocks)


def _alternate(block: Block) -> bool:
    """Whether arrivals and waits of a block alternate, with no half nested between."""
    arrived = False
    for op in block.ops:
        if isinstance(op, _HALVES):
            if arrived == isinstance(op, simt.BarrierArriveOp):
                return False
            arrived = not arrived
        elif arrived and operations_in(op, *_HALVES):
            return False
    return not arrived
