"""Memory: the roots of tiles and views, aliasing, and the side effects of operations.

The effects decide which unused operations may be erased, and which may be merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import (
    IsTerminator,
    MemoryEffectKind,
    RecursiveMemoryEffect,
    get_effects,
)

from xetl.analysis.control_flow import sources
from xetl.dialects.base import ints_of, is_memref, operations_in
from xetl.dialects.kernel_attributes import ALIAS_GROUPS
from xetl.dialects.upstream import arith, func, gpu, memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.worklist import Worklist

Root: TypeAlias = SSAValue | None
"""An argument or the result of an allocation; None: any memory."""

_WRITERS = {
    "xetile.store_tile": "tile",
    "xetile.store_scatter": "tile",
    "xetile.atomic_rmw_tile": "tile",
    "xegpu.store_nd": "tensor_desc",
    "xegpu.store": "base",
    "xegpu.atomic_rmw": "tensor_desc",
    "memref.store": "memref",
    "memref.atomic_rmw": "memref",
    "memref.copy": "target",
    "vector.store": "base",
    "vector.maskedstore": "base",
    "vector.scatter": "base",
    "vector.transfer_write": "base",
}


def roots_of(value: SSAValue) -> frozenset[Root]:
    """Return the memories that a tile or a memref may lie in.

    Follow the value back through updates, views, loops and conditionals. An integer
    argument that is an address is a root, too.
    """
    found, waiting = set[Root](), Worklist([value])
    for current in waiting:
        before = sources(current)
        if before is None:
            before = _bases(current)
        if before is None:
            found.add(current if _is_root(current) else None)
        else:
            waiting += before
    return frozenset(found)


def may_alias(left: Root, right: Root) -> bool:
    """Whether two memories may overlap. A value that is no root may be any memory.

    If the kernel is specialised for a call, its attributes say which arguments share
    memory (docs/design/0001-seams.md, section 1).
    """
    if left is None or right is None or left is right:
        return True
    if not (_is_root(left) and _is_root(right)):
        return True
    if not (isinstance(left, BlockArgument) and isinstance(right, BlockArgument)):
        return False  # an allocation of the kernel is no argument
    groups = _group(left), _group(right)
    return None in groups or (groups[0] == groups[1] != -1)


def written_memory(op: Operation) -> SSAValue | None:
    """Return the tile or the memref that an operation writes, or None."""
    name = _WRITERS.get(op.name)
    return None if name is None else getattr(op, name)


def stored_arguments(function: gpu.FuncOp | func.FuncOp) -> list[int]:
    """Return the indices of the array arguments that ``function`` may write."""
    entry = function.body.blocks[0]
    arrays = [argument for argument in entry.args if is_memref(argument.type)]
    found: set[Root] = set()
    for op in function.walk():
        memory = written_memory(op)
        if memory is not None:
            found |= roots_of(memory)
    return [each.index for each in arrays if None in found or each in found]


def _is_root(value: SSAValue) -> bool:
    if isinstance(value.owner, Block):
        return isinstance(value.owner.parent_op(), gpu.FuncOp | func.FuncOp)
    return isinstance(value.owner, memref.AllocOp | memref.AllocaOp)


def _group(argument: BlockArgument) -> int | None:
    """Return the number of an argument's alias group; -1: it has its own memory.

    Return None if the kernel is not specialised for it.
    """
    function = argument.block.parent_op()
    assert function is not None
    groups = ints_of(function.attributes.get(ALIAS_GROUPS))
    is_known = is_memref(argument.type) and argument.index < len(groups)
    return groups[argument.index] if is_known else None


def _bases(value: SSAValue) -> Sequence[SSAValue] | None:
    """Return the memories that ``value`` is a view of; None if it is no view."""
    op = value.owner
    if isinstance(op, Block) or op.regions:
        return None
    if isinstance(op, InitTileOp):
        return [op.source]
    if isinstance(op, arith.SelectOp):
        return [op.true_value, op.false_value]
    types = (MemRefType, TileType)
    return [v for v in op.operands if isinstance(v.type, types)] or None


_READ = frozenset({MemoryEffectKind.READ})
_READS_ONLY: dict[type[Operation], bool] = {}
_PURE: dict[type[Operation], bool] = {}


def is_pure(op: Operation) -> bool:
    """Whether equal operands give equal results, without regions and at any place."""
    kind = type(op)
    known = _PURE.get(kind)
    if known is None:
        effects = get_effects(op)
        known = effects is not None and not effects and not op.has_trait(IsTerminator)
        _PURE[kind] = known
    return known and not op.regions


def is_dead(op: Operation) -> bool:
    """Whether removing ``op`` changes nothing."""
    return not any([each.first_use for each in op.results]) and not acts(op)


def acts(op: Operation) -> bool:
    """Whether ``op`` must stay even if its results are unused.

    Loads may be erased: a load that faults is an error of the program. Stores,
    prefetches, barriers, unknown operations and loops that may not end must stay.
    """
    if not op.regions:
        return not op.results or not _has_reads_only(op) or op.has_trait(IsTerminator)
    if op.has_trait(IsTerminator):  # `scf.reduce` has regions
        return True
    return not _has_reads_only(op) or bool(operations_in(op, scf.WhileOp))


def is_second_barrier(op: Operation) -> bool:
    """Whether ``op`` is a barrier with only pure operations since the last barrier."""
    if not isinstance(op, gpu.BarrierOp):
        return False
    before = op.prev_op
    while before is not None and is_pure(before):
        before = before.prev_op
    return isinstance(before, gpu.BarrierOp)


def _has_reads_only(op: Operation) -> bool:
    """Whether xDSL's effects of ``op`` are reads only; stop at the first other one."""
    if op.regions and op.has_trait(RecursiveMemoryEffect):
        bodies = [block for region in op.regions for block in region.blocks]
        return all(_has_reads_only(each) for block in bodies for each in block.ops)
    kind = type(op)
    known = _READS_ONLY.get(kind)
    if known is None:
        effects = get_effects(op)
        known = effects is not None and {each.kind for each in effects} <= _READ
        _READS_ONLY[kind] = known
    return known
