"""What stands for a value of the blocked stage: fragments, a tile, a view of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import FloatTF32Type, VectorType, f32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import Vector
from xetl_xegpu.lowering.fragments import Grid, grid_of, matrix_shape


@lru_cache(maxsize=4096)
def vector_of(element: Attribute, *shape: int) -> Vector:
    """A vector type; made once.  A tf32 is an f32."""
    return VectorType(f32 if isinstance(element, FloatTF32Type) else element, shape)


def _no_lines() -> dict[tuple[int, int], SSAValue]:
    return {}


@dataclass(slots=True, eq=False)
class Pieces:
    """The fragments of a vector.

    Attributes:
        shape: of the vector, of any rank.
        element: its element type.
        parts: the fragments, in the order of ``grid``.
    """

    shape: tuple[int, ...]
    element: Attribute
    parts: Sequence[SSAValue]
    lines: dict[tuple[int, int], SSAValue] = field(default_factory=_no_lines)

    @property
    def grid(self) -> Grid:
        """How the vector is cut."""
        return grid_of(*matrix_shape(self.shape))

    def reshaped(self, shape: tuple[int, ...]) -> Pieces:
        """The same fragments under another shape that is kept alike."""
        return Pieces(shape, self.element, self.parts, self.lines)


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
    """

    PACKED = "packed"
    DEEP = "deep"


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
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
        private: its memory is one subgroup's; the offset says whose.
    """

    root: SSAValue
    offset: Index = 0
    space: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A memref: elements at ``start + sum(index * stride)``.

    Attributes:
        start: of the first element.
        element: type of the elements.
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
        element: type of the elements.
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
        element: type of the elements.
        size: offsets from 0 to this exist; None: all do.
        stride: elements from one offset to the next.
        indices: the offsets.
    """

    start: Start
    element: Attribute
    size: Index | None
    stride: Index
    indices: Pieces


@dataclass(frozen=True, slots=True)
class Turned:
    """What a load has transposed already, for the transpose that follows."""

    found: Pieces | Operand


Found: TypeAlias = Pieces | Operand | Turned | View | Tile | Scattered
