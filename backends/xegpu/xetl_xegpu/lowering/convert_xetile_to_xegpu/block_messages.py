"""Tiles moved as blocks, by messages as large as the table of the device allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import arith, vector
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.lowering.convert_xetile_to_xegpu import surfaces, views
from xetl_xegpu.lowering.convert_xetile_to_xegpu.conversion import Converter
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import (
    LANES,
    Form,
    Fragments,
    Grid,
    MmaOperand,
    Span,
    Tile,
    cut_rows,
    grid_of,
    vector_of,
)
from xetl_xegpu.lowering.convert_xetile_to_xegpu.lines import (
    Hints,
    Line,
    element_line,
    from_memory,
    line_access,
    rows_of,
    store_line,
    to_memory,
)

_DEPTH_BYTES = 32
"""Of a row of A in one product: `MatrixUnit.depth_bits`."""


_ASKED_WITH_HINTS = {8: (32, 1), 16: (16, 2), 32: (16, 1)}
"""By bits: columns and count of a prefetch that says something to the caches.

[measured] ocloc 26.27: of 8 and 16 bits it has no others of all heights, though it has
them without hints, and loads with them.
"""


def heights(rows: Sequence[int]) -> list[int]:
    """Rows that messages of a kind may have, the most first."""
    return sorted(rows, reverse=True)


def _bits(surface: surfaces.Surface) -> int:
    return 8 * views.stored_bytes(surface.element)


def _loaded(
    c: Converter,
    surface: surfaces.Surface,
    at: tuple[Index, Index],
    block: tuple[int, int, int],
    hints: Hints,
    *,
    packed: bool = False,
) -> SSAValue:
    """What one message brings: rows, columns and count of ``block``."""
    tdesc = surfaces.descriptor(c, surface, *block)
    load = xegpu.LoadNdOp(tdesc, surfaces.place(c, surface, *at), packed=packed)
    load.properties |= hints
    return c.emit.insert(load)


# Plain loads ------------------------------------------------------------------------


def load_fragments(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> list[SSAValue]:
    """The fragments of a tile; zeros outside of the matrix."""
    messages = c.device.blocks_of("load", _bits(surface))
    parts: list[SSAValue | None] = [None] * grid.count
    for span in cut_rows(grid.rows, heights(messages.rows)):
        for group, one in _loaded_side_by_side(c, tile, surface, span, grid, hints):
            _cut(c, one, span, group, grid, parts)
    element = tile.matrix.element
    return [from_memory(c, part, element) for part in parts if part is not None]


def _loaded_side_by_side(
    c: Converter,
    tile: Tile,
    surface: surfaces.Surface,
    rows: Span,
    grid: Grid,
    hints: Hints,
    *,
    packed: bool = False,
) -> Iterator[tuple[int, SSAValue]]:
    """Some rows of a tile, 16 columns each; messages bring as many as they may."""
    messages = c.device.blocks_of("transform" if packed else "load", _bits(surface))
    group = 0
    while group < grid.groups:
        left = grid.groups - group
        count = max(each for each in messages.counts[LANES] if each <= left)
        at, block = _at(c, tile, rows, group), (rows.count, LANES, count)
        found = _loaded(c, surface, at, block, hints, packed=packed)
        for number in range(count):
            one = found
            if count > 1:
                one = c.emit.insert(vector.ExtractOp(found, [number]))
            yield group + number, one
        group += count


def _cut(
    c: Converter,
    block: SSAValue,
    rows: Span,
    group: int,
    grid: Grid,
    parts: list[SSAValue | None],
) -> None:
    """Cut what a message brought into fragments."""
    for number, span in enumerate(grid.spans):
        if not rows.first <= span.first < rows.first + rows.count:
            continue
        part = rows_of(c, block, span.first - rows.first, span.count)
        parts[grid.fragment(number, group)] = part


# Sides of products ------------------------------------------------------------------


def load_packed(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> MmaOperand:
    """B of a product, its rows in pairs or fours."""
    bits = _bits(surface)
    depth, words = 8 * _DEPTH_BYTES // bits, _DEPTH_BYTES // 4
    messages = c.device.blocks_of("transform", bits)
    blocks: dict[tuple[int, int], SSAValue] = {}
    rows = [each for each in heights(messages.rows) if each >= depth]
    for span in cut_rows(grid.rows, rows):
        found = _loaded_side_by_side(c, tile, surface, span, grid, hints, packed=True)
        for group, one in found:
            for step in range(span.count // depth):
                part = rows_of(c, one, step * words, words)
                blocks[span.first // depth + step, group] = part
    parts = [blocks[key] for key in sorted(blocks)]
    return MmaOperand(Form.PACKED, parts, grid.groups)


def load_packed_transposed(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> MmaOperand:
    """B of a product from a tile of its transpose.

    Pairs (fours) of a row are words of 32 bits; transposing these gives just what the
    product takes.

    Args:
        tile: rows are columns of B.
    """
    bits = _bits(surface)
    factor = 32 // bits
    depth = 8 * _DEPTH_BYTES // bits
    parts: list[SSAValue] = []
    groups = -(-grid.rows // LANES)
    for step in range(grid.columns // depth):
        column = _word(c, c.emit.plus(tile.column, step * depth), 0, factor)
        for group in range(groups):
            row = c.emit.plus(tile.row, group * LANES)
            words = _transposed(c, surface, (row, column), depth // factor, hints, i32)
            parts.append(_as_packed(c, words, surface.element, factor))
    return MmaOperand(Form.PACKED, parts, groups)


def _transposed(
    c: Converter,
    surface: surfaces.Surface,
    at: tuple[Index, Index],
    columns: int,
    hints: Hints,
    words: Attribute | None = None,
) -> SSAValue:
    """16 rows of some columns, transposed by the message."""
    tdesc = surfaces.descriptor(c, surface, LANES, columns, words=words)
    load = xegpu.LoadNdOp(tdesc, surfaces.place(c, surface, *at), transpose=True)
    load.properties |= hints
    return c.emit.insert(load)


def _as_packed(
    c: Converter, words: SSAValue, element: Attribute, factor: int
) -> SSAValue:
    """Words of 32 bits as pairs (fours) of rows."""
    rows = vector_type(words).get_shape()[0]
    wide = vector_of(element, rows, LANES * factor)
    cast = c.emit.insert(vector.BitcastOp(words, wide))
    return c.emit.insert(
        vector.ShapeCastOp(cast, vector_of(element, rows, LANES, factor))
    )


def _word(c: Converter, start: Index, column: int, factor: int) -> Index:
    """The word of a column, ``start`` and ``column``, that begins a word of ``factor``.

    The words of columns at constant distances are so as well: messages share payloads.
    """
    if isinstance(start, int):
        return (start + column) // factor
    # It may be negative.
    word = c.emit.pure(arith.ShrsiOp, start, factor.bit_length() - 1)
    return c.emit.plus(word, column // factor)


def load_deep(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> MmaOperand:
    """A of a product of bytes: 32 columns side by side, two for each lane."""
    rows = heights(c.device.blocks_of("load", _bits(surface)).rows)
    wide = 2 * LANES
    across = grid.columns // wide
    parts: list[SSAValue | None] = [None] * (len(grid.spans) * across)
    deep = Grid(grid.rows, grid.columns, grid.spans, across)
    for span in cut_rows(grid.rows, rows):
        for step in range(across):
            at = _at(c, tile, span, 2 * step)
            found = _loaded(c, surface, at, (span.count, wide, 1), hints)
            _cut(c, found, span, step, deep, parts)
    return MmaOperand(Form.DEEP, [part for part in parts if part is not None], across)


def load_parted(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> MmaOperand:
    """A of a product of 16 bits from a tile of its transpose, its rows parted.

    A word that a message transposes has elements of two rows: all lower halves make a
    fragment, all upper ones another. What products take last is asked for first.
    [measured] ocloc 26.27, a GEMM, pvc: 88 instructions a step, in rows' order 89.
    """
    steps, tops = range(grid.rows // LANES), range(0, grid.columns, LANES)
    pairs: dict[tuple[int, int], SSAValue] = {}
    for step, top in product(reversed(steps), tops):
        at = c.emit.plus(tile.row, step * LANES), _word(c, tile.column, top, 2)
        words = _transposed(c, surface, at, LANES // 2, hints, i32)
        packed = _as_packed(c, words, surface.element, 2)
        pairs[step, top] = c.emit.insert(vector.TransposeOp(packed, [2, 0, 1]))
    parts = [
        c.emit.insert(vector.ExtractOp(pairs[step, top], [half]))
        for top, half, step in product(tops, (0, 1), steps)
    ]
    return MmaOperand(Form.PARTED, parts, len(steps))


def load_transposed(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> list[SSAValue]:
    """The fragments of the transpose of a tile of 16 or 32 bits an element.

    A message transposes words of 32 bits, up to 8 of a row; of 16 bits a word has
    elements of two rows of the transpose.
    """
    new = grid_of(grid.columns, grid.rows)
    factor = 32 // _bits(surface)
    parts: dict[int, SSAValue] = {}
    for top in range(0, new.rows, 8 * factor):
        words = 8 if new.rows - top > 4 * factor else 4
        column = _word(c, tile.column, top, factor)
        for group in range(new.groups):
            at = c.emit.plus(tile.row, group * LANES), column
            type_ = i32 if factor > 1 else None
            block = _transposed(c, surface, at, words, hints, type_)
            if factor > 1:
                block = _rows_of_pairs(c, block, surface.element)
            for number, span in enumerate(new.spans):
                if top <= span.first < top + 8 * factor:
                    rows = rows_of(c, block, span.first - top, span.count)
                    parts[new.fragment(number, group)] = rows
    return [parts[number] for number in range(new.count)]


def _rows_of_pairs(c: Converter, words: SSAValue, element: Attribute) -> SSAValue:
    """Words of 32 bits as pairs of elements, which come to stand in two rows."""
    rows = vector_type(words).get_shape()[0]
    packed = _as_packed(c, words, element, 2)
    pairs = c.emit.insert(vector.TransposeOp(packed, [0, 2, 1]))
    return c.emit.insert(vector.ShapeCastOp(pairs, vector_of(element, 2 * rows, LANES)))


# Stores and prefetches --------------------------------------------------------------


def store_fragments(
    c: Converter, tile: Tile, surface: surfaces.Surface, pieces: Fragments, hints: Hints
) -> None:
    """Write fragments, one message each; those that are not full line by line."""
    for (span, group), part in zip(pieces.grid.blocks(), pieces.parts):
        if pieces.grid.used(group) < LANES:
            _store_lines(c, tile, pieces, span, group, hints)
            continue
        stored = to_memory(c, part)
        tdesc = surfaces.descriptor(c, surface, span.count, LANES)
        store = xegpu.StoreNdOp(
            stored, tdesc, surfaces.place(c, surface, *_at(c, tile, span, group))
        )
        store.properties |= hints
        c.emit.add(store)


def _at(c: Converter, tile: Tile, span: Span, group: int) -> tuple[Index, Index]:
    """Row and column of a fragment of a tile."""
    row = c.emit.plus(tile.row, span.first)
    return row, c.emit.plus(tile.column, group * LANES)


def _store_lines(
    c: Converter, tile: Tile, pieces: Fragments, span: Span, group: int, hints: Hints
) -> None:
    used = pieces.grid.used(group)
    for row in range(span.first, span.first + span.count):
        line = Line(row, group * LANES, used, 1)
        access = line_access(c, tile, line, exact=True)
        store_line(c, access, element_line(c, pieces, row, group), hints)


def prefetch_blocks(
    c: Converter, tile: Tile, surface: surfaces.Surface, grid: Grid, hints: Hints
) -> None:
    """Ask for all of a tile, in messages as wide as they may be."""
    bits = _bits(surface)
    messages = c.device.blocks_of("prefetch", bits)
    shapes = [(width, 1) for width in sorted(messages.widths) if width >= LANES]
    if hints:
        shapes = [_ASKED_WITH_HINTS[bits]]
    for span in cut_rows(grid.rows, heights(messages.rows)):
        first = 0
        while first < grid.columns:
            left = grid.columns - first
            fitting = (each for each in shapes if each[0] * each[1] >= left)
            columns, count = next(fitting, shapes[-1])
            row = c.emit.plus(tile.row, span.first)
            column = c.emit.plus(tile.column, first)
            tdesc = surfaces.descriptor(c, surface, span.count, columns, count)
            prefetch = xegpu.PrefetchNdOp(
                tdesc, surfaces.place(c, surface, row, column)
            )
            prefetch.properties |= hints
            c.emit.add(prefetch)
            first += columns * count
