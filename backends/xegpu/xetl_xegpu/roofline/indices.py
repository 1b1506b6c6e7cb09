"""Numbers that a kernel computes of its sizes and of the number of its program.

In a loop a counter is taken halfway, and what is carried as it was at the start: right
for what is counted here, trips that grow evenly and blocks that move in step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.upstream import arith, scf
from xetl_xegpu import simt
from xetl_xegpu.roofline.slots import LEAVES, OPERATIONS, evaluate

_AXES = {"x": 0, "y": 1, "z": 2}
_ALL_AXES = 7
_SAME = ("index_cast", "extsi", "extui", "trunci")
"""Operations that leave a number as it is."""


def _end_of_rotated(block: Block) -> Sequence[SSAValue]:
    """End and step of a loop that `rotate-loops` made, from what it does first."""
    last = block.last_op
    asked = last.operands[0].owner if isinstance(last, scf.ConditionOp) else None
    if not isinstance(asked, arith.CmpiOp):
        return ()
    following = asked.lhs.owner
    if not isinstance(following, arith.AddiOp) or following.lhs is not block.args[0]:
        return ()
    return asked.rhs, following.rhs


class Indices:
    """The slots of a kernel.

    Attributes:
        kept: those that were asked for by `keep`, and what they need.
    """

    def __init__(self, block: Block, subgroups: int) -> None:
        self._slots: list[list[Any]] = []
        self._of: dict[SSAValue, int] = {}
        self._trips: dict[Operation, int] = {}
        self._new: dict[int, int] = {}
        self.kept: list[list[Any]] = []
        for index, argument in enumerate(block.args):
            self._give(argument, "word", index)
        for op in block.walk():
            self._read(op)
        self._axes = self._dependences()
        at = [
            evaluate(self._slots, (), (0, 0, 0), (64, 64, 64), each)
            for each in range(subgroups)
        ]
        self._at = at

    def trips(self, loop: Operation) -> int | None:
        """The slot that says how often a loop runs."""
        return self._trips.get(loop)

    def keep(self, slot: int | None) -> int | None:
        """The place of a slot among those kept."""
        if slot is None:
            return None
        wanted, todo = set[int](), [slot]
        while todo:
            each = todo.pop()
            if each not in wanted and each not in self._new:
                wanted.add(each)
                todo += self._operands(each)
        for each in sorted(wanted):
            kind: str = self._slots[each][0]
            rest: list[Any] = self._slots[each][1:]
            new = rest if kind in LEAVES else [self._new[i] for i in rest]
            self._new[each] = len(self.kept)
            self.kept.append([kind, *new])
        return self._new[slot]

    def places(self, values: Sequence[SSAValue]) -> Iterator[object]:
        """Where each subgroup accesses memory; what is not known is its own."""
        slots = [self._of.get(value) for value in values]
        for number, found in enumerate(self._at):
            place = [None if slot is None else found[slot] for slot in slots]
            yield (slots[0], *(place if None not in place else [number, "?"]))

    def axes(self, values: Sequence[SSAValue]) -> int:
        """The axes of the grid that values depend on, a bit each; unknown: all."""
        slots = (self._of.get(value) for value in values)
        found = 0
        for slot in slots:
            found |= _ALL_AXES if slot is None else self._axes[slot]
        return found

    def all_axes(self) -> int:
        """The axes of the grid that the kernel asks for, a bit each."""
        return sum(1 << n for n in range(3) if any(a >> n & 1 for a in self._axes))

    def _read(self, op: Operation) -> None:
        name = op.name.rpartition(".")[2]
        if isinstance(op, arith.ConstantOp):
            value = op.value
            if isinstance(value, IntegerAttr):
                self._give(op.result, "number", value.value.data)
        elif isinstance(op, simt.GroupIdOp | simt.NumGroupsOp):
            kind = "program" if isinstance(op, simt.GroupIdOp) else "grid"
            self._give(op.result, kind, _AXES[op.dimension.data])
        elif isinstance(op, simt.SubgroupIdOp | simt.LaneIdOp):
            # Lanes of a subgroup stand side by side: the first one stands for all.
            kind = "subgroup" if isinstance(op, simt.SubgroupIdOp) else "number"
            self._give(op.result, kind, 0)
        elif isinstance(op, scf.ForOp):
            inits, end = [op.lower_bound, *op.init_args], (op.upper_bound, op.step)
            self._loop(op, op.body.block, inits, end, op.results)
        elif isinstance(op, scf.WhileOp):
            block = op.before.block
            end = _end_of_rotated(block)
            self._loop(op, block, op.inits, end, op.results[1:])
        elif name in _SAME:
            self._same(op.results[0], op.operands[0])
        elif name in OPERATIONS and len(op.results) == 1:
            operands = [self._of[each] for each in op.operands if each in self._of]
            if len(operands) == len(op.operands):
                self._give(op.results[0], name, *operands)

    def _loop(
        self,
        op: Operation,
        block: Block,
        inits: Sequence[SSAValue],
        end: Sequence[SSAValue],
        results: Sequence[SSAValue],
    ) -> None:
        """Give values to a loop whose first argument may be a counter."""
        bounds = [self._of[each] for each in (*inits[:1], *end) if each in self._of]
        for inside, first in zip(block.args, inits):
            self._same(inside, first)
        for after, first in zip(results, inits[1:]):
            self._same(after, first)
        if len(bounds) == 3:
            self._give(block.args[0], "halfway", *bounds)
            self._trips[op] = self._new_slot("trips", *bounds)

    def _same(self, value: SSAValue, other: SSAValue) -> None:
        slot = self._of.get(other)
        if slot is not None:
            self._of[value] = slot

    def _give(self, value: SSAValue, kind: str, *rest: int) -> None:
        self._of[value] = self._new_slot(kind, *rest)

    def _new_slot(self, kind: str, *rest: int) -> int:
        self._slots.append([kind, *rest])
        return len(self._slots) - 1

    def _operands(self, slot: int) -> list[int]:
        kind: str = self._slots[slot][0]
        rest: list[Any] = self._slots[slot][1:]
        return [] if kind in LEAVES else rest

    def _dependences(self) -> list[int]:
        """For each slot the axes of the grid that it depends on."""
        found: list[int] = []
        for index, slot in enumerate(self._slots):
            axes: int = 1 << slot[1] if slot[0] == "program" else 0
            for operand in self._operands(index):
                axes |= found[operand]
            found.append(axes)
        return found
