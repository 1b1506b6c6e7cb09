"""Which subgroups come to a named barrier where, and whether that can be followed.

A subgroup may arrive and never wait: it brings something to others. It then meets them
where it arrives, all do; a wait behind an arrival has nothing left to do. A subgroup
waits longer so than it must, so two that arrive at two barriers in opposite orders
would wait for one another: refused.

Where a GPU is emulated, `gather-barriers` makes barriers of the whole workgroup: of the
first ones in both sides of a branch one, of the second ones another. So all who meet
must come to the same one of these, or those who only bring something to an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.upstream import scf
from xetl.dialects.upstream.xegpu import NbarrierArriveOp, NbarrierWaitOp

Guards = frozenset[tuple[SSAValue, int]]
"""Conditions that subgroups differ in, and the sides of these that are taken."""

Slot = tuple[Operation, int]
"""A barrier of the workgroup: the outermost branch it is cut from, and which one."""

Turn = NbarrierArriveOp | NbarrierWaitOp


@dataclass(frozen=True)
class Meeting:
    """Where some subgroups come to a named barrier.

    Attributes:
        op: the arrival or the wait at which they meet.
        number: of the barrier.
        is_waited_for: whether any of them waits, there or later.
        guards: what is so of those that come.
        slot: which barrier of the workgroup it is, if gathered.
    """

    op: Turn
    number: int
    is_waited_for: bool
    guards: Guards
    slot: Slot


def arrival_of(op: NbarrierWaitOp) -> NbarrierArriveOp | None:
    """The arrival that a wait follows, in its block or around its branch; or None.

    Not around a loop: there would be one arrival for many waits.
    """
    at: Operation = op
    while True:
        before = at.prev_op
        while before is not None:
            if isinstance(before, NbarrierArriveOp) and before.nbarrier is op.nbarrier:
                return before
            before = before.prev_op
        around = at.parent_op()
        if not isinstance(around, scf.IfOp):
            return None
        at = around


def find_meetings(
    met: Sequence[Turn], numbers: dict[SSAValue, int], partings: Iterable[Operation]
) -> list[Meeting]:
    """All meetings of a kernel, in its order.

    Args:
        met: the operations at which subgroups meet, in their order.
        numbers: of the barriers.
        partings: branches and loops that subgroups take differently.
    """
    differ = set(partings)
    waits = {use.operation for each in numbers for use in each.uses}
    waited = {
        arrival_of(each) for each in waits if isinstance(each, NbarrierWaitOp)
    } | {each for each in met if isinstance(each, NbarrierWaitOp)}
    return [
        Meeting(
            each,
            numbers[each.nbarrier],
            each in waited,
            frozenset(_guards(each, differ)),
            _slot(each, set(met)),
        )
        for each in met
    ]


def _guards(op: Operation, partings: set[Operation]) -> Iterator[tuple[SSAValue, int]]:
    for branch, side in _branches(op):
        if branch in partings:
            yield branch.condition, side


def _branches(op: Operation) -> Iterator[tuple[scf.IfOp, int]]:
    """The branches around an operation, each with the side it stands in."""
    region = op.parent_region()
    while region is not None:
        owner = region.parent_op()
        if isinstance(owner, scf.IfOp):
            yield owner, owner.regions.index(region)
        region = None if owner is None else owner.parent_region()


def _slot(op: Operation, met: set[Turn]) -> Slot:
    number, at = 0, op
    while isinstance(parent := at.parent_op(), scf.IfOp):
        before = at.prev_op
        while before is not None:
            number += _count(before, met)
            before = before.prev_op
        at = parent
    return at, number


def _count(op: Operation, met: set[Turn]) -> int:
    """How many barriers an operation leaves in the block it stands in."""
    if isinstance(op, scf.IfOp):
        blocks = [block for region in op.regions for block in region.blocks]
        return max((_in_block(block, met) for block in blocks), default=0)
    return int(op in met)


def _in_block(block: Block, met: set[Turn]) -> int:
    return sum(_count(op, met) for op in block.ops)


def first_out_of_order(meetings: Sequence[Meeting]) -> Meeting | None:
    """A meeting that some subgroups come to in another order than others; or None."""
    orders: dict[Guards, list[Meeting]] = {
        guards: [each for each in meetings if each.guards <= guards]
        for guards in {each.guards for each in meetings}
    }
    for one in orders.values():
        for other in orders.values():
            shared = {each.number for each in one} & {each.number for each in other}
            left = [each for each in one if each.number in shared]
            right = [each for each in other if each.number in shared]
            for mine, theirs in zip(left, right):
                if mine.number != theirs.number:
                    return theirs
    return None


def first_apart(meetings: Sequence[Meeting]) -> Meeting | None:
    """A meeting that others come to at another barrier of the workgroup; or None."""
    for number in {each.number for each in meetings}:
        found = _apart([each for each in meetings if each.number == number])
        if found is not None:
            return found
    return None


def _apart(meetings: Sequence[Meeting]) -> Meeting | None:
    """As `first_apart`, of one barrier."""
    comers: dict[Slot, set[Guards]] = {}
    for each in meetings:
        comers.setdefault(each.slot, set()).add(each.guards)
    last = meetings[-1]
    if all(each == comers[last.slot] for each in comers.values()):
        return None
    together = len({each.slot for each in meetings if each.is_waited_for}) == 1
    is_once = len({each.guards for each in meetings}) == len(meetings)
    outermost = [each.slot[0] for each in meetings]

    def place(each: Meeting) -> tuple[int, int]:
        return outermost.index(each.slot[0]), each.slot[1]

    waited = [each.is_waited_for for each in sorted(meetings, key=place)]
    # Those that only bring something come first, or at the same time.
    if together and is_once and waited == sorted(waited):
        return None
    return last
