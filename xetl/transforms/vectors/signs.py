"""Which numbers are known not to be negative.

A transfer may run over the end of memory, but not start before it (MLIR,
`vector.transfer_read`); a tile may do both.
"""

from __future__ import annotations

from xdsl.ir import BlockArgument, OpResult, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, gpu, memref, scf

_BELOW_NOTHING = (
    *(gpu.BlockIdOp, gpu.ThreadIdOp, gpu.SubgroupIdOp, gpu.GlobalIdOp),
    *(gpu.BlockDimOp, gpu.GridDimOp, gpu.NumSubgroupsOp, memref.DimOp),
)
# Never below zero if none of their operands is.
_KEEPING = (
    *(arith.AddiOp, arith.MuliOp, arith.MinsiOp, arith.DivsiOp, arith.RemsiOp),
    *(arith.DivuiOp, arith.RemuiOp, arith.FloordivsiOp, arith.IndexCastOp),
)


def is_not_negative(index: Index) -> bool:
    """Whether this is known to be 0 or more; index arithmetic does not overflow."""
    known = constant_index(index)
    if known is not None:
        return known >= 0
    assert isinstance(index, SSAValue)
    if isinstance(index, BlockArgument):
        return _is_counter_from_zero(index)
    op = index.owner
    if isinstance(op, _BELOW_NOTHING):
        return True
    if isinstance(op, memref.ExtractStridedMetadataOp):
        rank = (len(op.results) - 2) // 2
        return isinstance(index, OpResult) and 1 <= index.index < 2 + rank
    if isinstance(op, arith.MaxsiOp):
        return any(map(is_not_negative, op.operands))
    if isinstance(op, arith.SelectOp):
        return is_not_negative(op.true_value) and is_not_negative(op.false_value)
    return isinstance(op, _KEEPING) and all(map(is_not_negative, op.operands))


def _is_counter_from_zero(argument: BlockArgument) -> bool:
    loop = argument.block.parent_op()
    if not isinstance(loop, scf.ForOp) or argument.index != 0:
        return False
    # The step of a loop is positive.
    return is_not_negative(loop.lower_bound)
