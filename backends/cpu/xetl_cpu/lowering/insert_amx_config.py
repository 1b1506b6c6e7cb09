"""insert-amx-config: each product that needs AMX configures tiles and releases them.

    %k = xsmm.brgemm.dispatch [...] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %n)
    ->
    %state = memref.alloca() : memref<64xi8>
    %set = xsmm.IntelAMXtileConfig.dispatch [...] flags = (vnni_b, no_reset_tileconfig)
    "xsmm.IntelAMXtileConfig"(%set, %state)
    %k = xsmm.brgemm.dispatch [...] flags = (vnni_b, no_reset..., no_setup_tileconfig)
    xsmm.brgemm(...)
    %reset = xsmm.IntelAMXtileConfig.dispatch [...] flags = (vnni_b, no_setup_...)
    "xsmm.IntelAMXtileConfig"(%reset, %state)

Before: ``plan-gemm``, or stage ``loops``.  Handled: bf16 ``brgemm`` in VNNI form
without flags for tiles, and products that our own micro-kernels compute on tiles:
`xsmm.brgemm.tile` or, if other products are library calls, `xsmm.block_gemm`.
Source: seed 003, "Generating AMX configuration".
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StringAttr, i8
from xdsl.ir import Operation

from xetl.dialects import xsmm
from xetl.dialects.upstream import memref
from xetl.ir.builder import Pass
from xetl_cpu.dialect import BlockGemmOp, BrgemmTileOp, dispatch_of

SETUP, RESET = "no_reset_tileconfig", "no_setup_tileconfig"
"""The kernel that does not reset tiles sets them up, and the other way round."""

_STATE = MemRefType(i8, [64])


@dataclass(frozen=True)
class InsertAmxConfigPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for one in list(op.walk()):
            dispatch = _dispatch(one)
            if dispatch is not None:
                _around(one, dispatch)


def _dispatch(op: Operation) -> xsmm.BrgemmDispatchOp | None:
    """Return the kernel of a product on tiles that are not configured yet, or None."""
    if isinstance(op, BlockGemmOp):
        return dispatch_of(op.blocking()) if op.blocking().uses_tiles else None
    if not isinstance(op, xsmm.BrgemmOp | BrgemmTileOp) or op.kernel is None:
        return None
    dispatch = op.kernel.owner
    if not isinstance(dispatch, xsmm.BrgemmDispatchOp):
        return None
    flags = dispatch.flag_names()
    if isinstance(op, BrgemmTileOp):
        uses_tiles = op.blocking().uses_tiles
    else:
        uses_tiles = dispatch.data_type.data in ("bf16", "bf16_f32")
    is_plain = "vnni_b" in flags and SETUP not in flags and RESET not in flags
    return dispatch if uses_tiles and is_plain else None


def _around(op: Operation, dispatch: xsmm.BrgemmDispatchOp) -> None:
    """Configure tiles before ``op`` and reset them after it, not in its kernel."""
    block, flags = op.parent_block(), dispatch.flag_names()
    assert block is not None
    setup, reset = (
        xsmm.TileConfigDispatchOp(
            sizes=dispatch.size_list(),
            data_type=dispatch.data_type.data,
            flags=[*flags, flag],
        )
        for flag in (SETUP, RESET)
    )
    state = memref.AllocaOp(_STATE)
    before = [state, setup, xsmm.TileConfigOp(setup.kernel, state.result)]
    behind = [reset, xsmm.TileConfigOp(reset.kernel, state.result)]
    block.insert_ops_before(before, op)
    block.insert_ops_after(behind, op)
    for each in (*before, *behind):
        each.location = op.location
    names = [*flags, SETUP, RESET]
    dispatch.flags = ArrayAttr([StringAttr(name) for name in names])
