"""What one lane does: the dialect between XeGPU and LLVM.

See docs/design/0005-xegpu.md, "Stage `lanes`".
"""

from __future__ import annotations

from xdsl.ir import Attribute, Dialect, Operation

from xetl.dialects.base import shape_of
from xetl.dialects.kinds_of_types import is_memref, is_vector
from xetl.dialects.operation import operations_of
from xetl.transforms.stages import StageSpec, register_stage
from xetl_xegpu.simt import block_ops, memory_ops, program_ops
from xetl_xegpu.simt.block_ops import PRODUCTS as PRODUCTS
from xetl_xegpu.simt.block_ops import BlockLoadOp as BlockLoadOp
from xetl_xegpu.simt.block_ops import BlockPrefetchOp as BlockPrefetchOp
from xetl_xegpu.simt.block_ops import BlockShape as BlockShape
from xetl_xegpu.simt.block_ops import BlockStoreOp as BlockStoreOp
from xetl_xegpu.simt.block_ops import DpasOp as DpasOp
from xetl_xegpu.simt.block_ops import LaneProductOp as LaneProductOp
from xetl_xegpu.simt.block_ops import RoundToTf32Op as RoundToTf32Op
from xetl_xegpu.simt.block_ops import Surface as Surface
from xetl_xegpu.simt.block_ops import lanes_type as lanes_type
from xetl_xegpu.simt.memory_ops import AtomicOp as AtomicOp
from xetl_xegpu.simt.memory_ops import LoadOp as LoadOp
from xetl_xegpu.simt.memory_ops import LocalBaseOp as LocalBaseOp
from xetl_xegpu.simt.memory_ops import StoreOp as StoreOp
from xetl_xegpu.simt.program_ops import SPILLS as SPILLS
from xetl_xegpu.simt.program_ops import SUBGROUP_SIZE as SUBGROUP_SIZE
from xetl_xegpu.simt.program_ops import WALK as WALK
from xetl_xegpu.simt.program_ops import AssertOp as AssertOp
from xetl_xegpu.simt.program_ops import BarrierArriveOp as BarrierArriveOp
from xetl_xegpu.simt.program_ops import BarrierOp as BarrierOp
from xetl_xegpu.simt.program_ops import BarrierWaitOp as BarrierWaitOp
from xetl_xegpu.simt.program_ops import FenceOp as FenceOp
from xetl_xegpu.simt.program_ops import FuncOp as FuncOp
from xetl_xegpu.simt.program_ops import GroupIdOp as GroupIdOp
from xetl_xegpu.simt.program_ops import LaneIdOp as LaneIdOp
from xetl_xegpu.simt.program_ops import NamedBarrierOp as NamedBarrierOp
from xetl_xegpu.simt.program_ops import NumGroupsOp as NumGroupsOp
from xetl_xegpu.simt.program_ops import PrintOp as PrintOp
from xetl_xegpu.simt.program_ops import ReduceOp as ReduceOp
from xetl_xegpu.simt.program_ops import ReturnOp as ReturnOp
from xetl_xegpu.simt.program_ops import ScanOp as ScanOp
from xetl_xegpu.simt.program_ops import ShuffleOp as ShuffleOp
from xetl_xegpu.simt.program_ops import SubgroupIdOp as SubgroupIdOp

SIMT = Dialect(
    "simt",
    operations_of(program_ops, block_ops, memory_ops),
)


LENGTHS = (2, 3, 4, 8, 16)
"""Elements of a vector: all there are in SPIR-V for OpenCL."""


def _problem_with(type_: Attribute) -> str | None:
    if is_memref(type_):
        return "memory is known by its address"
    if is_vector(type_) and shape_of(type_) not in [(n,) for n in LENGTHS]:
        return f"vectors have {', '.join(map(str, LENGTHS))} elements"
    return None


def only_what_a_lane_holds(op: Operation) -> str | None:
    """Numbers, and vectors that SPIR-V has."""
    for value in (*op.operands, *op.results):
        problem = _problem_with(value.type)
        if problem is not None:
            return f"`{op.name}` works on {value.type}: {problem}"
    return None


LANES = register_stage(
    StageSpec(
        "lanes",
        frozenset({"builtin", "arith", "math", "scf", "simt"}),
        frozenset(
            f"vector.{name}"
            for name in (
                *("extract", "insert", "broadcast", "from_elements", "shuffle"),
                *("bitcast", "fma"),
            )
        ),
        (only_what_a_lane_holds,),
    )
)
"""`index` is an i64; bf16 and f16 are computed in f32 and rounded once."""
