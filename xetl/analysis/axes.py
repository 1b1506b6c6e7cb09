"""Which extents of which values are cut alike: classes of axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from typing_extensions import TypeIs
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from xetl.analysis.control_flow import carried_together
from xetl.devices import Block
from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import Vector, is_vector
from xetl.dialects.xetile import TileType, UpdateTileOffsetOp

Axis: TypeAlias = tuple[SSAValue, int]
"""A value, and 0 for its rows or 1 for its columns."""


class Classes:
    """Classes of axes that get one extent of a block: a union-find."""

    def __init__(self) -> None:
        self._parents: dict[Axis, Axis] = {}

    def find(self, axis: Axis) -> Axis:
        """The axis that stands for the class."""
        root = axis
        while (parent := self._parents.get(root)) is not None:
            root = parent
        while axis != root:
            self._parents[axis], axis = root, self._parents[axis]
        return root

    def join(self, first: Axis, second: Axis) -> None:
        """Make one class of two."""
        one, other = self.find(first), self.find(second)
        if one != other:
            self._parents[other] = one


def is_matrix(type_: Attribute) -> TypeIs[Vector]:
    """Whether values of the type may be cut into blocks: vectors of rank 2."""
    return is_vector(type_) and type_.get_num_dims() == 2


def matrices(op: Operation) -> list[SSAValue]:
    """Operands and results that are matrices."""
    return [v for v in (*op.operands, *op.results) if is_matrix(v.type)]


def shape_of(matrix: SSAValue) -> tuple[int, int]:
    """Rows and columns."""
    rows, columns = vector_type(matrix).get_shape()
    return rows, columns


def arguments_of(op: Operation) -> list[BlockArgument]:
    """Arguments of the blocks right inside."""
    return [a for region in op.regions for block in region.blocks for a in block.args]


def tile_classes(ops: Iterable[Operation]) -> Classes:
    """Tiles that are one variable, moved or carried: classes of ``(tile, 0)``."""
    classes = Classes()
    for op in ops:
        if isinstance(op, UpdateTileOffsetOp):
            classes.join((op.tile, 0), (op.result, 0))
        for group in carried_together(op):
            for other in group[1:] if isinstance(group[0].type, TileType) else ():
                classes.join((group[0], 0), (other, 0))
    return classes


def transposed(block: Block | None) -> Block | None:
    """Columns and rows."""
    return None if block is None else (block[1], block[0])


def with_ones(block: Block | None, dims: tuple[int, ...]) -> Block | None:
    """A block of what has size 1 along ``dims``."""
    if block is None:
        return None
    rows, columns = (1 if dim in dims else n for dim, n in enumerate(block))
    return rows, columns
