"""Operations that move elements: shape casts, broadcasts, transposes.

The destination of each element is known at compile time, so all stays in registers. A
fragment that moves as a whole costs nothing; other lines are assembled by shuffles of
two lines each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import is_vector, vector_type
from xetl.dialects.upstream import arith, vector

from .conversion import Converter, Rule
from .fragments import (
    LANES,
    Elements,
    Fragments,
    Grid,
    MmaOperand,
    TransposedLoad,
    as_matrix,
    as_vector,
    grid_for,
    grid_of,
    matrix_shape,
)
from .lines import element_line, fragment_of, line_of, rows_of, stacked


class Origin(NamedTuple):
    """An element of a value: row and column in its matrix."""

    pieces: Fragments
    row: int
    column: int


def elements_of(pieces: Fragments) -> Elements:
    """Return all elements of a value as an array, which NumPy can rearrange."""
    found = np.empty(matrix_shape(pieces.shape), object)
    for row, column in np.ndindex(found.shape):
        found[row, column] = Origin(pieces, row, column)
    return as_vector(found, pieces.shape)


def rearranged(c: Converter, element: Attribute, elements: Elements) -> Fragments:
    """Assemble a vector from elements of other values and from scalars."""
    matrix = as_matrix(elements)
    grid = grid_of(*matrix.shape)
    parts: list[SSAValue] = []
    for span, group in grid.blocks():
        left = group * grid.width
        rows = matrix[span.first : span.first + span.count]
        table = rows[:, left : left + grid.used(group)].tolist()
        whole = _whole_fragment(table, grid)
        if whole is None:
            lines = [_line(c, x) if grid.spread else scalar_of(c, x[0]) for x in table]
            whole = fragment_of(c, element, lines, grid.spread)
        parts.append(whole)
    return Fragments(elements.shape, element, parts)


def _whole_fragment(
    table: Sequence[Sequence[Origin | SSAValue]], grid: Grid
) -> SSAValue | None:
    """Return an existing fragment with exactly these elements, or None."""
    first = table[0][0]
    if not isinstance(first, Origin):
        return None
    pieces, top, left = first
    source = pieces.grid
    if source.width != grid.width or left % source.width:
        return None
    place = source.place(top, left // source.width)
    if place.row or source.height(place.fragment) != len(table):
        return None
    for i, line in enumerate(table):
        for j, each in enumerate(line):
            if each != Origin(pieces, top + i, left + j):
                return None
    return pieces.parts[place.fragment]


def scalar_of(c: Converter, origin: Origin | SSAValue) -> SSAValue:
    """Return an element as a scalar, which all lanes hold."""
    if not isinstance(origin, Origin):
        return origin
    pieces, row, column = origin
    if not pieces.grid.spread:
        return element_line(c, pieces, row)
    group, lane = divmod(column, LANES)
    line = element_line(c, pieces, row, group)
    return c.emit.insert(vector.ExtractOp(line, [lane]))


def _line(c: Converter, wanted: Sequence[Origin | SSAValue]) -> SSAValue:
    """Assemble a line; lanes behind the wanted elements may hold anything."""
    sources: dict[SSAValue, dict[int, int]] = {}
    for lane, origin in enumerate(wanted):
        if isinstance(origin, Origin) and origin.pieces.grid.spread:
            group, at = divmod(origin.column, LANES)
            source = element_line(c, origin.pieces, origin.row, group)
        else:
            source, at = scalar_of(c, origin), lane
        sources.setdefault(source, {})[lane] = at
    if len(sources) > 1 and not any(is_vector(each.type) for each in sources):
        return line_of(c, [scalar_of(c, origin) for origin in wanted])
    return _merged(c, sources)


def _merged(c: Converter, sources: dict[SSAValue, dict[int, int]]) -> SSAValue:
    """Merge several lines into one.

    Args:
        sources: for each line, the lanes of the result that take an element of it, and
            the numbers of these elements.
    """
    whole: SSAValue | None = None
    ready: dict[int, int] = {}
    for source, lanes in sources.items():
        line = source if is_vector(source.type) else c.spread(source, LANES)
        if whole is None:
            whole, ready = line, lanes
            continue
        picks = {lane: at + LANES for lane, at in lanes.items()} | ready
        whole = _shuffled(c, whole, line, picks)
        ready = {lane: lane for lane in picks}
    assert whole is not None
    if all(lane == at for lane, at in ready.items()):
        return whole
    return _shuffled(c, whole, whole, ready)


def _shuffled(
    c: Converter, left: SSAValue, right: SSAValue, picks: dict[int, int]
) -> SSAValue:
    # A lane whose value is not used keeps its own element: that needs no exchange.
    order = [picks.get(lane, lane) for lane in range(LANES)]
    return c.emit.insert(vector.ShuffleOp(left, right, order))


# Operations -------------------------------------------------------------------------


def give(c: Converter, value: SSAValue, elements: Elements) -> None:
    """Set the fragments of a vector whose elements come from other values."""
    element = vector_type(value).element_type
    c.set_fragments(value, rearranged(c, element, elements).parts)


def same_values(c: Converter, op: Operation) -> None:
    """Replace the result by the fragments of the operand; only the shape differs."""
    found = c.lowered(op.operands[0])
    if isinstance(found, Fragments):
        found = found.reshaped(vector_type(op.results[0]).get_shape())
    c.set(op.results[0], found)


def _shape_cast(c: Converter, op: vector.ShapeCastOp) -> None:
    source, result = c.fragments(op.source), vector_type(op.result).get_shape()
    blocked = 4 in (len(source.shape), len(result))
    if not blocked and matrix_shape(source.shape) == matrix_shape(result):
        same_values(c, op)
        return
    give(c, op.result, elements_of(source).reshape(result))


def _broadcast(c: Converter, op: vector.BroadcastOp) -> None:
    """Broadcast a scalar to all elements, or a vector along dimensions of size 1."""
    if not is_vector(op.source.type):
        grid = grid_for(vector_type(op.result))
        parts = [c.spread(op.source, h, grid.width) for h in grid.heights()]
        c.set_fragments(op.result, parts)
        return
    shape = vector_type(op.result).get_shape()
    give(c, op.result, np.broadcast_to(elements_of(c.fragments(op.source)), shape))


def _tile_broadcast(c: Converter, op: xetile.TileBroadcastOp) -> None:
    """Broadcast one row, one column, or one element to a matrix, by fragments."""
    source, grid = c.fragments(op.source), grid_for(vector_type(op.result))
    parts: list[SSAValue] = []
    for number, span in enumerate(grid.spans):
        row = number if source.grid.rows == grid.rows else 0
        for group in range(grid.groups):
            column = group if source.grid.columns == grid.columns else 0
            parts.append(c.spread(source.part(row, column), span.count, grid.width))
    c.set_fragments(op.result, parts)


def _transpose(c: Converter, op: vector.TransposeOp) -> None:
    """Permute dimensions; the transpose of a matrix is `TileTransposeOp`."""
    give(c, op.result, elements_of(c.fragments(op.source)).transpose(op.dims))


# Transposes -------------------------------------------------------------------------


def transposed(c: Converter, source: Fragments) -> Sequence[SSAValue]:
    """Return the fragments of the transpose of a matrix, in squares of 16x16."""
    old = source.grid
    new = grid_of(old.columns, old.rows)
    if not (old.spread and new.spread):
        return rearranged(c, source.element, as_matrix(elements_of(source)).T).parts
    parts: list[SSAValue | None] = [None] * new.count
    for top, group in product(range(0, old.rows, LANES), range(old.groups)):
        whole = stacked(c, source, top, LANES, group)
        turned = c.emit.insert(vector.TransposeOp(whole, [1, 0]))
        left = group * LANES
        for number, span in enumerate(new.spans):
            if left <= span.first < left + LANES:
                rows = rows_of(c, turned, span.first - left, span.count)
                parts[new.fragment(number, top // LANES)] = rows
    return [part for part in parts if part is not None]


def parted(c: Converter, source: Fragments) -> MmaOperand:
    """Return a matrix whose rows are a multiple of 16 in `Form.PARTED`."""
    parts = source.parts
    # A matrix of equal elements, such as the start of a sum, needs no exchange.
    if not all(isinstance(part.owner, arith.ConstantOp) for part in parts):
        parts = _rows_moved(c, source, (8, 2))
    return MmaOperand(parts, source.grid.groups)


def joined(c: Converter, source: Fragments) -> Sequence[SSAValue]:
    """Undo `parted`."""
    return _rows_moved(c, source, (2, 8))


def _rows_moved(
    c: Converter, source: Fragments, cut: tuple[int, int]
) -> Sequence[SSAValue]:
    """Read each 16 rows as a matrix of shape ``cut`` of rows, and transpose it."""
    matrix = as_matrix(elements_of(source))
    turned = matrix.reshape(-1, *cut, matrix.shape[1]).swapaxes(1, 2)
    return rearranged(c, source.element, turned.reshape(matrix.shape)).parts


def columns_of(c: Converter, source: Fragments, dims: Sequence[int]) -> Fragments:
    """Return a matrix with ``dims`` as columns and all other dimensions as rows."""
    kept = [dim for dim in range(len(source.shape)) if dim not in dims]
    columns = prod(source.shape[dim] for dim in dims)
    elements = elements_of(source).transpose(*kept, *dims).reshape(-1, columns)
    return rearranged(c, source.element, elements)


def _transpose_tile(c: Converter, op: xetile.TileTransposeOp) -> None:
    found, shape = c.lowered(op.source), vector_type(op.result).get_shape()
    if isinstance(found, TransposedLoad):
        ready = found.found
        is_plain = isinstance(ready, Fragments)
        c.set(op.result, ready.reshaped(shape) if is_plain else ready)
        return
    columns = _behind_packing(op.source).owner
    if isinstance(columns, vector.InterleaveOp):
        sides = [_behind_packing(each).owner for each in columns.operands]
        rows = [
            c.lowered(x.source) for x in sides if isinstance(x, xetile.TileTransposeOp)
        ]
        # Columns of transposes are rows: lanes exchange nothing. A message may have
        # transposed them, and nobody has the rows.
        found = [each for each in rows if isinstance(each, Fragments)]
        if len(found) == len(sides):
            matrices = [as_matrix(elements_of(each)) for each in found]
            matrix = np.stack(matrices, 1).reshape(matrix_shape(shape))
            give(c, op.result, as_vector(matrix, shape))
            return
    c.set_fragments(op.result, transposed(c, c.fragments(op.source)))


def _behind_packing(value: SSAValue) -> SSAValue:
    """Return what is packed or unpacked to a value."""
    while isinstance(value.owner, xetile.TilePackOp | xetile.TileUnpackOp):
        value = value.owner.source
    return value


RULES: dict[type[Operation], Rule] = {
    vector.BroadcastOp: _broadcast,
    vector.ShapeCastOp: _shape_cast,
    vector.TransposeOp: _transpose,
    xetile.TilePackOp: same_values,
    xetile.TileUnpackOp: same_values,
    xetile.TileConvLayoutOp: same_values,
    xetile.TileTransposeOp: _transpose_tile,
    xetile.TileBroadcastOp: _tile_broadcast,
}
