"""prefetch-rows: while a row is read again, the row below it is prefetched.

    scf.for %j = 0 to %n { load %X[%row, %j] }               # the largest element
    scf.for %j = 0 to %n { load %X[%row, %j] ; ... }         # exponentials, their sum
    ->
    scf.for %j = 0 to %n { load %X[%row, %j] }
    scf.for %j = 0 to %n { load %X[%row, %j] ; memref.prefetch %X[%row + 1, %j] ; ... }

Why: the first loop over a row waits for L3, the others compute. If L3 answers later
than out-of-order execution can hide, the latency is exposed: a softmax of 1024 x 1024
in f32 on one core of Granite Rapids takes 525 us in C, and 291 with prefetches. Rows
follow one another, in a tile and from program to program; a prefetch behind the last
row does not fault.

Before: loops, after ``widen-programs``.
Left alone: machines with a fast L3 (`Costs.l3_latency`); rows that are read once, for
which hardware prefetches are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import constant_index, memref_type, operations_in
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder, Pass
from xetl_cpu.lowering.tiles import root
from xetl_cpu.machine import LINE
from xetl_cpu.targets import find_target

_HIDDEN = 100
"""Cycles of latency that out-of-order execution hides."""

_Row = tuple[SSAValue | tuple[SSAValue, ...], ...]
"""A memref and the indices of one row: values, or the operands of their sums."""


@dataclass(frozen=True)
class PrefetchRowsPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target).machine
        if machine.costs.l3_latency <= _HIDDEN:
            return
        for loop in operations_in(op, scf.ParallelOp, scf.ForOp):
            _ask_in(loop.body.block, set(), set())


def _ask_in(block: Block, read: set[_Row], asked: set[_Row]) -> None:
    """Add prefetches. ``read``: rows of earlier loops; ``asked``: prefetched rows."""
    for op in block.ops:
        if isinstance(op, scf.IfOp):
            for region in op.regions:
                for branch in region.blocks:
                    _ask_in(branch, read, set(asked))
        elif isinstance(op, scf.ForOp):
            loads = _loads(op)
            for row in loads.keys() & read - asked:
                for load in loads[row].values():
                    _ask(load)
                asked.add(row)
            read |= loads.keys()


def _loads(loop: scf.ForOp) -> dict[_Row, dict[int, vector.LoadOp]]:
    """Return the rows that a loop over columns loads, with one load per cache line."""
    found: dict[_Row, dict[int, vector.LoadOp]] = {}
    number = loop.body.block.args[0]
    for op in loop.body.block.ops:
        if not isinstance(op, vector.LoadOp) or len(op.indices) < 2:
            continue
        *row, column = op.indices
        place = _behind(column, number)
        is_given = isinstance(root(op.base), BlockArgument)
        if place is None or not is_given or number in row:
            continue
        line = place * byte_width(memref_type(op.base).element_type) // LINE
        found.setdefault((op.base, *map(_terms, row)), {}).setdefault(line, op)
    return found


def _terms(index: SSAValue) -> SSAValue | tuple[SSAValue, ...]:
    """Return the operands of a sum: each loop computes the same row anew."""
    owner = index.owner
    return tuple(owner.operands) if isinstance(owner, arith.AddiOp) else index


def _behind(column: SSAValue, number: SSAValue) -> int | None:
    """Return the distance of a column from the loop's counter; None if unknown."""
    if column is number:
        return 0
    add = column.owner
    if isinstance(add, arith.AddiOp) and add.lhs is number:
        return constant_index(add.rhs)
    return None


def _ask(load: vector.LoadOp) -> None:
    build = Builder.before(load)
    *outer, row, column = load.indices
    below = [*outer, build.index(build.plus(row, 1)), column]
    op = memref.PrefetchOp(
        load.base, below, isWrite=False, localityHint=3, isDataCache=True
    )
    build.add(op)
