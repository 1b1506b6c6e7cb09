"""hoist-launch-invariants: loop-invariant scalar code moves before its loop.

Sizes, strides, constants and arithmetic on them do not depend on the program's number.
If this code is before the parallel loop, packing an operand for the whole launch can
use it. A view such as ``A.T`` written inside a K loop must leave the loop, or the loop
is not recognised as a product.

Before: ``scf.parallel (%x) ... { %c = arith.constant 32; %n = arith.muli %size, %c }``
After:  the constant and the product stand before the loop.

Then equal operations of the function's block are merged.

Left alone: operations with an effect, and vectors (they cost memory to carry).
Divisions move as well, also out of loops without iterations: no division traps
(codegen/division.py).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation

from xetl.analysis.affine import block_of
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import func, memref, scf
from xetl.dialects.xetile import TileType
from xetl.ir.builder import Pass, move_before
from xetl.transforms.cse import merge_equal

_MOVABLE_MEMREF = (
    memref.ExtractStridedMetadataOp,
    memref.ReinterpretCastOp,
    memref.DimOp,
)


class HoistLaunchInvariantsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        loops = operations_in(op, scf.ParallelOp, scf.ForOp)
        # Inner loops first: code that leaves one may leave the next loop as well.
        for loop in reversed(loops):
            hoist_scalars(loop)
        for function in operations_in(op, func.FuncOp):
            merge_equal(function.body.block)


def hoist_scalars(loop: scf.ParallelOp | scf.ForOp) -> None:
    """Move arithmetic that does not change in a loop before the loop."""
    body = loop.body.block  # what is deeper inside can't be seen
    for op in list(body.ops):
        if _is_scalar_code(op) and not any(block_of(v) is body for v in op.operands):
            move_before([op], loop)


def _is_scalar_code(op: Operation) -> bool:
    if isinstance(op, _MOVABLE_MEMREF):
        return True
    return op.name.startswith(("arith.", "math.")) and not any(
        isinstance(r.type, VectorType | TileType) for r in op.results
    )
