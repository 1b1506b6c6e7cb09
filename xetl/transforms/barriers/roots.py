"""Which arrays and allocations a tile or a view may lie in, and which are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from xetl.dialects.base import ints_of
from xetl.dialects.kernel_attributes import ALIAS_GROUPS
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.upstream import func, gpu, memref, scf
from xetl.dialects.xetile import TileType

Root: TypeAlias = SSAValue | None
"""An argument or the result of an allocation; None: it may be any memory."""


def roots_of(value: SSAValue) -> frozenset[Root]:
    """Where a tile or a memref may lie: it is followed back to where it comes from."""
    found: set[Root] = set()
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        sources = _sources(current)
        if sources is None:
            found.add(current if _is_root(current) else None)
        else:
            waiting += sources
    return frozenset(found)


def may_be_one(left: Root, right: Root) -> bool:
    """Whether two roots may be the same memory.

    Arguments are known to be apart, or to be one, where the kernel has been specialised
    for a call (docs/design/0001-seams.md, section 1).
    """
    if left is None or right is None or left is right:
        return True
    if not (isinstance(left, BlockArgument) and isinstance(right, BlockArgument)):
        return False  # nobody else knows what a kernel has allocated
    groups = _group(left), _group(right)
    return None in groups or (groups[0] == groups[1] != -1)


def _is_root(value: SSAValue) -> bool:
    if isinstance(value.owner, Block):
        return isinstance(value.owner.parent_op(), gpu.FuncOp | func.FuncOp)
    return isinstance(value.owner, memref.AllocOp | memref.AllocaOp)


def _group(argument: BlockArgument) -> int | None:
    """The number of the memory an argument is; -1: its own; None: nobody has said."""
    function = argument.block.parent_op()
    assert function is not None
    groups = ints_of(function.attributes.get(ALIAS_GROUPS))
    return groups[argument.index] if argument.index < len(groups) else None


def _sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """The values that ``value`` is a view of; None where this cannot go on."""
    if isinstance(value, BlockArgument):
        return _sources_of_argument(value)
    assert isinstance(value, OpResult)
    op = value.op
    match op:
        case scf.ForOp():
            return [op.init_args[value.index], _end(op.body.block)[value.index]]
        case scf.IfOp():
            return [_end(r.block)[value.index] for r in op.regions if r.blocks]
        case scf.WhileOp():
            return [_end(op.before.block)[value.index + 1]]
        case _:
            sources = list(_memory_in(op.operands))
            return None if op.regions or not sources else sources


def _sources_of_argument(value: BlockArgument) -> Sequence[SSAValue] | None:
    block, index = value.block, value.index
    match block.parent_op():
        case scf.ForOp() as op if index > 0:
            return [op.init_args[index - 1], _end(block)[index - 1]]
        case scf.WhileOp() as op if block is op.before.block:
            return [op.inits[index], _end(op.after.block)[index]]
        case scf.WhileOp() as op:
            return [_end(op.before.block)[index + 1]]
        case _:
            return None


def _end(block: Block) -> Sequence[SSAValue]:
    """What the end of a block hands on; of scf.condition the condition is first."""
    last = block.last_op
    assert last is not None
    return last.operands


def _memory_in(values: Iterable[SSAValue]) -> Iterable[SSAValue]:
    for value in values:
        if is_memref(value.type) or isinstance(value.type, TileType):
            yield value
