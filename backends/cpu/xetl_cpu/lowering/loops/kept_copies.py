"""A that is the same in all trips of a loop is copied by the first of them.

Tiles want rows of A an odd number of lines apart; a copy costs what two panels of B do
(1024 cubed in bf16 on silicon: 0.14 ms of 1.5).
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp
from xetl.ir.builder import Builder
from xetl.records import record
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.packing.plans import is_written
from xetl_cpu.lowering.tiles import is_invariant, piece_along_n


@record()
class Trip:
    """A trip of a loop whose trips have one A.

    Attributes:
        is_first: whether nothing has been copied yet.
        columns: of B and C, in all trips, or some more.
    """

    is_first: SSAValue
    columns: Index

    def where_new(self, build: Builder, k: Index, most: Index) -> Builder:
        """Where a copy is made: a longer k than it holds is copied in each trip."""
        is_long = build.compare("sgt", k, most)
        return build.when(build.insert(arith.OriOp(self.is_first, is_long)))


def trip_of(op: BrgemmTileOp, build: Builder) -> Trip:
    """The trip of the loop around a product that has one A."""
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    is_first = build.compare("eq", loop.body.block.args[0], loop.lower_bound)
    count = build.minus(loop.upper_bound, loop.lower_bound)
    if piece_along_n(op) is not None:
        return Trip(is_first, count)
    trips = build.ceil_divided(count, loop.step)
    return Trip(is_first, build.times(trips, op.shape()[1]))


def products_of_one_a(inside: Operation) -> set[BrgemmTileOp]:
    """Products on tiles in a loop that changes neither their A nor its extents."""
    products = operations_in(inside, BrgemmTileOp)
    return {op for op in products if op.blocking().uses_tiles and _has_one_a(op)}


def _has_one_a(op: BrgemmTileOp) -> bool:
    loop, init = op.parent_op(), op.a.owner
    if not isinstance(loop, scf.ForOp) or not isinstance(init, InitTileOp):
        return False
    numbers = [v for v in (op.count, op.rows) if v is not None]
    is_same = is_invariant([*init.operands, *numbers], loop)
    return is_same and not is_written(init.source, loop)
