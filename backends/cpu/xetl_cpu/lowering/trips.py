"""Tasks whose products are read by other computations compute their columns in pieces.

    scf.parallel (%x, %y) ... {
      %n = arith.muli %y, %stride
      %end = min(%n + %stride, ...)
      store_tile f(xsmm.brgemm.tile %a, (B at [0, %n])), (C at [%m, %n], ends at %end)
    }
    ->
    scf.parallel (%x, %y) ... {
      %n = arith.muli %y, %stride
      scf.for %piece = 0 to %end - %n step %step {
        %first = %n + %piece
        %last = min(%end, %first + %step)
        store_tile f(xsmm.brgemm.tile %a, (B at [0, %first])), (C at ..., %last)
      }
    }

Why: sums that are read by further computation are in memory and should stay in a cache.
But AMX tiles need a copy of A, which costs as much as two panels of B, so tasks should
be wide. Code that does not depend on the column stays before the loop, and so does the
copy (`loops/kept_copies.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from xetl.analysis.memory import is_pure
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import InitTileOp, StoreTileOp
from xetl.ir.builder import Builder, move_before
from xetl_cpu.lowering.tiles import PIECES


class Place(NamedTuple):
    """The first column of a task, and the end of its columns."""

    start: SSAValue
    end: SSAValue


def may_go_in_trips(loop: scf.ParallelOp, starts: set[SSAValue]) -> bool:
    """Whether all code that does not depend on the column can stand before the rest."""
    moved = dependents(loop, starts)
    stores = [op for op in moved if isinstance(op, StoreTileOp)]
    *kept, _ = [op for op in loop.body.block.ops if op not in moved]
    free = [op for op in kept if not is_pure(op) and not isinstance(op, InitTileOp)]
    return all(op.is_before_in_block(stores[0]) for op in free) if stores else False


def go_in_trips(loop: scf.ParallelOp, place: Place, step: int) -> None:
    """Let each task compute ``step`` columns at a time, in a loop."""
    own = place.end.owner
    assert isinstance(own, Operation)
    ends = {own, *(v.owner for v in own.operands)}
    moved = [op for op in dependents(loop, {place.start}) if op not in ends]
    *_, last = loop.body.block.ops
    build = Builder.before(last)
    trips = build.for_loop(0, build.minus(place.end, place.start), step)
    trips.attributes[PIECES] = UnitAttr()
    end = scf.YieldOp()
    trips.body.block.add_op(end)
    inner = Builder.before(end)
    first = inner.index(inner.plus(place.start, trips.body.block.args[0]))
    behind = inner.index(inner.minimum(place.end, inner.plus(first, trips.step)))
    move_before(moved, end)
    inside = {*moved}
    for old, new in ((place.start, first), (place.end, behind)):
        old.replace_uses_with_if(new, lambda use: use.operation in inside)


def dependents(loop: scf.ParallelOp, starts: set[SSAValue]) -> list[Operation]:
    """Return the operations of the program that depend on ``starts``, in order."""
    known, found = {*starts}, list[Operation]()
    for op in loop.body.block.ops:
        if any(v in known for inner in op.walk() for v in inner.operands):
            known |= {*op.results}
            found.append(op)
    return found
