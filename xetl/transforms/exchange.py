"""Shared memory through which the elements of a matrix are permuted.

`expand-sorts` and `expand-scans` use it. Later passes distribute the stores, barriers
and gathers to subgroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index, around, shape_of, vector_type
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, subgroups_along_axes
from xetl.dialects.upstream import arith, func, gpu, memref, vector
from xetl.dialects.xetile.types import SHARED
from xetl.ir.builder import Builder


class Exchange:
    """Shared memory of a shape, allocated before ``op``.

    In a kernel at subgroup level each subgroup has its own rows of it.
    """

    def __init__(self, op: Operation, element: Attribute, shape: Sequence[int]) -> None:
        self.element, self.shape = element, tuple(shape)
        rows, columns = shape
        self._build = build = Builder.before(op)
        teams = _subgroup_count(op)
        self._first_row: Index = 0
        if teams > 1:  # each subgroup has its own rows
            self._first_row = build.times(build.insert(gpu.SubgroupIdOp()), rows)
        space, count = builtin.IntegerAttr(SHARED, builtin.i64), teams * rows * columns
        type_ = builtin.MemRefType(
            element, [teams * rows, columns], builtin.NoneAttr(), space
        )
        self._memory = build.insert(memref.AllocOp([], [], type_))
        flat = builtin.MemRefType(
            element, [count], builtin.StridedLayoutAttr([1], 0), space
        )
        cast = memref.ReinterpretCastOp(self._memory, [0], [count], [1], flat)
        self._flat = build.insert(cast)

    def line(self, dim: int) -> SSAValue:
        """Return 0, 1, 2, ... along a dimension, as a column (0) or a row (1)."""
        extent = self.shape[dim]
        line = self._build.insert(
            vector.StepOp(builtin.VectorType(builtin.IndexType(), [extent]))
        )
        shape = [extent, 1] if dim == 0 else [1, extent]
        cast = vector.ShapeCastOp(line, builtin.VectorType(builtin.IndexType(), shape))
        return self._build.insert(cast)

    def store(self, build: Builder, value: SSAValue) -> None:
        """Store a matrix at the first rows and columns; insert a barrier."""
        tile = self._tile(build, shape_of(value.type))
        build.add(xetile.StoreTileOp(value, tile))
        build.add(gpu.BarrierOp())

    def load(self, build: Builder, shape: Sequence[int]) -> SSAValue:
        """Load the first rows and columns; insert a barrier."""
        found = build.insert(xetile.LoadTileOp(self._tile(build, shape)))
        build.add(gpu.BarrierOp())
        return found

    def gather(self, build: Builder, place: tuple[SSAValue, SSAValue]) -> SSAValue:
        """Gather at a column of row numbers and a row of columns; add a barrier."""
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
        everything = build.constant(1, builtin.VectorType(builtin.i1, shape))
        found = build.insert(xetile.LoadGatherOp(tile, everything))
        build.add(gpu.BarrierOp())
        return found

    def _tile(self, build: Builder, shape: Sequence[int]) -> SSAValue:
        encoding = xetile.TileAttr(memory_space=SHARED)
        type_ = xetile.TileType(tuple(shape), self.element, encoding)
        place = [self._first_row, 0]
        return build.insert(xetile.InitTileOp(self._memory, place, type_))


def spread(build: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Broadcast a row or a column to a shape."""
    old = shape_of(value.type)
    dims = tuple(dim for dim in (0, 1) if old[dim] != shape[dim])
    if not dims:
        return value
    type_ = builtin.VectorType(vector_type(value).element_type, shape)
    return build.insert(xetile.TileBroadcastOp(value, type_, broadcast_dims=dims))


def _subgroup_count(op: Operation) -> int:
    """Return the subgroups that run this code independently; 1 at workgroup level."""
    kernel = next(around(op, gpu.FuncOp, func.FuncOp), None)
    if kernel is None or kernel.attributes.get(LEVEL) != builtin.StringAttr(SUBGROUP):
        return 1
    return prod(subgroups_along_axes(kernel))
