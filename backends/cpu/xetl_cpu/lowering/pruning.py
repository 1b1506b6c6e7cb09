"""What nobody needs any more leaves a loop: operations, and values it carries."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.memory import acts
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import PrefetchTileOp
from xetl.ir.builder import Builder, move_to_end


def prune_loop(loop: scf.ForOp) -> None:
    """Drop what leads to no used result of the loop and to no effect.

    Prefetches count as nothing: what they ask for was for what has left the loop.
    """
    body = loop.body.block
    *_, last = body.ops
    operations, carried = _needed(loop, last)
    for op in reversed(list(body.ops)):
        if op is not last and op not in operations:
            Rewriter.erase_op(op, safe_erase=False)
    if not operations:
        Rewriter.erase_op(loop)
    elif len(carried) < len(loop.init_args):
        _rebuild(loop, last, sorted(carried))


def _needed(loop: scf.ForOp, last: Operation) -> tuple[set[Operation], set[int]]:
    """All that results in use and effects depend on: operations, and carried values."""
    body = loop.body.block
    operations, carried = set[Operation](), set[int]()
    acting = [op for op in body.ops if acts(op) and not isinstance(op, PrefetchTileOp)]
    waiting: list[Operation | int] = [op for op in acting if op is not last]
    waiting += [number for number, each in enumerate(loop.results) if each.first_use]
    while waiting:
        each = waiting.pop()
        if each in operations or each in carried:
            continue
        if isinstance(each, Operation):
            operations.add(each)
            values = [value for inner in each.walk() for value in inner.operands]
        else:
            carried.add(each)
            values = [last.operands[each]]
        for value in values:
            owner = value.owner
            if isinstance(value, BlockArgument):
                if owner is body and value.index > 0:
                    waiting.append(value.index - 1)
            elif isinstance(owner, Operation) and owner.parent is body:
                waiting.append(owner)
    return operations, carried


def _rebuild(loop: scf.ForOp, last: Operation, kept: list[int]) -> None:
    """The same loop without the carried values that are not ``kept``."""
    old, build = loop.body.block, Builder.before(loop)
    inits = [loop.init_args[i] for i in kept]
    new = build.for_loop(loop.lower_bound, loop.upper_bound, loop.step, inits)
    block = new.body.block
    pairs = zip((old.args[0], *(old.args[i + 1] for i in kept)), block.args)
    for argument, other in pairs:
        argument.replace_all_uses_with(other)
        other.name_hint = argument.name_hint
    move_to_end([op for op in old.ops if op is not last], block)
    block.add_op(scf.YieldOp(*(last.operands[i] for i in kept)))
    Rewriter.erase_op(last, safe_erase=False)
    results: list[SSAValue | None] = [None] * len(loop.results)
    for index, result in zip(kept, new.results):
        results[index] = result
        result.name_hint = loop.results[index].name_hint
    Rewriter.replace_op(loop, [], results)
