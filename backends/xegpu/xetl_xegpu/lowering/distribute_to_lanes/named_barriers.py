"""Named barriers: for all subgroups of a workgroup, or for some.

One for all is a barrier in two halves.  One for some is a barrier of the device where
the subgroups wait.  Source of the limits: what ocloc 26.27 takes.

A subgroup may arrive and never wait: it brings something to others.  It then meets them
where it arrives, all do; a wait after an arrival has nothing left to do.  A subgroup
waits longer so than it must, so two that arrive at two barriers in opposite orders
would wait for one another: refused.

Where a GPU is emulated, `gather-barriers` makes barriers of the whole workgroup: of the
first ones in both sides of a branch one, of the second ones another.  So all who meet
must come to the same one of these, or those who only bring something to an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from xetl.analysis.uniformity import find_divergence
from xetl.dialects.base import around, constant_index, operations_in
from xetl.dialects.upstream import gpu, scf
from xetl.dialects.upstream.xegpu import (
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xetl_xegpu import simt
from xetl_xegpu.dialect import AtomicRmwOp
from xetl_xegpu.lowering.distribute_to_lanes.state import Lanes, NamedBarrier

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
    for at in around(op, Operation):
        before = at.prev_op
        while before is not None:
            if isinstance(before, NbarrierArriveOp) and before.nbarrier is op.nbarrier:
                return before
            before = before.prev_op
        if not isinstance(at.parent_op(), scf.IfOp):
            break
    return None


def find_meetings(
    met: Sequence[Turn], numbers: dict[SSAValue, int], partings: Iterable[Operation]
) -> list[Meeting]:
    """All meetings of a kernel, in its order.

    Args:
        met: the operations at which subgroups meet, in their order.
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
    """The conditions of branches around an operation, each with the side it is on."""
    for branch in around(op, scf.IfOp):
        if branch in partings:
            yield branch.condition, int(branch.else_region.is_ancestor(op))


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
        return max((sum(_count(o, met) for o in b.ops) for b in blocks), default=0)
    return int(op in met)


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


_MOST = 31
"""Barriers of some subgroups in a kernel: the compiler fails with more."""


def init(lanes: Lanes, op: InitNbarrierOp) -> None:
    """Who meets, known before the kernel runs."""
    number = constant_index(op.nbarrier_id)
    count = constant_index(op.participant_thread_num)
    if number is None or count is None:
        raise lanes.refuse(
            op,
            "which subgroups meet at this named barrier is not known",
            "give constants for its number and for how many subgroups meet",
        )
    if not 0 < count <= lanes.subgroups:
        problem = f"{count} subgroups meet at this named barrier, of {lanes.subgroups}"
        raise lanes.refuse(op, problem, f"let 1 to {lanes.subgroups} subgroups meet")
    for use in op.result.uses:
        if not isinstance(use.operation, NbarrierArriveOp | NbarrierWaitOp):
            raise _refuse_carried(lanes, use.operation)
    made = NamedBarrier(number, count, not _is_paired(lanes, number))
    if _is_of_device(lanes, made) and not lanes.device.emulated:
        _check_some(lanes, op, made)
    lanes.barriers[op.result] = made
    if len(lanes.barriers) == len(_inits(lanes)):
        _check_meetings(lanes)


def _inits(lanes: Lanes) -> list[InitNbarrierOp]:
    return operations_in(lanes.source, InitNbarrierOp)


def _is_paired(lanes: Lanes, number: int) -> bool:
    """Whether all who arrive at a number wait in the same block."""
    return all(
        _is_met_by_all(use.operation, init.result)
        for init in _inits(lanes)
        if constant_index(init.nbarrier_id) == number
        for use in init.result.uses
    )


def _check_meetings(lanes: Lanes) -> None:
    """Refuse what would wait for ever, or would not meet where a GPU is emulated."""
    known, partings = lanes.barriers, _partings(lanes)
    turns = [op for op in lanes.source.walk() if isinstance(op, Turn)]
    met = [op for op in turns if _is_meeting(op, known[op.nbarrier])]
    numbers = {value: each.number for value, each in known.items()}
    found = find_meetings(met, numbers, partings)
    for op in turns:
        if isinstance(op, NbarrierWaitOp) and op not in met and not arrival_of(op):
            raise lanes.refuse(
                op,
                "who waits at this named barrier may not have arrived there",
                "arrive before it in the same loop, in its block or around its branch",
            )
    late = first_out_of_order(found)
    if late is not None and any(each.on_arrival for each in known.values()):
        raise lanes.refuse(
            late.op,
            "some subgroups come to this named barrier before another, others after "
            "it, and some of them never wait",
            "let all come to their barriers in one order, or let all of them wait",
        )
    apart = first_apart(found) if lanes.device.emulated else None
    if apart is not None and lanes.subgroups > 1:
        raise lanes.refuse(
            apart.op,
            "subgroups come to this named barrier in different branches: emulation "
            "runs them one after the other, up to a barrier that all come to",
            "write both sides as one `scf.if` with an else, or use a GPU (target pvc "
            "or bmg)",
        )


def _is_meeting(op: Turn, barrier: NamedBarrier) -> bool:
    """Whether subgroups meet at it: where they wait, or where they arrive."""
    return isinstance(op, NbarrierArriveOp) == barrier.on_arrival


def _partings(lanes: Lanes) -> Mapping[Operation, Operation]:
    """The branches and loops that subgroups take differently."""
    (module,) = around(lanes.source, ModuleOp)
    sources = operations_in(lanes.source, *_DIFFERENT)
    return find_divergence(module, sources).partings


def _check_some(lanes: Lanes, op: Operation, made: NamedBarrier) -> None:
    some = [each for each in lanes.barriers.values() if _is_of_device(lanes, each)]
    if any(each.number == made.number and each != made for each in some):
        raise lanes.refuse(
            op,
            f"named barrier {made.number} is for another number of subgroups before",
            "give each barrier a number of its own",
        )
    if len({each.number for each in (*some, made)}) > _MOST:
        raise lanes.refuse(
            op,
            f"a workgroup has no more than {_MOST} named barriers",
            "use a barrier again once all of its subgroups have met",
        )


def _is_of_device(lanes: Lanes, barrier: NamedBarrier) -> bool:
    """Whether it has a number there; else it is a barrier of the workgroup."""
    return barrier.subgroups < lanes.subgroups or barrier.on_arrival


def _is_met_by_all(op: Operation, barrier: SSAValue) -> bool:
    """Whether those who arrive wait in the same block, one after the other."""
    block = op.parent
    assert block is not None
    turns = [
        each
        for each in block.ops
        if isinstance(each, NbarrierArriveOp | NbarrierWaitOp)
        and each.nbarrier is barrier
    ]
    arrivals, waits = turns[::2], turns[1::2]
    return len(arrivals) == len(waits) and (
        all(isinstance(each, NbarrierArriveOp) for each in arrivals)
        and all(isinstance(each, NbarrierWaitOp) for each in waits)
    )


def _check_place(lanes: Lanes, op: Operation) -> None:
    """Where a GPU is emulated, `gather-barriers` takes barriers out of branches."""
    if not lanes.device.emulated or lanes.subgroups == 1:
        return
    partings = _partings(lanes)
    is_in_loop = False
    for each in around(op, Operation):
        is_in_loop |= isinstance(each, scf.ForOp | scf.WhileOp)
        if is_in_loop and each in partings:
            raise lanes.refuse(
                op,
                "subgroups come to this named barrier in loops of their own: emulation "
                "runs them one after the other, up to a barrier that all come to",
                "let all subgroups run the loop, or use a GPU (target pvc or bmg)",
            )


_DIFFERENT = (gpu.SubgroupIdOp, AtomicRmwOp)
"""What gives each subgroup something of its own."""


def arrive(lanes: Lanes, op: NbarrierArriveOp) -> None:
    """The first half, if all subgroups meet; all of it, if some arrive only."""
    barrier = _barrier(lanes, op)
    if barrier.on_arrival:
        _meet(lanes, op, barrier)
    elif not _is_of_device(lanes, barrier):
        lanes.add(simt.BarrierArriveOp())


def wait(lanes: Lanes, op: NbarrierWaitOp) -> None:
    """The second half, or all of it."""
    barrier = _barrier(lanes, op)
    if barrier.on_arrival:
        return
    if _is_of_device(lanes, barrier):
        _meet(lanes, op, barrier)
        return
    _check_place(lanes, op)
    lanes.add(simt.BarrierWaitOp())


def _meet(lanes: Lanes, op: Operation, barrier: NamedBarrier) -> None:
    _check_place(lanes, op)
    lanes.add(simt.NamedBarrierOp(number=barrier.number, subgroups=barrier.subgroups))


def _barrier(lanes: Lanes, op: Turn) -> NamedBarrier:
    known = lanes.barriers.get(op.nbarrier)
    if known is None:
        raise _refuse_carried(lanes, op)
    return known


def _refuse_carried(lanes: Lanes, op: Operation) -> Exception:
    help_ = "use what `init_nbarrier` gives, in the loop and the branch itself"
    return lanes.refuse(op, "a loop or a branch cannot carry a named barrier", help_)
