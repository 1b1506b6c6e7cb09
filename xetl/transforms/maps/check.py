"""What must hold of the maps of a kernel behind `propagate-wg-maps`."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import shape_of
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.xetile import TileType
from xetl.language.distribution import Layout, problem_with
from xetl.transforms.maps.layouts import plain, same_owners
from xetl.transforms.maps.mapped import is_matrix, map_of, tile_map
from xetl.transforms.maps.rules import is_mapped, relations, values_of


def maps_agree(op: Operation) -> str | None:
    """Every vector of rank 2 has a legal map, and operands have the ones they need.

    Equal are two maps by which each subgroup owns the same.  A reduction may have any
    map on its source: the rest of a sum is exchanged.
    """
    values = [value for value in values_of(op) if is_mapped(value)]
    if not values and not any(map(is_matrix, op.operands)):
        return None
    if _is_for_subgroups(op):
        return None
    for value in values:
        problem = _problem_of_value(value)
        if problem is not None:
            return f"`{op.name}`: {problem}"
    return _problem_of_operands(op)


def _is_for_subgroups(op: Operation) -> bool:
    outer: Operation | None = op
    while outer is not None:
        if LEVEL in outer.attributes:
            return outer.attributes[LEVEL] == StringAttr(SUBGROUP)
        outer = outer.parent_op()
    return False


def _map(value: SSAValue) -> Layout | None:
    found = tile_map(value) if isinstance(value.type, TileType) else map_of(value)
    return None if found is None else plain(found)


def _shape(value: SSAValue) -> tuple[int, ...]:
    type_ = value.type
    return type_.shape if isinstance(type_, TileType) else shape_of(type_)


def _problem_of_value(value: SSAValue) -> str | None:
    found = _map(value)
    if found is None:
        return f"a value of type {value.type} has no map"
    return problem_with(_shape(value), found)


def _problem_of_operands(op: Operation) -> str | None:
    for relation in relations(op):
        anchor, found = _map(relation.anchor), _map(relation.operand)
        if anchor is None or found is None:
            return f"operand {relation.index} of `{op.name}` has no map"
        wanted = plain(relation.backward(anchor))
        shape = _shape(relation.operand)
        if relation.is_strict and not same_owners(shape, found, wanted):
            return f"operand {relation.index} of `{op.name}` has {found}, not {wanted}"
    return None
