"""Find the maps on operations of any dialect."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation

from .attributes import WorkgroupMap, wg_map_of, workgroup_map
from .types import TileType


def used_maps(function: Operation) -> dict[WorkgroupMap, Operation]:
    """Return every ``wg_map`` in a function, and the first operation that has it."""
    found: dict[WorkgroupMap, Operation] = {}
    seen: set[Attribute] = set()
    for op in function.walk():
        for each in _attributes_of(op):
            if each in seen:
                continue
            seen.add(each)
            map_ = _map_in(each)
            if map_ is not None:
                found.setdefault(map_, op)
    return found


def maps_may_meet(function: Operation) -> bool:
    """Whether more than one operation has a ``wg_map``, so that maps may conflict."""
    having = 0
    for op in function.walk():
        having += any(_map_in(each) is not None for each in _attributes_of(op))
        if having > 1:
            return True
    return False


def _attributes_of(op: Operation) -> list[Attribute]:
    """Return all attributes of an operation, and the types of its values."""
    types = [value.type for value in (*op.results, *op.operands)]
    for region in op.regions:
        types += [arg.type for block in region.blocks for arg in block.args]
    return [*op.attributes.values(), *op.properties.values(), *types]


def map_problem(op: Operation) -> str | None:
    """Return why the ``map`` of an operation does not fit its results, or None."""
    map_ = wg_map_of(op) if op.attributes else None
    if map_ is None:
        return None
    for result in op.results:
        type_ = result.type
        if isinstance(type_, VectorType):
            problem = map_.problem_with(type_.get_shape())
            if problem is not None:
                return f"`map`: {problem}"
    return None


def _map_in(found: Attribute) -> WorkgroupMap | None:
    return found.wg_map if isinstance(found, TileType) else workgroup_map(found)
