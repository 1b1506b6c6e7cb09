"""XeGPU as MLIR 22 has it.

`attributes` and `types`; the operations in `nd_ops`, `scatter_ops` and
`value_ops`, which ends with what upstream lacks.
Named barriers and fences are the core's: XeTile text may hold them.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from xetl.dialects.upstream.xegpu import FenceOp as FenceOp
from xetl.dialects.upstream.xegpu import FenceScopeAttr as FenceScopeAttr
from xetl.dialects.upstream.xegpu import MemorySpaceAttr as MemorySpaceAttr
from xetl.dialects.upstream.xegpu import XeGPUHints

from .attributes import (
    BlockTdescAttr,
    CacheHintAttr,
    LayoutAttr,
    MemLayoutAttr,
    ScatterTdescAttr,
    SliceAttr,
)
from .nd_ops import CreateNdTdescOp, LoadNdOp, PrefetchNdOp, StoreNdOp
from .nd_ops import descriptor_type as descriptor_type
from .nd_ops import loaded_type as loaded_type
from .scatter_ops import AtomicRmwOp, CreateTdescOp, LoadOp, PrefetchOp, StoreOp
from .types import MemDescType, TensorDescType
from .value_ops import AssertOp as AssertOp
from .value_ops import (
    CreateMemDescOp,
    DpasOp,
    LoadMatrixOp,
    StoreMatrixOp,
    XeGPUExtensions,
)
from .value_ops import PrintOp as PrintOp
from .value_ops import mem_desc_type as mem_desc_type

XeGPU = Dialect(
    "xegpu",
    [
        *XeGPUHints.operations,
        *(CreateNdTdescOp, LoadNdOp, StoreNdOp, PrefetchNdOp),
        *(CreateTdescOp, LoadOp, StoreOp, PrefetchOp, AtomicRmwOp),
        *(DpasOp, CreateMemDescOp, LoadMatrixOp, StoreMatrixOp),
    ],
    [
        *XeGPUHints.attributes,
        *(TensorDescType, MemDescType, BlockTdescAttr, ScatterTdescAttr),
        *(CacheHintAttr, LayoutAttr, SliceAttr, MemLayoutAttr),
    ],
)

DIALECTS = (XeGPU, XeGPUExtensions)
