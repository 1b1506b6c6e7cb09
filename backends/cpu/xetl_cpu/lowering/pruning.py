"""What nobody needs any more leaves a loop: operations, and values it carries."""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.memory import acts
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import PrefetchTileOp
from xetl.ir.builder import move_to_end


def prune_loop(loop: scf.ForOp) -> None:
    """Drop what leads to no used result of the loop and to no effect.

    Prefetches count as nothing: what they ask for was for what has left the loop.
    """
    body = loop.body.block
    last = body.last_op
    assert last is not None
    needed = _needed(loop, last)
    for op in reversed(list(body.ops)):
        if op is not last and op not in needed.operations:
            Rewriter.erase_op(op, safe_erase=False)
    if not needed.operations:
        Rewriter.erase_op(loop)
    elif len(needed.indices) < len(loop.init_args):
        _rebuild(loop, last, sorted(needed.indices))


class _Needed:
    """Operations of a loop's body and carried values that matter."""

    def __init__(self) -> None:
        self.operations: set[Operation] = set()
        self.indices: set[int] = set()


def _needed(loop: scf.ForOp, last: Operation) -> _Needed:
    """All that results in use and effects depend on."""
    body, needed = loop.body.block, _Needed()
    pending: list[SSAValue] = []
    for op in body.ops:
        if op is not last and _acts(op):
            _need(op, needed, pending)
    for index, result in enumerate(loop.results):
        if any(True for _ in result.uses):
            needed.indices.add(index)
            pending.append(last.operands[index])
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(value, BlockArgument):
            index = value.index - 1
            if value.block is body and index >= 0 and index not in needed.indices:
                needed.indices.add(index)
                pending.append(last.operands[index])
        elif isinstance(owner, Operation) and _is_new(owner, body, needed):
            _need(owner, needed, pending)
    return needed


def _is_new(op: Operation, body: Block, needed: _Needed) -> bool:
    return op.parent is body and op not in needed.operations


def _acts(op: Operation) -> bool:
    """Whether an operation does something although nobody uses its results."""
    return acts(op) and not isinstance(op, PrefetchTileOp)


def _need(op: Operation, needed: _Needed, pending: list[SSAValue]) -> None:
    needed.operations.add(op)
    pending += [operand for inner in op.walk() for operand in inner.operands]


def _rebuild(loop: scf.ForOp, last: Operation, kept: list[int]) -> None:
    """The same loop without the carried values that are not ``kept``."""
    old = loop.body.block
    types = [old.args[0].type, *(loop.init_args[i].type for i in kept)]
    block = Block(arg_types=types)
    for argument, new in zip(
        (old.args[0], *(old.args[i + 1] for i in kept)), block.args
    ):
        argument.replace_all_uses_with(new)
        new.name_hint = argument.name_hint
    move_to_end([op for op in old.ops if op is not last], block)
    block.add_op(scf.YieldOp(*(last.operands[i] for i in kept)))
    Rewriter.erase_op(last, safe_erase=False)
    inits = [loop.init_args[i] for i in kept]
    new_loop = scf.ForOp(
        loop.lower_bound, loop.upper_bound, loop.step, inits, Region(block)
    )
    new_loop.location = loop.location
    results: list[SSAValue | None] = [None] * len(loop.results)
    for index, result in zip(kept, new_loop.results):
        results[index] = result
        result.name_hint = loop.results[index].name_hint
    Rewriter.replace_op(loop, new_loop, results)
