"""Memory that is not of the workgroup: each subgroup has its own."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref
from xetl.dialects.xetile import InitTileOp
from xetl.dialects.xetile.types import SHARED
from xetl.transforms.subgroups.refusing import refusal


def is_private(value: SSAValue) -> bool:
    """Whether a memref is memory that the kernel asked for, and not shared memory."""
    owner = value.owner
    while isinstance(owner, Operation):
        if isinstance(owner, memref.AllocOp | memref.AllocaOp):
            return memory_space_of(owner.result.type) != SHARED
        if not owner.operands or not is_memref(owner.operands[0].type):
            return False
        owner = owner.operands[0].owner
    return False


def writes_private(op: Operation) -> bool:
    """Whether what an operation has to do with memory is all private."""
    bases = [each for each in op.operands if is_memref(each.type)]
    return bool(bases) and all(is_private(each) for each in bases)


def refuse_private_tile(op: InitTileOp) -> None:
    """Tiles of a workgroup lie where all its subgroups see them.

    Raises:
        IRError: this one lies in memory that each subgroup has for itself.
    """
    if not is_memref(op.source.type) or not is_private(op.source):
        return
    raise refusal(
        op,
        "a tile of a workgroup needs memory that all its subgroups see",
        "allocate it in memory space 3: `memref.alloc() : memref<..., 3>`",
    )
