"""Say what one lane of a subgroup does.

*What*: fragments become what a lane holds of them, XeGPU's operations those of `simt`,
and a kernel of subgroups one for lanes.
*Why*: SPIR-V is written for a lane; 16 of them run one instruction.
*How*: one walk in source order, a rule for each operation (folder `lanes`).  The type
of a value says what a lane holds of it (`lanes/held.py`), so neighbours always agree,
and only what looks across lanes costs shuffles: column reductions, transposes, a column
for all, operands of a dpas that were computed rather than loaded.

before: %v = xegpu.load_nd %t[%y, %x] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
        %e = math.exp %v : vector<8x16xf32>
after:  %p = simt.block_load %base, %width, %height, %pitch, %x, %y
                 {bits = 32, rows = 8, columns = 16} : vector<8xi32>
        %v = arith.bitcast %p : vector<8xi32> to vector<8xf32>
        %e = math.exp %v : vector<8xf32>

*Refused*, with the line: what no lane can hold its part of, descriptors that loops
carry, named barriers of some subgroups where they are emulated.
Source: docs/design/0005-xegpu.md, "Fragments" and "Stage `lanes`".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from xetl.devices import find_device
from xetl.dialects.upstream import arith, gpu, memref, scf, vector
from xetl.dialects.upstream.xegpu import (
    AllocNbarrierOp,
    CompileHintOp,
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xetl_xegpu import dialect as xegpu
from xetl_xegpu import simt
from xetl_xegpu.lowering.lanes import (
    blocks,
    constants,
    control,
    elementwise,
    memory,
    moves,
    named_barriers,
    products,
    programs,
    reductions,
    scattered,
    shared,
)
from xetl_xegpu.lowering.lanes.function import lower_kernel
from xetl_xegpu.lowering.lanes.state import Lanes

_Rule = Callable[[Lanes, Any], None]


@dataclass(frozen=True)
class DistributeToLanesPass(ModulePass):
    """See the module docstring."""

    name = "distribute-to-lanes"

    device: str = "pvc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        device = find_device(self.device)
        for module in [o for o in op.ops if isinstance(o, gpu.ModuleOp)]:
            for kernel in module.body.block.ops:
                if isinstance(kernel, gpu.FuncOp) and kernel.is_kernel:
                    made = lower_kernel(kernel, device, lower_block)
                    op.body.block.insert_op_before(made, module)
            module.detach()
            module.erase(safe_erase=False)


def lower_block(lanes: Lanes, block: Block) -> None:
    """Lower the operations of a block in order."""
    for op in block.ops:
        lanes.at(op)
        loop = _LOOPS.get(type(op))
        if loop is not None:
            loop(lanes, op, lower_block)
            continue
        _rule_of(lanes, op)(lanes, op)


def _rule_of(lanes: Lanes, op: Operation) -> _Rule:
    rule = _RULES.get(type(op))
    if rule is None and op.name.startswith(("arith.", "math.")):
        return elementwise.compute
    if rule is None:
        raise lanes.refuse(
            op,
            f"`{op.name}` has no form for lanes",
            "docs/design/0005-xegpu.md lists what may stand at stage `xegpu`",
        )
    return rule


def _return(lanes: Lanes, op: gpu.ReturnOp) -> None:
    lanes.add(simt.ReturnOp())


_LOOPS: dict[type[Operation], Callable[[Lanes, Any, control.Lower], None]] = {
    scf.ForOp: control.lower_for,
    scf.IfOp: control.lower_if,
    scf.WhileOp: control.lower_while,
}
_VALUES: dict[type[Operation], _Rule] = {
    arith.ConstantOp: constants.constant,
    arith.SelectOp: elementwise.select,
    arith.ExtfOp: elementwise.cast_float,
    arith.TruncfOp: elementwise.cast_float,
    arith.BitcastOp: elementwise.bitcast,
    vector.FmaOp: elementwise.fma,
    vector.ExtractOp: moves.extract,
    vector.InsertOp: moves.insert,
    vector.ExtractStridedSliceOp: moves.extract_slice,
    vector.InsertStridedSliceOp: moves.insert_slice,
    vector.BroadcastOp: moves.broadcast,
    vector.ShapeCastOp: moves.shape_cast,
    vector.FromElementsOp: moves.from_elements,
    vector.ShuffleOp: moves.shuffle,
    vector.BitcastOp: moves.bitcast,
    vector.StepOp: moves.step,
    vector.TransposeOp: moves.transpose,
    vector.MultiReductionOp: reductions.multi_reduction,
    vector.ReductionOp: reductions.reduction,
    xegpu.DpasOp: products.dpas,
    vector.ContractOp: products.contract,
}
_MEMORY: dict[type[Operation], _Rule] = {
    memref.AllocOp: memory.allocate,
    memref.DeallocOp: memory.deallocate,
    memref.ExtractStridedMetadataOp: memory.metadata,
    memref.ReinterpretCastOp: memory.reinterpret_cast,
    memref.SubviewOp: memory.subview,
    memref.ViewOp: memory.view,
    memref.CastOp: memory.same_memory,
    memref.DimOp: memory.dim,
    memref.ExtractAlignedPointerAsIndexOp: memory.pointer,
    memref.LoadOp: memory.load,
    memref.StoreOp: memory.store,
    xegpu.CreateNdTdescOp: blocks.create_nd_tdesc,
    xegpu.UpdateNdOffsetOp: blocks.update_nd_offset,
    xegpu.LoadNdOp: blocks.load_nd,
    xegpu.StoreNdOp: blocks.store_nd,
    xegpu.PrefetchNdOp: blocks.prefetch_nd,
    xegpu.CreateTdescOp: scattered.create_tdesc,
    xegpu.UpdateOffsetOp: scattered.update_offset,
    xegpu.LoadOp: scattered.load,
    xegpu.StoreOp: scattered.store,
    xegpu.PrefetchOp: scattered.prefetch,
    xegpu.AtomicRmwOp: scattered.atomic,
    xegpu.CreateMemDescOp: shared.create_mem_desc,
    xegpu.LoadMatrixOp: shared.load_matrix,
    xegpu.StoreMatrixOp: shared.store_matrix,
}
_PROGRAM: dict[type[Operation], _Rule] = {
    gpu.BlockIdOp: programs.block_id,
    gpu.GridDimOp: programs.grid_dim,
    gpu.SubgroupIdOp: programs.subgroup_id,
    gpu.BarrierOp: programs.barrier,
    gpu.ReturnOp: _return,
    scf.YieldOp: control.yield_,
    scf.ConditionOp: control.condition,
    AllocNbarrierOp: programs.nothing,
    InitNbarrierOp: named_barriers.init,
    NbarrierArriveOp: named_barriers.arrive,
    NbarrierWaitOp: named_barriers.wait,
    CompileHintOp: programs.nothing,
    xegpu.FenceOp: programs.fence,
    xegpu.PrintOp: programs.print_text,
    xegpu.AssertOp: programs.assert_text,
}
_RULES = {**_VALUES, **_MEMORY, **_PROGRAM}
