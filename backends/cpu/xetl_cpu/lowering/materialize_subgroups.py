"""materialize-subgroups: a kernel written for one subgroup runs for all of them.

Why: at subgroup level each value belongs to one subgroup, and subgroups meet only in
memory and at barriers. Without barriers they may run one after the other; with
barriers each becomes a fiber: it runs up to a barrier and goes on when all are there.

Before: ``scf.parallel (...) { memref.alloc (SLM); %i = gpu.subgroup_id ... }``
After:  ``scf.parallel (...) { memref.alloc; scf.for %i = 0 to 4 { ... } }``, or
``cpu.fibers 4 (%i) { ... cpu.barrier ... }``

Left alone: kernels at workgroup level, where a barrier has no meaning of its own.
"""

from __future__ import annotations

from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import memref_type
from xetl.dialects.kernel_attributes import SUBGROUPS, subgroups_along_axes
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, func, gpu, memref, scf
from xetl.dialects.walk import operations_in
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BarrierOp, FibersOp
from xetl_cpu.lowering.named_barriers import NAMED, lower_named_barriers

_SHARED = 3


class MaterializeSubgroupsPass(ModulePass):
    """See the module docstring."""

    name = "materialize-subgroups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in operations_in(op, func.FuncOp):
            if SUBGROUPS not in function.attributes:
                continue
            counts = subgroups_along_axes(function)
            for loop in operations_in(function, scf.ParallelOp):
                _run_all(loop, counts)


def _run_all(loop: scf.ParallelOp, counts: tuple[int, int, int]) -> None:
    """Wrap the program in a loop over its subgroups, or in fibers."""
    count = prod(counts)
    program = loop.body.block
    inside = Block(arg_types=[IndexType()])
    for op in list(program.ops):
        if not isinstance(op, scf.ReduceOp):
            op.detach()
            inside.add_op(op)
    # Shared memory is shared wherever it is asked for, in a loop as well.
    for op in [o for o in inside.walk() if _is_shared(o)]:
        op.detach()
        assert program.last_op is not None
        program.insert_op_before(op, program.last_op)
    number = inside.args[0]
    number.name_hint = "subgroup"
    _replace_thread_ids(inside, number, counts)
    _replace(inside, gpu.SubgroupIdOp, number)
    last = program.last_op
    assert last is not None
    barriers = operations_in(inside, gpu.BarrierOp, *NAMED)
    bounds = [arith.ConstantOp.index(value) for value in (0, count, 1)]
    for constant in bounds:
        Rewriter.insert_op(constant, InsertPoint.before(last))
    _replace(inside, gpu.NumSubgroupsOp, bounds[1].result)
    if barriers:
        if any(isinstance(barrier, NAMED) for barrier in barriers):
            lower_named_barriers(Builder.before(last), inside, number, count)
        else:
            for barrier in barriers:
                Rewriter.replace_op(barrier, BarrierOp())
        wrapper: Operation = FibersOp(regions=[Region(inside)], count=count)
    else:
        inside.add_op(scf.YieldOp())
        lower, upper, step = (constant.result for constant in bounds)
        wrapper = scf.ForOp(lower, upper, step, [], Region(inside))
    Rewriter.insert_op(wrapper, InsertPoint.before(last))


def _is_shared(op: Operation) -> bool:
    """True for memory of the workgroup; other memory is of each subgroup alone."""
    if not isinstance(op, memref.AllocOp):
        return False
    return memory_space_of(memref_type(op.results[0])) == _SHARED


def _replace_thread_ids(
    block: Block, number: SSAValue, counts: tuple[int, int, int]
) -> None:
    """``gpu.thread_id`` counts subgroups: number = x + dim_x * (y + dim_y * z)."""
    if not operations_in(block, gpu.ThreadIdOp, gpu.BlockDimOp):
        return
    sizes = [arith.ConstantOp.index(count) for count in counts]
    x = arith.RemuiOp(number, sizes[0].result)
    rest = arith.DivuiOp(number, sizes[0].result)
    y = arith.RemuiOp(rest.result, sizes[1].result)
    z = arith.DivuiOp(rest.result, sizes[1].result)
    for op in list(block.walk()):
        if isinstance(op, gpu.ThreadIdOp | gpu.BlockDimOp):
            source = sizes if isinstance(op, gpu.BlockDimOp) else (x, y, z)
            axis = "xyz".index(op.dimension.letter.data)
            op.results[0].replace_all_uses_with(source[axis].result)
            op.detach()
            op.erase()
    Rewriter.insert_op([*sizes, x, rest, y, z], InsertPoint.at_start(block))


def _replace(block: Block, cls: type[Operation], value: SSAValue) -> None:
    for op in [o for o in block.walk() if isinstance(o, cls)]:
        op.results[0].replace_all_uses_with(value)
        op.detach()
        op.erase()
