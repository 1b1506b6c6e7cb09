"""materialize-subgroups: a program of a kernel for one subgroup runs all subgroups.

Why: at subgroup level each value belongs to one subgroup, and subgroups share only
memory and barriers. Without barriers, subgroups may run one after the other. With
barriers each becomes a fiber: it runs up to a barrier and continues when all have
arrived.

Before: ``scf.parallel (...) { memref.alloc (SLM); %i = gpu.subgroup_id ... }``
After:  ``scf.parallel (...) { memref.alloc; scf.for %i = 0 to 4 { ... } }``, or
``cpu.fibers 4 (%i) { ... cpu.barrier ... }``; one subgroup needs neither

Left alone: kernels at workgroup level, where a barrier has no meaning of its own.

Named barriers are counted in memory that the subgroups share.  Subgroups take turns on
one thread, so the counters need no atomics.  If a kernel has named barriers, barriers
of the program are one more for all subgroups: a waiting subgroup takes several turns,
so the number of turns does not tell how far the other subgroups are.

    arrived[id]  how many arrivals a named barrier has had
    progress     grows with each arrival; if it does not grow, the program is stuck
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index, memref_type, operations_in
from xetl.dialects.kernel_attributes import SHARED, SUBGROUPS, subgroups_along_axes
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, func, gpu, memref, scf, xegpu
from xetl.dialects.xetile import AssertOp
from xetl.ir.builder import Builder, Pass, move_before, move_to_end
from xetl.records import record
from xetl_cpu.dialect import BarrierOp, FibersOp
from xetl_cpu.lowering.expand_text_forms.scratch import replace_by

NAMED = (xegpu.NbarrierArriveOp, xegpu.NbarrierWaitOp)
_IDS = 32
_PROGRAM = _IDS
"""The number of the barriers of the program."""
_PATIENCE = 3
"""Turns without progress of any subgroup before a program is given up."""


@record(frozen=True)
class _Counters:
    """The memory of a program's counters, and the waits of this subgroup."""

    arrived: SSAValue
    progress: SSAValue
    waited: SSAValue

    def arrive(self, build: Builder, number: Index) -> None:
        """Count an arrival."""
        _add(build, self.arrived, build.index(number))
        _add(build, self.progress, build.index(0))

    def wait(self, build: Builder, number: Index, participants: Index) -> None:
        """Wait until all participants have arrived, once for each wait so far."""
        wanted = build.times(
            _add(build, self.waited, build.index(number)), participants
        )

        def is_over(build: Builder) -> SSAValue:
            found = _load(build, self.arrived, build.index(number))
            return build.compare("sge", found, wanted)

        _take_turns(build, self.progress, is_over)


def lower_named_barriers(outside: Builder, body: Block, count: int) -> None:
    """Replace all barriers in a subgroup's code.

    Args:
        outside: inserts at the start of a program, before its subgroups.
    """
    arrived, progress = (_zeros(outside, n) for n in (_IDS + 1, 1))
    waited = _zeros(Builder.before(next(iter(body.ops))), _IDS + 1)
    counters = _Counters(arrived, progress, waited)
    for op in operations_in(body, gpu.BarrierOp, *NAMED):
        w = Builder.before(op)
        barrier: tuple[Index, Index] = _PROGRAM, count
        if isinstance(op, NAMED):
            barrier = _barrier(w, op.nbarrier)
        if not isinstance(op, xegpu.NbarrierWaitOp):
            counters.arrive(w, barrier[0])
        if not isinstance(op, xegpu.NbarrierArriveOp):
            counters.wait(w, *barrier)
        replace_by(op)
    for op in operations_in(body, xegpu.InitNbarrierOp):
        Rewriter.erase_op(op)


def _zeros(build: Builder, count: int) -> SSAValue:
    """Allocate counters and set them to 0."""
    memory = build.insert(memref.AllocaOp(MemRefType(IndexType(), [count])))
    zero = build.index(0)
    for place in range(count):
        build.add(memref.StoreOp(zero, memory, [build.index(place)]))
    return memory


def _barrier(w: Builder, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return the number and the participants of a named barrier, as indices."""
    made = value.owner
    assert isinstance(made, xegpu.InitNbarrierOp)
    number, participants = (
        w.insert(arith.IndexCastuiOp(v, IndexType()))
        for v in (made.nbarrier_id, made.participant_thread_num)
    )
    exists = w.compare("ult", number, _IDS)
    message = f"there is no named barrier {{}}: they are 0 to {_IDS - 1}"
    w.add(AssertOp(exists, [number], template=message))
    return number, participants


def _load(build: Builder, memory: SSAValue, place: SSAValue) -> SSAValue:
    return build.insert(memref.LoadOp(memory, [place]))


def _add(build: Builder, memory: SSAValue, place: SSAValue) -> SSAValue:
    """Increment a counter in memory and return the new count."""
    more = build.insert(arith.AddiOp(_load(build, memory, place), build.index(1)))
    build.add(memref.StoreOp(more, memory, [place]))
    return more


def _take_turns(
    w: Builder, progress: SSAValue, is_over: Callable[[Builder], SSAValue]
) -> None:
    """Let other subgroups run until ``is_over``, or until none makes progress."""
    zero = w.index(0)
    index = IndexType()
    test, again = Block(arg_types=[index, index]), Block(arg_types=[index, index])
    build = Builder.at_end(test)
    seen, idle = test.args
    over = is_over(build)
    patient = build.compare("slt", idle, _PATIENCE)
    waits = build.insert(arith.XoriOp(over, build.compare("eq", 0, 0)))
    build.add(scf.ConditionOp(build.both(waits, patient), seen, idle))
    build = Builder.at_end(again, w.location)
    build.add(BarrierOp())
    now = _load(build, progress, build.index(0))
    stands = build.compare("eq", now, again.args[0])
    longer = build.plus(again.args[1], 1)
    build.add(scf.YieldOp(now, build.select(stands, longer, 0)))
    loop = scf.WhileOp([zero, zero], [index, index], Region(test), Region(again))
    w.add(loop)
    w.add(AssertOp(is_over(w), template="the subgroups wait for one another"))


class MaterializeSubgroupsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
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
    *ops, last = program.ops
    move_to_end(ops, inside)
    # Shared memory is allocated once for all subgroups, even from inside a loop.
    move_before(filter(_is_shared, inside.walk()), last)
    number = inside.args[0]
    number.name_hint = "subgroup"
    _replace_thread_ids(inside, number, counts)
    _replace(inside, gpu.SubgroupIdOp, number)
    barriers = operations_in(inside, gpu.BarrierOp, *NAMED)
    bounds = [*map(Builder.before(last).index, (0, count, 1))]
    _replace(inside, gpu.NumSubgroupsOp, bounds[1])
    if barriers:
        if any(isinstance(barrier, NAMED) for barrier in barriers):
            lower_named_barriers(Builder.before(last), inside, count)
        else:
            for barrier in barriers:
                Rewriter.replace_op(barrier, BarrierOp())
        wrapper: Operation = FibersOp(regions=[Region(inside)], count=count)
    elif count == 1:
        number.replace_all_uses_with(bounds[0])
        move_before(inside.ops, last)
        return
    else:
        inside.add_op(scf.YieldOp())
        wrapper = scf.ForOp(*bounds, [], Region(inside))
    Rewriter.insert_op(wrapper, InsertPoint.before(last))


def _is_shared(op: Operation) -> bool:
    """True for memory of the workgroup; subgroups have their own other memory."""
    if not isinstance(op, memref.AllocOp):
        return False
    return memory_space_of(memref_type(op.results[0])) == SHARED


def _replace_thread_ids(
    block: Block, number: SSAValue, counts: tuple[int, int, int]
) -> None:
    """Replace ``gpu.thread_id``: number of subgroup = x + dim_x * (y + dim_y * z)."""
    if not operations_in(block, gpu.ThreadIdOp, gpu.BlockDimOp):
        return
    sizes = [arith.ConstantOp.index(count) for count in counts]
    x = arith.RemuiOp(number, sizes[0].result)
    rest = arith.DivuiOp(number, sizes[0].result)
    y = arith.RemuiOp(rest.result, sizes[1].result)
    z = arith.DivuiOp(rest.result, sizes[1].result)
    for op in operations_in(block, gpu.ThreadIdOp, gpu.BlockDimOp):
        source = sizes if type(op) is gpu.BlockDimOp else (x, y, z)
        axis = op.axis
        Rewriter.replace_op(op, [], [source[axis].result])
    Rewriter.insert_op([*sizes, x, rest, y, z], InsertPoint.at_start(block))


def _replace(block: Block, cls: type[Operation], value: SSAValue) -> None:
    for op in [o for o in block.walk() if isinstance(o, cls)]:
        Rewriter.replace_op(op, [], [value])
