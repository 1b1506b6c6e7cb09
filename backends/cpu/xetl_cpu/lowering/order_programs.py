"""order-programs: chooses the number of the programs that runs fastest.

    scf.parallel (%x, %y, %z)                  # by default %x
      store_tile %v, %out[%x * 32, %y * 256]   # out: memref<?x?xf32, strided<[?, 1]>>
    ->
    ... {xetl.order = array<i64: 1, 0, 2>}     # %y: the next program stores beside it

A thread runs programs one after another.  If the next program continues where the last
one ended, memory is streamed. Otherwise every program starts anew in as many pages as
its tile has rows.

Before: stage ``xsmm``.  Left alone: kernels with products (consecutive programs share
the operand that does not depend on the first number); stores that no number moves along
the contiguous dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, ints_of, is_memref, memref_type, operations_in
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import StoreTileOp, TileMmaOp
from xetl.ir.builder import Pass
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import counters_of, origin

_ORDER = "xetl.order"


class OrderProgramsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ParallelOp):
            order = _order(loop)
            if order != sorted(order):
                loop.attributes[_ORDER] = DenseArrayBase.from_list(i64, order)
                store = operations_in(loop, StoreTileOp)[0]
                text = f"program_id({order[0]}) runs fastest, along the rows"
                remark(store, "programs", text)


def order_of(loop: scf.ParallelOp) -> Sequence[int]:
    """Return the dimensions of a loop over programs, the fastest first."""
    order = loop.attributes.get(_ORDER)
    return range(len(loop.body.block.args)) if order is None else ints_of(order)


def _order(loop: scf.ParallelOp) -> list[int]:
    numbers = loop.body.block.args
    fast: set[SSAValue] = set()
    for op in loop.walk():
        if isinstance(op, BrgemmTileOp | TileMmaOp):
            return list(range(len(numbers)))
        if isinstance(op, StoreTileOp):
            fast.update(counters_of(_contiguous_offsets(op.tile), loop) or ())
    return sorted(range(len(numbers)), key=lambda axis: numbers[axis] not in fast)


def _contiguous_offsets(tile: SSAValue) -> list[Index]:
    """Return a tile's offsets along dimensions of stride 1; [] if they are unknown."""
    init = origin(tile)
    if init is None:
        return []
    strides: Sequence[Index | None] = init.mixed_strides
    if is_memref(init.source.type):
        strides = strides_of(memref_type(init.source)) or []
    pairs = zip(strides, init.mixed_offsets)
    return [offset for stride, offset in pairs if stride == 1]
