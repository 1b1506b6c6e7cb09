"""Programs in groups, so that what is packed for a group stays in the caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from xetl.dialects.upstream import arith, scf
from xetl_cpu.lowering.loops.build import Build, Index, before
from xetl_cpu.lowering.packing.panels import Packing

_BYTES = 4 << 20
"""Of packed operands in a group: the part of a shared cache that a launch may take."""

_PROGRAMS = 64
"""At least, in a group: enough for threads to share."""


@dataclass
class Group:
    """A serial loop around the loop over programs.

    Attributes:
        extent: how many numbers along the axis are in this group.
        build: where the group's packing goes.
        ahead: where the packing for all groups goes.
    """

    extent: Index
    build: Build
    ahead: Build


def form_groups(loop: scf.ParallelOp, axis: int, size: Index) -> Group:
    """Let programs run in groups of ``size`` numbers along an axis of the grid."""
    build = before(loop)
    number, grid = loop.body.block.args[axis], loop.upper_bounds[axis]
    body = Block(arg_types=[IndexType()])
    (first,) = body.args
    first.name_hint = "first_of_group"
    end = scf.YieldOp()
    body.add_op(end)
    zero, step = build.value(0), build.value(size)
    group = scf.ForOp(zero, grid, step, [], Region(body))
    group.location = loop.location
    build.emit(group)
    loop.detach()
    body.insert_op_before(loop, end)
    inside = before(loop)
    extent = inside.minimum(inside.sub(grid, first), size)
    loop.operands[len(loop.upper_bounds) + axis] = inside.value(extent)
    top = loop.body.block.first_op
    assert top is not None
    place = arith.AddiOp(first, number)
    Build(InsertPoint.before(top)).emit(place)
    number.replace_uses_with_if(place.result, lambda use: use.operation is not place)
    return Group(extent, inside, before(group))


def group_size(loop: scf.ParallelOp, axis: int, packings: Sequence[Packing]) -> Index:
    """Numbers along the axis that a group has, at least one, before the programs.

    So many matrices as fit the caches, but enough programs for all threads.
    """
    build = before(loop)
    taken: Index = 1
    for packing in [one for one in packings if one.shared is None]:
        size = build.mul(packing.elements(build), packing.blocking.compute_bytes)
        taken = build.add(taken, size)
    programs: Index = 1
    for other, extent in enumerate(loop.upper_bounds):
        programs = programs if other == axis else build.mul(programs, extent)
    fitting, needed = (
        build.insert(arith.DivuiOp(build.value(many), build.value(each)))
        for many, each in ((_BYTES, taken), (_PROGRAMS, build.maximum(programs, 1)))
    )
    size = build.minimum(build.maximum(fitting, needed), loop.upper_bounds[axis])
    return build.maximum(size, 1)
