"""Surfaces: the matrices that block messages can move, and their descriptors.

The requirements on base, width and pitch are checked here for static numbers, and by
the launch for the arrays named in `xegpu.block_arguments`. In a kernel marked
`xegpu.no_blocks` lanes move the blocks, for any rows without gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from xetl.dialects.base import Index, constant_index, is_memref, known, memref_type
from xetl.dialects.upstream import arith
from xetl_xegpu.dialect import BlockTdescAttr, CreateNdTdescOp, TensorDescType
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.limits import BASE_ALIGNMENT, LEAST_WIDTH, why_no_blocks

from . import views
from .conversion import Converter
from .fragments import Grid, Matrix, Start, Tile, View, grid_of

_FAR = 1 << 24
"""A row outside of all surfaces: it is loaded as zero and is not stored."""

_RANK = 2

_COLUMN_STEPS = {1: 4, 2: 2, 4: 1}
"""The first column of a message is a multiple of this, by bytes of an element.
Source: see `xetl_xegpu.limits`."""


class Surface(NamedTuple):
    """A matrix that block messages, or lanes in their place, can move.

    Attributes:
        element: the type of elements in memory.
        pitch: elements from a row to the next.
        exists: whether there is such a matrix; None: it always exists.
        step: elements from a column to the next; messages know 1 only.
        by_lanes: whether lanes must move it.
    """

    start: Start
    element: Attribute
    rows: Index
    columns: Index
    pitch: Index
    exists: SSAValue | None
    step: Index = 1
    by_lanes: bool = False

    def turned(self) -> Surface:
        """Return the transpose, which only lanes can move."""
        return self._replace(
            rows=self.columns, columns=self.rows, pitch=self.step, step=self.pitch
        )


def surface_of(c: Converter, tile: Tile, divisor: int) -> Surface | None:
    """Return the surface of a tile. Return None if lanes must move its elements.

    Args:
        divisor: a divisor of the tile's first column; 0 if the column is 0.
    """
    matrix = tile.matrix
    size = views.stored_bytes(matrix.element)
    step = _COLUMN_STEPS.get(size)
    if step is None or matrix.start.space == views.SHARED:
        return None
    has_gaps = known(matrix.strides[1]) != 1
    if has_gaps or NO_BLOCKS in c.kernel.attributes:
        (rows, columns), (pitch, step) = matrix.sizes, matrix.strides
        stored = views.stored_type(matrix.element)
        return Surface(matrix.start, stored, rows, columns, pitch, None, step, True)
    if divisor % step or c.plan.folds:
        return None
    view = _array(c, matrix.start.root)
    if view is None:
        return None
    offset, batches = matrix.start.offset, view.strides[:-2]
    if _is_aligned(offset, batches, size):
        return _described(c, matrix, view)
    # Some rows of an array, `X[a:b]`: the launch checks the stride of rows as well.
    if known(matrix.sizes[0]) == 1 or not _is_aligned(offset, view.strides[:-1], size):
        return None
    surface = _described(c, matrix, view)
    if surface is not None:
        c.sliced_arguments.add(_argument(matrix))
    return surface


def folded(
    c: Converter, tile: Tile, grid: Grid
) -> tuple[Grid, list[tuple[Tile, Surface]]] | None:
    """Return a tile of an array of one dimension as rows of 64 bytes.

    A message moves 32 such rows, and arrays may have 2^24 of them. The launch checks
    that the array has whole rows, or else 64 bytes and more: then a second surface has
    the rest. A surface has rows of 64 bytes at least, so this one has one row, the last
    whole one with all that follows it. The tile begins there behind the whole row, and
    its other rows are outside. Return None if the tile is not of the whole array.
    """
    matrix, root = tile.matrix, tile.matrix.start.root
    array = _array(c, root) if c.plan.folds else None
    if array is None or matrix.start.offset != 0 or known(matrix.strides[1]) != 1:
        return None
    if matrix.sizes[1:] != array.sizes:
        return None
    size, all_columns = views.stored_bytes(matrix.element), matrix.sizes[1]
    columns = LEAST_WIDTH // size
    rows = c.emit.divided(all_columns, columns)
    if _COLUMN_STEPS.get(size) is None or not _may_be(matrix, rows, columns, columns):
        return None
    c.block_arguments.add(_argument(matrix))
    stored, row = views.stored_type(matrix.element), word(c, tile.column, 0, columns)
    there = replace(matrix, sizes=(rows, columns), strides=(columns, 1))
    surface = Surface(matrix.start, stored, rows, columns, columns, None)
    found = [(Tile(there, row, 0), surface)]
    if c.plan.moves_rest:
        last = c.emit.times(c.emit.plus(rows, -1), columns)
        start = views.moved(c, matrix.start, last)
        wide, behind = c.emit.minus(all_columns, last), c.emit.minus(row, rows)
        there = replace(matrix, start=start, sizes=(1, wide), strides=(2 * columns, 1))
        surface = Surface(start, stored, 1, wide, 2 * columns, None)
        found.append((Tile(there, behind, columns), surface))
    return grid_of(grid.columns // columns, columns), found


def in_its_matrix(c: Converter, tile: Tile) -> Tile:
    """Return a tile of one row of an array, ``X[i]``, as a tile of all its rows.

    A message finds the row, for any distance of rows. Return other tiles as they are.
    """
    matrix, array = tile.matrix, _array(c, tile.matrix.start.root)
    is_row = known(matrix.sizes[0]) == 1 and known(tile.row) == 0
    if array is None or len(array.sizes) < _RANK or not is_row:
        return tile
    pitch, before = array.strides[-2], 0
    op, size = (_owner(each) for each in (matrix.start.offset, matrix.sizes[1]))
    if isinstance(op, arith.SelectOp) and isinstance(size, arith.SelectOp):
        # Without the row there are no columns: `_existing`.
        op = op.true_value.owner if op.condition is size.condition else None
    if isinstance(op, arith.AddiOp):
        before, op = op.lhs, op.rhs.owner
    if not isinstance(op, arith.MuliOp) or known(op.rhs) != known(pitch):
        return tile
    if isinstance(known(pitch), int) and len(array.sizes) > _RANK:
        return tile  # another dimension may have the same stride
    start = replace(matrix.start, offset=before)
    sizes, strides = (array.sizes[-2], matrix.sizes[1]), (pitch, matrix.strides[1])
    whole = replace(matrix, start=start, sizes=sizes, strides=strides)
    return replace(tile, matrix=whole, row=op.lhs)


def _owner(value: Index) -> Operation | Block | None:
    return value.owner if isinstance(value, SSAValue) else None


def word(c: Converter, start: Index, column: int, factor: int) -> Index:
    """Return the word of the column ``start + column``; a word has ``factor`` columns.

    Words of columns at constant distances are at constant distances, too, so that
    messages can share payloads.
    """
    if isinstance(start, int):
        return (start + column) // factor
    # An arithmetic shift, because the column may be negative.
    found = c.emit.pure(arith.ShrsiOp, start, factor.bit_length() - 1)
    return c.emit.plus(found, column // factor)


def is_message(c: Converter, surface: Surface) -> bool:
    """Whether moves of a surface become messages: lanes move what has gaps."""
    return known(surface.step) == 1 and NO_BLOCKS not in c.kernel.attributes


def _array(c: Converter, root: SSAValue) -> View | None:
    is_array = isinstance(root, BlockArgument) and is_memref(root.type)
    return c.view(root) if is_array else None


def _described(c: Converter, matrix: Matrix, array: View) -> Surface | None:
    (rows, first), (columns, second) = (_existing(c, each) for each in matrix.sizes)
    pitch = matrix.strides[0]
    last = list(array.sizes[-2:])
    one_row = known(rows) == 1
    if array.strides and known(array.strides[-1]) != 1:
        last.reverse()  # the first dimension is the one without gaps
    own_columns = known(columns) in [known(each) for each in last[-1:]]
    own_pitch = one_row or known(pitch) in [known(each) for each in array.strides]
    if not (own_columns and own_pitch):
        return None
    if not one_row and known(rows) not in [known(each) for each in last[:1]]:
        rows, some = _limited(c, rows)
        first = c.emit.conjunction(first, some)
    if one_row:
        pitch = _some_pitch(c, columns)
    if not _may_be(matrix, rows, columns, pitch):
        return None
    exists = c.emit.conjunction(first, second if second is not first else None)
    c.block_arguments.add(_argument(matrix))
    stored = views.stored_type(matrix.element)
    return Surface(matrix.start, stored, rows, columns, pitch, exists)


def _argument(matrix: Matrix) -> int:
    argument = matrix.start.root
    assert isinstance(argument, BlockArgument)
    return argument.index


def _existing(c: Converter, size: Index) -> tuple[Index, SSAValue | None]:
    """Return the size of a matrix, and the condition under which it is not 0.

    A nested part, ``X[b][h]``, has a condition for each index.
    """
    found: SSAValue | None = None
    while True:
        op = _owner(size)
        if not isinstance(op, arith.SelectOp) or constant_index(op.false_value) != 0:
            return known(size), found
        size, found = op.true_value, c.emit.conjunction(op.condition, found)


def _limited(c: Converter, rows: Index) -> tuple[Index, SSAValue | None]:
    """Return a legal number of rows, and the condition that there are rows."""
    if isinstance(rows, int):
        return rows, None
    found = c.emit.minimum(c.emit.maximum(rows, 1), _FAR - 1)
    return found, c.emit.compare("sge", rows, 1)


def _some_pitch(c: Converter, columns: Index) -> Index:
    """Return a legal pitch for a matrix of one row."""
    if isinstance(columns, int):
        return max(BASE_ALIGNMENT, columns + -columns % BASE_ALIGNMENT)
    more = c.emit.plus(columns, BASE_ALIGNMENT - 1)
    return c.emit.pure(arith.AndiOp, more, -BASE_ALIGNMENT)


def _may_be(matrix: Matrix, rows: Index, columns: Index, pitch: Index) -> bool:
    """Whether the static sizes and strides allow a surface."""
    size = views.stored_bytes(matrix.element)
    height = rows if isinstance(rows, int) else 1
    width = columns * size if isinstance(columns, int) else BASE_ALIGNMENT
    step = known(pitch)
    if isinstance(step, int):
        return why_no_blocks(0, width, height, step * size) is None
    width += -width % BASE_ALIGNMENT  # in a copy, at least
    return why_no_blocks(0, width, height, width) is None


def _is_aligned(offset: Index, strides: Sequence[Index], size: int) -> bool:
    """Whether an offset is a multiple of 64 bytes, or of some strides.

    The launch checks that these strides are multiples of 64 bytes.
    """
    offset = known(offset)
    if isinstance(offset, int):
        return offset * size % BASE_ALIGNMENT == 0
    if any(offset is each for each in strides):
        return True
    op = offset.owner
    if not isinstance(op, Operation):
        return False

    def aligned(value: Index) -> bool:
        return _is_aligned(value, strides, size)

    if isinstance(op, arith.AddiOp):
        return aligned(op.lhs) and aligned(op.rhs)
    if isinstance(op, arith.MuliOp):
        return aligned(op.lhs) or aligned(op.rhs)
    if isinstance(op, arith.SelectOp):
        return aligned(op.true_value) and aligned(op.false_value)
    return False


# Descriptors ------------------------------------------------------------------------


def descriptor(
    c: Converter,
    surface: Surface,
    rows: int,
    columns: int,
    count: int = 1,
    *,
    words: Attribute | None = None,
) -> SSAValue:
    """Return the descriptor of a message, hoisted out of all loops.

    Args:
        count: the number of blocks side by side.
        words: a wider integer type, to view several elements as one.
    """
    element, factor = surface.element, 1
    if words is not None:
        factor = views.stored_bytes(words) // views.stored_bytes(element)
        element = words
    encoding = BlockTdescAttr(array_length=count) if count > 1 else None
    type_ = TensorDescType((rows, columns), element, encoding)
    source, sizes, pitch = _source(c, surface, factor)
    numbers = (*sizes, pitch, known(surface.step))
    values = [each for each in (source, *numbers) if isinstance(each, SSAValue)]
    static = [(at, each) for at, each in enumerate(numbers) if isinstance(each, int)]
    return c.emit.shared(
        ("descriptor", type_, *static),
        values,
        lambda: CreateNdTdescOp(source, type_, shape=numbers[:2], strides=numbers[2:]),
    )


def _source(
    c: Converter, surface: Surface, factor: int
) -> tuple[SSAValue, list[Index], Index]:
    """Return base, sizes and pitch. The base is the memref if it has exactly these."""
    sizes = [known(surface.rows), _words(c, surface.columns, factor)]
    pitch = _words(c, surface.pitch, factor)
    start, root = surface.start, surface.start.root
    view = _array(c, root)
    if view is not None and factor == 1 and start.offset == 0:
        type_ = memref_type(root)
        own = [known(each) for each in view.sizes] == [surface.rows, surface.columns]
        same = own and type_.element_type == surface.element
        if same and isinstance(type_.memory_space, NoneAttr):
            return root, sizes, pitch
    return views.address(c, start, views.stored_bytes(surface.element)), sizes, pitch


def _words(c: Converter, elements: Index, factor: int) -> Index:
    if factor == 1:
        return known(elements)
    elements = known(elements)
    # The last word may reach into the padding of zeros: see `launch.staging`.
    if isinstance(elements, int):
        return -(-elements // factor)
    return c.emit.ceil_divided(elements, factor)


def place(c: Converter, surface: Surface, row: Index, column: Index) -> list[SSAValue]:
    """Return row and column of a message; the row is outside if no matrix exists.

    Constant distances between rows remain, so that messages can share a payload.
    """
    if surface.exists is not None:
        first, more = c.emit.constant_part(row)
        if abs(more) >= _FAR:
            first, more = row, 0
        row = c.emit.plus(c.emit.select(surface.exists, first, 2 * _FAR), more)
    return [c.index(row), c.index(column)]
