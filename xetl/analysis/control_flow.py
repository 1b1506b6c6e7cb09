"""Where the values that loops and conditionals carry come from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from xetl.dialects.upstream import scf


def yielded(block: Block) -> Sequence[SSAValue]:
    """The values that the terminator of a block hands on, without a condition."""
    last = block.last_op
    assert last is not None
    return last.operands[1:] if isinstance(last, scf.ConditionOp) else last.operands


def sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """The values of which ``value`` is one, if control flow defines it.

    That is for results of `scf.if`, `scf.for`, `scf.while`, `scf.index_switch` and
    `scf.execute_region`, and for what a loop carries.  None: something else defines it.
    """
    if isinstance(value, OpResult):
        return _sources_of_result(value.op, value.index)
    assert isinstance(value, BlockArgument)
    block, index = value.block, value.index
    match block.parent_op():
        case scf.ForOp() as op if index > 0:
            return [op.init_args[index - 1], yielded(block)[index - 1]]
        case scf.WhileOp() as op if block is op.before.block:
            return [op.inits[index], yielded(op.after.block)[index]]
        case scf.WhileOp() as op:
            return [yielded(op.before.block)[index]]
        case _:
            return None


def _sources_of_result(op: Operation, index: int) -> Sequence[SSAValue] | None:
    match op:
        case scf.ForOp():
            return [op.init_args[index], yielded(op.body.block)[index]]
        case scf.WhileOp():
            return [yielded(op.before.block)[index]]
        case scf.IfOp() | scf.IndexSwitchOp() | scf.ExecuteRegionOp():
            blocks = [block for region in op.regions for block in region.blocks]
            single = len(blocks) <= len(op.regions)
            return [yielded(block)[index] for block in blocks] if single else None
        case _:
            return None


def origins(value: SSAValue) -> list[SSAValue]:
    """The values that no control flow defines and that ``value`` may be."""
    found: list[SSAValue] = []
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        before = sources(current)
        if before is None:
            found.append(current)
        else:
            waiting += before
    return found
