"""Elements of a vector at a place that is known at run time only."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector
from xetl_xegpu.lowering.fragments import BLOCKED, LANES
from xetl_xegpu.lowering.to_xegpu.lines import from_lines, lines_of, to_lines
from xetl_xegpu.lowering.to_xegpu.values import Pieces
from xetl_xegpu.lowering.to_xegpu.walker import Converter


def extract_at(c: Converter, op: vector.ExtractOp, source: Pieces) -> None:
    """One element: of all lines the right one, of which all learn one lane.

    Raises:
        IRError: more than an element is asked for.
    """
    if is_vector(op.result.type):
        raise c.refusal(op, "it takes a part at a place that is computed")
    number, lane = _place(c, source, op.position)
    lines = to_lines(c, source)
    found = lines[0]
    for turn, line in enumerate(lines[1:], 1):
        pair = number, c.index(turn)
        here = c.emit.value(arith.CmpiOp("eq", *pair))
        found = c.emit.value(arith.SelectOp(here, line, found))
    c.bind(op.result, c.emit.value(vector.ExtractOp(found, [lane])))


def insert_at(c: Converter, op: vector.InsertOp, dest: Pieces) -> None:
    """One element: a select in the line and the lane where it goes.

    Raises:
        IRError: more than an element is given.
    """
    if is_vector(op.value.type):
        raise c.refusal(op, "it puts a part at a place that is computed")
    number, lane = _place(c, dest, op.position)
    new = c.spread(op.value, LANES)
    pair = c.lane_ids(), c.spread(lane, LANES)
    there = c.emit.value(arith.CmpiOp("eq", *pair))
    lines: list[SSAValue] = []
    for turn, line in enumerate(to_lines(c, dest)):
        here = c.emit.value(arith.CmpiOp("eq", number, c.index(turn)))
        chosen = c.emit.value(arith.AndiOp(there, c.spread(here, LANES)))
        lines.append(c.emit.value(arith.SelectOp(chosen, new, line)))
    element = vector_type(op.result).element_type
    c.give_parts(op.result, from_lines(c, dest.grid, element, lines))


def _place(
    c: Converter, pieces: Pieces, position: Sequence[Index]
) -> tuple[SSAValue, SSAValue]:
    """The number of a line, and the lane."""
    row, column = _matrix_place(c, pieces.shape, position)
    if not pieces.grid.spread:
        return _divided(c, row)
    number, lane = _divided(c, column)
    first = c.emit.times(row, len(lines_of(pieces.grid)) // pieces.grid.rows)
    return c.index(c.emit.plus(first, number)), lane


def _divided(c: Converter, place: Index) -> tuple[SSAValue, SSAValue]:
    pair = c.index(place), c.index(LANES)
    number = c.emit.once("divui", pair, lambda: arith.DivuiOp(*pair))
    lane = c.emit.once("remui", pair, lambda: arith.RemuiOp(*pair))
    return number, lane


def _matrix_place(
    c: Converter, shape: Sequence[int], position: Sequence[Index]
) -> tuple[Index, Index]:
    """`fragments.position`, of numbers that are computed."""
    if len(shape) == BLOCKED:
        a, b, row, column = position
        row = c.emit.plus(c.emit.times(a, shape[2]), row)
        return row, c.emit.plus(c.emit.times(b, shape[3]), column)
    row: Index = 0
    for extent, place in zip(shape[:-1], position[:-1]):
        row = c.emit.plus(c.emit.times(row, extent), place)
    return row, position[-1] if position else 0
