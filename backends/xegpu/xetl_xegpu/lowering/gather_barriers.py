"""gather-barriers: replace barriers in branches, and of some subgroups, by whole ones.

*What*: a branch is cut at its named barriers. A barrier of the workgroup stands between
the parts, outside of any branch.
*Why*: a processor that emulates a GPU runs a subgroup up to the next barrier, then the
next subgroup: all subgroups must reach the same barriers. Subgroups of a GPU may meet
in pairs, and each in a branch of its own.
*When it is right*: always. A subgroup that did not take part in a barrier waits once
more than necessary. No deadlock is possible: all subgroups reach all barriers in the
same order.
*Left alone*: loops, and kernels without named barriers. `distribute-to-lanes` has
refused named barriers in loops whose trip count differs between subgroups.

before: scf.if %left {                      after: scf.if %left { %a }
          %a; simt.named_barrier 1 of 2; %b        else { %c }
        } else {                                   simt.barrier
          %c; simt.named_barrier 2 of 2; %d        scf.if %left { %b }
        }                                          else { %d }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import operations_in
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Pass
from xetl_xegpu import simt

_MET = (simt.NamedBarrierOp, simt.BarrierWaitOp)

_Part = list[Operation]


class GatherBarriersPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, simt.FuncOp):
            if operations_in(kernel, *_MET):
                _gather(kernel)


def _gather(kernel: simt.FuncOp) -> None:
    # Inner branches first: their barriers move to the outer ones.
    for op in reversed(list(kernel.walk())):
        if isinstance(op, simt.BarrierArriveOp):
            Rewriter.erase_op(op)
        elif isinstance(op, scf.IfOp):
            _cut(op)
    for op in operations_in(kernel, *_MET):
        Rewriter.insert_op(simt.BarrierOp(location=op.location), InsertPoint.before(op))
        Rewriter.erase_op(op)


def _cut(op: scf.IfOp) -> None:
    """Cut a branch at its barriers; the n-th ones of both sides become one."""
    sides = _Side(op.then_region), _Side(op.else_region)
    last = max(len(side.parts) for side in sides) - 1
    if last == 0:
        return
    for side in sides:
        side.parts += [[] for _ in range(last + 1 - len(side.parts))]
    here = InsertPoint.before(op)
    for number in range(last):
        found = [side.used_behind(number) for side in sides]
        made = _branch(op, [side.take(number) for side in sides], found)
        Rewriter.insert_op([made, simt.BarrierWaitOp(location=op.location)], here)
        _replace_behind(made, [*found[0], *found[1]])
    parts = [[*side.take(last), side.take_end()] for side in sides]
    made = _if(op, [result.type for result in op.res], *parts)
    Rewriter.insert_op(made, here)
    for old, new in zip(op.res, made.res, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)


def _branch(
    op: scf.IfOp, parts: Sequence[_Part], found: Sequence[Sequence[SSAValue]]
) -> scf.IfOp:
    """Return a branch with one part of both sides.

    Its results are the values that later parts of either side use (``found``). A side
    yields zeros for those of the other side.
    """
    types = [value.type for values in found for value in values]
    whole: list[_Part] = []
    for side, part in enumerate(parts):
        given: list[SSAValue] = []
        fillers: _Part = []
        for owner, values in enumerate(found):
            if owner == side:
                given += values
                continue
            for type_ in [value.type for value in values]:
                zero = arith.ConstantOp(make_splat(0, type_), type_)
                given.append(zero.result)
                fillers.append(zero)
        whole.append([*part, *fillers, scf.YieldOp(*given)])
    return _if(op, types, *whole)


def _if(
    op: scf.IfOp, types: Sequence[Attribute], then: _Part, otherwise: _Part
) -> scf.IfOp:
    """Return a branch on the condition of ``op``.

    It has no else region if it would be empty and there are no results.
    """
    is_needed = len(types) > 0 or len(otherwise) > 1
    regions = Region(Block(then)), Region(Block(otherwise)) if is_needed else None
    return scf.IfOp(op.condition, types, *regions, location=op.location)


def _replace_behind(made: scf.IfOp, values: Sequence[SSAValue]) -> None:
    """Replace uses of ``values`` after the branch by the results of the branch."""
    inside = set(made.walk())
    for old, new in zip(values, made.res, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation not in inside)


class _Side:
    """One side of a branch, in parts between its barriers."""

    def __init__(self, region: Region) -> None:
        self.parts: list[_Part] = [[]]
        self._end: Operation = scf.YieldOp()
        for op in [op for block in region.blocks for op in block.ops]:
            if isinstance(op, _MET):
                self.parts.append([])
            elif isinstance(op, scf.YieldOp):
                self._end = op
            else:
                self.parts[-1].append(op)

    def take(self, number: int) -> _Part:
        """Detach and return the operations of a part."""
        for op in self.parts[number]:
            op.detach()
        return self.parts[number]

    def take_end(self) -> Operation:
        """Detach and return the terminator of the side."""
        if self._end.parent is not None:
            self._end.detach()
        return self._end

    def used_behind(self, number: int) -> list[SSAValue]:
        """Return the results of a part that are used after it."""
        part = self.parts[number]
        inside = {each for op in part for each in op.walk()}
        return [
            result
            for op in part
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        ]
