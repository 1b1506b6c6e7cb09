"""Indices that count up along a row: such gathers are loads, such scatters stores.

``X[rows[:, None], arange(n)[None, :]]`` has the index ``rows * stride + column`` in
each row, and -1 where it is outside of ``X``.  Loads of 16 neighbours are about ten
times as fast as gathers of them.

`scatter_lanes` returns the indices and masks of other scatter tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, integer_width, is_vector, memref_type
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import LoadTileOp, TileBroadcastOp
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_mask, splat
from xetl_cpu.lowering.loops.state import ScatterTile, State, TileAt, leaves, shape_of
from xetl_cpu.lowering.tiles import is_non_negative

_SAME_NUMBERS = (arith.IndexCastOp, vector.ShapeCastOp, TileBroadcastOp)

_MOST = 1 << 30
"""Constants of i32 up to this sum do not overflow with any index of a tile."""


class Run(NamedTuple):
    """Indices that mostly are ``first, first + 1, ...`` in each row.

    Attributes:
        numbers: the indices, valid where ``inside`` holds.
        inside: which of the indices are valid; None: all.
    """

    numbers: SSAValue
    inside: SSAValue | None


def find_run(indices: SSAValue) -> Run | None:
    """Return indices that count up along their rows; None if this is not known."""
    run = parts_of(indices)
    return run if _counts(run.numbers) else None


def parts_of(indices: SSAValue) -> Run:
    """Return indices, and which of them are valid: -1 replaces the others."""
    op = indices.owner
    if isinstance(op, arith.SelectOp) and splat_of(op.false_value) == -1:
        return Run(op.true_value, op.condition)
    return Run(indices, None)


def limit_of_columns(op: arith.CmpiOp) -> SSAValue | None:
    """Return ``n`` of ``column < n``; None for other tests, or if n may be negative."""
    limit = bound_of_columns(op)
    if limit is None or not isinstance(limit.type, IndexType):
        return None
    return limit if is_non_negative(limit) else None


def bound_of_columns(op: arith.CmpiOp) -> SSAValue | None:
    """Return ``n`` of ``column < n``: an integer, or an index that may be negative."""
    lhs, bound = op.lhs, op.rhs.owner
    while isinstance(lhs.owner, _SAME_NUMBERS):
        lhs = lhs.owner.operands[0]
    if not isinstance(bound, vector.BroadcastOp) or is_vector(bound.source.type):
        return None
    counts = isinstance(lhs.owner, vector.StepOp) and _counts(op.lhs)
    is_less = op.predicate_name == "slt" or (
        op.predicate_name == "ult" and is_non_negative(bound.source)
    )
    return bound.source if counts and is_less else None


def bounds_of(state: State, op: arith.SelectOp) -> Iterator[TileAt]:
    """Yield tiles whose loaded elements a select takes, up to the tiles' end.

    For ``where(column < n, v, 0)``, v loads from a matrix of n columns. If the tile
    starts at column k, the bound is n - k.
    """
    test = op.condition.owner
    if isinstance(test, TileBroadcastOp):  # the same in all rows
        test = test.source.owner
    bound = bound_of_columns(test) if isinstance(test, arith.CmpiOp) else None
    while bound is not None and isinstance(bound.owner, arith.IndexCastOp):
        bound = bound.owner.operands[0]
    for leaf, same_place in leaves(state, op.true_value) if bound else ():
        if isinstance(leaf.owner, LoadTileOp) and same_place:
            tile = state.tiles[leaf.owner.tile]
            assert isinstance(tile, TileAt)
            if bound is not None and _is_end(tile, bound):
                yield tile


def _is_end(tile: TileAt, bound: SSAValue) -> bool:
    """Whether this is the number of columns from the start of a tile on."""
    if tile.col == 0:
        return bound is tile.matrix.cols
    less = bound.owner
    if not isinstance(less, arith.SubiOp):
        return False
    return less.rhs is tile.col and less.lhs is tile.matrix.cols


class Ends(NamedTuple):
    """The valid indices of a row: those in columns before all limits.

    Attributes:
        limits: the numbers of columns.
        rows: conditions that are constant along a row; all must hold.
        others: all other conditions, which must hold, too.
    """

    limits: list[SSAValue]
    rows: list[SSAValue]
    others: list[SSAValue]


def ends_of_run(run: Run) -> Ends:
    """Return ``inside`` as limits and conditions."""
    found, waiting = Ends([], [], []), [] if run.inside is None else [run.inside]
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
            found.others.append(value)
    return found


def _counts(value: SSAValue) -> bool:
    """Whether each row counts up by 1."""
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
    """Whether it casts between index and a type that holds any index of a tile."""
    types = [each.type for each in (*op.operands, *op.results)]
    widths = [integer_width(t.element_type) for t in types if is_vector(t)]
    return all(width is None or width >= 32 for width in widths)


def _size_of(value: SSAValue) -> float:
    """Return the absolute value of a constant; a huge number for other values."""
    number = splat_of(value)
    return 1 << 62 if number is None else abs(number)


def is_flat(value: SSAValue) -> bool:
    """Whether all elements of a row are equal, as far as a short look shows."""
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
    """Return the number that all elements of a constant have, or None."""
    op = value.owner
    return splat_value(op.value) if isinstance(op, arith.ConstantOp) else None


def run_lanes(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[SSAValue, SSAValue | None] | None:
    """Return the index of the first lane, and a mask, if lanes are contiguous.

    Without a mask (None), the loop runs up to where a mask would be needed.
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
    """Whether a loop without masks may access a run; if so, record the limit."""
    given = mask is None or bool(splat_of(mask))
    ends = ends_of_run(run)
    if not (given and may_have_limit(ev, at)) or ends.others or not ends.limits:
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
    """Whether a loop without masks goes along ``at``, up to ``ev.limits``."""
    in_loop = ev.nest.level(at.col) == 2 and ev.nest.level(at.row) < 2
    return in_loop and ev.whole and ev.inside is None and at.block is None


def _lanes_of_tile(ev: Evaluator, tile: ScatterTile, at: At) -> SSAValue:
    """Return a mask of the lanes before the last column, or row, of a tile."""
    build, along = ev.place(at), at.axis == COLUMNS
    end, start = tile.shape[along], at.col if along else at.row
    if end % at.lanes:
        return lane_mask(build, build.minus(end, start), at.lanes)
    true = build.insert(arith.ConstantOp.of(1, i1))
    return splat(build, true, at.lanes)


def scatter_lanes(
    ev: Evaluator, tile: ScatterTile, mask: SSAValue | None, at: At
) -> tuple[SSAValue, SSAValue]:
    """Return index and mask of each lane of a scatter tile; off outside the array.

    If the length of the array is unknown, lanes behind the tile are off: their indices
    may not have been computed.
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
