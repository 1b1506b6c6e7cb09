"""What one lane does: the dialect between XeGPU and LLVM.

See docs/design/0005-xegpu.md, "Stage `lanes`".
"""

from xdsl.ir import Dialect

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
    [
        FuncOp,
        ReturnOp,
        GroupIdOp,
        NumGroupsOp,
        SubgroupIdOp,
        LaneIdOp,
        BlockLoadOp,
        BlockStoreOp,
        BlockPrefetchOp,
        DpasOp,
        LaneProductOp,
        LoadOp,
        StoreOp,
        AtomicOp,
        LocalBaseOp,
        ShuffleOp,
        ReduceOp,
        ScanOp,
        BarrierOp,
        BarrierArriveOp,
        BarrierWaitOp,
        NamedBarrierOp,
        FenceOp,
        PrintOp,
        AssertOp,
    ],
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
