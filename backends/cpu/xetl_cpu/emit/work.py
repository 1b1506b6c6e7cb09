"""Estimates of the run time of blocks: whether a launch is worth several threads.

The estimate is made at compile time: a vector operation takes 1 ns, a loop with an
unknown number of iterations has 8, or fewer if its tile is smaller. Loops that end at a
size of the launch (``for k in range(0, K, 64)``) are counted at launch time.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.analysis.control_flow import constant_trips
from xetl.analysis.ranges import Range, Ranges
from xetl.codegen.emitter import constant
from xetl.codegen.types import Value
from xetl.dialects.base import constant_index, operations_in
from xetl.dialects.upstream import arith, func, scf
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist
from xetl_cpu.dialect import BlockGemmOp, PackOp
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.lowering.loops.control import CARRIES
from xetl_cpu.lowering.tiles import is_non_negative
from xetl_cpu.lowering.widen_programs import IS_PROGRAMS

_UNKNOWN_TRIPS = 8
_UNKNOWN_DEPTH = 128
_GEMM_PER_NS = 200
_PACK_PER_NS = 4
_CALL = 1000
"""Nanoseconds of a library call for the product of a panel."""

_COUNTED = (func.CallOp, BlockGemmOp, PackOp)
"""Operations without regions that have a better estimate."""

_ONE_THREAD = (
    "a program runs on one thread: where there are fewer programs than threads, let "
    "each take a part of these trips, and combine the parts in a second kernel"
)


def emit_nanoseconds(em: KernelEmitter, op: scf.ParallelOp) -> Value:
    """Emit the estimated time of one program of a launch."""
    b, total = em.builder, constant(nanoseconds(op.body.block))
    for loop, times in _loops(op.body.block):
        step = constant_index(loop.step) or 0
        ends = loop.lower_bound, loop.upper_bound
        is_known = all(is_defined_outside(each, op) for each in ends)
        if constant_trips(loop) is not None or step <= 0 or not is_known:
            continue
        if loop.results or CARRIES in loop.attributes:
            remark(loop, "threads", _ONE_THREAD)
        lower, upper = em.all(ends)
        trips = b.udiv(b.maximum(b.sub(upper, lower), 0), step)
        more = b.sub(trips, _trips(loop))
        total = b.add(total, b.mul(more, times * nanoseconds(loop.body.block)))
    for loop in operations_in(op, scf.ForOp):
        first = loop.lower_bound.owner  # of the task: its number times its programs
        if IS_PROGRAMS in loop.attributes and isinstance(first, arith.MuliOp):
            total = b.mul(total, em.get(first.rhs))
    return total


def _loops(block: Block, times: int = 1) -> Iterator[tuple[scf.ForOp, int]]:
    """Yield the loops of a program, also nested in known loops, with their counts."""
    for loop in block.ops:
        if isinstance(loop, scf.ForOp) and IS_PROGRAMS not in loop.attributes:
            yield loop, times
            trips = constant_trips(loop)
            if trips is not None:
                yield from _loops(loop.body.block, times * trips)


def nanoseconds(block: Block) -> int:
    """Return the estimated time of one execution of a block."""
    return sum(_cost(op) for op in block.ops)


def _cost(op: Operation) -> int:
    if type(op) not in _COUNTED and not op.regions:
        return 0 if type(op) is arith.ConstantOp else 1
    if isinstance(op, scf.ForOp) and IS_PROGRAMS in op.attributes:
        return nanoseconds(op.body.block)  # at least one program
    if isinstance(op, scf.ForOp):
        return _trips(op) * nanoseconds(op.body.block)
    if isinstance(op, BlockGemmOp):
        plan = op.blocking()
        return 2 * plan.block_m * plan.block_n * _UNKNOWN_DEPTH // _GEMM_PER_NS
    if isinstance(op, func.CallOp):
        return _CALL
    if isinstance(op, PackOp):
        plan = op.blocking()
        rows = plan.block_n if op.is_b else plan.block_m
        return rows * _UNKNOWN_DEPTH // _PACK_PER_NS
    inside = [nanoseconds(b) for region in op.regions for b in region.blocks]
    return max(inside, default=1)


def _trips(loop: scf.ForOp) -> int:
    known = constant_trips(loop)
    if known is not None:
        return known
    step = constant_index(loop.step)
    most = _most_between(loop.lower_bound, loop.upper_bound)
    if step is None or step <= 0 or most is None:
        return _UNKNOWN_TRIPS
    return min(_UNKNOWN_TRIPS, -(-most // step))


def _most_between(lower: SSAValue, upper: SSAValue) -> int | None:
    """Return the largest distance from ``lower`` to ``upper``; None if unknown."""
    ranges, found = Ranges(subgroups=1), list[Range | None]()
    ends = Worklist([upper])
    for end in ends:
        owner = end.owner
        if isinstance(owner, arith.AddiOp) and lower in owner.operands:
            found.append(ranges.of(owner.rhs if owner.lhs is lower else owner.lhs))
        elif isinstance(owner, arith.MinsiOp):
            ends += owner.operands
        elif is_non_negative(lower):
            found.append(ranges.of(end))
    return min((max(each.high, 0) for each in found if each is not None), default=None)
