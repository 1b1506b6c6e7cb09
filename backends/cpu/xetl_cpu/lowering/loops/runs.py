"""Indices that count up along a row: such a gather is a load, such a scatter a store.

``X[rows[:, None], arange(n)[None, :]]`` has the index ``rows * stride + column`` in
each row, and -1 where it is outside of ``X``.  Loads of 16 neighbours are some ten
times as fast as gathers of them.

`scatter_lanes` says which elements the lanes of other scatter tiles are:
places and masks.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, integer_width, is_vector, memref_type
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileBroadcastOp
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_mask, splat
from xetl_cpu.lowering.loops.state import ScatterTile, shape_of
from xetl_cpu.lowering.tiles import is_non_negative

_MOST = 1 << 30
"""Constants of i32 that come to so much do not wrap with any index of a tile."""


class Run(NamedTuple):
    """Indices, of which most often each row is ``first, first + 1, ...``.

    Attributes:
        numbers: the indices, right where ``inside`` holds.
        inside: which of them count; None: all.
    """

    numbers: SSAValue
    inside: SSAValue | None


def find_run(indices: SSAValue) -> Run | None:
    """How indices count up along their rows; None: nobody knows that they do."""
    run = parts_of(indices)
    return run if _counts(run.numbers) else None


def parts_of(indices: SSAValue) -> Run:
    """Indices, and which of them count: -1 stands for the others."""
    op = indices.owner
    if isinstance(op, arith.SelectOp) and splat_of(op.false_value) == -1:
        return Run(op.true_value, op.condition)
    return Run(indices, None)


def limit_of_columns(op: arith.CmpiOp) -> SSAValue | None:
    """``n`` of ``column < n``; None: it is another comparison, or n may be negative."""
    lhs, bound = op.lhs, op.rhs.owner
    while isinstance(lhs.owner, vector.ShapeCastOp | TileBroadcastOp):
        lhs = lhs.owner.operands[0]
    if not isinstance(bound, vector.BroadcastOp) or is_vector(bound.source.type):
        return None
    counts = isinstance(lhs.owner, vector.StepOp) and _counts(op.lhs)
    if not counts or op.predicate_name != "ult" or not is_non_negative(bound.source):
        return None
    return bound.source


def end_of_run(run: Run) -> SSAValue | None:
    """The first column from which on nothing counts; None: nobody knows it."""
    waiting = [] if run.inside is None else [run.inside]
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, arith.AndiOp):
            waiting += op.operands
        elif isinstance(op, arith.CmpiOp):
            limit = limit_of_columns(op)
            if limit is not None:
                return limit
    return None


class Ends(NamedTuple):
    """Where the indices of a row count: in the columns before all of some numbers.

    Attributes:
        limits: the numbers.
        rows: conditions without which nothing in a row counts; equal along it.
    """

    limits: list[SSAValue]
    rows: list[SSAValue]


def ends_of_run(run: Run) -> Ends | None:
    """What ``inside`` says as numbers; None: it is another condition."""
    found, waiting = Ends([], []), [] if run.inside is None else [run.inside]
    while waiting:
        value = waiting.pop()
        op = value.owner
        limit = limit_of_columns(op) if isinstance(op, arith.CmpiOp) else None
        if limit is not None:
            found.limits.append(limit)
        elif isinstance(op, arith.AndiOp):
            waiting += op.operands
        elif is_flat(value):
            found.rows.append(value)
        elif isinstance(op, TileBroadcastOp) and shape_of(op.operands[0])[0] == 1:
            waiting += op.operands
        else:
            return None
    return found


def _counts(value: SSAValue) -> bool:
    """Whether each row is a number, the next one, and so on."""
    room: float | None = None  # for constants in a type that may wrap around
    while not isinstance(op := value.owner, vector.StepOp):
        if isinstance(op, arith.AddiOp | arith.SubiOp):
            value, other = op.lhs, op.rhs
            if type(op) is arith.AddiOp and is_flat(value):
                value, other = other, value
            if not is_flat(other) or is_flat(value):
                return False
            room = None if room is None else room - _size_of(other)
        elif isinstance(op, arith.IndexCastOp) and _is_wide(op):
            value, room = op.operands[0], _MOST if room is None else room
        elif isinstance(op, vector.ShapeCastOp | TileBroadcastOp):
            (source,) = op.operands
            if shape_of(source)[1] != shape_of(value)[1]:
                return False
            value = source
        else:
            return False
    return room is None or room >= 0


def _is_wide(op: arith.CastOp) -> bool:
    """Whether it is between index and a type that holds any index of a tile."""
    types = [each.type for each in (*op.operands, *op.results)]
    widths = [integer_width(t.element_type) for t in types if is_vector(t)]
    return all(width is None or width >= 32 for width in widths)


def _size_of(value: SSAValue) -> float:
    """How far from 0 a constant is; what is not known may be any number."""
    number = splat_of(value)
    return 1 << 62 if number is None else abs(number)


def is_flat(value: SSAValue) -> bool:
    """Whether all elements of a row are equal; False where that takes a longer look."""
    op = value.owner
    if isinstance(op, vector.BroadcastOp):
        return not is_vector(op.operands[0].type)
    if isinstance(op, TileBroadcastOp):
        return shape_of(op.operands[0])[1] == 1
    if isinstance(op, arith.AddiOp):
        return all(
            isinstance(each.owner, vector.BroadcastOp | TileBroadcastOp)
            and is_flat(each)
            for each in op.operands
        )
    return splat_of(value) is not None


def splat_of(value: SSAValue) -> float | None:
    """The number that all elements of a constant are."""
    op = value.owner
    return splat_value(op.value) if isinstance(op, arith.ConstantOp) else None


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
        inside = ev.place(at).both(inside, ev.eval(mask, at))
    return first, inside


def _is_whole_run(ev: Evaluator, run: Run, mask: SSAValue | None, at: At) -> bool:
    """Whether a loop without masks may read or write a run; it is told how far."""
    given = mask is None or bool(splat_of(mask))
    ends = ends_of_run(run) if given and may_have_limit(ev, at) else None
    if ends is None or not ends.limits:
        return False
    build = ev.nest.at(at.row)
    limit: Index = ends.limits[0]
    for each in ends.limits[1:]:
        limit = build.minimum(limit, each)
    for each in ends.rows:
        counts = ev.eval(each, At(at.row, 0, COLUMNS, 1))
        limit = build.select(counts, limit, 0)
    ev.limits[run, at.key()[0]] = limit
    return True


def may_have_limit(ev: Evaluator, at: At) -> bool:
    """Whether a loop without masks goes along ``at``, as far as ``ev.limits`` say."""
    in_loop = ev.nest.level(at.col) == 2 and ev.nest.level(at.row) < 2
    return in_loop and ev.whole and ev.inside is None and at.block is None


def _lanes_of_tile(ev: Evaluator, tile: ScatterTile, at: At) -> SSAValue:
    """The lanes that are not behind the last column, or row, of a tile."""
    build, along = ev.place(at), at.axis == COLUMNS
    end, start = tile.shape[along], at.col if along else at.row
    if end % at.lanes:
        return lane_mask(build, build.minus(end, start), at.lanes)
    true = build.insert(arith.ConstantOp.integer(1, i1))
    return splat(build, true, at.lanes)


def scatter_lanes(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[SSAValue, SSAValue]:
    """Index and mask of each lane of a scatter tile; outside the array is off.

    Of an array of any length, lanes behind the tile are: nothing may have been computed
    for them.
    """
    build = ev.place(at)
    indices = ev.eval(tile.indices, at)
    wide = IndexType() if at.lanes == 1 else VectorType(IndexType(), [at.lanes])
    if indices.type != wide:
        indices = build.insert(arith.IndexCastOp(indices, wide))
    given = None if mask is None else ev.eval(mask, at)
    if tile.size is None:
        of_tile = _lanes_of_tile(ev, tile, at)
        return indices, of_tile if given is None else build.both(given, of_tile)
    size = splat(build, build.index(tile.size), at.lanes)
    inside = build.insert(arith.CmpiOp("ult", indices, size))
    if given is None:
        return indices, inside
    return indices, build.both(given, inside)
