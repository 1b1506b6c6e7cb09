"""The XeGPU dialect of MLIR 22.

The operations are in `nd_ops`, `scatter_ops` and `value_ops`; the last module ends with
operations that upstream lacks. Named barriers and fences are defined in the core,
because XeTile text may hold them.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from xetl.dialects.operation import operations_of
from xetl.dialects.upstream.xegpu import FenceOp as FenceOp
from xetl.dialects.upstream.xegpu import FenceScopeAttr as FenceScopeAttr
from xetl.dialects.upstream.xegpu import MemorySpaceAttr as MemorySpaceAttr
from xetl.dialects.upstream.xegpu import XeGPUHints
from xetl_xegpu.dialect import attributes, nd_ops, scatter_ops, value_ops
from xetl_xegpu.dialect.attributes import *
from xetl_xegpu.dialect.nd_ops import *
from xetl_xegpu.dialect.scatter_ops import *
from xetl_xegpu.dialect.value_ops import *

_OURS = (value_ops.PrintOp, value_ops.AssertOp)
_OPERATIONS = operations_of(nd_ops, scatter_ops, value_ops)

XeGPU = Dialect(
    "xegpu",
    [*XeGPUHints.operations, *(each for each in _OPERATIONS if each not in _OURS)],
    [
        *XeGPUHints.attributes,
        *(attributes.TensorDescType, attributes.MemDescType),
        *(attributes.BlockTdescAttr, attributes.ScatterTdescAttr),
        *(attributes.CacheHintAttr, attributes.MemLayoutAttr),
        *(attributes.LayoutAttr, attributes.SliceAttr),
    ],
)
XeGPUExtensions = Dialect("xegpu_x", [*_OURS])

DIALECTS = (XeGPU, XeGPUExtensions)
