"""Named barriers: some subgroups arrive, some wait for a number of arrivals.

A wait is for the next round of arrivals after the one that the last wait of the same
subgroup was for.  Source: MLIR, `xegpu` (alloc_nbarrier to nbarrier_wait).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from xetl_reference import divergence
from xetl_reference.plan import PROGRAM, RUN, SUBGROUP_ID, Builder, Frame, Plan

MOST = 32
"""Named barriers of a workgroup (docs/xetile.md, "Limits")."""


class NamedBarrier(NamedTuple):
    """The value of `init_nbarrier`."""

    number: int
    participants: int


class Rounds:
    """Who has arrived at the named barriers of a program, and who has waited."""

    def __init__(self) -> None:
        self._arrivals: Counter[int] = Counter()
        self._waits: Counter[tuple[int, int]] = Counter()

    def arrive(self, barrier: NamedBarrier) -> int:
        """One arrives; gives the round, from 0, that it belongs to."""
        number = self._arrivals[barrier.number]
        self._arrivals[barrier.number] += 1
        return number // barrier.participants

    def next_wait(self, barrier: NamedBarrier, subgroup: int) -> int:
        """One begins to wait; gives the round, from 0, that it waits for."""
        key = barrier.number, subgroup
        self._waits[key] += 1
        return self._waits[key] - 1

    def is_over(self, barrier: NamedBarrier, number: int) -> bool:
        """Whether all participants of a round have arrived."""
        return self._arrivals[barrier.number] >= (number + 1) * barrier.participants


def _allocated(op: Any) -> int:
    """How many named barriers the function of ``op`` has asked for."""
    function = op
    while function.parent_op() is not None and not function.name.endswith(".func"):
        function = function.parent_op()
    asked = [
        each.nbarrier_num.value.data
        for each in function.walk()
        if each.name == "xegpu.alloc_nbarrier"
    ]
    return min(max(asked, default=MOST), MOST)


def _init(plan: Plan, op: Any) -> Any:
    limit, result = _allocated(op), plan.slot(op.result)
    number, count = plan.slots(op.operands)

    def run(frame: Frame) -> None:
        barrier = NamedBarrier(frame[number], frame[count])
        if not 0 <= barrier.number < limit:
            raise divergence.no_such_barrier(op, barrier.number, limit)
        team = frame[PROGRAM].team
        if team is not None and not 1 <= barrier.participants <= team.count:
            raise divergence.participants(op, barrier.participants, team.count)
        frame[result] = barrier

    return run


def _arrive(plan: Plan, op: Any) -> Any:
    slot = plan.slot(op.nbarrier)

    def run(frame: Frame) -> None:
        barrier = frame[slot]
        number = frame[PROGRAM].rounds.arrive(barrier)
        if frame[RUN] is not None:
            frame[RUN].arrive(frame[SUBGROUP_ID], (barrier.number, number))

    return run


def _wait(plan: Plan, op: Any) -> Any:
    slot = plan.slot(op.nbarrier)

    def run(frame: Frame) -> None:
        program, barrier, me = frame[PROGRAM], frame[slot], frame[SUBGROUP_ID]
        number = program.rounds.next_wait(barrier, me)
        if program.team is not None:
            program.team.wait(me, op, lambda: program.rounds.is_over(barrier, number))
        if frame[RUN] is not None:
            frame[RUN].pass_named(me, (barrier.number, number))

    return run


BUILDERS: dict[str, Builder] = {
    "xegpu.init_nbarrier": _init,
    "xegpu.nbarrier_arrive": _arrive,
    "xegpu.nbarrier_wait": _wait,
}
