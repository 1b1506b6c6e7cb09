"""Tiles with an ``array_length``: one load for each of the vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.xetile import LoadTileOp, TileAttr, TileType, UpdateTileOffsetOp
from xetl.transforms.maps.rules import values_of


def split_tile_arrays(operations: Sequence[Operation]) -> None:
    """Make every load of ``operations`` one of a single vector, in place."""
    for op in operations:
        if isinstance(op, LoadTileOp) and len(op.results) > 1:
            _split(op)
    for op in operations:
        for value in list(values_of(op)):
            type_ = value.type
            if isinstance(type_, TileType) and type_.array_length > 1:
                Rewriter.replace_value_with_new_type(value, _of_one_vector(type_))


def _split(op: LoadTileOp) -> None:
    """The vectors lie side by side: the tile moves on by its columns."""
    columns = op.tile_type.shape[1]
    new: list[Operation] = []
    loads: list[SSAValue] = []
    for number, result in enumerate(op.results):
        tile = op.tile
        if number:
            moved = UpdateTileOffsetOp(tile, [0, number * columns])
            new.append(moved)
            tile = moved.result
        load = LoadTileOp.create(
            operands=[tile],
            result_types=[result.type],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        new.append(load)
        loads.append(load.results[0])
    for each in new:
        each.location = op.location
        # The tiles between are retyped with all others.
        for value in each.results:
            if isinstance(value.type, TileType):
                new_type = _of_one_vector(value.type)
                Rewriter.replace_value_with_new_type(value, new_type)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], loads)


def _of_one_vector(type_: TileType) -> TileType:
    old = type_.encoding
    new = TileAttr(
        sg_map=old.sg_map,
        wg_map=old.wg_map,
        order=old.order,
        memory_space=old.memory_space,
        scattered=old.scattered,
        inner_blocks=old.inner_blocks or (),
    )
    return TileType(type_.shape, type_.element_type, new)
