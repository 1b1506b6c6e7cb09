"""gather-barriers: no barrier in a branch, and none for some subgroups.

*What*: a branch is cut at its named barriers, and a barrier of the workgroup stands
between the parts; it is in no branch any more.
*Why*: where a GPU is emulated, a processor runs a subgroup up to the next barrier, then
the next subgroup: all must come to each, and it must be the same one. A GPU's
subgroups may meet two and two, and each in a branch of its own.
*When it is right*: those that were not to meet wait once more than they must. No
subgroup waits for another that waits for it: all come to every barrier, in one order.
*Left alone*: loops, and kernels without named barriers. `distribute-to-lanes` has
refused those in loops that subgroups run differently.

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
    # Inner branches first: their barriers come to stand in the outer ones.
    for op in reversed(list(kernel.walk())):
        if isinstance(op, simt.BarrierArriveOp):
            Rewriter.erase_op(op)
        elif isinstance(op, scf.IfOp):
            _cut(op)
    for op in operations_in(kernel, *_MET):
        Rewriter.insert_op(simt.BarrierOp(location=op.location), InsertPoint.before(op))
        Rewriter.erase_op(op)


def _cut(op: scf.IfOp) -> None:
    """Cut a branch at the barriers of both sides: the first ones, the second ones."""
    sides = _Side(op.then_region), _Side(op.else_region)
    last = max(len(side.parts) for side in sides) - 1
    if last == 0:
        return
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
    """A part of both sides; it gives what both found, or nothing of use."""
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
    """A branch on the same condition; without results it may have one side."""
    is_needed = len(types) > 0 or len(otherwise) > 1
    regions = Region(Block(then)), Region(Block(otherwise)) if is_needed else None
    return scf.IfOp(op.condition, types, *regions, location=op.location)


def _replace_behind(made: scf.IfOp, values: Sequence[SSAValue]) -> None:
    """What a part computed is what the branch gives, for all that follows."""
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

    def _part(self, number: int) -> _Part:
        return self.parts[number] if number < len(self.parts) else []

    def take(self, number: int) -> _Part:
        """The operations of a part, which leave the branch."""
        for op in self._part(number):
            op.detach()
        return self._part(number)

    def take_end(self) -> Operation:
        """What ends the side, likewise."""
        if self._end.parent is not None:
            self._end.detach()
        return self._end

    def used_behind(self, number: int) -> list[SSAValue]:
        """What a part computes for those that follow."""
        part = self._part(number)
        inside = {each for op in part for each in op.walk()}
        return [
            result
            for op in part
            for result in op.results
            if any(use.operation not in inside for use in result.uses)
        ]
