"""An A that all iterations of a loop share is copied by the first iteration.

AMX tiles want rows of A an odd number of lines apart; a copy costs as much as two
panels of B (1024 cubed in bf16 on silicon: 0.14 ms of 1.5).
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
    """An iteration of a loop whose iterations share one A.

    Attributes:
        is_first: whether nothing has been copied yet.
        columns: the columns of B and C in all iterations, or some more.
    """

    is_first: SSAValue
    columns: Index

    def where_new(self, build: Builder, k: Index, most: Index) -> Builder:
        """Return where to copy; a k longer than the copy holds is copied each time."""
        is_long = build.compare("sgt", k, most)
        return build.when(build.insert(arith.OriOp(self.is_first, is_long)))


def trip_of(op: BrgemmTileOp, build: Builder) -> Trip:
    """Return the iteration of the loop around a product that shares A."""
    loop = op.parent_op()
    assert isinstance(loop, scf.ForOp)
    is_first = build.compare("eq", loop.body.block.args[0], loop.lower_bound)
    count = build.minus(loop.upper_bound, loop.lower_bound)
    if piece_along_n(op) is not None:
        return Trip(is_first, count)
    trips = build.ceil_divided(count, loop.step)
    return Trip(is_first, build.times(trips, op.shape()[1]))


def products_of_one_a(inside: Operation) -> set[BrgemmTileOp]:
    """Return products on tiles in loops that change neither their A nor its extents."""
    products = operations_in(inside, BrgemmTileOp)
    return {op for op in products if op.blocking().uses_tiles and _has_one_a(op)}


def _has_one_a(op: BrgemmTileOp) -> bool:
    loop, init = op.parent_op(), op.a.owner
    if not isinstance(loop, scf.ForOp) or not isinstance(init, InitTileOp):
        return False
    numbers = [v for v in (op.count, op.rows) if v is not None]
    is_same = is_invariant([*init.operands, *numbers], loop)
    return is_same and not is_written(init.source, loop)
