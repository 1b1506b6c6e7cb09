"""Plans: a function of the IR is compiled once to a list of Python closures.

Each value has a slot in a list, the frame. Each operation becomes a closure that reads
the slots of its operands and writes those of its results. Constants are in the frame
from the start. So an operation costs one call, and no dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.errors import InternalError
from xetl.records import record
from xetl_reference.values import Function, Meaning

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], None]
Builder: TypeAlias = Callable[["Plan", Any], Step | None]
"""Makes the step of an operation that is not a function of its operands alone: control
flow, constants, the position in the grid."""
Guard: TypeAlias = Callable[["Plan", Any, Step], Step]
"""Adds checks to the step of an operation; see checks.py."""

# The first slots of every frame; see interpreter.py.
BLOCK_ID, GRID, THREAD_ID, BLOCK_DIM = 0, 3, 6, 9
SUBGROUP_ID, SUBGROUPS, PROGRAM, RUN = 12, 13, 14, 15
RESERVED = 16

TERMINATORS = frozenset(
    [
        *("gpu.return", "func.return", "scf.yield", "scf.condition"),
        *("scf.reduce", "scf.reduce.return", "cf.br", "cf.cond_br"),
    ]
)


@record(frozen=True)
class Table:
    """The functions or builders of operations, by name; ``guard`` adds checks."""

    meanings: Mapping[str, Meaning]
    builders: Mapping[str, Builder]
    guard: Guard | None = None

    def guarded(self, guard: Guard) -> Table:
        """Return the same table with checks."""
        return replace(self, guard=guard)


class Plan:
    """A function that is compiled to steps on frames."""

    def __init__(
        self, body: Region, table: Table, functions: Mapping[str, Any]
    ) -> None:
        self.table = table
        self.functions = functions
        """The functions of the module, by name, for calls."""
        self.template: Frame = [None] * RESERVED
        self._slots: dict[SSAValue, int] = {}
        self.arguments = self.slots(body.blocks[0].args)
        self.run = _body(self, body)
        last = body.blocks[-1].last_op
        self.returned = self.slots(last.operands) if last else []

    def frame(self, arguments: Sequence[Any]) -> Frame:
        """Return a new frame with the arguments in their slots."""
        frame = self.template.copy()
        for slot, value in zip(self.arguments, arguments, strict=True):
            frame[slot] = value
        return frame

    def slot(self, value: SSAValue) -> int:
        """Return the slot of a value."""
        found = self._slots.get(value)
        if found is None:
            found = self._slots[value] = len(self.template)
            self.template.append(None)
        return found

    def slots(self, values: Sequence[SSAValue]) -> list[int]:
        """Return the slots of several values."""
        return [self.slot(value) for value in values]

    def alias(self, value: SSAValue, slot: int) -> None:
        """Give a value an existing slot."""
        self._slots[value] = slot

    def constant(self, value: SSAValue, data: Any) -> None:
        """Put a constant into all new frames."""
        self.template[self.slot(value)] = data

    def steps(self, block: Block) -> list[Step]:
        """Return the steps of a block, without that of its terminator."""
        made = [self.step(op) for op in block.ops if op.name not in TERMINATORS]
        return [step for step in made if step is not None]

    def step(self, op: Operation) -> Step | None:
        """Return the step of one operation, with its checks. None: it needs no step."""
        step, guard = self._step(op), self.table.guard
        return step if step is None or guard is None else guard(self, op, step)

    def _step(self, op: Operation) -> Step | None:
        builder = self.table.builders.get(op.name)
        if builder is not None:
            return builder(self, op)
        meaning = self.table.meanings.get(op.name)
        if meaning is None:
            raise InternalError(f"the reference backend does not know `{op.name}`")
        return wire(meaning(op), self.slots(op.operands), self.slots(op.results))


def move(sources: Sequence[int], targets: Sequence[int]) -> Step:
    """Return a step that copies slots in parallel: a target may also be a source."""
    pairs = list(zip(sources, targets, strict=True))
    if not pairs:
        return lambda frame: None
    if len(pairs) == 1:
        ((source, target),) = pairs

        def one(frame: Frame) -> None:
            frame[target] = frame[source]

        return one

    def several(frame: Frame) -> None:
        values = [frame[source] for source in sources]
        for target, value in zip(targets, values):
            frame[target] = value

    return several


def wire(function: Function, operands: list[int], results: list[int]) -> Step:
    """Return a step that applies ``function`` to slots of the frame."""
    if len(results) == 1:
        return _wire_one(function, operands, results[0])

    def effect(frame: Frame) -> None:
        function(*[frame[i] for i in operands])

    def several(frame: Frame) -> None:
        found = function(*[frame[i] for i in operands])
        for slot, value in zip(results, found, strict=True):
            frame[slot] = value

    return several if results else effect


def _wire_one(function: Function, operands: list[int], result: int) -> Step:
    def general(frame: Frame) -> None:
        frame[result] = function(*[frame[i] for i in operands])

    if len(operands) not in (1, 2, 3):
        return general
    a, b, c = (operands * 3)[:3]

    def one(frame: Frame) -> None:
        frame[result] = function(frame[a])

    def two(frame: Frame) -> None:
        frame[result] = function(frame[a], frame[b])

    def three(frame: Frame) -> None:
        frame[result] = function(frame[a], frame[b], frame[c])

    return (one, two, three)[len(operands) - 1]


def in_turn(steps: Sequence[Step]) -> Step:
    """Return one step that runs several in order."""

    def run(frame: Frame) -> None:
        for step in steps:
            step(frame)

    return run


def _body(plan: Plan, region: Region) -> Step:
    """Return the step of a function body, which follows branches between blocks."""
    if len(region.blocks) == 1:
        return in_turn(plan.steps(region.blocks[0]))
    numbers = {block: number for number, block in enumerate(region.blocks)}
    for block in region.blocks:
        plan.slots(block.args)
    code = [plan.steps(block) for block in region.blocks]
    exits = [_exit(plan, block, numbers) for block in region.blocks]

    def run(frame: Frame) -> None:
        number: int | None = 0
        while number is not None:
            for step in code[number]:
                step(frame)
            number = exits[number](frame)

    return run


def _exit(
    plan: Plan, block: Block, numbers: Mapping[Block, int]
) -> Callable[[Frame], int | None]:
    """Return a function that follows the terminator of a block.

    It sets the arguments of the next block and returns its number, or None to leave.
    """
    last: Any = block.last_op
    if last is None or last.name not in ("cf.br", "cf.cond_br"):
        return lambda frame: None
    if last.name == "cf.br":
        return _branch(plan, last.dest, last.dest_operands, numbers)
    condition = plan.slot(last.condition)
    yes = _branch(plan, last.true_dest, last.true_operands, numbers)
    no = _branch(plan, last.false_dest, last.false_operands, numbers)
    return lambda frame: (yes if frame[condition] else no)(frame)


def _branch(
    plan: Plan, dest: Block, operands: Sequence[SSAValue], numbers: Mapping[Block, int]
) -> Callable[[Frame], int | None]:
    enter, number = move(plan.slots(operands), plan.slots(dest.args)), numbers[dest]

    def go(frame: Frame) -> int:
        enter(frame)
        return number

    return go
