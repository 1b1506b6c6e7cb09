"""Shared memory that the elements of a matrix go through to other places.

`expand-sorts` and `expand-scans` write it: what follows splits work between subgroups,
and knows stores, barriers and gathers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index, around, shape_of, vector_type
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, subgroups_along_axes
from xetl.dialects.upstream import arith, func, gpu, memref, vector
from xetl.dialects.xetile.types import SHARED
from xetl.ir.builder import Builder


class Exchange:
    """Memory in front of ``op``, of a shape, for each subgroup that runs by itself."""

    def __init__(self, op: Operation, element: Attribute, shape: Sequence[int]) -> None:
        self.element, self.shape = element, tuple(shape)
        rows, columns = shape
        self._build = build = Builder.before(op)
        teams = _subgroup_count(op)
        self._first_row: Index = 0
        if teams > 1:  # each of them has what is its own
            self._first_row = build.times(build.insert(gpu.SubgroupIdOp()), rows)
        space, count = IntegerAttr(SHARED, i64), teams * rows * columns
        type_ = MemRefType(element, [teams * rows, columns], NoneAttr(), space)
        self._memory = build.insert(memref.AllocOp([], [], type_))
        flat = MemRefType(element, [count], StridedLayoutAttr([1], 0), space)
        cast = memref.ReinterpretCastOp(self._memory, [0], [count], [1], flat)
        self._flat = build.insert(cast)

    def line(self, dim: int, extent: int | None = None) -> SSAValue:
        """0, 1, 2, ... along a dim: a column or a row."""
        extent = extent or self.shape[dim]
        line = self._build.insert(vector.StepOp(VectorType(IndexType(), [extent])))
        shape = [extent, 1] if dim == 0 else [1, extent]
        cast = vector.ShapeCastOp(line, VectorType(IndexType(), shape))
        return self._build.insert(cast)

    def store(self, build: Builder, value: SSAValue) -> None:
        """As the first rows and columns, and a barrier."""
        tile = self._tile(build, shape_of(value.type))
        build.add(xetile.StoreTileOp(value, tile))
        build.add(gpu.BarrierOp())

    def load(self, build: Builder, shape: Sequence[int]) -> SSAValue:
        """The first rows and columns, and a barrier."""
        found = build.insert(xetile.LoadTileOp(self._tile(build, shape)))
        build.add(gpu.BarrierOp())
        return found

    def gather(self, build: Builder, place: tuple[SSAValue, SSAValue]) -> SSAValue:
        """The elements at a place, and a barrier.

        A place is a column of indices of rows, and a row of those of columns.
        """
        row, column = place
        shape = shape_of(row.type)[0], shape_of(column.type)[1]
        pitch = build.constant(self.shape[1], vector_type(row))
        row = build.insert(arith.MuliOp(row, pitch))
        ends = [spread(build, each, shape) for each in (row, column)]
        encoding = xetile.TileAttr(memory_space=SHARED, scattered=True)
        type_ = xetile.TileType(shape, self.element, encoding)
        indices = build.insert(arith.AddiOp(*ends))
        first = build.times(self._first_row, self.shape[1])
        if isinstance(first, SSAValue):
            wide = vector.BroadcastOp(first, vector_type(indices))
            indices = build.insert(arith.AddiOp(indices, build.insert(wide)))
        tile = build.insert(xetile.InitTileOp(self._flat, [], type_, indices=indices))
        everything = build.constant(1, VectorType(i1, shape))
        found = build.insert(xetile.LoadGatherOp(tile, everything))
        build.add(gpu.BarrierOp())
        return found

    def _tile(self, build: Builder, shape: Sequence[int]) -> SSAValue:
        encoding = xetile.TileAttr(memory_space=SHARED)
        type_ = xetile.TileType(tuple(shape), self.element, encoding)
        place = [self._first_row, 0]
        return build.insert(xetile.InitTileOp(self._memory, place, type_))


def spread(build: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A row or a column, repeated to a shape."""
    old = shape_of(value.type)
    dims = tuple(dim for dim in (0, 1) if old[dim] != shape[dim])
    if not dims:
        return value
    type_ = VectorType(vector_type(value).element_type, shape)
    return build.insert(xetile.TileBroadcastOp(value, type_, broadcast_dims=dims))


def _subgroup_count(op: Operation) -> int:
    """How many subgroups run this code, each by itself: 1 of a workgroup's kernel."""
    kernel = next(around(op, gpu.FuncOp, func.FuncOp), None)
    if kernel is None or kernel.attributes.get(LEVEL) != StringAttr(SUBGROUP):
        return 1
    return prod(subgroups_along_axes(kernel))
