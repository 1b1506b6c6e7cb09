"""Named barriers: for all subgroups of a workgroup, or for some.

A barrier for all subgroups becomes a split barrier. A barrier for some subgroups
becomes a named barrier of the device, at the place where the subgroups wait. Source of
the limits: what ocloc 26.27 accepts.

A subgroup may arrive and never wait (a producer). Then all subgroups of the barrier
meet where they arrive, and a wait after an arrival has nothing left to do. So a
subgroup waits longer than necessary. Two subgroups that arrive at two barriers in
opposite orders would wait for each other; this is refused.

If a GPU is emulated, `gather-barriers` makes barriers of the whole workgroup. It merges
the first barriers in both sides of a branch to one, the second barriers to another one,
and so on. So all subgroups that meet must come to the same merged barrier, except that
producers may come to an earlier one.
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
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import simt
from xetl_xegpu.dialect import AtomicRmwOp

from .state import Lanes, NamedBarrier

Guards = frozenset[tuple[SSAValue, int]]
"""Conditions that differ between subgroups, each with the side that is taken."""

Slot = tuple[Operation, int]
"""A merged barrier of the workgroup: the outermost operation around, and its number."""

Turn = NbarrierArriveOp | NbarrierWaitOp


@dataclass(frozen=True)
class Meeting:
    """An operation at which some subgroups meet at a named barrier.

    Attributes:
        op: the arrival or the wait at which they meet.
        number: the number of the named barrier.
        is_waited_for: whether any of them waits, at ``op`` or later.
        guards: the conditions under which a subgroup comes to ``op``.
        slot: the barrier of the workgroup that `gather-barriers` makes of it.
    """

    op: Turn
    number: int
    is_waited_for: bool
    guards: Guards
    slot: Slot


def arrival_of(op: NbarrierWaitOp) -> NbarrierArriveOp | None:
    """Return the arrival before a wait, in its block or around its branch, or None.

    The search stops at a loop, because one arrival would belong to many waits.
    """
    for at in around(op, Operation):
        for before in _before(at):
            if isinstance(before, NbarrierArriveOp) and before.nbarrier is op.nbarrier:
                return before
        if not isinstance(at.parent_op(), scf.IfOp):
            break
    return None


def _before(op: Operation) -> Iterator[Operation]:
    """Yield the operations before one in its block, the nearest first."""
    before = op.prev_op
    while before is not None:
        yield before
        before = before.prev_op


def find_meetings(
    met: Sequence[Turn], numbers: dict[SSAValue, int], partings: Iterable[Operation]
) -> list[Meeting]:
    """Return all meetings of a kernel, in program order.

    Args:
        met: the operations at which subgroups meet, in program order.
        numbers: the number of each named barrier.
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
    """Yield the conditions of the branches around an operation, each with its side."""
    for branch in around(op, scf.IfOp):
        if branch in partings:
            yield branch.condition, int(branch.else_region.is_ancestor(op))


def _slot(op: Operation, met: set[Turn]) -> Slot:
    number, at = 0, op
    while isinstance(parent := at.parent_op(), scf.IfOp):
        number += sum(_count(before, met) for before in _before(at))
        at = parent
    return at, number


def _count(op: Operation, met: set[Turn]) -> int:
    """Return the number of merged barriers that an operation leaves in its block."""
    if isinstance(op, scf.IfOp):
        blocks = [block for region in op.regions for block in region.blocks]
        return max((sum(_count(o, met) for o in b.ops) for b in blocks), default=0)
    return int(op in met)


def first_out_of_order(meetings: Sequence[Meeting]) -> Meeting | None:
    """Return a meeting that subgroups come to in different orders, or None."""
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
    """Return a meeting that subgroups come to at different merged barriers, or None."""
    for number in {each.number for each in meetings}:
        found = _apart([each for each in meetings if each.number == number])
        if found is not None:
            return found
    return None


def _apart(meetings: Sequence[Meeting]) -> Meeting | None:
    """Return the same as `first_apart`, for the meetings at one named barrier."""
    guards: dict[Slot, set[Guards]] = {}
    for each in meetings:
        guards.setdefault(each.slot, set()).add(each.guards)
    last = meetings[-1]
    if all(each == guards[last.slot] for each in guards.values()):
        return None
    together = len({each.slot for each in meetings if each.is_waited_for}) == 1
    is_once = len({each.guards for each in meetings}) == len(meetings)
    outermost = [each.slot[0] for each in meetings]

    def place(each: Meeting) -> tuple[int, int]:
        return outermost.index(each.slot[0]), each.slot[1]

    waited = [each.is_waited_for for each in sorted(meetings, key=place)]
    # Producers that never wait come first, or at the same time.
    if together and is_once and waited == sorted(waited):
        return None
    return last


_MOST = 31
"""The most barriers for some subgroups in a kernel; with more the compiler fails."""


def init(lanes: Lanes, op: InitNbarrierOp) -> None:
    """Record which subgroups meet at a barrier; both numbers must be constants."""
    number = constant_index(op.nbarrier_id)
    count = constant_index(op.participant_thread_num)
    if number is None or count is None:
        raise refusal(
            op,
            "which subgroups meet at this named barrier is not known",
            "give constants for its number and for how many subgroups meet",
        )
    if not 0 < count <= lanes.subgroups:
        problem = f"{count} subgroups meet at this named barrier, of {lanes.subgroups}"
        raise refusal(op, problem, f"let 1 to {lanes.subgroups} subgroups meet")
    for use in op.result.uses:
        if not isinstance(use.operation, Turn):
            raise _refuse_carried(use.operation)
    made = NamedBarrier(number, count, not _is_paired(lanes, number))
    if _is_of_device(lanes, made) and not lanes.device.emulated:
        _check_some(lanes, op, made)
    lanes.barriers[op.result] = made
    if len(lanes.barriers) == len(operations_in(lanes.source, InitNbarrierOp)):
        _check_meetings(lanes)


def _is_paired(lanes: Lanes, number: int) -> bool:
    """Whether all subgroups that arrive at a barrier also wait in the same block."""
    return all(
        _is_met_by_all(use.operation, init.result)
        for init in operations_in(lanes.source, InitNbarrierOp)
        if constant_index(init.nbarrier_id) == number
        for use in init.result.uses
    )


def _check_meetings(lanes: Lanes) -> None:
    """Refuse barriers that would deadlock, or would not meet on an emulated GPU."""
    known, partings = lanes.barriers, _partings(lanes)
    turns = [op for op in lanes.source.walk() if isinstance(op, Turn)]
    # Subgroups meet where they wait, or where they arrive.
    met = [
        op
        for op in turns
        if isinstance(op, NbarrierArriveOp) == known[op.nbarrier].on_arrival
    ]
    numbers = {value: each.number for value, each in known.items()}
    found = find_meetings(met, numbers, partings)
    for op in turns:
        if isinstance(op, NbarrierWaitOp) and op not in met and not arrival_of(op):
            raise refusal(
                op,
                "who waits at this named barrier may not have arrived there",
                "arrive before it in the same loop, in its block or around its branch",
            )
    late = first_out_of_order(found)
    if late is not None and any(each.on_arrival for each in known.values()):
        raise refusal(
            late.op,
            "some subgroups come to this named barrier before another, others after "
            "it, and some of them never wait",
            "let all come to their barriers in one order, or let all of them wait",
        )
    apart = first_apart(found) if lanes.device.emulated else None
    if apart is not None and lanes.subgroups > 1:
        raise refusal(
            apart.op,
            "subgroups come to this named barrier in different branches: emulation "
            "runs them one after the other, up to a barrier that all come to",
            "write both sides as one `scf.if` with an else, or use a GPU (target pvc "
            "or bmg)",
        )


def _partings(lanes: Lanes) -> Mapping[Operation, Operation]:
    """Return the branches and loops that subgroups take differently."""
    (module,) = around(lanes.source, ModuleOp)
    sources = operations_in(lanes.source, *_DIFFERENT)
    return find_divergence(module, sources).partings


def _check_some(lanes: Lanes, op: Operation, made: NamedBarrier) -> None:
    some = [each for each in lanes.barriers.values() if _is_of_device(lanes, each)]
    if any(each.number == made.number and each != made for each in some):
        raise refusal(
            op,
            f"named barrier {made.number} is for another number of subgroups before",
            "give each barrier a number of its own",
        )
    if len({each.number for each in (*some, made)}) > _MOST:
        raise refusal(
            op,
            f"a workgroup has no more than {_MOST} named barriers",
            "use a barrier again once all of its subgroups have met",
        )


def _is_of_device(lanes: Lanes, barrier: NamedBarrier) -> bool:
    """Whether it is a named barrier of the device, not a barrier of the workgroup."""
    return barrier.subgroups < lanes.subgroups or barrier.on_arrival


def _is_met_by_all(op: Operation, barrier: SSAValue) -> bool:
    """Whether arrivals and waits at a barrier alternate in the block of ``op``."""
    block = op.parent
    assert block is not None
    turns = [
        type(x) for x in block.ops if isinstance(x, Turn) and x.nbarrier is barrier
    ]
    return turns == [NbarrierArriveOp, NbarrierWaitOp] * (len(turns) // 2)


def _check_place(lanes: Lanes, op: Operation) -> None:
    """Refuse a barrier that `gather-barriers` cannot move out of loops (emulation)."""
    if not lanes.device.emulated or lanes.subgroups == 1:
        return
    partings = _partings(lanes)
    is_in_loop = False
    for each in around(op, Operation):
        is_in_loop |= isinstance(each, scf.ForOp | scf.WhileOp)
        if is_in_loop and each in partings:
            raise refusal(
                op,
                "subgroups come to this named barrier in loops of their own: emulation "
                "runs them one after the other, up to a barrier that all come to",
                "let all subgroups run the loop, or use a GPU (target pvc or bmg)",
            )


_DIFFERENT = (gpu.SubgroupIdOp, AtomicRmwOp)
"""Operations whose results differ between subgroups."""


def arrive(lanes: Lanes, op: NbarrierArriveOp) -> None:
    """Lower an arrival: half a barrier, or a whole one if subgroups meet here."""
    barrier = _barrier(lanes, op)
    if barrier.on_arrival:
        _meet(lanes, op, barrier)
    elif not _is_of_device(lanes, barrier):
        lanes.add(simt.BarrierArriveOp())


def wait(lanes: Lanes, op: NbarrierWaitOp) -> None:
    """Lower a wait: half a barrier, a whole one, or nothing."""
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
        raise _refuse_carried(op)
    return known


def _refuse_carried(op: Operation) -> Exception:
    help_ = "use what `init_nbarrier` gives, in the loop and the branch itself"
    return refusal(op, "a loop or a branch cannot carry a named barrier", help_)
