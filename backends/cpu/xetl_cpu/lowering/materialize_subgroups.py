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

from xetl.dialects.base import ints_of
from xetl.dialects.upstream import arith, func, gpu, memref, scf
from xetl_cpu.dialect import BarrierOp, FibersOp

SUBGROUPS = "xetile.subgroups"


class MaterializeSubgroupsPass(ModulePass):
    """See the module docstring."""

    name = "materialize-subgroups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in [o for o in op.walk() if isinstance(o, func.FuncOp)]:
            count = prod(ints_of(function.attributes.get(SUBGROUPS)))
            if SUBGROUPS not in function.attributes:
                continue
            for loop in [o for o in function.walk() if isinstance(o, scf.ParallelOp)]:
                _run_all(loop, count)


def _run_all(loop: scf.ParallelOp, count: int) -> None:
    """Wrap the program in a loop over its subgroups, or in fibers."""
    program = loop.body.block
    inside = Block(arg_types=[IndexType()])
    for op in list(program.ops):
        if not isinstance(op, memref.AllocOp | scf.ReduceOp):
            op.detach()
            inside.add_op(op)
    number = inside.args[0]
    number.name_hint = "subgroup"
    _replace(inside, gpu.SubgroupIdOp, number)
    last = program.last_op
    assert last is not None
    barriers = [op for op in inside.walk() if isinstance(op, gpu.BarrierOp)]
    bounds = [arith.ConstantOp.index(value) for value in (0, count, 1)]
    for constant in bounds:
        Rewriter.insert_op(constant, InsertPoint.before(last))
    _replace(inside, gpu.NumSubgroupsOp, bounds[1].result)
    if barriers:
        for barrier in barriers:
            Rewriter.replace_op(barrier, BarrierOp())
        wrapper: Operation = FibersOp(count, Region(inside))
    else:
        inside.add_op(scf.YieldOp())
        lower, upper, step = (constant.result for constant in bounds)
        wrapper = scf.ForOp(lower, upper, step, [], Region(inside))
    Rewriter.insert_op(wrapper, InsertPoint.before(last))


def _replace(block: Block, cls: type[Operation], value: SSAValue) -> None:
    for op in [o for o in block.walk() if isinstance(o, cls)]:
        op.results[0].replace_all_uses_with(value)
        op.detach()
        op.erase()
