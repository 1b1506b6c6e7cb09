"""Where in the grid a program runs, and what its subgroups share: `gpu`, barriers.

Source: MLIR, `gpu`; docs/xetile.md, section 4 (thread ids count subgroups).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from xetl_reference.memory import View
from xetl_reference.plan import (
    BLOCK_DIM,
    BLOCK_ID,
    GRID,
    PROGRAM,
    RUN,
    SUBGROUP_ID,
    SUBGROUPS,
    THREAD_ID,
    Builder,
    Frame,
    Plan,
    Step,
)
from xetl_reference.subgroup_scheduler import (
    SubgroupScheduler,
    no_such_barrier,
    participants,
)
from xetl_reference.values import Meaning, constant_value

SUBGROUP_SIZE = 16


class Program:
    """What the subgroups of one program share.

    Attributes:
        shared: memory of the workgroup, by the operation or argument for it.
        team: the subgroups, if there are several.
        rounds: of its named barriers.
    """

    __slots__ = ("rounds", "shared", "team")

    def __init__(self, team: SubgroupScheduler | None = None) -> None:
        self.shared: dict[Any, View] = {}
        self.team = team
        self.rounds = Rounds()


def _axis(op: Any) -> int:
    return "xyz".index(op.dimension.letter.data)


def _position(first: int) -> Builder:
    def build(plan: Plan, op: Any) -> None:
        plan.alias(op.result, first + _axis(op))

    return build


def _number(slot: int) -> Builder:
    return lambda plan, op: plan.alias(op.result, slot)


def _global_id(plan: Plan, op: Any) -> Step:
    result, axis = plan.slot(op.result), _axis(op)

    def run(frame: Frame) -> None:
        before = frame[BLOCK_ID + axis] * frame[BLOCK_DIM + axis]
        frame[result] = before + frame[THREAD_ID + axis]

    return run


def _barrier(plan: Plan, op: Any) -> Step:
    def run(frame: Frame) -> None:
        if frame[PROGRAM].team is not None:
            frame[PROGRAM].team.wait(frame[SUBGROUP_ID], op)

    return run


def _constant(plan: Plan, op: Any) -> None:
    plan.constant(op.result, constant_value(op.value, op.result.type))


MEANINGS: dict[str, Meaning] = {
    "gpu.subgroup_size": lambda op: lambda: SUBGROUP_SIZE,
    "gpu.lane_id": lambda op: lambda: 0,
    "xegpu.alloc_nbarrier": lambda op: lambda: None,
    "xegpu.compile_hint": lambda op: lambda: None,
    "xegpu.fence": lambda op: lambda: None,  # everything is seen at once
}


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
            raise no_such_barrier(op, barrier.number, limit)
        team = frame[PROGRAM].team
        if team is not None and not 1 <= barrier.participants <= team.count:
            raise participants(op, barrier.participants, team.count)
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
    "arith.constant": _constant,
    "index.constant": _constant,
    "index.bool.constant": _constant,
    "gpu.block_id": _position(BLOCK_ID),
    "gpu.grid_dim": _position(GRID),
    "gpu.thread_id": _position(THREAD_ID),
    "gpu.block_dim": _position(BLOCK_DIM),
    "gpu.global_id": _global_id,
    "gpu.subgroup_id": _number(SUBGROUP_ID),
    "gpu.num_subgroups": _number(SUBGROUPS),
    "gpu.barrier": _barrier,
    "xegpu.init_nbarrier": _init,
    "xegpu.nbarrier_arrive": _arrive,
    "xegpu.nbarrier_wait": _wait,
}
