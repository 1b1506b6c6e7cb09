"""Which array arguments a kernel writes.

A tile is followed back to its array through updates, loops, conditionals and views;
where that fails, every array counts as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

_WRITERS = {
    "xetile.store_tile": "tile",
    "xetile.store_scatter": "tile",
    "xetile.atomic_rmw_tile": "tile",
    "memref.store": "memref",
    "memref.atomic_rmw": "memref",
    "memref.copy": "target",
    "vector.store": "base",
    "vector.maskedstore": "base",
    "vector.scatter": "base",
    "vector.transfer_write": "base",
}
_THROUGH = frozenset(
    [
        *("xetile.init_tile", "xetile.update_tile_offset", "memref.reinterpret_cast"),
        *("memref.subview", "memref.cast", "memref.transpose", "memref.view"),
        *("memref.memory_space_cast", "memref.extract_strided_metadata"),
    ]
)
_ALLOCATIONS = frozenset(("memref.alloc", "memref.alloca"))


def stored_arguments(function: Any) -> list[int]:
    """Indices of the arguments of ``function`` that some program may write."""
    entry: Block = function.body.blocks[0]
    arrays = [a for a in entry.args if isinstance(a.type, MemRefType)]
    found: set[SSAValue | None] = set()
    for op in function.walk():
        memory = written_memory(op)
        if memory is not None:
            found |= _roots(memory, entry)
    if None in found:
        return [argument.index for argument in arrays]
    return [argument.index for argument in arrays if argument in found]


def written_memory(op: Operation) -> SSAValue | None:
    """The tile or the memref that an operation writes; None: it writes none."""
    name = _WRITERS.get(op.name)
    return None if name is None else getattr(op, name)


def _roots(memory: SSAValue, entry: Block) -> set[SSAValue | None]:
    """The arrays that ``memory`` may lie in; None among them if it cannot be told."""
    found: set[SSAValue | None] = set()
    waiting, seen = [memory], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, BlockArgument) and value.block is entry:
            found.add(value)
            continue
        sources = _sources(value)
        if sources is None:
            found.add(None)
        else:
            waiting += sources
    return found


def _sources(value: SSAValue) -> Iterable[SSAValue] | None:
    """What a value is made of, as far as memory goes; None if unknown."""
    if isinstance(value, OpResult):
        op: Any = value.op
        if op.name in _ALLOCATIONS:
            return []
        if op.name in _THROUGH:
            return [op.operands[0]]
        if op.name == "arith.select":
            return op.operands[1:]
        return _yielded(op, value.index)
    if isinstance(value, BlockArgument):
        return _carried(value)
    return None


def _yielded(op: Any, index: int) -> Sequence[SSAValue] | None:
    if op.name == "scf.if":
        return [region.block.last_op.operands[index] for region in op.regions]
    if op.name == "scf.for":
        return [op.operands[3 + index], op.body.block.last_op.operands[index]]
    if op.name == "scf.while":
        return [op.before.block.last_op.operands[1 + index]]
    return None


def _carried(value: BlockArgument) -> Sequence[SSAValue] | None:
    op: Any = value.block.parent_op()
    if op is None:
        return None
    index = value.index
    if op.name == "scf.for" and index > 0:
        return [op.operands[2 + index], op.body.block.last_op.operands[index - 1]]
    if op.name == "scf.while" and value.block is op.before.block:
        return [op.operands[index], op.after.block.last_op.operands[index]]
    if op.name == "scf.while":
        return [op.before.block.last_op.operands[1 + index]]
    return None
