"""How a value is cut into fragments: by its shape alone, so equal shapes always meet.

Rows are cut greedily into 8, 4, 2 and 1, columns into 16, the last ones padded; a value
of one column has fragments of one column (docs/design/0005-xegpu.md, "Fragments").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

LANES = 16
"""Of a subgroup; a fragment has so many columns, one for each lane."""

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
        rows: of the matrix.
        columns: of the matrix.
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
        return [span.count for span in self.spans for _ in range(self.groups)]

    def height(self, fragment: int) -> int:
        """Rows of a fragment."""
        return self.spans[fragment // self.groups].count

    def fragment(self, span: int, group: int) -> int:
        """The number of a fragment."""
        return span * self.groups + group

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


def position(shape: Sequence[int], index: Sequence[int]) -> tuple[int, int]:
    """Row and column of an element of a vector of any rank."""
    if len(shape) == BLOCKED:
        return index[0] * shape[2] + index[2], index[1] * shape[3] + index[3]
    row = 0
    for extent, place in zip(shape[:-1], index[:-1]):
        row = row * extent + place
    return row, (index[-1] if index else 0)


@lru_cache(maxsize=1024)
def grid_of(rows: int, columns: int) -> Grid:
    """The fragments of a matrix."""
    groups = 1 if columns == 1 else -(-columns // LANES)
    return Grid(rows, columns, cut_rows(rows), groups)
