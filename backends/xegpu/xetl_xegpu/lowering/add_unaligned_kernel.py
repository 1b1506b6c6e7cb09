"""add-unaligned-kernel: each kernel gets a twin that needs no block messages.

Why: block messages ask more of base, pitch and width of a matrix than users promise;
what an array is like is known at the launch only, which then takes the other kernel.

There is no prefetch in the twin: only messages ask for anything.  A launch needs it so
rarely that it is compiled then: alone, in place of the kernel (``is_alone``).

Before: ``gpu.func @f(...) kernel { ... xetile.load_tile ... }``
After:  the same, and ``gpu.func @f_unaligned(...) kernel attributes {xegpu.no_blocks}``

Left alone: kernels that move, or ask for, no tile of global memory as a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import is_memref, operations_in
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import gpu
from xetl.dialects.xetile.types import GLOBAL
from xetl.ir.builder import Pass
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.limits import UNALIGNED
from xetl_xegpu.lowering.convert_xetile_to_xegpu.plan import tile_origins


@dataclass(frozen=True)
class AddUnalignedKernelPass(Pass):
    is_alone: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp):
            marked = NO_BLOCKS in kernel.attributes
            if kernel.is_kernel and not marked and wants_blocks(kernel):
                _add_twin(kernel)
                if self.is_alone:
                    Rewriter.erase_op(kernel)


def wants_blocks(kernel: gpu.FuncOp) -> bool:
    """Whether some tile may be moved by block messages."""
    return any(_may_be_block(op) for op in kernel.walk())


def _may_be_block(op: Operation) -> bool:
    if not isinstance(
        op, xetile.LoadTileOp | xetile.StoreTileOp | xetile.PrefetchTileOp
    ):
        return False
    type_ = op.tile.type
    if not isinstance(type_, xetile.TileType) or type_.memory_space != GLOBAL:
        return False
    return any(_has_rows(origin.source, origin) for origin in tile_origins(op.tile))


def _has_rows(source: SSAValue, origin: xetile.InitTileOp) -> bool:
    """Whether a tile is of an array whose last dimension has no gaps."""
    if not is_memref(source.type):
        return False
    given = origin.mixed_strides or strides_of(source.type) or (None,)
    return given[-1] == 1


def _add_twin(kernel: gpu.FuncOp) -> None:
    twin = kernel.clone()
    twin.sym_name = StringAttr(kernel.sym_name.data + UNALIGNED)
    twin.attributes[NO_BLOCKS] = UnitAttr()
    for op in operations_in(twin, xetile.PrefetchTileOp):
        Rewriter.erase_op(op)
    Rewriter.insert_op(twin, InsertPoint.after(kernel))
