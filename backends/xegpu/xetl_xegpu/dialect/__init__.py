"""XeGPU as MLIR 22 has it.

`attributes` and `types`; the operations in `block_ops`, `scatter_ops`, `value_ops` and
`matrix_ops`, `*_verifiers` for their rules; `extension_ops` has what upstream lacks.
Named barriers and fences are the core's: XeTile text may hold them.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from xetl.dialects.upstream.xegpu import (
    FenceOp,
    FenceScopeAttr,
    MemorySpaceAttr,
    XeGPUHints,
)

from .attributes import (
    BlockTdescAttr,
    CacheHintAttr,
    LayoutAttr,
    MemLayoutAttr,
    ScatterTdescAttr,
    SliceAttr,
)
from .block_ops import (
    CreateNdTdescOp,
    LoadNdOp,
    PrefetchNdOp,
    StoreNdOp,
    UpdateNdOffsetOp,
    descriptor_type,
    loaded_type,
)
from .extension_ops import AssertOp, PrintOp, XeGPUExtensions
from .matrix_ops import CreateMemDescOp, LoadMatrixOp, StoreMatrixOp, mem_desc_type
from .scatter_ops import (
    AtomicRmwOp,
    CreateTdescOp,
    LoadOp,
    PrefetchOp,
    StoreOp,
    UpdateOffsetOp,
)
from .types import MemDescType, TensorDescType
from .value_ops import ConvertLayoutOp, DpasOp

XeGPU = Dialect(
    "xegpu",
    [
        *XeGPUHints.operations,
        *(CreateNdTdescOp, LoadNdOp, StoreNdOp, PrefetchNdOp, UpdateNdOffsetOp),
        *(CreateTdescOp, UpdateOffsetOp, LoadOp, StoreOp, PrefetchOp, AtomicRmwOp),
        *(DpasOp, ConvertLayoutOp),
        *(CreateMemDescOp, LoadMatrixOp, StoreMatrixOp),
    ],
    [
        *XeGPUHints.attributes,
        *(TensorDescType, MemDescType, BlockTdescAttr, ScatterTdescAttr),
        *(CacheHintAttr, LayoutAttr, SliceAttr, MemLayoutAttr),
    ],
)

DIALECTS = (XeGPU, XeGPUExtensions)

__all__ = [
    "DIALECTS",
    "AssertOp",
    "AtomicRmwOp",
    "BlockTdescAttr",
    "CacheHintAttr",
    "ConvertLayoutOp",
    "CreateMemDescOp",
    "CreateNdTdescOp",
    "CreateTdescOp",
    "DpasOp",
    "FenceOp",
    "FenceScopeAttr",
    "LayoutAttr",
    "LoadMatrixOp",
    "LoadNdOp",
    "LoadOp",
    "MemDescType",
    "MemLayoutAttr",
    "MemorySpaceAttr",
    "PrefetchNdOp",
    "PrefetchOp",
    "PrintOp",
    "ScatterTdescAttr",
    "SliceAttr",
    "StoreMatrixOp",
    "StoreNdOp",
    "StoreOp",
    "TensorDescType",
    "UpdateNdOffsetOp",
    "UpdateOffsetOp",
    "XeGPU",
    "XeGPUExtensions",
    "descriptor_type",
    "loaded_type",
    "mem_desc_type",
]
