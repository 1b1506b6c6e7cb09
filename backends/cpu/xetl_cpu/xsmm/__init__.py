"""The ``xsmm`` dialect of seed 003: calls of micro-kernels that are dispatched first.

``flags.py`` has the names and their numbers, ``dispatch_ops.py`` what finds a kernel,
``invoke_ops.py`` what runs one.
"""

from xetl_cpu.xsmm.dispatch_ops import (
    BinaryDispatchOp,
    BrgemmDispatchOp,
    DispatchOp,
    FusedBrgemmDispatchOp,
    GemmDispatchOp,
    TileConfigDispatchOp,
    UnaryDispatchOp,
)
from xetl_cpu.xsmm.invoke_ops import (
    BinaryOp,
    BrgemmOp,
    FusedBrgemmOp,
    GemmOp,
    InvokeOp,
    TileConfigOp,
    UnaryOp,
)

__all__ = [
    "OPERATIONS",
    "BinaryDispatchOp",
    "BinaryOp",
    "BrgemmDispatchOp",
    "BrgemmOp",
    "DispatchOp",
    "FusedBrgemmDispatchOp",
    "FusedBrgemmOp",
    "GemmDispatchOp",
    "GemmOp",
    "InvokeOp",
    "TileConfigDispatchOp",
    "TileConfigOp",
    "UnaryDispatchOp",
    "UnaryOp",
]

OPERATIONS = (
    *(GemmDispatchOp, BrgemmDispatchOp, FusedBrgemmDispatchOp),
    *(UnaryDispatchOp, BinaryDispatchOp, TileConfigDispatchOp),
    *(GemmOp, BrgemmOp, FusedBrgemmOp, UnaryOp, BinaryOp, TileConfigOp),
)
