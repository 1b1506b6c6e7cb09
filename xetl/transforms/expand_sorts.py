"""expand-sorts: a sorting network that goes through shared memory.

*What*: each ``xetile.tile_sort`` becomes two loops over the steps of Batcher's bitonic
network, which exchange elements by way of an array in shared memory.
*Why*: what follows splits work between subgroups, and knows stores, barriers, gathers.
*Left alone*: everything else.  Without such operations nothing changes.

before: %s = xetile.tile_sort %v [1] : vector<2x8xi32>
after:  %m = memref.alloc() : memref<2x8xi32, 3 : i64>
        %s = scf.for ... iter_args(%k = %v) { scf.for ... {
          store_tile %k, ...; gpu.barrier; %o = load_gather ...; gpu.barrier
          arith.select %smaller, maxsi(%k, %o), minsi(%k, %o) } }

Source: K. E. Batcher, Sorting Networks and Their Applications, AFIPS 1968.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import Index, shape_of, vector_type
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, subgroups_along_axes
from xetl.dialects.upstream import arith, func, gpu, memref, scf, vector
from xetl.dialects.walk import operations_in
from xetl.ir.builder import Builder
from xetl.ir.passes import Pass

_SHARED = 3
"""The memory space of shared local memory."""


class ExpandSortsPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for each in operations_in(op, xetile.TileSortOp):
            alone = each.source_type.get_shape()[each.dim] == 1
            found = each.source if alone else _Network(each).sorted()
            Rewriter.replace_op(each, [], [found])


class _Network:
    """The network for one operation, in front of it.

    Attributes:
        whole: the shape with an extent along ``dim`` that is a power of two.
        memory: shared memory of this shape, for each subgroup that runs by itself.
    """

    def __init__(self, op: xetile.TileSortOp) -> None:
        self.source, self.dim = op.source, op.dim
        self.element = element = op.source_type.element_type
        self.shape = tuple(op.source_type.get_shape())
        self.steps = (self.shape[self.dim] - 1).bit_length()
        self.whole = tuple(
            1 << self.steps if n == self.dim else extent
            for n, extent in enumerate(self.shape)
        )
        self.build = build = Builder.before(op)
        rows, columns = self.whole
        teams = _subgroup_count(op)
        self._first_row: Index = 0
        if teams > 1:  # each of them sorts what is its own
            self._first_row = build.times(build.insert(gpu.SubgroupIdOp()), rows)
        space = IntegerAttr(_SHARED, i64)
        count = teams * rows * columns
        type_ = MemRefType(element, [teams * rows, columns], NoneAttr(), space)
        self.memory = build.insert(memref.AllocOp([], [], type_))
        flat = MemRefType(element, [count], StridedLayoutAttr([1], 0), space)
        cast = memref.ReinterpretCastOp(self.memory, [0], [count], [1], flat)
        self._flat = build.insert(cast)
        self._numbers = self._line(self.dim, i32)
        self._others = self._line(1 - self.dim, IndexType())

    def sorted(self) -> SSAValue:
        """The operations; returns the result."""
        build, key = self.build, self._padded()
        outer = build.for_loop(0, self.steps, 1, [key])
        merge, carried = outer.body.block.args
        within = Builder.at_end(outer.body.block, build.location)
        inner = within.for_loop(0, within.plus(merge, 1), 1, [carried])
        half, carried = inner.body.block.args
        body = Builder.at_end(inner.body.block, build.location)
        body.add(scf.YieldOp(self._step(body, carried, merge, half)))
        within.add(scf.YieldOp(inner.results[0]))
        key = outer.results[0]
        if self.whole == self.shape:
            return key
        self._store(build, key, self.whole)
        return self._load(build, self.shape)

    def _padded(self) -> SSAValue:
        """The source, and the largest number behind its elements."""
        if self.whole == self.shape:
            return self.source
        most = 2 ** (31 if self.element == i32 else 63) - 1
        type_ = VectorType(self.element, self.whole)
        self._store(self.build, self.build.constant(most, type_), self.whole)
        self._store(self.build, self.source, self.shape)
        return self._load(self.build, self.whole)

    def _step(
        self, build: Builder, key: SSAValue, merge: SSAValue, half: SSAValue
    ) -> SSAValue:
        """Elements at a distance of 2^(merge - half) are compared."""
        distance = build.pure(arith.ShliOp, 1, build.minus(merge, half))
        far = self._everywhere(build, distance)
        place = build.insert(arith.XoriOp(self._numbers, far))
        self._store(build, key, self.whole)
        other = self._gather(build, place)
        run = self._everywhere(build, build.pure(arith.ShliOp, 2, merge))
        falls, is_upper = self._has(build, run), self._has(build, far)
        smaller = build.insert(arith.XoriOp(falls, is_upper))
        most = build.insert(arith.MaxsiOp(key, other))
        least = build.insert(arith.MinsiOp(key, other))
        wide = self._spread(build, smaller, 1 - self.dim)
        return build.insert(arith.SelectOp(wide, most, least))

    # Numbers along the dim ------------------------------------------------------------

    def _line(self, dim: int, element: Attribute) -> SSAValue:
        """0, 1, 2, ... along a dim."""
        extent, build = self.whole[dim], self.build
        line = build.insert(vector.StepOp(VectorType(IndexType(), [extent])))
        if element != IndexType():
            line = build.insert(arith.IndexCastOp(line, VectorType(element, [extent])))
        shape = [extent, 1] if dim == 0 else [1, extent]
        return build.insert(vector.ShapeCastOp(line, VectorType(element, shape)))

    def _everywhere(self, build: Builder, number: Index) -> SSAValue:
        narrow = build.insert(arith.IndexCastOp(build.index(number), i32))
        return build.insert(vector.BroadcastOp(narrow, self._numbers.type))

    def _has(self, build: Builder, bit: SSAValue) -> SSAValue:
        """Which of the numbers along the dim have a bit."""
        found = build.insert(arith.AndiOp(self._numbers, bit))
        none = build.constant(0, self._numbers.type)
        return build.insert(arith.CmpiOp("ne", found, none))

    def _spread(self, build: Builder, value: SSAValue, dim: int) -> SSAValue:
        """A row or a column, repeated along the other dim."""
        whole = VectorType(vector_type(value).element_type, self.whole)
        if value.type == whole:
            return value
        return build.insert(xetile.TileBroadcastOp(value, whole, broadcast_dims=(dim,)))

    # Shared memory --------------------------------------------------------------------

    def _tile(self, build: Builder, shape: tuple[int, ...]) -> SSAValue:
        encoding = xetile.TileAttr(memory_space=_SHARED)
        type_ = xetile.TileType(shape, self.element, encoding)
        return build.insert(xetile.InitTileOp(self.memory, [self._first_row, 0], type_))

    def _store(self, build: Builder, value: SSAValue, shape: tuple[int, ...]) -> None:
        build.add(xetile.StoreTileOp(value, self._tile(build, shape)))
        build.add(gpu.BarrierOp())

    def _load(self, build: Builder, shape: tuple[int, ...]) -> SSAValue:
        found = build.insert(xetile.LoadTileOp(self._tile(build, shape)))
        build.add(gpu.BarrierOp())
        return found

    def _gather(self, build: Builder, place: SSAValue) -> SSAValue:
        """The element at ``place`` along the dim, for each."""
        along = build.insert(
            arith.IndexCastOp(place, VectorType(IndexType(), shape_of(place.type)))
        )
        row, column = (self._others, along) if self.dim else (along, self._others)
        line = VectorType(IndexType(), shape_of(row.type))
        pitch = build.constant(self.whole[1], line)
        row = build.insert(arith.MuliOp(row, pitch))
        ends = [self._spread(build, row, 1), self._spread(build, column, 0)]
        type_ = xetile.TileType(
            self.whole,
            self.element,
            xetile.TileAttr(memory_space=_SHARED, scattered=True),
        )
        indices = build.insert(arith.AddiOp(*ends))
        first = build.times(self._first_row, self.whole[1])
        if isinstance(first, SSAValue):
            wide = vector.BroadcastOp(first, vector_type(indices))
            indices = build.insert(arith.AddiOp(indices, build.insert(wide)))
        tile = build.insert(xetile.InitTileOp(self._flat, [], type_, indices=indices))
        everything = build.constant(1, VectorType(i1, self.whole))
        found = build.insert(xetile.LoadGatherOp(tile, everything))
        build.add(gpu.BarrierOp())
        return found


def _subgroup_count(op: Operation) -> int:
    """How many subgroups run this code, each by itself: 1 of a workgroup's kernel."""
    kernel: Operation | None = op
    while kernel is not None and not isinstance(kernel, gpu.FuncOp | func.FuncOp):
        kernel = kernel.parent_op()
    if kernel is None or kernel.attributes.get(LEVEL) != StringAttr(SUBGROUP):
        return 1
    return prod(subgroups_along_axes(kernel))
