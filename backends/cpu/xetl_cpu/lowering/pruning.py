"""Removal of unused operations and unused carried values from loops."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.memory import acts
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import PrefetchTileOp
from xetl.ir.builder import Builder, move_to_end
from xetl.worklist import Worklist


def prune_loop(loop: scf.ForOp) -> None:
    """Remove operations and carried values that no used result or effect depends on.

    Prefetches do not count as effects: they were for loads that have left the loop.
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
    """Return all operations and carried values that used results and effects need."""
    body = loop.body.block
    acting = [op for op in body.ops if acts(op) and not isinstance(op, PrefetchTileOp)]
    waiting = Worklist[Operation | int](op for op in acting if op is not last)
    waiting += [number for number, each in enumerate(loop.results) if each.first_use]
    for each in waiting:
        if isinstance(each, Operation):
            values = [value for inner in each.walk() for value in inner.operands]
        else:
            values = [last.operands[each]]
        for value in values:
            owner = value.owner
            if isinstance(value, BlockArgument):
                if owner is body and value.index > 0:
                    waiting += [value.index - 1]
            elif isinstance(owner, Operation) and owner.parent is body:
                waiting += [owner]
    operations = {each for each in waiting.seen if isinstance(each, Operation)}
    return operations, {each for each in waiting.seen if isinstance(each, int)}


def _rebuild(loop: scf.ForOp, last: Operation, kept: list[int]) -> None:
    """Rebuild the loop with only the carried values of ``kept``."""
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
