"""Control flow: `scf` and calls.  Source: MLIR, `scf` and `func`."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from xdsl.ir import Block, Region

from xetl.dialects.base import ints_of
from xetl.errors import InternalError
from xetl_reference.plan import (
    BLOCK_ID,
    RESERVED,
    Builder,
    Frame,
    Plan,
    Step,
    in_turn,
    move,
)


def _yielded(plan: Plan, block: Block) -> list[int]:
    last = block.last_op
    return plan.slots(last.operands) if last is not None else []


def _for(plan: Plan, op: Any) -> Step:
    block = op.body.block
    lower, upper, step = plan.slots(op.operands[:3])
    counter, *carried = plan.slots(block.args)
    steps = plan.steps(block)
    enter = move(plan.slots(op.operands[3:]), carried)
    again = move(_yielded(plan, block), carried)
    leave = move(carried, plan.slots(op.results))

    def run(frame: Frame) -> None:
        if frame[step] <= 0:
            raise InternalError(f"scf.for with a step of {frame[step]}")
        enter(frame)
        for number in range(frame[lower], frame[upper], frame[step]):
            frame[counter] = number
            for each in steps:
                each(frame)
            again(frame)
        leave(frame)

    return run


def _branch(plan: Plan, region: Region, results: list[int]) -> Step:
    """Return a step that runs a region and sets the results of its operation."""
    if not region.blocks:
        return in_turn(())
    steps = plan.steps(region.block)
    if results:
        steps.append(move(_yielded(plan, region.block), results))
    return in_turn(steps)


def _if(plan: Plan, op: Any) -> Step:
    condition, results = plan.slot(op.condition), plan.slots(op.results)
    then, otherwise = (_branch(plan, region, results) for region in op.regions)
    return lambda frame: (then if frame[condition] else otherwise)(frame)


def _index_switch(plan: Plan, op: Any) -> Step:
    argument, results = plan.slot(op.arg), plan.slots(op.results)
    default, *cases = (_branch(plan, region, results) for region in op.regions)
    chosen = dict(zip(ints_of(op.cases), cases))
    return lambda frame: chosen.get(frame[argument], default)(frame)


def _while(plan: Plan, op: Any) -> Step:
    before, after = op.before.block, op.after.block
    test, *values = _yielded(plan, before)
    enter = move(plan.slots(op.operands), plan.slots(before.args))
    first, second = plan.steps(before), plan.steps(after)
    go_on = move(values, plan.slots(after.args))
    again = move(_yielded(plan, after), plan.slots(before.args))
    leave = move(values, plan.slots(op.results))

    def run(frame: Frame) -> None:
        enter(frame)
        while True:
            for step in first:
                step(frame)
            if not frame[test]:
                break
            go_on(frame)
            for step in second:
                step(frame)
            again(frame)
        leave(frame)

    return run


# Parallel loops ---------------------------------------------------------------------


def _parallel(plan: Plan, op: Any) -> Step:
    """Run a loop nest; the first counter is the fastest, as in a grid."""
    block = op.body.block
    given = op.lower_bounds, op.upper_bounds, op.steps
    bounds = [plan.slots(values) for values in given]
    counters = plan.slots(block.args)
    enter = move(plan.slots(op.init_vals), plan.slots(op.results))
    # The steps that combine the values of one iteration with the loop's results.
    last = op.body.block.last_op
    made: list[Step] = []
    for value, region, result in zip(last.operands, last.regions, op.results):
        made.append(move(plan.slots([result, value]), plan.slots(region.block.args)))
        made.append(_branch(plan, region, [plan.slot(result)]))
    steps = [*plan.steps(block), *made]

    def run(frame: Frame) -> None:
        enter(frame)
        values = zip(*([frame[slot] for slot in slots] for slots in bounds))
        for numbers in product(*[range(*bound) for bound in values][::-1]):
            for slot, number in zip(counters, reversed(numbers)):
                frame[slot] = number
            for step in steps:
                step(frame)

    return run


# Scans ------------------------------------------------------------------------------


def _associative_scan(plan: Plan, op: Any) -> Step:
    """Scan in log2(n) steps: each element is combined with the one ``distance`` before.

    Source: W. D. Hillis, G. L. Steele, Data Parallel Algorithms, CACM 29(12), 1986.
    """
    block, dim, extent = op.combine.block, op.dim, op.shape[op.dim]
    enter = move(plan.slots(op.sources), plan.slots(op.results))
    values, arguments = plan.slots(op.results), plan.slots(block.args)
    combined, steps = plan.slots(op.combined), plan.steps(block)
    numbers = np.arange(extent, dtype=np.int64)
    along = numbers.reshape((-1, 1) if dim == 0 else (1, -1))

    def run(frame: Frame) -> None:
        enter(frame)
        distance = 1
        while distance < extent:
            after = [frame[slot] for slot in values]
            place = np.maximum(numbers - distance, 0)
            before = [each.take(place, dim) for each in after]
            for slot, each in zip(arguments, [*before, *after]):
                frame[slot] = each
            for step in steps:
                step(frame)
            for slot, new, old in zip(values, combined, after):
                frame[slot] = np.where(along >= distance, frame[new], old)
            distance *= 2

    return run


# Calls ------------------------------------------------------------------------------


def _call(plan: Plan, op: Any) -> Step:
    name = op.callee.root_reference.data
    arguments, results = plan.slots(op.operands), plan.slots(op.results)
    callees: list[Plan] = []

    def run(frame: Frame) -> None:
        if not callees:  # plan callees at their first call: they may be recursive
            callees.append(Plan(plan.functions[name].body, plan.table, plan.functions))
        callee = callees[0]
        inner = callee.frame([frame[slot] for slot in arguments])
        inner[BLOCK_ID:RESERVED] = frame[BLOCK_ID:RESERVED]
        callee.run(inner)
        for slot, source in zip(results, callee.returned):
            frame[slot] = inner[source]

    return run


BUILDERS: dict[str, Builder] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.execute_region": lambda plan, op: _branch(
        plan, op.region, plan.slots(op.results)
    ),
    "scf.index_switch": _index_switch,
    "scf.parallel": _parallel,
    "func.call": _call,
    "xetile.tile_associative_scan": _associative_scan,
}
