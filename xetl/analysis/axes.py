"""Classes of axes that get the same extent of a block; slices of values in blocks.

A slice that consists of whole blocks needs no packing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from typing import Any, TypeAlias

from typing_extensions import TypeIs
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from xetl.analysis.control_flow import carried_together
from xetl.devices import Block
from xetl.dialects.base import Vector, int_array, is_vector, vector_type
from xetl.dialects.traits import Scans, element_trait
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import TileType, UpdateTileOffsetOp

Axis: TypeAlias = tuple[SSAValue, int]
"""A value and a dimension: 0 for rows, 1 for columns."""


class Classes:
    """A union-find of axes that get the same extent of a block."""

    def __init__(self) -> None:
        self._parents: dict[Axis, Axis] = {}

    def find(self, axis: Axis) -> Axis:
        """Return the representative of the class of an axis."""
        root = axis
        while (parent := self._parents.get(root)) is not None:
            root = parent
        while axis != root:
            self._parents[axis], axis = root, self._parents[axis]
        return root

    def join(self, first: Axis, second: Axis) -> None:
        """Unite two classes."""
        one, other = self.find(first), self.find(second)
        if one != other:
            self._parents[other] = one


def is_matrix(type_: Attribute) -> TypeIs[Vector]:
    """Whether values of the type can be split into blocks: vectors of rank 2."""
    return is_vector(type_) and type_.get_num_dims() == 2


def matrices(op: Operation) -> list[SSAValue]:
    """Return the operands and results that are matrices."""
    return [v for v in (*op.operands, *op.results) if is_matrix(v.type)]


def shape_of(matrix: SSAValue) -> tuple[int, int]:
    """Return rows and columns of a matrix."""
    rows, columns = vector_type(matrix).get_shape()
    return rows, columns


def arguments_of(op: Operation) -> list[BlockArgument]:
    """Return the arguments of all blocks of an operation."""
    return [a for region in op.regions for block in region.blocks for a in block.args]


def defined_by(op: Operation) -> list[SSAValue]:
    """Return the values that an operation defines: results and block arguments."""
    return [*op.results, *arguments_of(op)]


def tile_classes(ops: Iterable[Operation]) -> Classes:
    """Return classes of ``(tile, 0)``: tiles of one variable, moved or carried."""
    classes = Classes()
    for op in ops:
        if isinstance(op, UpdateTileOffsetOp):
            classes.join((op.tile, 0), (op.result, 0))
        for group in carried_together(op):
            for other in group[1:] if isinstance(group[0].type, TileType) else ():
                classes.join((group[0], 0), (other, 0))
    return classes


def transposed(block: Block | None) -> Block | None:
    """Return the block with its extents exchanged."""
    return None if block is None else (block[1], block[0])


def with_ones(block: Block | None, dims: tuple[int, ...]) -> Block | None:
    """Return the block with the extents of ``dims`` set to 1."""
    if block is None:
        return None
    rows, columns = (1 if dim in dims else n for dim, n in enumerate(block))
    return rows, columns


Slice = vector.ExtractStridedSliceOp | vector.InsertStridedSliceOp

_GRAIN = (8, 16)
"""Rows and columns that the blocks of most devices divide. A finer slice has no whole
blocks."""


def whole_and_part(op: Slice) -> tuple[SSAValue, SSAValue]:
    """Return the whole vector of a slice operation, and the part."""
    if isinstance(op, vector.ExtractStridedSliceOp):
        return op.source, op.result
    return op.dest, op.value


def is_of_matrices(op: Slice) -> bool:
    """Whether the whole and the part are matrices."""
    return all(is_matrix(value.type) for value in whole_and_part(op))


def lines_of(op: Operation) -> tuple[int, ...]:
    """Return the dimensions along which elements move or depend on each other."""
    if isinstance(op, vector.ExtractStridedSliceOp) and is_of_matrices(op):
        return tuple(dim for dim in (0, 1) if not _is_all(op, dim))
    if isinstance(op, vector.InterleaveOp):
        return (1,)
    scan: Any = op
    return (scan.dim,) if element_trait(type(op)) is Scans else ()


def relations_of_slice(op: Slice) -> Iterator[tuple[Axis, Axis]]:
    """Yield pairs of axes of whole and part, if the part may be whole blocks."""
    whole, part = whole_and_part(op)
    for dim, grain in enumerate(_GRAIN):
        if _step(op, dim) % grain == 0 or _is_all(op, dim):
            yield (whole, dim), (part, dim)
    if isinstance(op, vector.InsertStridedSliceOp):
        yield (op.dest, 0), (op.result, 0)
        yield (op.dest, 1), (op.result, 1)


def limits_of_slice(op: Slice) -> Iterator[tuple[Axis, int]]:
    """Yield numbers that blocks must divide for a part to start and end at blocks."""
    whole, _ = whole_and_part(op)
    for dim in (0, 1):
        yield (whole, dim), _step(op, dim)


def has_whole_blocks(op: Slice, block: Block) -> bool:
    """Whether the part consists of whole blocks."""
    return all(_step(op, dim) % extent == 0 for dim, extent in enumerate(block))


def _step(op: Slice, dim: int) -> int:
    """Return the largest divisor of the offset, the part and the whole."""
    whole, part = (vector_type(v).get_shape() for v in whole_and_part(op))
    if _stride(op, dim) != 1:
        return 1
    return gcd(_offset(op, dim), part[dim], whole[dim])


def _is_all(op: Slice, dim: int) -> bool:
    whole, part = (vector_type(v).get_shape() for v in whole_and_part(op))
    return whole[dim] == part[dim]


def _stride(op: Slice, dim: int) -> int:
    if isinstance(op, vector.InsertStridedSliceOp):
        return 1
    return op.strides[dim] if dim < len(op.strides) else 1


def _offset(op: Slice, dim: int) -> int:
    return op.offsets[dim] if dim < len(op.offsets) else 0


# The two forms ----------------------------------------------------------------------


def count_blocks(op: Slice, block: Block) -> None:
    """Rewrite a slice from elements to blocks, with the inner dimensions whole."""
    offsets = [_offset(op, dim) // extent for dim, extent in enumerate(block)]
    if isinstance(op, vector.ExtractStridedSliceOp):
        part = vector_type(op.result).get_shape()
        sizes = [n // extent for n, extent in zip(part, block)]
        _write(op, offsets, sizes)
    else:
        _write(op, [*offsets, 0, 0], [1, 1, 1, 1])


def count_elements(op: Slice, block: Block) -> None:
    """Rewrite a slice from blocks to elements."""
    offsets = [_offset(op, dim) * extent for dim, extent in enumerate(block)]
    sizes = [1, 1]
    if isinstance(op, vector.ExtractStridedSliceOp):
        part = vector_type(op.result).get_shape()
        sizes = [part[0] * block[0], part[1] * block[1]]
    _write(op, offsets, sizes)


def takes_inner_dimensions_whole(op: Slice) -> bool:
    """Whether a slice of rank 4 takes whole blocks."""
    whole, part = (vector_type(v).get_shape() for v in whole_and_part(op))
    return len(part) == len(whole) == 4 and part[2:] == whole[2:]


def _write(op: Slice, offsets: Sequence[int], sizes: Sequence[int]) -> None:
    op.offset_list = int_array(offsets)
    op.stride_list = int_array([1] * len(sizes))
    if isinstance(op, vector.ExtractStridedSliceOp):
        op.size_list = int_array(sizes)
