"""block-registers: a contraction of large vectors becomes loops over register tiles.

    %a = vector.transfer_read %A[...] : memref<128x256x512xf32>, vector<128x256x512xf32>
    %r = vector.contract ... %a, %b, %c : ... into vector<256x256xf32>
    vector.transfer_write %r, %C[...]
    ->
    scf.for %i = 0 to 256 step 8 {
      scf.for %j = 0 to 256 step 32 {
        %c = vector.transfer_read of C's 8 x 32
        scf.for %p = 0 to 128 { scf.for %k = 0 to 512 {     // carrying vector<8x32xf32>
            vector.contract of vector<1x8x1xf32>, vector<1x1x32xf32> into %c
        } }
        vector.transfer_write to C's 8 x 32

``sizes`` are of the two parallel iterators and of the innermost reduction (others go
one by one); without any, the register model of `microkernels/blocking.py` chooses for
``target``.  Where a size does not divide, the rest is peeled: the same with a smaller
tile behind the loop.  Left alone: operands that are not read whole and in bounds from
memory, and a result that is not written back where the accumulator was read.

Source: seed 004, "Motivating IR example".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import constant_index, strides_of
from xetl.dialects.upstream import memref, scf, vector
from xetl.ir.builder import Builder
from xetl_cpu.microkernels import DTYPES, choose_blocking
from xetl_cpu.targets import find_target

Place = dict[int, tuple[Index, int]]
"""Of each iterator: where the block begins, and how long it is."""


@dataclass(frozen=True)
class BlockRegistersPass(ModulePass):
    """See the module docstring; ``sizes`` in elements, as ``{sizes=8,32,1}``."""

    name = "block-registers"
    sizes: tuple[int, ...] = ()
    target: str = "host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for one in [o for o in op.walk() if isinstance(o, vector.ContractOp)]:
            found = _match(one)
            if found is not None:
                found.block(self._sizes_for(one))

    def _sizes_for(self, op: vector.ContractOp) -> dict[int, int]:
        """The block's extent along each iterator."""
        parallel = _iterators(op, "parallel")
        reduction = _iterators(op, "reduction")
        rows, columns, depth = self.sizes or self._model(op, parallel)
        return {
            **dict.fromkeys(reduction, 1),
            reduction[-1]: depth,
            **dict(zip(parallel, (rows, columns))),
        }

    def _model(self, op: vector.ContractOp, parallel: list[int]) -> tuple[int, ...]:
        extents = _extents(op)
        name = str(vector_type(op.lhs).element_type)
        dtype = name if name in DTYPES else "f32"
        m, n = (extents[dim] for dim in parallel)
        blocking = choose_blocking(find_target(self.target), dtype, m, n)
        return min(blocking.mr, m), min(blocking.nr, n), blocking.k_pack


def _iterators(op: vector.ContractOp, kind: str) -> list[int]:
    return [dim for dim, word in enumerate(op.iterators) if word == kind]


def _extents(op: vector.ContractOp) -> dict[int, int]:
    found: dict[int, int] = {}
    for dims, value in zip(op.maps, op.operands):
        found |= dict(zip(dims, vector_type(value).get_shape()))
    return found


@dataclass
class _Blocked:
    """A contraction between memory and memory."""

    op: vector.ContractOp
    reads: list[vector.TransferReadOp]
    write: vector.TransferWriteOp

    def block(self, sizes: dict[int, int]) -> None:
        """Put loops in the place of the contraction, and remove it."""
        self._parallel(
            Builder.before(self.write), _iterators(self.op, "parallel"), {}, sizes
        )
        dead: list[Operation] = [self.write, self.op, *self.reads]
        for op in dict.fromkeys(dead):
            if not any(True for result in op.results for _ in result.uses):
                op.detach()
                op.erase()

    def _parallel(
        self, build: Builder, dims: Sequence[int], place: Place, sizes: dict[int, int]
    ) -> None:
        if not dims:
            self._accumulate(build, place, sizes)
            return
        dim, *others = dims
        extent, size = _extents(self.op)[dim], sizes[dim]
        for start, stop, length in _segments(extent, size):
            if stop - start == length:
                self._parallel(build, others, {**place, dim: (start, length)}, sizes)
                continue
            loop = build.for_loop(start, stop, length)
            inner = Builder.at_end(loop.body.block)
            at = loop.body.block.args[0]
            self._parallel(inner, others, {**place, dim: (at, length)}, sizes)
            inner.add(scf.YieldOp())

    def _accumulate(self, build: Builder, place: Place, sizes: dict[int, int]) -> None:
        """One register tile of C: read, added to by all of the reductions, written."""
        view = self._view(build, 2, place)
        reductions = _iterators(self.op, "reduction")
        total = self._read(build, 2, view, place)
        total = self._reduce(build, reductions, place, sizes, total)
        indices = [build.index(0) for _ in self.op.maps[2]]
        in_bounds = [True] * len(indices)
        write = vector.TransferWriteOp(total, view, indices, in_bounds=in_bounds)
        write.location = self.write.location
        build.add(write)

    def _reduce(
        self,
        build: Builder,
        dims: Sequence[int],
        place: Place,
        sizes: dict[int, int],
        total: SSAValue,
    ) -> SSAValue:
        if not dims:
            return self._contract(build, place, total)
        dim, *others = dims
        extent, size = _extents(self.op)[dim], sizes[dim]
        for start, stop, length in _segments(extent, size):
            if stop - start == length:
                whole: Place = {**place, dim: (start, length)}
                total = self._reduce(build, others, whole, sizes, total)
                continue
            loop = build.for_loop(start, stop, length, [total])
            inner = Builder.at_end(loop.body.block)
            at, carried = loop.body.block.args
            place_inside: Place = {**place, dim: (at, length)}
            result = self._reduce(inner, others, place_inside, sizes, carried)
            inner.add(scf.YieldOp(result))
            total = loop.results[0]
        return total

    def _contract(self, build: Builder, place: Place, total: SSAValue) -> SSAValue:
        views = [self._view(build, number, place) for number in range(2)]
        lhs, rhs = (self._read(build, n, view, place) for n, view in enumerate(views))
        op = self.op
        small = vector.ContractOp(lhs, rhs, total, op.maps, op.iterators, op.kind)
        small.location = op.location
        return build.insert(small)

    def _view(self, build: Builder, number: int, place: Place) -> SSAValue:
        """The block of an operand's memory."""
        base = self.reads[number].base
        dims = self.op.maps[number]
        offsets, sizes = zip(*(place[dim] for dim in dims))
        view = memref.SubviewOp(
            base, offsets, sizes, [1] * len(dims), _part(base, offsets, sizes)
        )
        view.location = self.reads[number].location
        return build.insert(view)

    def _read(
        self, build: Builder, number: int, view: SSAValue, place: Place
    ) -> SSAValue:
        old = self.reads[number]
        shape = [place[dim][1] for dim in self.op.maps[number]]
        indices = [build.index(0) for _ in shape]
        type_ = VectorType(vector_type(old.result).element_type, shape)
        in_bounds = [True] * len(shape)
        read = vector.TransferReadOp(
            view, indices, old.padding, type_, in_bounds=in_bounds
        )
        read.location = old.location
        return build.insert(read)


def _segments(extent: int, size: int) -> Iterator[tuple[int, int, int]]:
    """(start, stop, block) of the whole blocks, and of the rest."""
    whole = extent - extent % size
    if whole:
        yield 0, whole, size
    if extent % size:
        yield whole, extent, extent % size


def _part(base: SSAValue, offsets: Sequence[Index], sizes: Sequence[int]) -> MemRefType:
    """The type of a block of a memref; MLIR wants to see where, if it can be known."""
    type_ = memref_type(base)
    strides = strides_of(type_)
    assert strides is not None
    start: int | None = 0 if isinstance(type_.layout, NoneAttr) else None
    for offset, stride in zip(offsets, strides):
        if start is None or stride is None or not isinstance(offset, int):
            start = None
        else:
            start += offset * stride
    layout = StridedLayoutAttr(strides, start)
    return MemRefType(type_.element_type, sizes, layout, type_.memory_space)


def _match(op: vector.ContractOp) -> _Blocked | None:
    """The memory around a contraction, if it is as the pass wants it."""
    if len(_iterators(op, "parallel")) != 2 or not _iterators(op, "reduction"):
        return None
    reads = [value.owner for value in op.operands]
    uses = [use.operation for use in op.result.uses]
    if len(uses) != 1 or not isinstance(uses[0], vector.TransferWriteOp):
        return None
    found = [read for read in reads if isinstance(read, vector.TransferReadOp)]
    write = uses[0]
    if len(found) != 3 or not all(map(_is_whole, [*found, write])):
        return None
    if write.base is not found[2].base or op.parent is not write.parent:
        return None
    # C is written block by block, while A and B are still being read.
    if write.base in (found[0].base, found[1].base):
        return None
    return _Blocked(op, found, write) if _nothing_between(found, write) else None


def _is_whole(op: vector.TransferReadOp | vector.TransferWriteOp) -> bool:
    """Whether a transfer is of all of its memref, element by element."""
    value = op.result if isinstance(op, vector.TransferReadOp) else op.value
    type_ = op.base.type
    if not is_memref(type_) or strides_of(type_) is None or op.mask is not None:
        return False
    same = type_.get_shape() == vector_type(value).get_shape()
    no_dynamic = DYNAMIC_INDEX not in type_.get_shape()
    starts = all(constant_index(index) == 0 for index in op.indices)
    identity = op.permutation_map.data == AffineMap.identity(type_.get_num_dims())
    return same and no_dynamic and starts and identity and prod(type_.get_shape()) > 0


def _nothing_between(
    reads: Sequence[vector.TransferReadOp], write: vector.TransferWriteOp
) -> bool:
    """Whether reading late reads the same: nobody writes memory in between."""
    block = write.parent
    if block is None or any(read.parent is not block for read in reads):
        return False
    ops = list(block.ops)
    first, last = min(ops.index(read) for read in reads), ops.index(write)
    quiet = (vector.TransferReadOp, vector.ContractOp)
    return all(
        isinstance(op, quiet) or op.name.startswith("arith.") for op in ops[first:last]
    )
