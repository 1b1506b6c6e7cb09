"""Read and write the map of a value in the IR; no other module does.

Source: docs/design/0003-workgroup-to-subgroups.md, "The mapped stage".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, UnitAttr, VectorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import shape_of
from xetl.dialects.upstream import scf
from xetl.language.distribution import Layout, origins, row_major

RESULT_MAPS = "result_maps"
"""An attribute of loops and branches: an entry for each result, unit without a map."""
BEFORE_MAPS = "before_maps"
"""An attribute of scf.while: the same for the arguments of its first region."""

ReadsTile: TypeAlias = xetile.LoadTileOp | xetile.LoadGatherOp | xetile.AtomicRmwTileOp
"""Operations whose result has its map in the type of the tile."""


BRANCHES = (scf.IfOp, scf.ExecuteRegionOp, scf.IndexSwitchOp)
"""Operations whose results are the values that one of their regions yields."""


def matrix_shape(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tile or of a vector."""
    type_ = value.type
    return type_.shape if isinstance(type_, xetile.TileType) else shape_of(type_)


def is_matrix(value: SSAValue) -> bool:
    """Whether a value is a vector of rank 2, which can be distributed."""
    type_ = value.type
    return isinstance(type_, VectorType) and type_.get_num_dims() == 2


def map_of(value: SSAValue) -> Layout | None:
    """Return how ``value`` is distributed over the subgroups, or None without a map.

    Only vectors of rank 2 have maps: every subgroup holds all of any other value.
    """
    if not is_matrix(value):
        return None
    found = _written(value)
    return (
        xetile.layout_of(found)
        if isinstance(found, xetile.WgMapAttr | xetile.LayoutAttr)
        else None
    )


def set_map(value: SSAValue, layout: Layout) -> None:
    """Write how ``value`` (a vector of rank 2) is distributed over the subgroups.

    For a load this changes the type of the loaded tile, and of this SSA value only: the
    operation that defines the tile must allow the new type.
    """
    new = xetile.attribute_of(layout)
    place = _place(value)
    if place is not None:
        op, name, index, length = place
        entries = _entries(place) or [UnitAttr() for _ in range(length)]
        entries[index] = new
        op.attributes[name] = ArrayAttr(entries)
    elif isinstance(value, OpResult):
        if isinstance(value.op, ReadsTile):
            set_tile_map(value.op.tile, xetile.layout_of(new))
        elif isinstance(value.op, xetile.TileMmaOp):
            value.op.wg_map_c = new
        else:
            value.op.attributes["map"] = new


def is_map(name: str, value: Attribute) -> bool:
    """Whether an attribute of an operation says how values are distributed."""
    listed = name in (RESULT_MAPS, BEFORE_MAPS)
    return listed or isinstance(
        value, xetile.WgMapAttr | xetile.LayoutAttr | xetile.XeMapAttr
    )


def tile_map(value: SSAValue) -> Layout | None:
    """Return the map in the type of a tile. Return None if it has no map."""
    found = xetile.tile_type(value).wg_map
    return None if found is None else xetile.layout_of(found)


def with_map(type_: xetile.TileType, layout: Layout | None) -> xetile.TileType:
    """Return the tile type with another map."""
    new = None if layout is None else xetile.attribute_of(layout)
    return type_.replace(wg_map=new)


def set_tile_map(tile: SSAValue, layout: Layout | None) -> SSAValue:
    """Give a tile another map, and so another type; return the new value."""
    new = with_map(xetile.tile_type(tile), layout)
    return Rewriter.replace_value_with_new_type(tile, new)


_Place: TypeAlias = tuple[Operation, str, int, int]
"""An operation, the name of its list of maps, the entry and the length of the list."""


def _place(value: SSAValue) -> _Place | None:
    """Return the entry of a result or argument of a loop or branch; None for others."""
    if isinstance(value, OpResult):
        op = value.op
        if isinstance(op, (scf.ForOp, scf.WhileOp, *BRANCHES)):
            return op, RESULT_MAPS, value.index, len(op.results)
        return None
    assert isinstance(value, BlockArgument)
    owner = value.block.parent_op()
    if isinstance(owner, scf.ForOp) and value.index > 0:
        return owner, RESULT_MAPS, value.index - 1, len(owner.results)
    if isinstance(owner, scf.WhileOp):
        if value.block is owner.before.block:
            return owner, BEFORE_MAPS, value.index, len(owner.inits)
        return owner, RESULT_MAPS, value.index, len(owner.results)
    return None


def _written(value: SSAValue) -> Attribute | None:
    place = _place(value)
    if place is not None:
        entries = _entries(place)
        return entries[place[2]] if entries else None
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, ReadsTile):
        return op.tile_type.wg_map
    return op.wg_map if isinstance(op, xetile.TileMmaOp) else xetile.wg_map_of(op)


def _entries(place: _Place) -> list[Attribute]:
    op, name, *_ = place
    found = op.attributes.get(name)
    if not isinstance(found, ArrayAttr):
        return []
    return [*cast("ArrayAttr[Attribute]", found)]


COLUMN_MAJOR = (0, 1)


def plain(layout: Layout) -> Layout:
    """Return the part of a layout about subgroups, in a form that `==` can compare.

    With one row or one column of subgroups, both orders of ids are the same.
    """
    order = layout.order
    if 1 in layout.sg_layout:
        order = row_major(layout.rank)
    return Layout(layout.sg_layout, layout.sg_data, order=order)


def counted(layout: Layout, down_columns: bool) -> Layout:
    """Return the layout with ids that count down the columns or along the rows."""
    order = COLUMN_MAJOR if down_columns else row_major(2)
    return plain(Layout(layout.sg_layout, layout.sg_data, order=order))


def turned(layout: Layout) -> Layout:
    """Return the layout of the transposed tile: all lists and the order are swapped."""
    lists = (
        *(layout.sg_layout, layout.sg_data, layout.inst_data),
        *(layout.lane_layout, layout.lane_data),
    )
    swapped: Any = [None if each is None else each[::-1] for each in lists]
    return Layout(*swapped, order=tuple(1 - dim for dim in layout.order))


def transposed(layout: Layout) -> Layout:
    """Return the layout of the transposed value for which no data moves."""
    return plain(turned(layout))


def with_data(layout: Layout, dims: Sequence[int], sizes: Sequence[int]) -> Layout:
    """Return the layout with other ``sg_data`` in some dimensions."""
    data = list(layout.sg_data)
    for dim, size in zip(dims, sizes):
        data[dim] = size
    return replace(layout, sg_data=tuple(data))


def is_whole(shape: Sequence[int], layout: Layout) -> bool:
    """Whether every subgroup owns all of the value."""
    return tuple(shape) == layout.sg_data


@lru_cache(maxsize=4096)
def same_owners(shape: tuple[int, ...], one: Layout, other: Layout) -> bool:
    """Whether each subgroup holds the same parts in the same order under both."""
    if one == other:
        return True
    if one.sg_data != other.sg_data or one.subgroups != other.subgroups:
        return False
    return all(
        origins(shape, one, sg) == origins(shape, other, sg)
        for sg in range(one.subgroups)
    )
