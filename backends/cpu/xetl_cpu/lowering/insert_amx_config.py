"""insert-amx-config: each product that needs AMX sets its tiles up and gives them back.

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

Before: stage ``xsmm`` or ``loops``.  Taken: bf16 ``brgemm`` in VNNI form that
says nothing of tiles yet, and `xsmm.block_gemm` that our own tiles compute.
Source: seed 003, "Generating AMX configuration".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StringAttr, i8
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.upstream import memref
from xetl.dialects.xsmm import (
    BrgemmDispatchOp,
    BrgemmOp,
    TileConfigDispatchOp,
    TileConfigOp,
)
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BlockGemmOp

SETUP, RESET = "no_reset_tileconfig", "no_setup_tileconfig"
"""A kernel that does not reset sets up, and the other way round."""

_STATE = MemRefType(i8, [64])

_OWN_SIZES = (32, 32, 32, 32, 32, 32, 32, 32 * 32)
"""One configuration serves all our kernels: whole tiles, see microkernels/amx.py."""


@dataclass(frozen=True)
class InsertAmxConfigPass(ModulePass):
    """See the module docstring."""

    name = "insert-amx-config"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for one in list(op.walk()):
            if isinstance(one, BrgemmOp):
                _around_call(one)
            elif isinstance(one, BlockGemmOp) and one.blocking().uses_tiles:
                _around(one, _OWN_SIZES, ("vnni_b",))


def _around_call(op: BrgemmOp) -> None:
    dispatch = op.kernel.owner
    if not isinstance(dispatch, BrgemmDispatchOp):
        return
    flags = [name for name in dispatch.flag_names() if name != "none"]
    is_plain = SETUP not in flags and RESET not in flags
    is_bf16 = dispatch.data_type.data in ("bf16", "bf16_f32")
    if not is_bf16 or "vnni_b" not in flags or not is_plain:
        return
    _around(op, dispatch.size_list(), flags)
    names = [*flags, SETUP, RESET]
    dispatch.flags = ArrayAttr([StringAttr(name) for name in names])


def _around(op: Operation, sizes: Sequence[int], flags: Sequence[str]) -> None:
    """Configure in front of ``op`` and reset behind it."""
    build = Builder.before(op)
    state = build.insert(memref.AllocaOp(_STATE))
    _configure(build, sizes, [*flags, SETUP], state)
    block = op.parent_block()
    assert block is not None
    dispatch = TileConfigDispatchOp(
        sizes=sizes, data_type="bf16", flags=[*flags, RESET]
    )
    reset = TileConfigOp(dispatch.kernel, state)
    block.insert_ops_after([dispatch, reset], op)
    for each in (dispatch, reset):
        each.location = op.location


def _configure(
    build: Builder, sizes: Sequence[int], flags: list[str], state: SSAValue
) -> None:
    kernel = build.insert(
        TileConfigDispatchOp(sizes=sizes, data_type="bf16", flags=flags)
    )
    build.add(TileConfigOp(kernel, state))
