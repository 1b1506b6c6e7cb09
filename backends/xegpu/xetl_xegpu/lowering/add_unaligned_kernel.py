"""add-unaligned-kernel: each kernel gets a twin that needs no block messages.

Why: block messages ask more of base, pitch and width of a matrix than users promise.
Only the launch knows the arrays. If one of them does not fit, it takes the twin.

The twin has no prefetches, because only messages can prefetch. Launches need the twin
so rarely that it is compiled at the first launch that does; with ``is_alone`` the pass
leaves only the twin.

Before: ``gpu.func @f(...) kernel { ... xetile.load_tile ... }``
After:  the same, and ``gpu.func @f_unaligned(...) kernel attributes {xegpu.no_blocks}``

Left alone: kernels that neither move nor prefetch a tile of global memory as a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import gpu
from xetl.dialects.xetile.types import GLOBAL
from xetl.ir.builder import Pass
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.limits import UNALIGNED
from xetl_xegpu.lowering.convert_xetile_to_xegpu.plan import tile_origins
from xetl_xegpu.lowering.convert_xetile_to_xegpu.row_gathers import row_gather


@dataclass(frozen=True)
class AddUnalignedKernelPass(Pass):
    is_alone: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp):
            is_plain = kernel.is_kernel and NO_BLOCKS not in kernel.attributes
            if is_plain and any(map(_may_be_block, kernel.walk())):
                _add_twin(kernel)
                if self.is_alone:
                    Rewriter.erase_op(kernel)


def _may_be_block(op: Operation) -> bool:
    """Whether block messages may move the tile of an operation."""
    if isinstance(op, xetile.LoadGatherOp):
        return row_gather(op) is not None
    if not isinstance(
        op, xetile.LoadTileOp | xetile.StoreTileOp | xetile.PrefetchTileOp
    ):
        return False
    type_ = op.tile.type
    if not isinstance(type_, xetile.TileType) or type_.memory_space != GLOBAL:
        return False
    return any(origin.has_rows for origin in tile_origins(op.tile))


def _add_twin(kernel: gpu.FuncOp) -> None:
    twin = kernel.clone()
    twin.sym_name = StringAttr(kernel.sym_name.data + UNALIGNED)
    twin.attributes[NO_BLOCKS] = UnitAttr()
    for op in operations_in(twin, xetile.PrefetchTileOp):
        Rewriter.erase_op(op)
    Rewriter.insert_op(twin, InsertPoint.after(kernel))
