"""Matrices of MLIR's `vector` dialect become tiles.

*What*: transfers of matrices become loads and stores of tiles, parts of a memref their
offsets; `vector.contract` becomes `tile_mma`, transposes, broadcasts and reductions
their counterparts.  Loops and elementwise operations are the same on both sides.
*Why*: programs that were tiled and vectorised elsewhere come in through `vector`; the
two say the same (XeTile RFC, appendix 1).
*Left alone*: masks, vectors that are no matrices, memory that is contiguous in no
dimension, padding that is no constant, products of a batch or of another kind.

before: %s = memref.subview %m[%i, %k] [64, 32] [1, 1]
        %v = vector.transfer_read %s[%c0, %c0], %zero : memref<64x32xf16, ...>
after:  %t = xetile.init_tile %m[%i, %k] -> !xetile.tile<64x32xf16>
        %v = xetile.load_tile %t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.dialects.upstream import vector
from xetl.transforms.vectors import contracting, reading

_RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector.TransferReadOp: reading.read,
    vector.TransferWriteOp: reading.write,
    vector.ContractOp: contracting.contract,
    vector.TransposeOp: contracting.transpose,
    vector.BroadcastOp: contracting.broadcast,
    vector.MultiReductionOp: contracting.reduce,
}


class ConvertVectorToXetilePass(ModulePass):
    """See the module docstring."""

    name = "convert-vector-to-xetile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for each in list(op.walk()):
            rule = _RULES.get(type(each))
            if rule is not None:
                rule(each)
