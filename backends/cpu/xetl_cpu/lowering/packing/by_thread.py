"""Packing by the threads that multiply: each packs the tile of B it is at.

Programs are dealt out so that a thread meets those with one tile of B one after the
other (`emit/parallel.py`). It packs that tile when it meets the first of them, to
memory of its own. So no thread waits for others to pack, none reads what another has
written, and what is packed stays in the caches however large B is (measured on two
threads: a product of 512 in bf16 takes 10 us of 274 less).

Source: BLIS ("packing on the fly", van Zee and van de Geijn, TOMS 41, 2015).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith, scf
from xetl_cpu.dialect import FibersOp, IsNewOp, ThreadCountOp, ThreadNumberOp
from xetl_cpu.lowering.loops.build import Build, Index
from xetl_cpu.lowering.packing.plans import Plan

_SMALL = 1 << 17
"""Elements of a tile, packed in 6 us: as long as a thread would wait for others."""


def may_pack(plan: Plan, loop: scf.ParallelOp) -> bool:
    """Whether a tile of B is that of a program's number, and a matter of one thread."""
    tile = plan.tile
    if plan.step is not None or plan.batch is not None:
        return False
    is_number = tile is None or tile.block is loop.body.block
    return is_number and not any(isinstance(op, FibersOp) for op in loop.walk())


def is_better(
    plan: Plan,
    loop: scf.ParallelOp,
    extents: tuple[Index, Index],
    build: Build,
) -> SSAValue:
    """Whether threads meet tiles in order, and each has one, or packs it in no time.

    With fewer tiles than threads several pack the same, which pays if tiles are small.
    The last axis of the grid grows slowest: if that counts the tiles, their programs
    follow each other. ``extents``: how many tiles there are, elements of each.
    """
    tiles, elements = extents
    slower: Index = 1
    if plan.tile is not None:
        for extent in loop.upper_bounds[plan.tile.index + 1 :]:
            slower = build.mul(slower, extent)
    enough = build.compare("sle", build.insert(ThreadCountOp()), tiles)
    is_small = build.compare("sle", elements, _SMALL)
    is_cheap = build.insert(arith.OriOp(enough, is_small))
    in_order = build.compare("eq", slower, 1)
    return build.insert(arith.AndiOp(in_order, is_cheap))


def own_elements(
    by_thread: SSAValue, tile_elements: Index, otherwise: Index, build: Build
) -> Index:
    """Of the memory: a tile for each thread, or what all programs share."""
    threads = build.insert(ThreadCountOp())
    return build.select(by_thread, build.mul(threads, tile_elements), otherwise)


def when_met_first(
    by_thread: SSAValue, number: Index, build: Build
) -> tuple[Build, SSAValue]:
    """Where a program packs its tile if its thread has not done so yet, and where to.

    Returns that place, and the number of the tile in the packed memory.
    """
    thread = build.insert(ThreadNumberOp())
    mine = build.select(by_thread, thread, number)
    inside = build.when(by_thread)
    is_new = inside.insert(IsNewOp(inside.value(number)))
    return inside.when(is_new), mine
