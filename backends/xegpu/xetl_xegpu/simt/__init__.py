"""What one lane does: the dialect between XeGPU and LLVM.

See docs/design/0005-xegpu.md, "Stage `lanes`".
"""

from xdsl.ir import Dialect

from xetl.dialects.operation import operations_of
from xetl_xegpu.simt import (
    barrier_ops,
    block_ops,
    debug_ops,
    memory_ops,
    program_ops,
    subgroup_ops,
)
from xetl_xegpu.simt.barrier_ops import (
    BarrierArriveOp,
    BarrierOp,
    BarrierWaitOp,
    FenceOp,
    NamedBarrierOp,
)
from xetl_xegpu.simt.block_ops import (
    PRODUCTS,
    BlockLoadOp,
    BlockPrefetchOp,
    BlockShape,
    BlockStoreOp,
    DpasOp,
    LaneProductOp,
    Surface,
    lanes_type,
)
from xetl_xegpu.simt.debug_ops import AssertOp, PrintOp
from xetl_xegpu.simt.memory_ops import AtomicOp, LoadOp, LocalBaseOp, StoreOp
from xetl_xegpu.simt.program_ops import (
    SUBGROUP_SIZE,
    FuncOp,
    GroupIdOp,
    LaneIdOp,
    NumGroupsOp,
    ReturnOp,
    SubgroupIdOp,
)
from xetl_xegpu.simt.stage import LANES
from xetl_xegpu.simt.subgroup_ops import ReduceOp, ScanOp, ShuffleOp

SIMT = Dialect(
    "simt",
    operations_of(
        *(program_ops, block_ops, memory_ops, subgroup_ops, barrier_ops, debug_ops)
    ),
)

__all__ = [
    "LANES",
    "PRODUCTS",
    "SIMT",
    "SUBGROUP_SIZE",
    "AssertOp",
    "AtomicOp",
    "BarrierArriveOp",
    "BarrierOp",
    "BarrierWaitOp",
    "BlockLoadOp",
    "BlockPrefetchOp",
    "BlockShape",
    "BlockStoreOp",
    "DpasOp",
    "FenceOp",
    "FuncOp",
    "GroupIdOp",
    "LaneIdOp",
    "LaneProductOp",
    "LoadOp",
    "LocalBaseOp",
    "NamedBarrierOp",
    "NumGroupsOp",
    "PrintOp",
    "ReduceOp",
    "ReturnOp",
    "ScanOp",
    "ShuffleOp",
    "StoreOp",
    "SubgroupIdOp",
    "Surface",
    "lanes_type",
]
