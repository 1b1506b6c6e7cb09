"""Queries about parts of values and private memory; operations without their maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.dialects.xetile.types import SHARED
from xetl.language.distribution import Layout, rounds
from xetl.transforms.diagnostics import refusal
from xetl.transforms.propagate_wg_maps.map_attributes import is_map, is_matrix


def is_distributed(value: SSAValue) -> bool:
    """Whether a subgroup holds parts of a value, instead of all of it."""
    return isinstance(value.type, TileType) or is_matrix(value)


def count_parts(shape: Sequence[int], layout: Layout) -> int:
    """How many sub-tiles a subgroup owns."""
    return prod(rounds(shape, layout))


def without_maps(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """All but what says how values are distributed."""
    return {k: v for k, v in attributes.items() if not is_map(k, v)}


def keep_without_maps(op: Operation) -> None:
    """Strip the maps of an operation that stays."""
    for attributes in (op.attributes, op.properties):
        for name in [n for n, value in attributes.items() if is_map(n, value)]:
            del attributes[name]


def rebuilt(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """The same operation on other operands, without maps."""
    return type(op).create(
        operands=operands,
        result_types=result_types,
        properties=without_maps(op.properties),
        attributes=without_maps(op.attributes),
    )


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
