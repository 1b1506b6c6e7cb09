"""Lines: fragments as lines of 16 elements, one for each lane; memory line by line.

A line is a part of a row; for a value of one column it is 16 rows, which every lane
holds. Operations on single elements (memory with offsets, atomics, reshapes) work on
lines. In memory a line is one message with an offset for each lane and a mask. It works
for any base, pitch and shape; elements outside of the matrix become padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, i1, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index, integer_width, known, vector_type, with_element
from xetl.dialects.upstream import arith, vector
from xetl_xegpu.dialect import LoadOp, PrefetchOp, StoreOp

from . import views
from .conversion import Converter
from .fragments import LANES, Fragments, Grid, Start, Tile, vector_of


class Line(NamedTuple):
    """The elements of a line.

    Attributes:
        used: the number of elements, at most 16; other lanes are undefined.
        dim: 1 if the elements are in a row, 0 if they are in a column.
    """

    row: int
    column: int
    used: int
    dim: int


def lines_of(grid: Grid) -> list[Line]:
    """Return the lines of a matrix, in the order of all functions here."""
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


def element_line(c: Converter, pieces: Fragments, row: int, group: int = 0) -> SSAValue:
    """Return a line of a spread value, or the element of a row of one column."""
    key = row, group
    found = pieces.lines.get(key)
    if found is None or not c.emit.is_outside(found):
        grid = pieces.grid
        place = grid.place(row, group)
        part = pieces.parts[place.fragment]
        where = [place.row] if grid.spread else [place.row, 0]
        found = pieces.lines[key] = c.emit.insert(vector.ExtractOp(part, where))
    return found


def to_lines(c: Converter, pieces: Fragments) -> list[SSAValue]:
    """All lines of a value."""
    grid = pieces.grid
    if grid.spread:
        return [
            element_line(c, pieces, line.row, line.column // LANES)
            for line in lines_of(grid)
        ]
    found: list[SSAValue] = []
    for line in lines_of(grid):
        rows = range(line.row, line.row + line.used)
        found.append(line_of(c, [element_line(c, pieces, row) for row in rows]))
    return found


def lines_of_any(c: Converter, pieces: Fragments | None) -> Iterator[SSAValue | None]:
    """All lines of a value; None again and again for None."""
    return repeat(None) if pieces is None else iter(to_lines(c, pieces))


def line_of(c: Converter, elements: Sequence[SSAValue]) -> SSAValue:
    """Return a line of scalars; eight of them are in the line twice.

    Other lanes have the last one.
    """
    if len(set(elements)) == 1:
        return c.spread(elements[0], LANES)
    type_ = vector_of(elements[0].type, LANES)
    more = elements if 2 * len(elements) == LANES else [elements[-1]] * LANES
    line = [*elements, *more][:LANES]
    return c.emit.insert(vector.FromElementsOp(line, type_))


def from_lines(
    c: Converter, grid: Grid, element: Attribute, lines: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return the fragments of a matrix from its lines in order."""

    def one(row: int, group: int) -> SSAValue:
        if grid.spread:
            return lines[row * grid.groups + group]
        place, lane = divmod(row, LANES)
        return c.emit.insert(vector.ExtractOp(lines[place], [lane]))

    return assembled(c, grid, element, one)


def assembled(
    c: Converter, grid: Grid, element: Attribute, line: Callable[[int, int], SSAValue]
) -> list[SSAValue]:
    """Return the fragments of a matrix.

    ``line`` returns the line of a row and a group of columns, or the only element.
    """
    parts: list[SSAValue] = []
    for span, group in grid.blocks():
        rows = range(span.first, span.first + span.count)
        lines = [line(row, group) for row in rows]
        parts.append(fragment_of(c, element, lines, grid.spread))
    return parts


def fragment_of(
    c: Converter, element: Attribute, lines: Sequence[SSAValue], spread: bool
) -> SSAValue:
    """Return a fragment from its lines, or from the elements of its only column."""
    height = len(lines)
    type_ = vector_of(element, height, LANES if spread else 1)
    if len(set(lines)) == 1:
        if height == 1 and spread:
            return c.emit.insert(vector.ShapeCastOp(lines[0], type_))
        return c.spread(lines[0], *type_.get_shape())
    if not spread:
        return c.emit.insert(vector.FromElementsOp(lines, type_))
    found = c.emit.insert(vector.BroadcastOp(lines[0], type_))
    for row, each in enumerate(lines[1:], 1):
        found = c.emit.insert(vector.InsertOp(each, found, [row]))
    return found


def rows_of(c: Converter, block: SSAValue, first: int, count: int) -> SSAValue:
    """Return some rows of a fragment, or of the result of a message."""
    rows, *row = vector_type(block).get_shape()
    if rows == count:
        return block
    at, sizes = [first, *[0] * len(row)], [count, *row]
    return c.emit.insert(vector.ExtractStridedSliceOp(block, at, sizes))


def stacked(
    c: Converter, value: Fragments, first: int, count: int, group: int
) -> SSAValue:
    """Return some rows of a group of columns as one value, padded with zero rows."""
    parts = [
        (span, value.part(number, group))
        for number, span in enumerate(value.grid.spans)
        if first <= span.first < first + count
    ]
    if len(parts) == 1 and parts[0][0].count == count:
        return parts[0][1]
    whole = c.emit.constant(0, vector_of(value.element, count, value.grid.width))
    for span, part in parts:
        at = [span.first - first, 0]
        whole = c.emit.insert(vector.InsertStridedSliceOp(part, whole, at))
    return whole


def filled_behind(
    c: Converter, part: SSAValue, used: int, number: int | float
) -> SSAValue:
    """Return a fragment with a number in its lanes from ``used`` on."""
    mask = first_lanes(c, used)
    if mask is None:
        return part
    type_ = vector_type(part)
    fill, wide = c.emit.constant(number, type_), c.spread(mask, *type_.get_shape())
    return c.emit.insert(arith.SelectOp(wide, part, fill))


def first_lanes(c: Converter, count: int) -> SSAValue | None:
    """Return a mask of the first ``count`` lanes. None: all of them."""
    if count >= LANES:
        return None
    end = c.emit.constant(count, vector_of(i32, LANES))
    return c.emit.compare("ult", _as_i32(c, c.lane_ids(), LANES), end)


def _as_i32(c: Converter, value: Index, *shape: int) -> SSAValue:
    found, type_ = c.index(value), vector_of(i32, *shape) if shape else i32
    return c.emit.shared("i32", [found], lambda: arith.IndexCastOp(found, type_))


_FAR = 1 << 29
"""More elements than a tile has; twice as many fit 32 bits."""

Hints = dict[str, Attribute]


class Access(NamedTuple):
    """The position of the 16 elements of a line in memory.

    Attributes:
        base: an address (i64), or shared memory.
        offsets: the offsets of the lanes in elements.
        mask: the mask of the lanes; None: all.
        element: the type of the elements as values.
    """

    base: SSAValue
    offsets: SSAValue
    mask: SSAValue | None
    element: Attribute


# Where ------------------------------------------------------------------------------


def line_access(c: Converter, tile: Tile, line: Line, *, exact: bool) -> Access:
    """Return the access to a line of a tile.

    Args:
        exact: whether lanes after the line must be masked off. Loads may also read
            after the tile.
    """
    matrix = tile.matrix
    row = c.emit.plus(tile.row, line.row)
    column = c.emit.plus(tile.column, line.column)
    first, other = (column, row) if line.dim else (row, column)
    across = _inside(c, other, matrix.sizes[1 - line.dim])
    used = line.used if exact else LANES
    mask = _lanes_inside(c, first, matrix.sizes[line.dim], used)
    if exact:
        mask = c.emit.conjunction(mask, first_lanes(c, line.used))
    if across is not None:
        mask = c.emit.conjunction(mask, c.spread(across, LANES))
    at = c.emit.plus(*map(c.emit.times, (row, column), matrix.strides))
    there, stride = views.moved(c, matrix.start, at), matrix.strides[line.dim]
    offsets = c.lane_ids()
    if known(stride) != 1:
        steps = c.spread(c.index(stride), LANES)
        offsets = c.emit.pure(arith.MuliOp, offsets, steps)
    return scattered_access(c, there, matrix.element, offsets, mask)


def _inside(c: Converter, at: Index, size: Index) -> SSAValue | None:
    """Return whether ``0 <= at < size``. None: it is known to be true."""
    at, size = known(at), known(size)
    found = c.ranges.of(at)
    if found is not None and isinstance(size, int):
        if found.low >= 0 and found.high < size:
            return None
        if found.high < 0 or found.low >= size:
            return c.emit.constant(0, i1)
    return c.emit.compare("ult", at, size)  # unsigned: one comparison for both ends


def _lanes_inside(
    c: Converter, first: Index, size: Index, used: int
) -> SSAValue | None:
    """Return which of the ``used`` places from ``first`` on are inside. None: all."""
    first, size = known(first), known(size)
    found = c.ranges.of(first)
    if isinstance(size, int):
        if found is not None and found.low >= 0 and found.high + used <= size:
            return None
        if first == 0:
            return first_lanes(c, max(size, 0))
    if found is not None and found.low >= 0:
        # In 32 bits. The lines of a tile share all but the last subtraction.
        start, distance = c.emit.constant_part(first)
        if not 0 <= distance < _FAR:
            start, distance = first, 0
        left = c.emit.maximum(c.emit.minus(size, start), 0)
        left = c.emit.minus(c.emit.minimum(left, 2 * _FAR), distance)
        return c.emit.compare(
            "slt", _as_i32(c, c.lane_ids(), LANES), c.spread(_as_i32(c, left), LANES)
        )
    places = _plus_lanes(c, first, c.lane_ids())
    return c.emit.compare("ult", places, c.spread(c.index(size), LANES))


def _plus_lanes(c: Converter, first: Index, lanes: SSAValue) -> SSAValue:
    if first == 0:
        return lanes
    return c.emit.pure(arith.AddiOp, lanes, c.spread(c.index(first), LANES))


def scattered_access(
    c: Converter,
    start: Start,
    element: Attribute,
    offsets: SSAValue,
    mask: SSAValue | None,
) -> Access:
    """Return the access to elements at given offsets from ``start``."""
    if start.space == views.SHARED:
        base, distance = c.emit.constant_part(start.offset)
        offsets = _plus_lanes(c, base, offsets)
        if distance:  # not hoisted: outside of loops it would take registers
            far = c.emit.constant(distance, offsets.type)
            offsets = c.emit.insert(arith.AddiOp(offsets, far))
        return Access(start.root, offsets, mask, element)
    base = views.address(c, start, views.stored_bytes(element))
    return Access(base, offsets, mask, element)


# What -------------------------------------------------------------------------------


def all_lanes(c: Converter, mask: SSAValue | None) -> SSAValue:
    """Return a mask as a value."""
    return c.emit.constant(1, vector_of(i1, LANES)) if mask is None else mask


def load_line(
    c: Converter, access: Access, padding: int | float = 0, hints: Hints | None = None
) -> SSAValue:
    """Load the elements, with ``padding`` where the mask is not set."""
    stored = vector_of(views.stored_type(access.element), LANES)
    mask = all_lanes(c, access.mask)
    where = access.base, access.offsets, mask
    found = c.emit.insert(LoadOp(*where, stored, properties=hints))
    if access.mask is not None:
        fill = c.emit.constant(padding, stored)
        found = c.emit.insert(arith.SelectOp(mask, found, fill))
    return from_memory(c, found, access.element)


def store_line(
    c: Converter, access: Access, value: SSAValue, hints: Hints | None = None
) -> None:
    """Store elements where the mask is set."""
    where = to_memory(c, value), access.base, access.offsets
    c.emit.add(StoreOp(*where, all_lanes(c, access.mask), properties=hints))


def prefetch_line(c: Converter, access: Access, hints: Hints | None = None) -> None:
    """Prefetch elements to a cache."""
    if access.base.type != i64:
        return  # shared memory has no cache
    size = views.stored_bytes(access.element)
    prefetch = PrefetchOp(access.base, access.offsets, offset_align_byte=size)
    prefetch.properties |= hints or {}
    c.emit.add(prefetch)


def from_memory(c: Converter, value: SSAValue, element: Attribute) -> SSAValue:
    """Convert a line or fragment from its type in memory to that in registers."""
    shape = vector_type(value).get_shape()
    if isinstance(element, IndexType):
        return c.emit.insert(arith.IndexCastOp(value, vector_of(element, *shape)))
    width = integer_width(element)
    if width == 1:
        zero = c.emit.constant(0, value.type)
        return c.emit.insert(arith.CmpiOp("ne", value, zero))
    if width is not None and width < i8.bitwidth:
        return c.emit.insert(arith.TrunciOp(value, vector_of(element, *shape)))
    return value


def to_memory(c: Converter, value: SSAValue) -> SSAValue:
    """Convert a line or fragment to its type in memory."""
    element = vector_type(value).element_type
    stored = views.stored_type(element)
    if stored == element:
        return value
    widen = arith.IndexCastOp if isinstance(element, IndexType) else arith.ExtuiOp
    return c.emit.insert(widen(value, with_element(value.type, stored)))
