"""sink-products: a product moves right before the store that takes its result.

    %c = xsmm.brgemm.tile ...
    %t = init_tile %out[%row, %col]
    %h = arith.truncf %c
    store_tile %h, %t
    ->
    %t = init_tile %out[%row, %col]
    %c = xsmm.brgemm.tile ...
    %h = arith.truncf %c
    store_tile %h, %t

Then the destination of the result is known when the product is lowered, and the
micro-kernel can store it from registers.

Before: stage ``xsmm``.  Left alone: products with other readers than a cast (on AMX
tiles: elementwise operations) and a store, or with operations in between that may write
memory.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xetl.dialects.base import operations_in
from xetl.dialects.xetile import StoreTileOp
from xetl.ir.builder import Pass, move_before
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import way_to_store, writes_between


class SinkProductsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for product in operations_in(op, BrgemmTileOp):
            plan = product.plan
            on_tiles = plan is not None and plan.data.uses_tiles
            way = way_to_store(product, on_tiles=on_tiles)
            if way is not None and _may_pass(product, *way):
                move_before(*way)


def _may_pass(product: Operation, moved: list[Operation], store: StoreTileOp) -> bool:
    """Whether all stand in one block, and nothing before the store writes."""
    if any(op.parent is not store.parent for op in moved):
        return False
    return not writes_between(product, store)
