"""How a value is cut into fragments, and what stands for a value while it is converted.

A value is cut by its shape alone, so equal shapes always meet: rows greedily into 8, 4,
2 and 1, columns into 16, the last ones padded; a value of one column has fragments of
one column (docs/design/0005-xegpu.md, "Fragments").
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""Rows of a fragment: what a store and a product take [xetl.devices]."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some rows that follow each other."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where an element, or a row of 16, is: which fragment, and which of its rows."""

    fragment: int
    row: int


def cut_rows(rows: int, heights: Sequence[int] = HEIGHTS) -> tuple[Span, ...]:
    """Rows cut greedily; ``heights`` are powers of two that fall to 1."""
    spans: list[Span] = []
    first = 0
    for height in heights:
        while rows - first >= height:
            spans.append(Span(first, height))
            first += height
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class Grid:
    """The fragments of a matrix, row by row.

    Attributes:
        spans: of rows, one for each row of fragments.
        groups: of columns, fragments side by side.
    """

    rows: int
    columns: int
    spans: tuple[Span, ...]
    groups: int

    @property
    def width(self) -> int:
        """Columns of a fragment: 16, or 1 if every lane holds all of it."""
        return 1 if self.columns == 1 else LANES

    @property
    def spread(self) -> bool:
        """Whether the columns are spread over the lanes."""
        return self.columns != 1

    @property
    def count(self) -> int:
        """How many fragments there are."""
        return len(self.spans) * self.groups

    def heights(self) -> list[int]:
        """Rows of each fragment, in order."""
        return [span.count for span, _ in self.blocks()]

    def height(self, fragment: int) -> int:
        """Rows of a fragment."""
        return self.spans[fragment // self.groups].count

    def fragment(self, span: int, group: int) -> int:
        """The number of a fragment."""
        return span * self.groups + group

    def blocks(self) -> list[tuple[Span, int]]:
        """The rows and the group of each fragment, in order."""
        return [(span, group) for span in self.spans for group in range(self.groups)]

    def used(self, group: int) -> int:
        """Columns of a group that are not padding."""
        return min(self.width, self.columns - group * self.width)

    def place(self, row: int, group: int) -> Place:
        """Where a row of a group of columns is."""
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


BLOCKED = 4
"""The rank of values in blocks."""


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """The rows and columns a vector of any rank is kept as.

    Rank 4 is blocked: rows of blocks, columns of blocks, rows and columns of one. Of
    any other rank the last dimension is the columns, all others are rows.
    """
    if len(shape) == BLOCKED:
        a, b, c, d = shape
        return a * c, b * d
    return prod(shape[:-1]), (shape[-1] if shape else 1)


Elements: TypeAlias = npt.NDArray[Any]
"""Something for each element of a vector, in its shape."""


def as_matrix(elements: Elements) -> Elements:
    """By the rows and columns that a vector of this shape is kept as."""
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
    """The fragments of a matrix."""
    groups = 1 if columns == 1 else -(-columns // LANES)
    return Grid(rows, columns, cut_rows(rows), groups)


@lru_cache(maxsize=4096)
def vector_of(element: Attribute, *shape: int) -> Vector:
    """A vector type; made once.  A tf32 is an f32."""
    return VectorType(f32 if isinstance(element, FloatTF32Type) else element, shape)


@dataclass(slots=True, eq=False)
class Fragments:
    """The fragments of a vector.

    Attributes:
        shape: of the vector, of any rank.
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
        """The same fragments under another shape that is kept alike."""
        return Fragments(shape, self.element, self.parts, self.lines)


def grid_for(type_: Vector) -> Grid:
    """How a vector type is cut."""
    return grid_of(*matrix_shape(type_.get_shape()))


def fragment_types(type_: Vector) -> list[Attribute]:
    """The types of the fragments of a vector type."""
    grid, element = grid_for(type_), type_.element_type
    return [vector_of(element, height, grid.width) for height in grid.heights()]


class Form:
    """How the fragments of an operand of a product are kept, if not as of others.

    PACKED: B, for each 256 bits of rows and 16 columns one ``K/f x 16 x f``.
    DEEP: A, for each span of rows and 256 bits of columns one ``h x k``.
    PARTED: A, and C of such a product in a loop: fragments, but of each 16 rows the
    first one has the even rows and the second one the odd ones.
    """

    PACKED = "packed"
    DEEP = "deep"
    PARTED = "parted"


@dataclass(frozen=True, slots=True, eq=False)
class MmaOperand:
    """A side of a product as the matrix unit takes it.

    Attributes:
        form: which side, see `Form`.
        parts: row by row.
        across: parts in a row.
    """

    form: str
    parts: Sequence[SSAValue]
    across: int


@dataclass(frozen=True, slots=True)
class Start:
    """Where memory starts.

    Attributes:
        root: a memref argument, shared memory, or an address (i64).
        offset: elements behind it.
        space: 0 global, 3 shared.
    """

    root: SSAValue
    offset: Index = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A memref: elements at ``start + sum(index * stride)``.

    Attributes:
        sizes: of each dimension.
        strides: in elements.
        origin: what offsets of MLIR count from; the start of the memory.
    """

    start: Start
    element: Attribute
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    origin: Start


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a tile is a part of: rows and columns, a stride for each.

    Attributes:
        start: of its element (0, 0).
        sizes: rows and columns.
        strides: from row to row and from column to column, in elements.
    """

    start: Start
    element: Attribute
    sizes: tuple[Index, Index]
    strides: tuple[Index, Index]


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of a matrix, at ``row`` and ``column``, which may lie outside of it."""

    matrix: Matrix
    row: Index
    column: Index


@dataclass(frozen=True, slots=True)
class Scattered:
    """Elements with an offset each.

    Attributes:
        start: what offsets count from.
        size: offsets from 0 to this exist; None: all do.
        stride: elements from one offset to the next.
        indices: the offsets.
    """

    start: Start
    element: Attribute
    size: Index | None
    stride: Index
    indices: Fragments


@dataclass(frozen=True, slots=True)
class TransposedLoad:
    """What a load has transposed already, for the transpose that follows."""

    found: Fragments | MmaOperand


Lowered: TypeAlias = Fragments | MmaOperand | TransposedLoad | View | Tile | Scattered
