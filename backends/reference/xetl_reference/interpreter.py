"""The interpreter of a kernel: runs one program after the other, x fastest.

The operations on the position in the grid, on barriers and on the memory of a workgroup
are here as well.

Source: MLIR, `gpu`; docs/xetile.md, section 4 (thread ids count subgroups).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Operation

from xetl.dialects.base import ints_of
from xetl.dialects.kernel_attributes import LANES, SHARED, subgroups_along_axes
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.text import functions_of
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import InternalError
from xetl_reference import (
    control,
    debugging,
    floats,
    integers,
    memory,
    tile_values,
    tiles,
    vectors,
)
from xetl_reference.checks import Run
from xetl_reference.memory import View, allocate
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
    Table,
)
from xetl_reference.subgroup_scheduler import (
    SubgroupScheduler,
    no_such_barrier,
    participants,
)
from xetl_reference.values import Meaning, always, constant_value, nothing


class Program:
    """The state that the subgroups of one program share.

    Attributes:
        shared: memory of the workgroup, by the operation or argument that asks for it.
        team: the scheduler of the subgroups; None if there is one subgroup.
        arrivals: how many each named barrier has had.
        waits: how many each subgroup has done, by barrier and subgroup.
    """

    __slots__ = ("arrivals", "shared", "team", "waits")

    def __init__(self, team: SubgroupScheduler | None = None) -> None:
        self.shared: dict[Any, View] = {}
        self.team = team
        self.arrivals: Counter[int] = Counter()
        self.waits: Counter[tuple[int, int]] = Counter()


def _position(first: int) -> Builder:
    return lambda plan, op: plan.alias(op.result, first + op.axis)


def _global_id(plan: Plan, op: Any) -> Step:
    result, axis = plan.slot(op.result), op.axis

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


_PROGRAM_MEANINGS: dict[str, Meaning] = {
    "gpu.subgroup_size": always(lambda: LANES),
    "gpu.lane_id": always(lambda: 0),
    "xegpu.alloc_nbarrier": nothing,
    "xegpu.compile_hint": nothing,
    "xegpu.fence": nothing,  # all writes are visible at once
}


MOST = 32
"""The most named barriers of a workgroup (docs/xetile.md, "Limits")."""


class NamedBarrier(NamedTuple):
    """The value of `init_nbarrier`."""

    number: int
    participants: int


def _init(plan: Plan, op: Any) -> Any:
    # Find how many named barriers the function of ``op`` allocates.
    function = op
    while function.parent_op() is not None and not function.name.endswith(".func"):
        function = function.parent_op()
    asked = [
        each.nbarrier_num.value.data
        for each in function.walk()
        if each.name == "xegpu.alloc_nbarrier"
    ]
    limit, result = min(max(asked, default=MOST), MOST), plan.slot(op.result)
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
        (number, participants), arrivals = frame[slot], frame[PROGRAM].arrivals
        meeting = number, arrivals[number] // participants
        arrivals[number] += 1
        if frame[RUN] is not None:
            frame[RUN].arrive(frame[SUBGROUP_ID], meeting)

    return run


def _wait(plan: Plan, op: Any) -> Any:
    slot = plan.slot(op.nbarrier)

    def run(frame: Frame) -> None:
        program, me = frame[PROGRAM], frame[SUBGROUP_ID]
        number, participants = frame[slot]
        program.waits[number, me] += 1
        turn = program.waits[number, me]
        if program.team is not None:
            wanted = turn * participants
            program.team.wait(me, op, lambda: program.arrivals[number] >= wanted)
        if frame[RUN] is not None:
            frame[RUN].pass_named(me, (number, turn - 1))

    return run


_PROGRAM_BUILDERS: dict[str, Builder] = {
    "arith.constant": _constant,
    "index.constant": _constant,
    "index.bool.constant": _constant,
    "gpu.block_id": _position(BLOCK_ID),
    "gpu.grid_dim": _position(GRID),
    "gpu.thread_id": _position(THREAD_ID),
    "gpu.block_dim": _position(BLOCK_DIM),
    "gpu.global_id": _global_id,
    "gpu.subgroup_id": lambda plan, op: plan.alias(op.result, SUBGROUP_ID),
    "gpu.num_subgroups": lambda plan, op: plan.alias(op.result, SUBGROUPS),
    "gpu.barrier": _barrier,
    "xegpu.init_nbarrier": _init,
    "xegpu.nbarrier_arrive": _arrive,
    "xegpu.nbarrier_wait": _wait,
}


Grid = tuple[int, int, int]


TABLE = Table(
    meanings={
        **integers.MEANINGS,
        **floats.MEANINGS,
        **vectors.MEANINGS,
        **memory.MEANINGS,
        **tiles.MEANINGS,
        **tile_values.MEANINGS,
        **_PROGRAM_MEANINGS,
        **debugging.MEANINGS,
    },
    builders={**control.BUILDERS, **memory.BUILDERS, **_PROGRAM_BUILDERS},
)
"""All operations that the backend knows."""


class Interpreter:
    """One kernel of a module."""

    def __init__(
        self, module: ModuleOp, kernel: str | None = None, table: Table = TABLE
    ) -> None:
        functions = {each.sym_name.data: each for each in functions_of(module)}
        self.function = find_kernel(functions, kernel)
        self._plan = Plan(self.function.body, table, functions)
        arguments = self.function.body.blocks[0].args
        self._memory = arguments[len(self.argument_types) :]
        """The arguments for memory of the workgroup, or of the subgroup."""

    @property
    def argument_types(self) -> Sequence[Any]:
        """The types of the arguments of `run`."""
        type_: FunctionType = self.function.function_type
        return type_.inputs.data

    def run(
        self,
        grid: Grid,
        arguments: Sequence[Any],
        subgroups: Grid | None = None,
        checks: Run | None = None,
    ) -> None:
        """Run all programs of a grid.

        Args:
            grid: the number of programs along x, y and z.
            arguments: a `View` for each memref, a scalar for others (values.py).
            subgroups: the subgroups of a program, for kernels at subgroup level. By
                default those that the kernel states, or one.
            checks: the state of the checks, if the table has a guard.
        """
        team = subgroups or subgroups_of(self.function)
        with np.errstate(all="ignore"):
            if len(self.argument_types) == len(arguments) + len(grid):
                self._run_whole(grid, arguments)
                return
            frame = self._plan.frame([*arguments, *[None] * len(self._memory)])
            frame[GRID : GRID + 3] = grid
            frame[BLOCK_DIM : BLOCK_DIM + 3] = team
            frame[RUN] = checks
            for z, y, x in product(*map(range, reversed(grid))):
                frame[BLOCK_ID : BLOCK_ID + 3] = x, y, z
                if checks is not None:
                    checks.begin_program((x, y, z))
                self._run_program(frame, team)

    def _run_whole(self, grid: Grid, arguments: Sequence[Any]) -> None:
        """Run a function that loops over the grid itself.

        Its last arguments are the sizes of the grid. The CPU backend's pass
        materialize-grid makes such functions.
        """
        frame = self._plan.frame([*arguments, *grid])
        frame[PROGRAM] = Program()
        frame[THREAD_ID : THREAD_ID + 3] = 0, 0, 0
        frame[BLOCK_DIM : BLOCK_DIM + 3] = 1, 1, 1
        frame[SUBGROUP_ID], frame[SUBGROUPS] = 0, 1
        self._plan.run(frame)

    def _allocate(self, frame: Frame, program: Program) -> None:
        slots = self._plan.slots(self._memory)
        for argument, slot in zip(self._memory, slots):
            if memory_space_of(argument.type) != SHARED:
                frame[slot] = allocate(argument.type, ())
                continue
            if argument not in program.shared:
                program.shared[argument] = allocate(argument.type, ())
            frame[slot] = program.shared[argument]
            if frame[RUN] is not None:
                frame[RUN].watch_allocation(self.function, frame[slot])

    def _run_program(self, frame: Frame, counts: Grid) -> None:
        total = counts[0] * counts[1] * counts[2]
        x, y, z = frame[BLOCK_ID : BLOCK_ID + 3]
        team = SubgroupScheduler(total, (x, y, z)) if total > 1 else None
        program = Program(team)
        frames: list[Frame] = []
        for number, (z, y, x) in enumerate(product(*map(range, reversed(counts)))):
            each = frame.copy()
            each[THREAD_ID : THREAD_ID + 3] = x, y, z
            each[SUBGROUP_ID], each[SUBGROUPS] = number, total
            each[PROGRAM] = program
            self._allocate(each, program)
            frames.append(each)
        if team is None:
            self._run_frame(frames[0])
        else:
            team.run([lambda each=each: self._run_frame(each) for each in frames])

    def _run_frame(self, frame: Frame) -> None:
        """Run one subgroup."""
        if frame[RUN] is not None:
            frame[RUN].begin_turn(frame[SUBGROUP_ID])
        self._plan.run(frame)


def find_kernel(functions: Mapping[str, Any], name: str | None) -> Any:
    """Return the kernel called ``name``, or the only kernel."""
    if name is not None and name in functions:
        return functions[name]
    every = [*functions.values()]
    kernels = [f for f in every if f.name == "gpu.func" and f.is_kernel] or every
    if name is not None or len(kernels) != 1:
        raise InternalError(
            f"expected one kernel{f' `{name}`' if name else ''}, found {[*functions]}"
        )
    return kernels[0]


def subgroups_of(function: Operation) -> Grid:
    """Return how many subgroups a program has along x, y and z, by the kernel.

    A kernel at workgroup level runs as one subgroup: a map determines which subgroup
    owns a part of a value, but not the value.
    """
    attributes: dict[str, Attribute] = {**function.properties, **function.attributes}
    level = attributes.get("xetile.level")
    if level is not None and getattr(level, "data", None) != "subgroup":
        return 1, 1, 1
    if "xetile.subgroups" in function.attributes:
        return subgroups_along_axes(function)
    known = attributes.get("known_block_size", attributes.get("gpu.known_block_size"))
    if known is not None and not used_maps(function):
        x, y, z = (*ints_of(known), 1, 1)[:3]
        return x, y, z
    return 1, 1, 1
