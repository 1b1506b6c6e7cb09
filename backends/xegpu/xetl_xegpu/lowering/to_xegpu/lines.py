"""Fragments as lines of 16 elements, one for each lane, and back.

A line is part of a row; of a value of one column it is 16 rows, of which every lane
has all.  What looks at elements one by one (memory with offsets, atomics, reshapes)
works on lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.upstream import arith, vector
from xetl_xegpu.lowering.fragments import LANES, Grid
from xetl_xegpu.lowering.to_xegpu.values import Pieces, vector_of
from xetl_xegpu.lowering.to_xegpu.walker import Converter


class Line(NamedTuple):
    """Which elements a line has.

    Attributes:
        row: of the first one.
        column: of the first one.
        used: how many there are, 16 at most; lanes behind them hold anything.
        dim: 1 if they follow each other in a row, 0 if in a column.
    """

    row: int
    column: int
    used: int
    dim: int


def lines_of(grid: Grid) -> list[Line]:
    """The lines of a matrix, in the order of all functions here."""
    if grid.spread:
        return [
            Line(row, group * LANES, grid.used(group), 1)
            for row in range(grid.rows)
            for group in range(grid.groups)
        ]
    return [
        Line(row, 0, min(LANES, grid.rows - row), 0)
        for row in range(0, grid.rows, LANES)
    ]


def element_line(c: Converter, pieces: Pieces, row: int, group: int = 0) -> SSAValue:
    """A line of a spread value, or the one element of a row that has no more."""
    key = row, group
    found = pieces.lines.get(key)
    if found is None or not c.emit.is_outside(found):
        found = pieces.lines[key] = _taken(c, pieces, row, group)
    return found


def _taken(c: Converter, pieces: Pieces, row: int, group: int) -> SSAValue:
    grid = pieces.grid
    place = grid.place(row, group)
    part = pieces.parts[place.fragment]
    where = [place.row] if grid.spread else [place.row, 0]
    return c.emit.value(vector.ExtractOp(part, where))


def to_lines(c: Converter, pieces: Pieces) -> list[SSAValue]:
    """All lines of a value."""
    grid = pieces.grid
    if grid.spread:
        return [
            element_line(c, pieces, line.row, line.column // LANES)
            for line in lines_of(grid)
        ]
    found: list[SSAValue] = []
    for line in lines_of(grid):
        rows = [min(line.row + i, grid.rows - 1) for i in range(LANES)]
        elements = [element_line(c, pieces, row) for row in rows]
        found.append(line_of(c, elements))
    return found


def line_of(c: Converter, elements: Sequence[SSAValue]) -> SSAValue:
    """A line of 16 scalars."""
    if len(set(elements)) == 1:
        return c.spread(elements[0], LANES)
    type_ = vector_of(elements[0].type, LANES)
    return c.emit.value(vector.FromElementsOp(elements, type_))


def from_lines(
    c: Converter, grid: Grid, element: Attribute, lines: Sequence[SSAValue]
) -> list[SSAValue]:
    """The fragments of a matrix, of its lines in their order."""

    def one(row: int, group: int) -> SSAValue:
        if grid.spread:
            return lines[row * grid.groups + group]
        place, lane = divmod(row, LANES)
        return c.emit.value(vector.ExtractOp(lines[place], [lane]))

    return assembled(c, grid, element, one)


def assembled(
    c: Converter,
    grid: Grid,
    element: Attribute,
    line: Callable[[int, int], SSAValue],
) -> list[SSAValue]:
    """The fragments of a matrix.

    Args:
        c: the conversion.
        grid: how the matrix is cut.
        element: its element type.
        line: gives the line of a row and a group of columns, or the one element.
    """
    parts: list[SSAValue] = []
    for span in grid.spans:
        rows = range(span.first, span.first + span.count)
        for group in range(grid.groups):
            lines = [line(row, group) for row in rows]
            parts.append(fragment_of(c, element, lines, grid.spread))
    return parts


def fragment_of(
    c: Converter, element: Attribute, lines: Sequence[SSAValue], spread: bool
) -> SSAValue:
    """A fragment of its lines, or of the elements of its one column."""
    height = len(lines)
    type_ = vector_of(element, height, LANES if spread else 1)
    if len(set(lines)) == 1:
        if height == 1 and spread:
            return c.emit.value(vector.ShapeCastOp(lines[0], type_))
        return c.spread(lines[0], *type_.get_shape())
    if not spread:
        return c.emit.value(vector.FromElementsOp(lines, type_))
    found = c.emit.value(vector.BroadcastOp(lines[0], type_))
    for row, each in enumerate(lines[1:], 1):
        found = c.emit.value(vector.InsertOp(each, found, [row]))
    return found


def lane_numbers(c: Converter) -> SSAValue:
    """0 to 15 as 32-bit numbers, one for each lane."""
    lanes = c.lane_ids()
    type_ = vector_of(i32, LANES)
    return c.emit.once("lanes32", [lanes], lambda: arith.IndexCastOp(lanes, type_))


def first_lanes(c: Converter, count: int) -> SSAValue | None:
    """A mask of the first ``count`` lanes; None: all of them."""
    if count >= LANES:
        return None
    pair = lane_numbers(c), c.emit.constant(count, vector_of(i32, LANES))
    return c.emit.once("first", pair, lambda: arith.CmpiOp("ult", *pair))
