"""Tiles of matrices of higher rank, and loads of several vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.launch_form import SHARED
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, memref
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileType,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl_cpu.lowering.text_forms.writing import replace


def _init_tile(op: InitTileOp) -> None:
    """Leading offsets select a matrix: of no size if they are outside."""
    offsets, source = op.mixed_offsets, op.source
    if op.indices is not None or len(offsets) <= 2 or not is_memref(source.type):
        return
    meta = memref.ExtractStridedMetadataOp(source)
    sizes = _values(op.mixed_sizes) or list(meta.results[2 : 2 + len(offsets)])
    strides = _values(op.mixed_strides) or list(meta.results[2 + len(offsets) :])
    new: list[Operation] = [meta]

    def add(made: Any) -> Any:
        new.append(made)
        return made.results[0]

    def value(each: int | SSAValue) -> SSAValue:
        return add(arith.ConstantOp.index(each)) if isinstance(each, int) else each

    start = value(0)
    rows, columns = value(sizes[-2]), value(sizes[-1])
    zero = start
    for place, size, stride in zip(offsets[:-2], sizes, strides):
        at = value(place)
        inside = add(arith.CmpiOp("ult", at, value(size)))
        rows = add(arith.SelectOp(inside, rows, zero))
        start = add(arith.AddiOp(start, add(arith.MuliOp(at, value(stride)))))
    pitch = [*strides[-2:]]
    fastest = op.result.type.order[0] - len(op.result.type.order)
    pitch[fastest] = 1
    layout = StridedLayoutAttr([s if isinstance(s, int) else None for s in pitch], None)
    type_ = MemRefType(
        source.type.element_type,
        [DYNAMIC_INDEX, DYNAMIC_INDEX],
        layout,
        source.type.memory_space,
    )
    matrix = add(
        memref.ReinterpretCastOp(source, [start], [rows, columns], pitch, type_)
    )
    replace(
        op,
        [
            *new,
            InitTileOp(
                matrix,
                offsets[-2:],
                op.result.type,
                sizes=[rows, columns],
                strides=pitch,
            ),
        ],
    )


def _values(mixed: Any) -> list[int | SSAValue]:
    return list(mixed)


def _load_tile(op: LoadTileOp) -> None:
    """One load for each of the vectors of an array."""
    if len(op.results) < 2:
        return
    columns = tile_type(op.tile).shape[-1]
    new: list[Operation] = []
    loads: list[SSAValue] = []
    for number in range(len(op.results)):
        tile = op.tile
        if number:
            moved = UpdateTileOffsetOp(tile, [0, number * columns])
            new.append(moved)
            tile = moved.result
        load = LoadTileOp.create(
            operands=[tile],
            result_types=[op.results[number].type],
            properties=dict(op.properties),
        )
        new.append(load)
        loads.append(load.results[0])
    replace(op, new, loads)


def shared_memory(block: Block) -> None:
    """Memory of the workgroup stands once, before everything that uses it.

    ``alloca`` with its memory space is the same; in a loop it would be one of each
    subgroup for the passes behind this one.
    """
    for op in list(block.walk()):
        if not isinstance(op, memref.AllocOp | memref.AllocaOp):
            continue
        type_ = memref_type(op.results[0])
        if memory_space_of(type_) != SHARED or op.operands:
            continue
        new = memref.AllocOp(type_, location=op.location)
        op.results[0].replace_all_uses_with(new.results[0])
        op.detach()
        op.erase()
        Rewriter.insert_op(new, InsertPoint.at_start(block))


RULES: dict[type[Operation], Callable[[Any], None]] = {
    InitTileOp: _init_tile,
    LoadTileOp: _load_tile,
}


def drop_array_lengths(kernel: Operation) -> None:
    """Tiles of a kernel whose loads are one vector each by now."""
    for op in kernel.walk():
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*op.results, *arguments):
            type_ = value.type
            if isinstance(type_, TileType) and type_.array_length > 1:
                Rewriter.replace_value_with_new_type(value, of_one_vector(type_))


def of_one_vector(type_: TileType) -> TileType:
    """The type of a tile without ``array_length``."""
    old = type_.encoding
    new = type(old)(
        sg_map=old.sg_map,
        wg_map=old.wg_map,
        order=old.order,
        memory_space=old.memory_space,
        scattered=old.scattered,
        inner_blocks=old.inner_blocks or (),
    )
    return TileType(type_.shape, type_.element_type, new)
