"""The maps that operations of any dialect name."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation

from .attributes import WgMapAttr, XeMapAttr
from .layout import LayoutAttr, WorkgroupMap, wg_map_of
from .types import TileType


def used_maps(function: Operation) -> dict[WorkgroupMap, Operation]:
    """Every ``wg_map`` in a function, and the first operation that has it."""
    found: dict[WorkgroupMap, Operation] = {}
    seen: set[Attribute] = set()
    for op in function.walk():
        attributes = [*op.attributes.values(), *op.properties.values()]
        types = [value.type for value in (*op.results, *op.operands)]
        for region in op.regions:
            types += [arg.type for block in region.blocks for arg in block.args]
        for each in (*attributes, *types):
            if each in seen:
                continue
            seen.add(each)
            map_ = _map_in(each)
            if map_ is not None:
                found.setdefault(map_, op)
    return found


def map_problem(op: Operation) -> str | None:
    """Why the ``map`` of an operation cannot spread what it gives; None if it can."""
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
    if isinstance(found, WgMapAttr | LayoutAttr):
        return found
    if isinstance(found, XeMapAttr):
        return found.wg if isinstance(found.wg, WgMapAttr) else None
    if isinstance(found, TileType):
        return found.wg_map
    return None
