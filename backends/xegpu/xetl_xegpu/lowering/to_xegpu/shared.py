"""Tiles of shared memory whose bounds nobody has to look at: blocks of a matrix."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i8, i64
from xdsl.ir import SSAValue

from xetl.dialects.base import memref_type
from xetl.dialects.upstream import memref
from xetl_xegpu.dialect import (
    CreateMemDescOp,
    LoadMatrixOp,
    MemDescType,
    MemLayoutAttr,
    StoreMatrixOp,
)
from xetl_xegpu.lowering.fragments import LANES, Grid
from xetl_xegpu.lowering.to_xegpu.emitter import known
from xetl_xegpu.lowering.to_xegpu.rows import from_memory, to_memory
from xetl_xegpu.lowering.to_xegpu.values import Matrix, Pieces, Tile, vector_of
from xetl_xegpu.lowering.to_xegpu.views import SHARED, stored_bytes, stored_type
from xetl_xegpu.lowering.to_xegpu.walker import Converter


def matrix_of(c: Converter, tile: Tile, grid: Grid) -> SSAValue | None:
    """The descriptor of a tile's matrix; None if its elements need a mask."""
    matrix = tile.matrix
    if matrix.start.space != SHARED or not grid.spread or grid.columns % LANES:
        return None
    if not (_stays_inside(c, tile, grid) and isinstance(matrix.start.offset, int)):
        return None
    sizes = [each for each in map(known, matrix.sizes) if isinstance(each, int)]
    strides = [each for each in map(known, matrix.strides) if isinstance(each, int)]
    if len(sizes) != 2 or len(strides) != 2:
        return None
    source = _memory(c, matrix, prod(sizes))
    if source is None:
        return None
    layout = MemLayoutAttr(stride=strides) if strides != [sizes[1], 1] else None
    type_ = MemDescType(sizes, stored_type(matrix.element), layout)
    return c.emit.once(
        ("matrix", type_), [source], lambda: CreateMemDescOp(source, type_)
    )


def _stays_inside(c: Converter, tile: Tile, grid: Grid) -> bool:
    """Whether no element of a tile lies outside of its matrix."""
    places = (tile.row, tile.column)
    for at, size, extent in zip(places, tile.matrix.sizes, (grid.rows, grid.columns)):
        found, room = c.ranges.of(at), known(size)
        if found is None or not isinstance(room, int):
            return False
        if found.low < 0 or found.high + extent > room:
            return False
    return True


def _memory(c: Converter, matrix: Matrix, elements: int) -> SSAValue | None:
    """The memory of just these elements."""
    root, offset = matrix.start.root, matrix.start.offset
    type_ = memref_type(root)
    if offset == 0 and type_.get_shape() == (elements,):
        return root
    op = root.owner
    if not isinstance(op, memref.ViewOp) or not isinstance(offset, int):
        return None
    # Bytes can be seen as any part of them.
    source = op.source
    assert memref_type(source).element_type == i8
    shift = c.index(offset * stored_bytes(matrix.element))
    space = IntegerAttr(SHARED, i64)
    part = MemRefType(type_.element_type, [elements], memory_space=space)
    return c.emit.once(
        ("view", part), [source, shift], lambda: memref.ViewOp(source, shift, (), part)
    )


def load_blocks(
    c: Converter, tile: Tile, matrix: SSAValue, grid: Grid
) -> list[SSAValue]:
    """The fragments of a tile."""
    element = tile.matrix.element
    parts: list[SSAValue] = []
    for span in grid.spans:
        type_ = vector_of(stored_type(element), span.count, LANES)
        row = c.emit.plus(tile.row, span.first)
        for group in range(grid.groups):
            at = [row, c.emit.plus(tile.column, group * LANES)]
            found = c.emit.value(LoadMatrixOp(matrix, at, type_))
            parts.append(from_memory(c, found, element))
    return parts


def store_blocks(c: Converter, tile: Tile, matrix: SSAValue, value: Pieces) -> None:
    """Write the fragments of a value."""
    grid = value.grid
    for number, span in enumerate(grid.spans):
        row = c.emit.plus(tile.row, span.first)
        for group in range(grid.groups):
            at = [row, c.emit.plus(tile.column, group * LANES)]
            part = to_memory(c, value.parts[grid.fragment(number, group)])
            c.emit.add(StoreMatrixOp(part, matrix, at))
