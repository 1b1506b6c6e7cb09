"""Fragments of values, and the records that replace values during the conversion.

A value is cut by its shape alone, so values of equal shape have equal fragments. Rows
are cut greedily into 8, 4, 2 and 1, columns into 16, with the last ones padded. A value
of one column has fragments of one column (docs/design/0005-xegpu.md, "Fragments").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy.typing as npt
from xdsl.dialects.builtin import FloatTF32Type, VectorType, f32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index, Vector
from xetl.dialects.kernel_attributes import LANES

HEIGHTS = (8, 4, 2, 1)
"""The numbers of rows of fragments, those of stores and products [xetl.devices]."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some consecutive rows."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Place:
    """The position of an element, or of a row of 16: a fragment, and a row in it."""

    fragment: int
    row: int


def cut_rows(rows: int, heights: Sequence[int] = HEIGHTS) -> tuple[Span, ...]:
    """Cut rows greedily; ``heights`` are powers of two in descending order to 1."""
    spans: list[Span] = []
    first = 0
    for height in heights:
        while rows - first >= height:
            spans.append(Span(first, height))
            first += height
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Grid:
    """The fragments of a matrix, in row-major order.

    Attributes:
        spans: the rows of each row of fragments.
        groups: the number of fragments side by side.
    """

    rows: int
    columns: int
    spans: tuple[Span, ...]
    groups: int

    @property
    def width(self) -> int:
        """Columns of a fragment: 16, or 1 if every lane holds the whole fragment."""
        return 1 if self.columns == 1 else LANES

    @property
    def spread(self) -> bool:
        """Whether the columns are distributed over the lanes."""
        return self.columns != 1

    @property
    def count(self) -> int:
        """The number of fragments."""
        return len(self.spans) * self.groups

    def heights(self) -> list[int]:
        """Rows of each fragment, in order."""
        return [span.count for span, _ in self.blocks()]

    def height(self, fragment: int) -> int:
        """Rows of a fragment."""
        return self.spans[fragment // self.groups].count

    def fragment(self, span: int, group: int) -> int:
        """Return the number of a fragment."""
        return span * self.groups + group

    def blocks(self) -> list[tuple[Span, int]]:
        """The rows and the group of each fragment, in order."""
        return [(span, group) for span in self.spans for group in range(self.groups)]

    def used(self, group: int) -> int:
        """Return the number of columns of a group that are not padding."""
        return min(self.width, self.columns - group * self.width)

    def place(self, row: int, group: int) -> Place:
        """Return the position of a row of a group of columns."""
        whole = self.rows - self.rows % HEIGHTS[0]
        if row < whole:
            span, inner = divmod(row, HEIGHTS[0])
        else:
            span = next(
                number
                for number, each in enumerate(self.spans)
                if each.first <= row < each.first + each.count
            )
            inner = row - self.spans[span].first
        return Place(self.fragment(span, group), inner)


LANE_DATA = ((1, 1), (1, 2), (2, 1), (4, 1))
"""The rows and columns of a block that a lane may hold together: one column; for bytes
in A two columns; in B 2 or 4 rows of a column."""

BLOCKED = 4
"""The rank of blocked values."""


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns of the matrix that represents a vector.

    Rank 4 is blocked: rows of blocks, columns of blocks, rows and columns of one block.
    In any other rank the last dimension is the columns, and all others are rows.
    """
    if len(shape) == BLOCKED:
        a, b, c, d = shape
        return a * c, b * d
    return prod(shape[:-1]), (shape[-1] if shape else 1)


Elements: TypeAlias = npt.NDArray[Any]
"""An array in the shape of a vector, with an entry for each element."""


def as_matrix(elements: Elements) -> Elements:
    """Rearrange an array like a vector to the matrix of `matrix_shape`."""
    matrix = matrix_shape(elements.shape)
    blocked = elements.ndim == BLOCKED
    return (elements.swapaxes(1, 2) if blocked else elements).reshape(matrix)


def as_vector(matrix: Elements, shape: Sequence[int]) -> Elements:
    """Undo `as_matrix`."""
    if len(shape) != BLOCKED:
        return matrix.reshape(shape)
    a, b, c, d = shape
    return matrix.reshape(a, c, b, d).swapaxes(1, 2)


@lru_cache(maxsize=1024)
def grid_of(rows: int, columns: int) -> Grid:
    """Return the fragments of a matrix."""
    groups = 1 if columns == 1 else -(-columns // LANES)
    return Grid(rows, columns, cut_rows(rows), groups)


@lru_cache(maxsize=4096)
def vector_of(element: Attribute, *shape: int) -> Vector:
    """Return a vector type, which is cached. A tf32 becomes an f32."""
    return VectorType(f32 if isinstance(element, FloatTF32Type) else element, shape)


@dataclass(slots=True, eq=False)
class Fragments:
    """The fragments of a vector.

    Attributes:
        shape: the shape of the vector, of any rank.
        parts: the fragments, in the order of ``grid``.
    """

    shape: tuple[int, ...]
    element: Attribute
    parts: Sequence[SSAValue]
    lines: dict[tuple[int, int], SSAValue] = field(
        default_factory=dict[tuple[int, int], SSAValue]
    )

    @property
    def grid(self) -> Grid:
        """How the vector is cut."""
        return grid_of(*matrix_shape(self.shape))

    def reshaped(self, shape: tuple[int, ...]) -> Fragments:
        """Return the same fragments for another shape with the same matrix."""
        return Fragments(shape, self.element, self.parts, self.lines)

    def part(self, span: int, group: int) -> SSAValue:
        """Return the fragment of a span of rows and a group of columns."""
        return self.parts[self.grid.fragment(span, group)]

    def mapped(
        self, element: Attribute, change: Callable[[SSAValue], SSAValue]
    ) -> Fragments:
        """Return a vector of another element type, made fragment by fragment."""
        return Fragments(self.shape, element, [*map(change, self.parts)])


def grid_for(type_: Vector) -> Grid:
    """Return how a vector type is cut."""
    return grid_of(*matrix_shape(type_.get_shape()))


def fragment_types(type_: Vector) -> list[Attribute]:
    """Return the types of the fragments of a vector type."""
    grid, element = grid_for(type_), type_.element_type
    return [vector_of(element, height, grid.width) for height in grid.heights()]


class Form:
    """Special layouts of the operands of products.

    PACKED: B, one ``K/f x 16 x f`` for each 256 bits of rows and 16 columns.
    DEEP: A, one ``h x k`` for each span of rows and 256 bits of columns.
    PARTED: A, and C of such a product in a loop: usual fragments, but of each 16 rows
    the first fragment has the even rows and the second one the odd rows.
    """

    PACKED = "packed"
    DEEP = "deep"
    PARTED = "parted"


@dataclass(frozen=True, slots=True, eq=False)
class MmaOperand:
    """An operand of a product in a layout of the matrix unit; see `Form`.

    Attributes:
        parts: the parts in row-major order.
        across: the number of parts in a row.
    """

    parts: Sequence[SSAValue]
    across: int

    def rows(self) -> list[Sequence[SSAValue]]:
        """The parts of each row."""
        firsts = range(0, len(self.parts), self.across)
        return [self.parts[first : first + self.across] for first in firsts]


@dataclass(frozen=True, slots=True)
class Start:
    """The start of memory.

    Attributes:
        root: a memref argument, shared memory, or an address (i64).
        offset: the offset from the root in elements.
        space: 0 for global, 3 for shared memory.
    """

    root: SSAValue
    offset: Index = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A memref: elements at ``start + sum(index * stride)``.

    Attributes:
        sizes: the size of each dimension.
        strides: strides in elements.
        origin: the start of the memory, from which offsets of MLIR count.
    """

    start: Start
    element: Attribute
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    origin: Start


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix of a tile: rows and columns, each with a stride.

    Attributes:
        start: the position of its element (0, 0).
        sizes: rows and columns.
        strides: from row to row and from column to column, in elements.
    """

    start: Start
    element: Attribute
    sizes: tuple[Index, Index]
    strides: tuple[Index, Index]


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of a matrix at ``row`` and ``column``; it may be outside the matrix."""

    matrix: Matrix
    row: Index
    column: Index


@dataclass(frozen=True, slots=True)
class Scattered:
    """A scatter tile: elements with an index each.

    Attributes:
        start: the position of index 0.
        size: indices from 0 to size - 1 exist; None: all do.
        stride: elements from one index to the next.
        indices: the indices.
    """

    start: Start
    element: Attribute
    size: Index | None
    stride: Index
    indices: Fragments


@dataclass(frozen=True, slots=True)
class TransposedLoad:
    """The result of a load that has transposed already; its transpose takes it."""

    found: Fragments | MmaOperand


Lowered: TypeAlias = Fragments | MmaOperand | TransposedLoad | View | Tile | Scattered
