"""A rough estimate of the time one trip of a parallel loop takes.

Used to decide whether waking a second thread pays: a sleeping pool takes up to
100 us to answer, so a launch of a few microseconds stays where
it is.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.kinds_of_types import is_integer_attr
from xetl.dialects.upstream import arith, func, scf
from xetl_cpu.dialect import BlockGemmOp, PackAOp, PackBOp

SMALL = 20_000
"""Nanoseconds of work that one thread does alone."""

_UNKNOWN_TRIPS = 8
_UNKNOWN_DEPTH = 128
_GEMM_PER_NS = 200
_PACK_PER_NS = 4
_CALL = 1000
"""Of a library, for the product of a panel."""


def nanoseconds(block: Block) -> int:
    """Estimated time of one execution of a block: a vector operation is 1 ns."""
    return sum(_cost(op) for op in block.ops)


def _cost(op: Operation) -> int:
    if isinstance(op, scf.ForOp):
        return _trips(op) * nanoseconds(op.body.block)
    if isinstance(op, BlockGemmOp):
        m, n, _ = op.user_tile()
        return 2 * m * n * _UNKNOWN_DEPTH // _GEMM_PER_NS
    if isinstance(op, func.CallOp):
        return _CALL
    if isinstance(op, PackAOp | PackBOp):
        m, n, _ = op.user_tile()
        return (m if isinstance(op, PackAOp) else n) * _UNKNOWN_DEPTH // _PACK_PER_NS
    inside = [nanoseconds(b) for region in op.regions for b in region.blocks]
    return max(inside, default=0 if isinstance(op, arith.ConstantOp) else 1)


def _trips(loop: scf.ForOp) -> int:
    bounds = [_constant(loop.operands[i]) for i in range(3)]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None or step <= 0:
        return _UNKNOWN_TRIPS
    return max(0, -(-(upper - lower) // step))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and is_integer_attr(owner.value):
        return owner.value.value.data
    return None
