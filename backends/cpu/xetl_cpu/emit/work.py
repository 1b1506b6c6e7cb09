"""Estimates of the run time of blocks: whether a launch is worth several threads.

A load or store takes 1 ns, a simple operation a quarter, and an address nothing. Loops
and blocks of products are counted at launch time if their ends follow from sizes and
from the number of the program: for the program in the middle, because the last one may
have less to do (and under a causal mask, the one in the middle has as much as the
mean). Other loops have 8 iterations, or fewer if their tile is smaller, and other
products 128 steps of k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import ceil

from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.analysis.control_flow import constant_trips, yielded
from xetl.analysis.memory import is_pure
from xetl.analysis.ranges import Range, Ranges
from xetl.codegen.division import or_one
from xetl.codegen.emitter import constant
from xetl.codegen.memref import ACCESSES
from xetl.codegen.types import Value
from xetl.dialects.base import constant_index, operations_in
from xetl.dialects.upstream import arith, func, scf, vector
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist, sources_first
from xetl_cpu.dialect import BlockGemmOp, BlockOp, PackOp, SkinnyGemmOp
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.llvm import Builder
from xetl_cpu.lowering.joined_stores import operations_of
from xetl_cpu.lowering.loops.control import CARRIES
from xetl_cpu.lowering.tiles import is_non_negative
from xetl_cpu.lowering.widen_programs import IS_PROGRAMS

_UNKNOWN_TRIPS = 8
_UNKNOWN_DEPTH = 128
_GEMM_PER_NS = 200
"""Multiplications and additions of a product in a nanosecond."""
_LOAD_PER_NS = 4
"""Elements in a nanosecond that are copied, or multiplied by a few rows."""
_OPERATION = 0.25
"""Nanoseconds of what `operations_of` counts as one."""

_OTHERS: dict[type[Operation], float] = {
    **{access: 1 for access in ACCESSES},
    **{vector.GatherOp: 8, vector.ScatterOp: 8, func.CallOp: 1000},
}
"""Nanoseconds of loads and stores, which are of L2 more often than not, and of a
library call for the product of a panel.

[measured] Zen 4: the time of a row of 1024 f32 is estimated 1.4 times too long for sums
and gelu, 1.6 for relu, 2.2 for softmax and 2.9 for layer_norm.
"""

_ONE_THREAD = (
    "a program runs on one thread: where there are fewer programs than threads, let "
    "each take a part of these trips, and combine the parts in a second kernel"
)


def emit_nanoseconds(em: KernelEmitter, op: scf.ParallelOp) -> Value:
    """Emit the estimated time of one program of a launch."""
    for loop in operations_in(op, scf.ForOp):
        is_long = constant_trips(loop) is None and all(
            is_defined_outside(end, op) for end in (loop.lower_bound, loop.upper_bound)
        )
        if is_long and (loop.results or CARRIES in loop.attributes):
            remark(loop, "threads", _ONE_THREAD)
    there = replace(em, values=dict(em.values), rows=dict(em.rows))
    for number, extent in zip(op.body.block.args, em.all(op.upper_bounds)):
        there.set(number, _middle(em.builder, extent))
    return _emit_block(there, op.body.block)


def _middle(b: Builder, count: Value) -> Value:
    """Return the middle one of the numbers from 0 to ``count``, rounded down."""
    return b.lshr(b.maximum(b.sub(count, 1), 0), 1)


def _emit_block(em: KernelEmitter, block: Block) -> Value:
    total = constant(ceil(sum(_cost(op) for op in block.ops if not _has_sizes(op))))
    found = (_emit_one(em, op) for op in block.ops if _has_sizes(op))
    return reduce(em.builder.add, found, total)


def _has_sizes(op: Operation) -> bool:
    return bool(op.regions) or isinstance(op, BlockOp)


def _emit_one(em: KernelEmitter, op: Operation) -> Value:
    """Emit the time of an operation with regions, or of a block."""
    if isinstance(op, BlockOp):
        b, (sizes, times, at_once) = em.builder, _sizes(op)
        if not all([_emit_index(em, size) for size in sizes]):
            return constant(ceil(_cost(op)))
        return b.udiv(b.mul(reduce(b.mul, em.all(sizes)), times), at_once)
    loops = operations_in(op, scf.ForOp)
    if not operations_in(op, BlockOp) and None not in map(constant_trips, loops):
        return constant(ceil(_cost(op)))
    if isinstance(op, scf.ForOp):
        return em.builder.mul(_emit_trips(em, op), _emit_block(em, op.body.block))
    if isinstance(op, scf.WhileOp):
        _enter(em, op.inits, op.before.block)
        _enter(em, yielded(op.before.block), op.after.block)
    inside = [_emit_block(em, b) for region in op.regions for b in region.blocks]
    if isinstance(op, scf.IfOp) and _emit_index(em, op.condition):
        return em.builder.select(em.get(op.condition), *[*inside, constant(0)][:2])
    return reduce(em.builder.maximum, inside)


def _emit_trips(em: KernelEmitter, loop: scf.ForOp) -> Value:
    """Emit how often a loop runs, and set its counter to the one in the middle."""
    b, ends = em.builder, (loop.lower_bound, loop.upper_bound, loop.step)
    if not all([_emit_index(em, end) for end in ends]):
        return constant(_trips(loop))
    lower, upper, step = em.all(ends)
    rounded = b.add(b.maximum(b.sub(upper, lower), 0), b.sub(step, 1))
    trips = b.udiv(rounded, or_one(b, step))
    em.set(loop.body.block.args[0], b.add(lower, b.mul(_middle(b, trips), step)))
    return trips


def _emit_index(em: KernelEmitter, value: SSAValue) -> bool:
    """Emit what an index is computed from; return False if this includes data."""
    for each in sources_first(value, _operands, em.values):
        op = each.owner
        if not isinstance(op, Operation) or not _is_of_address(op):
            return False
        em.emit(op)
    return True


def _enter(em: KernelEmitter, inits: Sequence[SSAValue], block: Block) -> None:
    """Set the arguments of a loop's block to those of the first iteration."""
    for init, argument in zip(inits, block.args):
        if _emit_index(em, init):
            em.set(argument, em.get(init))


def _is_of_address(op: Operation) -> bool:
    return is_pure(op) and op.name.startswith(("arith.", "memref."))


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    return value.owner.operands if isinstance(value.owner, Operation) else ()


def nanoseconds(block: Block) -> float:
    """Return the estimated time of one execution of a block."""
    return sum(_cost(op) for op in block.ops)


def _cost(op: Operation) -> float:
    if isinstance(op, scf.ForOp) and IS_PROGRAMS in op.attributes:
        return nanoseconds(op.body.block)  # at least one program
    if isinstance(op, scf.ForOp):
        return _trips(op) * nanoseconds(op.body.block)
    if isinstance(op, BlockOp):
        plan, (_, times, at_once) = op.blocking(), _sizes(op)
        rows = plan.block_m if times > 1 else plan.block_n
        return rows * _UNKNOWN_DEPTH * times / at_once
    if op.regions:
        return max(nanoseconds(b) for region in op.regions for b in region.blocks)
    if type(op) in _OTHERS:
        return _OTHERS[type(op)]
    is_address = op.results and all(_is_address(each.type) for each in op.results)
    return 0 if is_address else operations_of(op) * _OPERATION


def _sizes(op: BlockOp) -> tuple[tuple[SSAValue, ...], int, int]:
    """Return sizes whose product, times a number, counts what a block does.

    This is multiplications and additions, or, of a copy and of a product of a few rows,
    elements that are loaded. The last number returned is how many take a nanosecond.
    """
    if isinstance(op, BlockGemmOp):
        return (op.rows, op.k), 2 * op.blocking().block_n, _GEMM_PER_NS
    assert isinstance(op, PackOp | SkinnyGemmOp)
    is_copy = isinstance(op, PackOp)
    return (op.rows if is_copy else op.k, op.cols if is_copy else op.n), 1, _LOAD_PER_NS


def _is_address(type_: Attribute) -> bool:
    return type_ == i1 or isinstance(type_, IndexType | MemRefType)


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
