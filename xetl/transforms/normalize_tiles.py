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

Element (i, j) of a tile of order ``[0, 1]`` lies where element (j, i) of the row-major
one does.  See docs/xetile.md, section 6 of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType, ModuleOp, StridedLayoutAttr, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.dialects import xetile
from xetl.dialects.base import MemRef, is_memref, memref_type, operations_in
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import func, gpu, memref
from xetl.ir.builder import Builder, Pass, remade
from xetl.transforms.propagate_wg_maps.map_attributes import COLUMN_MAJOR, turned
from xetl.transforms.unblock_values import unblock, unblocked_tile


def turn_column_major_tiles(operations: Sequence[Operation]) -> None:
    """Make all tiles of ``operations`` row-major ones, in place."""
    turned = [
        (op, _RULES[type(op)])
        for op in operations
        if type(op) in _RULES
        and any(map(_is_column_major, (*op.operands, *op.results)))
    ]
    for op in operations:
        if not isinstance(op, xetile.InitTileOp | xetile.UpdateTileOffsetOp):
            for value in defined_by(op):
                if _is_column_major(value):
                    type_ = _turned_type(xetile.tile_type(value))
                    Rewriter.replace_value_with_new_type(value, type_)
    for op, rule in turned:
        rule(op)


def _is_column_major(value: SSAValue) -> bool:
    type_ = value.type
    return (
        isinstance(type_, xetile.TileType)
        and type_.order == COLUMN_MAJOR
        and not type_.scattered
    )


# Types and maps -----------------------------------------------------------------------


def _turned_type(type_: xetile.TileType) -> xetile.TileType:
    """Return the tile type of the transposed matrix; ownership does not change."""
    sg_map = type_.sg_map
    return type_.replace(
        type_.shape[::-1],
        sg_map=sg_map
        and xetile.SgMapAttr(sg_map.wi_layout[::-1], sg_map.wi_data[::-1]),
        wg_map=_turned_map(type_),
        order=(1, 0),
        inner_blocks=(type_.inner_blocks or ())[::-1],
    )


def _turned_map(type_: xetile.TileType) -> xetile.WorkgroupMap | None:
    found = type_.wg_map
    return found and xetile.attribute_of(turned(xetile.layout_of(found)))


# Operations ---------------------------------------------------------------------------


def _init_tile(op: xetile.InitTileOp) -> None:
    views = [_turned_view(op.source)] if is_memref(op.source.type) else []
    source = views[0].result if views else op.source
    parts = (op.mixed_offsets, op.mixed_sizes, op.mixed_strides)
    offsets, sizes, strides = map(_swapped, parts)
    type_ = _turned_type(op.result.type)
    new = xetile.InitTileOp(source, offsets, type_, sizes, strides)
    new.attributes.update(op.attributes)
    _replace(op, [*views, new])


def _turned_view(source: SSAValue) -> memref.TransposeOp:
    """Return a view with the last two dimensions swapped."""
    type_ = memref_type(source)
    strides = strides_of(type_)
    assert strides is not None, "a column-major tile of a matrix without strides"
    old = type_.layout
    start = old.offset if isinstance(old, StridedLayoutAttr) else None
    layout = StridedLayoutAttr(list(_swapped(strides)), start)
    dims = _swapped(range(len(strides)))
    shape = list(_swapped(type_.get_shape()))
    view: MemRef = MemRefType(type_.element_type, shape, layout, type_.memory_space)
    return memref.TransposeOp(source, view, dims)


def _swapped(values: Sequence[Any]) -> list[Any]:
    """Swap the last two entries."""
    return [*values[:-2], *reversed(values[-2:])]


def _update(op: xetile.UpdateTileOffsetOp) -> None:
    _replace(op, [xetile.UpdateTileOffsetOp(op.tile, _swapped(op.mixed_offsets))])


def _load(op: xetile.LoadTileOp) -> None:
    load = remade(op, [op.tile], [xetile.tile_type(op.tile).vector_type()])
    _replace_turned(op, load)


def _store(op: xetile.StoreTileOp) -> None:
    op.operands[0] = Builder.before(op).insert(xetile.TileTransposeOp(op.value))


def _atomic(op: xetile.AtomicRmwTileOp) -> None:
    build = Builder.before(op)
    for index, operand in enumerate(op.operands):
        if operand is not op.tile:
            op.operands[index] = build.insert(xetile.TileTransposeOp(operand))
    new = xetile.AtomicRmwTileOp(op.value, op.tile, op.condition, kind=op.kind)
    new.attributes.update(op.attributes)
    _replace_turned(op, new)


def _replace_turned(
    op: xetile.LoadTileOp | xetile.AtomicRmwTileOp, new: Operation
) -> None:
    """Replace a value by a new one, transposed back; a map of the user is kept."""
    back = xetile.TileTransposeOp(new.results[0])
    found = _turned_map(xetile.tile_type(op.tile))
    if found is not None:
        back.attributes["map"] = found
    _replace(op, [new, back])


def _replace(op: Operation, new: Sequence[Operation]) -> None:
    for each in new:
        each.location = op.location
    Rewriter.replace_op(op, list(new))


_RULES: dict[type[Operation], Callable[[Any], None]] = {
    xetile.InitTileOp: _init_tile,
    xetile.UpdateTileOffsetOp: _update,
    xetile.LoadTileOp: _load,
    xetile.StoreTileOp: _store,
    xetile.AtomicRmwTileOp: _atomic,
}


class NormalizeTilesPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp, func.FuncOp):
            if kernel.attributes.get(LEVEL) != StringAttr(SUBGROUP):
                unblock(kernel, unblocked_tile)
                split_tile_arrays(list(kernel.walk()))
                turn_column_major_tiles(list(kernel.walk()))
                _cancel_transposes(kernel)


def _cancel_transposes(kernel: Operation) -> None:
    for op in operations_in(kernel, xetile.TileTransposeOp):
        inner = op.source.owner
        if isinstance(inner, xetile.TileTransposeOp) and _may_cancel(op, inner):
            Rewriter.replace_op(op, [], [inner.source])
            if not inner.result.uses:
                Rewriter.erase_op(inner)


def _may_cancel(outer: xetile.TileTransposeOp, inner: xetile.TileTransposeOp) -> bool:
    """Whether two transposes may be removed without losing a map of the user."""
    found, between = outer.wg_map, inner.wg_map
    if found is None:
        return True
    return between is not None and xetile.layout_of(found) == turned(
        xetile.layout_of(between)
    )


def split_tile_arrays(operations: Sequence[Operation]) -> None:
    """Split loads of several vectors into loads of one vector each, in place."""
    for op in operations:
        if isinstance(op, xetile.LoadTileOp) and len(op.results) > 1:
            _split(op)
    for op in operations:
        for value in defined_by(op):
            type_ = value.type
            if isinstance(type_, xetile.TileType) and type_.array_length > 1:
                Rewriter.replace_value_with_new_type(
                    value, type_.replace(array_length=1)
                )


def _split(op: xetile.LoadTileOp) -> None:
    """Replace a load by one load for each vector; the vectors are adjacent columns."""
    build, columns = Builder.before(op), op.tile_type.shape[1]
    loads: list[SSAValue] = []
    for number, result in enumerate(op.results):
        tile = op.tile
        if number:
            moved = xetile.UpdateTileOffsetOp(tile, [0, number * columns])
            # Its operand is retyped with all others.
            type_ = xetile.tile_type(tile).replace(array_length=1)
            tile = Rewriter.replace_value_with_new_type(build.insert(moved), type_)
        loads.append(build.insert(remade(op, [tile], [result.type])))
    Rewriter.replace_op(op, [], loads)
