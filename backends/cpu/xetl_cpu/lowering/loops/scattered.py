"""Which elements the lanes of a scatter tile are: places and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, memref_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith
from xetl_cpu.lowering.loops.nest import COLUMNS, At, splat
from xetl_cpu.lowering.loops.runs import Run, ends_of_run, find_run, splat_of
from xetl_cpu.lowering.loops.state import ScatterTile

if TYPE_CHECKING:
    from xetl_cpu.lowering.loops.evaluate import Evaluator


def run_lanes(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[SSAValue, SSAValue | None] | None:
    """Index of the first lane and mask, where the others follow it in memory.

    Without a mask (None) the loop goes on to where one would be needed.
    """
    run = find_run(tile.indices)
    strides = strides_of(memref_type(tile.memref))
    if run is None or at.lanes == 1 or at.axis != COLUMNS or strides != [1]:
        return None
    first = ev.eval(run.numbers, At(at.row, at.col, COLUMNS, 1))
    if run.inside is None:
        return first, scatter_lanes(ev, tile, mask, at)[1]
    if _is_whole_run(ev, run, mask, at):
        return first, None
    inside = ev.eval(run.inside, at)
    if mask is not None:
        inside = ev.place(at).insert(arith.AndiOp(inside, ev.eval(mask, at)))
    return first, inside


def _is_whole_run(ev: Evaluator, run: Run, mask: SSAValue | None, at: At) -> bool:
    """Whether a loop without masks may read or write a run; it is told how far."""
    in_loop = ev.nest.level(at.col) == 2 and ev.nest.level(at.row) < 2
    given = mask is None or bool(splat_of(mask))
    ends = ends_of_run(run) if ev.whole and in_loop and given else None
    if ends is None or not ends.limits or at.block is not None:
        return False
    build = ev.nest.at(at.row)
    limit: Index = ends.limits[0]
    for each in ends.limits[1:]:
        limit = build.minimum(limit, each)
    for each in ends.rows:
        counts = ev.eval(each, At(at.row, 0, COLUMNS, 1))
        limit = build.select(counts, limit, 0)
    ev.limits[run] = limit
    return True


def scatter_lanes(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[SSAValue, SSAValue]:
    """Index and mask of each lane of a scatter tile; outside the array is off."""
    build = ev.place(at)
    indices = ev.eval(tile.indices, at)
    wide = IndexType() if at.lanes == 1 else VectorType(IndexType(), [at.lanes])
    if indices.type != wide:
        indices = build.insert(arith.IndexCastOp(indices, wide))
    given = None if mask is None else ev.eval(mask, at)
    if tile.size is None:
        true = build.insert(arith.ConstantOp.integer(1, i1))
        return indices, splat(build, true, at.lanes) if given is None else given
    size = splat(build, build.index(tile.size), at.lanes)
    inside = build.insert(arith.CmpiOp("ult", indices, size))
    if given is None:
        return indices, inside
    return indices, build.insert(arith.AndiOp(given, inside))
