"""pack-operands: B is packed once for a launch, in parallel, before the programs run.

Why: all programs of a column of the grid read the same panels of B. Packed once, they
are read linearly by all of them; packed by each program, the copy costs 1/BM of the
arithmetic: 10 % at BM = 64.

Before: ``scf.parallel (%x, %y) { xsmm.brgemm(%a, %b at [0, %y * 256], ...) }``
After::

    %packed, %is_missing = cpu.packed_memory(...)
    scf.parallel (%tile, %chunk) { xsmm.pack ... }
    scf.parallel (%x, %y) { xsmm.brgemm(...) packed (%packed, tile %y) }

A launch may bring that memory with the operand in it; then there are no tiles to pack.
One operand, the first that is part of an argument, has this; the memory of others is a
`memref.alloc`.

Tiles may also be counted by a loop in the program (attention's keys), and so may the
parts of k (its values). Where one axis of the grid chooses the matrix (``X[b]``, a
head, a part of k), programs run in groups along that axis: the matrices of a group are
packed in parallel, then its programs run, and what was packed is still in the caches.

Left alone: operands that the kernel writes or computes, whose offset along n is not a
number times the tile, or that no two programs share; those are packed chunk by chunk in
each program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.upstream import arith, func, scf
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.cse import merge_equal
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.state import static_strides
from xetl_cpu.lowering.packing.panels import (
    Packing,
    emit_packing,
    measure,
    read_packed,
    reserve,
    share,
)
from xetl_cpu.lowering.packing.plans import plan_or_say_why
from xetl_cpu.lowering.packing.rows import RowCopy, emit_rows, reserve_rows
from xetl_cpu.machine import Machine
from xetl_cpu.microkernels.gemv import is_skinny
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class PackOperandsPass(ModulePass):
    """See the module docstring; ``target``: in whose caches packed operands lie."""

    target: str = "host"

    name = "pack-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        machine = find_target(self.target).machine
        for function in operations_in(op, func.FuncOp):
            _pack_for_programs(function, machine)
            merge_equal(function.body.block)


def _pack_for_programs(function: func.FuncOp, machine: Machine) -> None:
    """Pack before each loop over programs what many of them read."""
    may_bring = True
    for loop in operations_in(function, scf.ParallelOp):
        copies = _copies(loop)
        packings = _plans(loop)
        batched = [one for one in packings if one.plan.batch is not None]
        axis = batched[0].plan.batch if batched else None
        size = 1 if axis is None else group_size(loop, axis, batched, machine)
        # All memory stands first: how much is needed must be known before anything
        # runs.
        for packing in packings:
            matrices = size if packing in batched else 1
            is_shared = any(one.shared is packing for one in packings)
            reserve(
                packing,
                matrices,
                may_bring=may_bring,
                most_by_thread=0 if is_shared else machine.l2.size // 2,
            )
            may_bring = may_bring and packing.is_missing is None
        group = None if axis is None else form_groups(loop, axis, size)
        ahead = Builder.before(loop) if group is None else group.ahead
        for copy in copies:
            emit_rows(copy, ahead)
        for packing in packings:
            if group is not None and packing in batched:
                emit_packing(packing, group.build, group.extent)
            else:
                emit_packing(packing, ahead, None)
            read_packed(packing)
    _reserve_first(function)


def _reserve_first(function: func.FuncOp) -> None:
    """All memory of the launch, and what its size is computed of, before any task."""
    block = function.body.block
    tasks = [op for op in block.ops if op.regions]
    moved = [op for op in block.ops if not op.regions and op is not block.last_op]
    for op in moved:
        if tasks and tasks[0].is_before_in_block(op):
            op.detach()
            block.insert_op_before(op, tasks[0])


def _copies(loop: scf.ParallelOp) -> list[RowCopy]:
    """Memory for each A whose rows are not contiguous."""
    copies: list[RowCopy] = []
    for op in operations_in(loop, BrgemmTileOp):
        blocking = op.blocking()
        copy = None if is_skinny(blocking) else reserve_rows(op, loop, blocking)
        copies += [] if copy is None else [copy]
    return copies


def _plans(loop: scf.ParallelOp) -> list[Packing]:
    """What to pack for the products of a loop over programs, and how much it is."""
    packings: list[Packing] = []
    batch: int | None = None
    for op in operations_in(loop, BrgemmTileOp):
        if _stays(op):
            continue
        blocking = op.blocking()
        plan = plan_or_say_why(op, loop, blocking, batch)
        if plan is None:
            continue
        shared = (share(one, op, plan) for one in packings if one.shared is None)
        found = next((one for one in shared if one is not None), None)
        packings.append(found or measure(op, plan, loop, blocking))
        batch = plan.batch if batch is None else batch
    return packings


def _stays(op: BrgemmTileOp) -> bool:
    """Whether b is used too rarely to be packed, and lies so that it need not be."""
    type_ = op.b.type
    init = op.b.owner
    if not isinstance(type_, TileType) or not isinstance(init, InitTileOp):
        return False
    if not is_skinny(op.blocking()):
        return False
    if not is_memref(init.source.type) or 1 not in static_strides(init.source.type):
        return False
    remark(op, "packing", "b is not packed: few rows are multiplied by it")
    return True


_PROGRAMS = 64
"""At least, in a group: enough for threads to share."""


@record()
class Group:
    """A serial loop around the loop over programs.

    Attributes:
        extent: how many numbers along the axis are in this group.
        build: where the group's packing goes.
        ahead: where the packing for all groups goes.
    """

    extent: Index
    build: Builder
    ahead: Builder


def form_groups(loop: scf.ParallelOp, axis: int, size: Index) -> Group:
    """Let programs run in groups of ``size`` numbers along an axis of the grid."""
    build = Builder.before(loop)
    number, grid = loop.body.block.args[axis], loop.upper_bounds[axis]
    body = Block(arg_types=[IndexType()])
    (first,) = body.args
    first.name_hint = "first_of_group"
    end = scf.YieldOp()
    body.add_op(end)
    zero, step = build.index(0), build.index(size)
    group = scf.ForOp(zero, grid, step, [], Region(body))
    group.location = loop.location
    build.add(group)
    loop.detach()
    body.insert_op_before(loop, end)
    inside = Builder.before(loop)
    extent = inside.minimum(inside.minus(grid, first), size)
    loop.operands[len(loop.upper_bounds) + axis] = inside.index(extent)
    top = loop.body.block.first_op
    assert top is not None
    place = arith.AddiOp(first, number)
    Builder.before(top).add(place)
    number.replace_uses_with_if(place.result, lambda use: use.operation is not place)
    return Group(extent, inside, Builder.before(group))


def group_size(
    loop: scf.ParallelOp, axis: int, packings: Sequence[Packing], machine: Machine
) -> Index:
    """Numbers along the axis that a group has, at least one, before the programs.

    So many matrices as fit the part of L3 that a core has, but enough programs for all
    threads.
    """
    build = Builder.before(loop)
    taken: Index = 1
    for packing in [one for one in packings if one.shared is None]:
        size = build.times(packing.elements(build), packing.blocking.compute_bytes)
        taken = build.plus(taken, size)
    programs: Index = 1
    for other, extent in enumerate(loop.upper_bounds):
        programs = programs if other == axis else build.times(programs, extent)
    fitting, needed = (
        build.insert(arith.DivuiOp(build.index(many), build.index(each)))
        for many, each in (
            (machine.l3_of_core, taken),
            (_PROGRAMS, build.maximum(programs, 1)),
        )
    )
    size = build.minimum(build.maximum(fitting, needed), loop.upper_bounds[axis])
    return build.maximum(size, 1)
