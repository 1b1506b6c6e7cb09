"""Write every tile of a workgroup in one way: row-major, one vector a load.

*What*: tiles of order ``[0, 1]`` become row-major tiles of the transposed matrix, with
a ``tile_transpose`` behind each load and before each store; loads of several vectors
become several loads; blocked values plain ones; two transposes in a row none.
*Why*: one form is left for the passes behind, and what is transposed is seen: maps of
such values are found with ids that count down the columns, and nothing is exchanged.
A map of such a tile is turned with it: each subgroup owns what it owned.
*Left alone*: scattered tiles; kernels at subgroup level.

before: %v = load_tile %t : tile<32x64, order = [0, 1]>         (at [i, j])
after:  %w = load_tile %u : tile<64x32>                         (at [j, i])
        %v = tile_transpose %w

Source: XeTile RFC, appendix 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.upstream import func, gpu
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import (
    LoadTileOp,
    TileTransposeOp,
    TileType,
    UpdateTileOffsetOp,
    layout_of,
)
from xetl.transforms.normalize_tiles.column_major import turn_column_major_tiles, turned
from xetl.transforms.propagate_wg_maps.rules import values_of
from xetl.transforms.unblock_values import unblock, unblocked_tile


class NormalizeTilesPass(ModulePass):
    """See the module."""

    name = "normalize-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the kernels of a module in place."""
        kernels = operations_in(op, gpu.FuncOp, func.FuncOp)
        for kernel in kernels:
            if kernel.attributes.get(LEVEL) != StringAttr(SUBGROUP):
                _normalize(kernel)


def _normalize(kernel: Operation) -> None:
    unblock(kernel, unblocked_tile)
    split_tile_arrays(list(kernel.walk()))
    turn_column_major_tiles(list(kernel.walk()))
    _cancel_transposes(kernel)


def _cancel_transposes(kernel: Operation) -> None:
    for op in operations_in(kernel, TileTransposeOp):
        inner = op.source.owner
        if isinstance(inner, TileTransposeOp) and _may_cancel(op, inner):
            Rewriter.replace_op(op, [], [inner.source])
            if not inner.result.uses:
                Rewriter.erase_op(inner)


def _may_cancel(outer: TileTransposeOp, inner: TileTransposeOp) -> bool:
    """A map that the user gave for the result must not be lost."""
    found, between = outer.wg_map, inner.wg_map
    if found is None:
        return True
    return between is not None and layout_of(found) == turned(layout_of(between))


def split_tile_arrays(operations: Sequence[Operation]) -> None:
    """Make every load of ``operations`` one of a single vector, in place."""
    for op in operations:
        if isinstance(op, LoadTileOp) and len(op.results) > 1:
            _split(op)
    for op in operations:
        for value in list(values_of(op)):
            type_ = value.type
            if isinstance(type_, TileType) and type_.array_length > 1:
                Rewriter.replace_value_with_new_type(
                    value, type_.replace(array_length=1)
                )


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
                one = value.type.replace(array_length=1)
                Rewriter.replace_value_with_new_type(value, one)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], loads)
