"""expand-interleaves: elements in turn, and every n-th one, go through shared memory.

*What*: ``vector.interleave`` stores its operands side by side and gathers from there;
slices with strides gather from what their source is stored to.
*Why*: what follows splits work between subgroups, and knows stores, barriers, gathers.
*Left alone*: slices of neighbours, and everything else.

before: %r = vector.interleave %a, %b : vector<4x8xf32> -> vector<4x16xf32>
after:  %m = memref.alloc() : memref<4x16xf32, 3 : i64>
        store_tile %a, ... [0, 0]; store_tile %b, ... [0, 8]; gpu.barrier
        %r = load_gather ...  // of columns 0, 8, 1, 9, ...
        gpu.barrier
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp, VectorType, i1, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import operations_in, shape_of, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.ir.builder import Builder, Pass
from xetl.transforms.exchange import Exchange


class ExpandInterleavesPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for each in operations_in(op, vector.InterleaveOp):
            memory = _Memory(each, [each.lhs, each.rhs])
            row, column = (memory.exchange.line(dim) for dim in (0, 1))
            half = memory.exchange.shape[1] // 2
            turns = memory.combined(arith.RemuiOp, column, 2)
            behind = memory.combined(arith.MuliOp, turns, half)
            number = memory.combined(arith.DivuiOp, column, 2)
            place = memory.build.insert(arith.AddiOp(number, behind))
            Rewriter.replace_op(each, [], memory.gather((row, place)))
        parts = dict[
            tuple[SSAValue, Block | None], list[vector.ExtractStridedSliceOp]
        ]()
        for each in operations_in(op, vector.ExtractStridedSliceOp):
            if set(each.strides) != {1} and len(each.strides) == 2:
                parts.setdefault((each.source, each.parent), []).append(each)
        for (source, _), slices in parts.items():
            memory = _Memory(slices[0], [source])
            places = [
                (memory.places(part, 0), memory.places(part, 1)) for part in slices
            ]
            found = memory.gather(*places)
            for each, part in zip(slices, found):
                Rewriter.replace_op(each, [], [part])


class _Memory:
    """Matrices side by side in shared memory; masks are stored as bytes."""

    def __init__(self, op: Operation, parts: Sequence[SSAValue]) -> None:
        types = [vector_type(part) for part in parts]
        self.is_mask = types[0].element_type == i1
        element = i8 if self.is_mask else types[0].element_type
        columns = [type_.get_shape()[1] for type_ in types]
        shape = types[0].get_shape()[0], sum(columns)
        self.build = Builder.before(op)
        self.exchange = Exchange(op, element, shape)
        if self.is_mask:
            parts = [self._cast(arith.ExtuiOp, part, i8) for part in parts]
        self.exchange.store(self.build, *parts)

    def gather(self, *places: tuple[SSAValue, SSAValue]) -> list[SSAValue]:
        """For each of the places the elements of its rows and columns."""
        found = self.exchange.gather(self.build, *places)
        if self.is_mask:
            return [self._cast(arith.TrunciOp, each, i1) for each in found]
        return found

    def _cast(
        self, cls: Callable[..., Operation], value: SSAValue, to: Attribute
    ) -> SSAValue:
        return self.build.insert(cls(value, VectorType(to, shape_of(value.type))))

    def places(self, op: vector.ExtractStridedSliceOp, dim: int) -> SSAValue:
        """Where the elements of a slice are."""
        line = self.exchange.line(dim, op.sizes[dim])
        line = self.combined(arith.MuliOp, line, op.strides[dim])
        return self.combined(arith.AddiOp, line, op.offsets[dim])

    def combined(
        self,
        cls: Callable[[SSAValue, SSAValue], Operation],
        line: SSAValue,
        number: int,
    ) -> SSAValue:
        """Indices and a constant."""
        constant = self.build.constant(number, vector_type(line))
        return self.build.insert(cls(line, constant))
