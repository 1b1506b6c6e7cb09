"""Where in the grid a program runs, and what its subgroups share: `gpu`, barriers.

Source: MLIR, `gpu`; docs/xetile.md, section 4 (thread ids count subgroups).
"""

from __future__ import annotations

from typing import Any

from xetl_reference.memory import View
from xetl_reference.named_barriers import Rounds
from xetl_reference.plan import (
    BLOCK_DIM,
    BLOCK_ID,
    GRID,
    PROGRAM,
    SUBGROUP_ID,
    SUBGROUPS,
    THREAD_ID,
    Builder,
    Frame,
    Plan,
    Step,
)
from xetl_reference.team import Team
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

    def __init__(self, team: Team | None = None) -> None:
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
}
