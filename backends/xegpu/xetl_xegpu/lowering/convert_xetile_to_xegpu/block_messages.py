"""Lowering of tiles to block messages, as large as the device's table allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from xetl.devices import Access
from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import vector
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.simt.block_ops import PIECE

from . import lines, surfaces, views
from .conversion import Converter
from .fragments import (
    LANES,
    Fragments,
    Grid,
    MmaOperand,
    Span,
    Tile,
    cut_rows,
    grid_of,
    vector_of,
)

_DEPTH_BYTES = 32
"""Bytes of a row of A in one product: `MatrixUnit.depth_bits`."""


_ASKED_WITH_HINTS = {8: (32, 1), 16: (16, 2), 32: (16, 1)}
"""Columns and count of a prefetch with cache hints, by bits.

[measured] ocloc 26.27: for 8 and 16 bits no other prefetches with hints exist in all
heights, though prefetches without hints, and loads with hints, do.
"""


class Move(NamedTuple):
    """A tile that block messages move.

    Attributes:
        grid: how its value is cut into fragments.
        hints: the cache hints.
    """

    tile: Tile
    surface: surfaces.Surface
    grid: Grid
    hints: lines.Hints

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return 8 * views.stored_bytes(self.surface.element)

    def turned(self) -> Move:
        """Return the move of the transpose, which is used if lanes move the block."""
        tile, grid = self.tile, grid_of(self.grid.columns, self.grid.rows)
        # Only the position and the element type of this tile are used.
        there = Tile(tile.matrix, tile.column, tile.row)
        return Move(there, self.surface.turned(), grid, self.hints)


def _heights(c: Converter, access: Access, move: Move, least: int = 1) -> list[int]:
    """Return the numbers of rows that messages may have, in descending order."""
    rows = c.device.blocks_of(access, move.bits).rows
    return sorted((each for each in rows if each >= least), reverse=True)


def _message(
    c: Converter,
    move: Move,
    at: tuple[Index, Index],
    block: Sequence[int],
    words: Attribute | None = None,
) -> tuple[SSAValue, list[SSAValue]]:
    """Return descriptor and offsets of a message.

    Args:
        block: its rows and columns, and its count of blocks.
    """
    tdesc = surfaces.descriptor(c, move.surface, *block, words=words)
    return tdesc, surfaces.place(c, move.surface, *at)


def _at(c: Converter, tile: Tile, span: Span, group: int) -> tuple[Index, Index]:
    """Return row and column of a fragment of a tile."""
    row = c.emit.plus(tile.row, span.first)
    return row, c.emit.plus(tile.column, group * LANES)


# Plain loads ------------------------------------------------------------------------


def load_fragments(c: Converter, move: Move) -> list[SSAValue]:
    """Return the fragments of a tile, with zeros outside of the matrix."""
    grid, parts = move.grid, dict[int, SSAValue]()
    for span in cut_rows(grid.rows, _heights(c, "load", move)):
        for group, one in _loaded_side_by_side(c, move, span):
            _cut(c, one, span, group, grid, parts)
    element = move.tile.matrix.element
    return [
        lines.from_memory(c, parts[number], element) for number in range(grid.count)
    ]


def _loaded_side_by_side(
    c: Converter, move: Move, rows: Span, width: int = LANES, *, packed: bool = False
) -> Iterator[tuple[int, SSAValue]]:
    """Yield some rows of a tile in groups of columns, by the widest messages."""
    messages = c.device.blocks_of("transform" if packed else "load", move.bits)
    groups, group = -(-move.grid.columns // width), 0
    while group < groups:
        left = groups - group
        count = max(each for each in messages.counts[width] if each <= left)
        at = _at(c, move.tile, rows, group * width // LANES)
        block = rows.count, width, count
        found = _loaded(c, move, at, block, packed=packed)
        for number in range(count):
            one = found
            if count > 1:
                one = c.emit.insert(vector.ExtractOp(found, [number]))
            yield group + number, one
        group += count


def _loaded(
    c: Converter,
    move: Move,
    at: tuple[Index, Index],
    block: Sequence[int],
    words: Attribute | None = None,
    **how: bool,
) -> SSAValue:
    """Return the result of one load; ``how`` may be ``packed`` or ``transpose``."""
    message = _message(c, move, at, block, words)
    return c.emit.insert(xegpu.LoadNdOp(*message, **how, properties=move.hints))


def _cut(
    c: Converter,
    block: SSAValue,
    rows: Span,
    group: int,
    grid: Grid,
    parts: dict[int, SSAValue],
) -> None:
    """Cut the result of a load into fragments."""
    for number, span in enumerate(grid.spans):
        if rows.first <= span.first < rows.first + rows.count:
            part = lines.rows_of(c, block, span.first - rows.first, span.count)
            parts[grid.fragment(number, group)] = part


# Sides of products ------------------------------------------------------------------


def load_packed(c: Converter, move: Move) -> MmaOperand:
    """Load B of a product, with its rows packed in pairs or fours."""
    depth, words = 8 * _DEPTH_BYTES // move.bits, _DEPTH_BYTES // 4
    blocks: dict[tuple[int, int], SSAValue] = {}
    for span in cut_rows(move.grid.rows, _heights(c, "transform", move, depth)):
        for group, one in _loaded_side_by_side(c, move, span, packed=True):
            for step in range(span.count // depth):
                part = lines.rows_of(c, one, step * words, words)
                blocks[span.first // depth + step, group] = part
    parts = [blocks[key] for key in sorted(blocks)]
    return MmaOperand(parts, move.grid.groups)


def load_packed_transposed(c: Converter, move: Move) -> MmaOperand:
    """Load B of a product from a tile of its transpose, whose rows are columns of B.

    Pairs (fours) of elements of a row are words of 32 bits. Transposed words have the
    layout that the product needs.
    """
    factor, depth = 32 // move.bits, 8 * _DEPTH_BYTES // move.bits
    parts: list[SSAValue] = []
    groups = -(-move.grid.rows // LANES)
    for step in range(move.grid.columns // depth):
        start = c.emit.plus(move.tile.column, step * depth)
        column = surfaces.word(c, start, 0, factor)
        for group in range(groups):
            at = c.emit.plus(move.tile.row, group * LANES), column
            block = LANES, depth // factor
            words = _loaded(c, move, at, block, i32, transpose=True)
            parts.append(_as_packed(c, words, move.surface.element, factor))
    return MmaOperand(parts, groups)


def _as_packed(
    c: Converter, words: SSAValue, element: Attribute, factor: int
) -> SSAValue:
    """Return words of 32 bits as packed pairs (fours) of rows."""
    rows = vector_type(words).get_shape()[0]
    wide = vector_of(element, rows, LANES * factor)
    cast = c.emit.insert(vector.BitcastOp(words, wide))
    return c.emit.insert(
        vector.ShapeCastOp(cast, vector_of(element, rows, LANES, factor))
    )


def load_deep(c: Converter, move: Move) -> MmaOperand:
    """Load A of a product of bytes: 32 columns side by side, two for each lane."""
    grid, wide, parts = move.grid, 2 * LANES, dict[int, SSAValue]()
    across = grid.columns // wide
    deep = Grid(grid.rows, grid.columns, grid.spans, across)
    for span in cut_rows(grid.rows, _heights(c, "load", move)):
        for step, one in _loaded_side_by_side(c, move, span, wide):
            _cut(c, one, span, step, deep, parts)
    return MmaOperand([parts[key] for key in sorted(parts)], across)


def load_parted(c: Converter, move: Move) -> MmaOperand:
    """Load A of a product of 16 bits from a tile of its transpose, in `Form.PARTED`.

    A word that a message transposes has elements of two rows: all lower halves make one
    fragment, all upper halves another. Operands that products need last are loaded
    first. [measured] ocloc 26.27, a GEMM, pvc: 88 instructions a step, in the order of
    rows 89.
    """
    grid, tile = move.grid, move.tile
    steps, tops = range(grid.rows // LANES), range(0, grid.columns, LANES)
    pairs: dict[tuple[int, int], SSAValue] = {}
    for step, top in product(reversed(steps), tops):
        at = c.emit.plus(tile.row, step * LANES), surfaces.word(c, tile.column, top, 2)
        words = _loaded(c, move, at, (LANES, LANES // 2), i32, transpose=True)
        packed = _as_packed(c, words, move.surface.element, 2)
        pairs[step, top] = c.emit.insert(vector.TransposeOp(packed, [2, 0, 1]))
    parts = [
        c.emit.insert(vector.ExtractOp(pairs[step, top], [half]))
        for top, half, step in product(tops, (0, 1), steps)
    ]
    return MmaOperand(parts, len(steps))


def load_transposed(c: Converter, move: Move) -> list[SSAValue]:
    """Load the fragments of the transpose of a tile with elements of up to 32 bits.

    A message transposes words of 32 bits, up to 8 in a row. A word of narrower elements
    has those of two or four rows of the transpose.
    """
    new = grid_of(move.grid.columns, move.grid.rows)
    factor, parts = 32 // move.bits, dict[int, SSAValue]()
    for top in range(0, new.rows, 8 * factor):
        words = 8 if new.rows - top > 4 * factor else 4
        column = surfaces.word(c, move.tile.column, top, factor)
        for group in range(new.groups):
            at = c.emit.plus(move.tile.row, group * LANES), column
            type_ = i32 if factor > 1 else None
            block = _loaded(c, move, at, (LANES, words), type_, transpose=True)
            each = PIECE // factor if factor == 4 else words
            for first in range(0, words, each):
                some = lines.rows_of(c, block, first, each)
                if factor > 1:
                    packed = _as_packed(c, some, move.surface.element, factor)
                    turned = c.emit.insert(vector.TransposeOp(packed, [0, 2, 1]))
                    rows = vector_of(move.surface.element, factor * each, LANES)
                    some = c.emit.insert(vector.ShapeCastOp(turned, rows))
                span = Span(top + first * factor, each * factor)
                _cut(c, some, span, group, new, parts)
    return [parts[number] for number in range(new.count)]


# Stores and prefetches --------------------------------------------------------------


def store_fragments(c: Converter, move: Move, pieces: Fragments) -> None:
    """Store fragments, one message each; padded fragments are stored line by line."""
    for (span, group), part in zip(move.grid.blocks(), pieces.parts):
        used = move.grid.used(group)
        if used == LANES:
            stored, at = lines.to_memory(c, part), _at(c, move.tile, span, group)
            message = _message(c, move, at, (span.count, LANES))
            c.emit.add(xegpu.StoreNdOp(stored, *message, properties=move.hints))
            continue
        for row in range(span.first, span.first + span.count):
            line = lines.Line(row, group * LANES, used, 1)
            access = lines.line_access(c, move.tile, line, exact=True)
            lines.store_line(
                c, access, lines.element_line(c, pieces, row, group), move.hints
            )


def prefetch_blocks(c: Converter, move: Move) -> None:
    """Prefetch a whole tile, by the widest messages."""
    widths = sorted(c.device.blocks_of("prefetch", move.bits).widths)
    shapes = [(width, 1) for width in widths if width >= LANES]
    if move.hints:
        shapes = [_ASKED_WITH_HINTS[move.bits]]
    for span in cut_rows(move.grid.rows, _heights(c, "prefetch", move)):
        first = 0
        while first < move.grid.columns:
            left = move.grid.columns - first
            fitting = (each for each in shapes if each[0] * each[1] >= left)
            columns, count = next(fitting, shapes[-1])
            row = c.emit.plus(move.tile.row, span.first)
            at = row, c.emit.plus(move.tile.column, first)
            message = _message(c, move, at, (span.count, columns, count))
            c.emit.add(xegpu.PrefetchNdOp(*message, properties=move.hints))
            first += columns * count
