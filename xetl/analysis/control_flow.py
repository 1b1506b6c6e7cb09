"""Values that loops and conditionals carry: where they come from, where they go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from xetl.dialects.base import Index, constant_index
from xetl.dialects.upstream import arith, scf


def yielded(block: Block) -> Sequence[SSAValue]:
    """Return the values that the terminator of a block yields, without a condition."""
    last = block.last_op
    assert last is not None
    return last.operands[1:] if isinstance(last, scf.ConditionOp) else last.operands


def sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """Return the values that ``value`` may be, if control flow defines it.

    Control flow defines results of `scf.if`, `scf.for`, `scf.while`, `scf.index_switch`
    and `scf.execute_region`, and loop-carried values. Return None for other values.
    """
    assert isinstance(value, OpResult | BlockArgument)
    index, block = value.index, None if isinstance(value, OpResult) else value.block
    match value.owner if block is None else block.parent_op():
        case scf.ForOp() as op:
            carried = index if block is None else index - 1
            if carried < 0:
                return None
            return [op.init_args[carried], yielded(op.body.block)[carried]]
        case scf.WhileOp() as op if block is op.before.block:
            return [op.inits[index], yielded(op.after.block)[index]]
        case scf.WhileOp() as op:
            return [yielded(op.before.block)[index]]
        case scf.IfOp() | scf.IndexSwitchOp() | scf.ExecuteRegionOp() as op:
            blocks = [block for region in op.regions for block in region.blocks]
            single = len(blocks) <= len(op.regions)
            return [yielded(block)[index] for block in blocks] if single else None
        case _:
            return None


def targets(op: Operation, index: int) -> Sequence[SSAValue]:
    """Return the values that get the value of operand ``index`` of ``op``.

    ``op`` is a loop with this initial value, or a terminator that yields it. The last
    value is the result, or an argument of the condition block of a `scf.while`.
    """
    match op, op.parent_op():
        case scf.ForOp(), _ if index >= 3:
            return op.body.block.args[index - 2], op.results[index - 3]
        case scf.WhileOp(), _:
            return (op.before.block.args[index],)
        case scf.ConditionOp(), scf.WhileOp() as loop if index > 0:
            return loop.after.block.args[index - 1], loop.results[index - 1]
        case scf.YieldOp(), scf.WhileOp() as loop:
            return (loop.before.block.args[index],)
        case scf.YieldOp(), scf.ForOp() as loop:
            return loop.body.block.args[index + 1], loop.results[index]
        case scf.YieldOp() | scf.ReduceOp(), Operation() as parent if parent.results:
            return (parent.results[index],)
        case _:
            return ()


def carried_together(op: Operation) -> Iterator[tuple[SSAValue, ...]]:
    """Yield groups of values of a loop or a conditional that are one variable."""
    match op:
        case scf.ForOp():
            body = op.body.block
            yield from zip(op.init_args, body.args[1:], yielded(body), op.results)
        case scf.IfOp():
            ends = [yielded(r.block) for r in op.regions if r.blocks]
            yield from zip(*ends, op.results)
        case scf.WhileOp():
            before, after = op.before.block, op.after.block
            yield from zip(op.inits, before.args, yielded(after))
            yield from zip(yielded(before), after.args, op.results)
        case _:
            pass


def loop_of_counter(value: Index) -> scf.ForOp | None:
    """Return the counted loop whose counter this is."""
    if not isinstance(value, BlockArgument) or value.index:
        return None
    loop = value.block.parent_op()
    return loop if isinstance(loop, scf.ForOp) else None


def conditions_of(condition: SSAValue) -> Iterator[SSAValue]:
    """Yield the conditions whose conjunction this is."""
    if isinstance(condition.owner, arith.AndiOp):
        for each in condition.owner.operands:
            yield from conditions_of(each)
    else:
        yield condition


def constant_trips(loop: scf.ForOp) -> int | None:
    """Return the trip count of a loop if its bounds and its step are constants."""
    bounds = loop.lower_bound, loop.upper_bound, loop.step
    lower, upper, step = (constant_index(each) for each in bounds)
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return max(0, -(-(upper - lower) // step))


def is_known_below(x: SSAValue, n: SSAValue, op: Operation) -> bool:
    """Whether loops and conditions around ``op`` prove ``0 <= x < n`` there."""
    facts = set[str]()
    loop = loop_of_counter(x)
    if loop is not None:
        facts |= {"slt"} if loop.upper_bound is n else set()
        facts |= {"sge"} if _is_positive(loop.lower_bound) else set()
    inner: Operation | None = op
    while inner is not None and not {"sge", "slt"} <= facts:
        region, inner = inner.parent_region(), inner.parent_op()
        if isinstance(inner, scf.IfOp) and region is inner.then_region:
            facts.update(_facts(inner.condition, x, n))
    return {"sge", "slt"} <= facts


def _facts(condition: SSAValue, x: SSAValue, n: SSAValue) -> Iterator[str]:
    """Yield ``sge`` if a condition implies ``x >= 0``, and ``slt`` if ``x < n``."""
    for each in conditions_of(condition):
        op = each.owner
        if isinstance(op, arith.CmpiOp) and op.lhs is x:
            name = op.predicate_name
            is_least = name == "sge" and _is_positive(op.rhs)
            if is_least or (name == "slt" and op.rhs is n):
                yield name


def _is_positive(value: SSAValue) -> bool:
    """Whether a value is a constant that is not negative."""
    number = constant_index(value)
    return number is not None and number >= 0
