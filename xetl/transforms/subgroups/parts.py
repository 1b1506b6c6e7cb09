"""Small questions about parts of values, and operations without their maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.xetile import TileType
from xetl.language.distribution import Layout, origins, rounds
from xetl.transforms.maps.mapped import is_map, is_matrix


def is_distributed(value: SSAValue) -> bool:
    """Whether a subgroup holds parts of a value, instead of all of it."""
    return isinstance(value.type, TileType) or is_matrix(value)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Rows and columns of a tile or of a vector."""
    type_ = value.type
    return (
        type_.shape if isinstance(type_, TileType) else vector_type(value).get_shape()
    )


@lru_cache(maxsize=1024)
def same_parts(shape: tuple[int, ...], left: Layout, right: Layout) -> bool:
    """Whether all subgroups own the same sub-tiles in both, in the same order."""
    return (
        left.sg_data == right.sg_data
        and left.subgroups == right.subgroups
        and all(
            origins(shape, left, sg) == origins(shape, right, sg)
            for sg in range(left.subgroups)
        )
    )


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
