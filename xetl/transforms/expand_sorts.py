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

from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType, i32
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import Index, operations_in, shape_of
from xetl.dialects.upstream import arith, scf, vector
from xetl.ir.builder import Builder, Pass
from xetl.transforms.exchange import Exchange, spread


class ExpandSortsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for each in operations_in(op, xetile.TileSortOp):
            alone = each.source_type.get_shape()[each.dim] == 1
            found = each.source if alone else _Network(each).sorted()
            Rewriter.replace_op(each, [], [found])


class _Network:
    """The network for one operation, in front of it.

    Attributes:
        whole: the shape with an extent along ``dim`` that is a power of two.
        memory: of this shape, through which elements go.
    """

    def __init__(self, op: xetile.TileSortOp) -> None:
        self.source, self.dim = op.source, op.dim
        self.element = op.source_type.element_type
        self.shape = tuple(op.source_type.get_shape())
        self.steps = (self.shape[self.dim] - 1).bit_length()
        self.whole = tuple(
            1 << self.steps if n == self.dim else extent
            for n, extent in enumerate(self.shape)
        )
        self.build = Builder.before(op)
        self.memory = Exchange(op, self.element, self.whole)
        self._others = self.memory.line(1 - self.dim)
        numbers = self.memory.line(self.dim)
        type_ = VectorType(i32, shape_of(numbers.type))
        self._numbers = self.build.insert(arith.IndexCastOp(numbers, type_))

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
        self.memory.store(build, key)
        return self.memory.load(build, self.shape)

    def _padded(self) -> SSAValue:
        """The source, and the largest number behind its elements."""
        if self.whole == self.shape:
            return self.source
        most = 2 ** (31 if self.element == i32 else 63) - 1
        type_ = VectorType(self.element, self.whole)
        self.memory.store(self.build, self.build.constant(most, type_))
        self.memory.store(self.build, self.source)
        return self.memory.load(self.build, self.whole)

    def _step(
        self, build: Builder, key: SSAValue, merge: SSAValue, half: SSAValue
    ) -> SSAValue:
        """Elements at a distance of 2^(merge - half) are compared."""
        distance = build.pure(arith.ShliOp, 1, build.minus(merge, half))
        far = self._everywhere(build, distance)
        place = build.insert(arith.XoriOp(self._numbers, far))
        self.memory.store(build, key)
        along = VectorType(IndexType(), shape_of(place.type))
        place = build.insert(arith.IndexCastOp(place, along))
        places = (self._others, place) if self.dim else (place, self._others)
        other = self.memory.gather(build, places)
        run = self._everywhere(build, build.pure(arith.ShliOp, 2, merge))
        falls, is_upper = self._has(build, run), self._has(build, far)
        smaller = build.insert(arith.XoriOp(falls, is_upper))
        most = build.insert(arith.MaxsiOp(key, other))
        least = build.insert(arith.MinsiOp(key, other))
        wide = spread(build, smaller, self.whole)
        return build.insert(arith.SelectOp(wide, most, least))

    def _everywhere(self, build: Builder, number: Index) -> SSAValue:
        narrow = build.insert(arith.IndexCastOp(build.index(number), i32))
        return build.insert(vector.BroadcastOp(narrow, self._numbers.type))

    def _has(self, build: Builder, bit: SSAValue) -> SSAValue:
        """Which of the numbers along the dim have a bit."""
        found = build.insert(arith.AndiOp(self._numbers, bit))
        none = build.constant(0, self._numbers.type)
        return build.insert(arith.CmpiOp("ne", found, none))
