"""Memrefs as matrices to make tiles of, and loops over these."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
    f32,
    f64,
    i32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import has_static_layout, strides_of
from xetl.dialects.upstream import arith, memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.builder import Builder

ROWS, COLUMNS, DEPTH = 128, 256, 32
"""Of a tile of C, and how much of k a step has; smaller matrices are one tile."""

PAIR = 2
"""Consecutive k that lie together for bf16 (VNNI)."""

SUMS: dict[str, Attribute] = {
    **{"f32": f32, "bf16": f32, "f16": f32},
    **{"f64": f64, "i8": i32},
}
"""What products of elements are added up in."""


class Matrix:
    """A memref to make tiles of."""

    def __init__(self, build: Builder, source: SSAValue) -> None:
        type_ = memref_type(source)
        if type_.get_num_dims() != 2:
            raise VerifyException(f"it takes matrices, not {type_}")
        self.source, self.element = source, type_.element_type
        self.given: list[Index] = []
        self.strides: list[Index] = []
        self.sizes: list[Index] = [*type_.get_shape()]
        if not has_static_layout(type_):
            meta = build.add(memref.ExtractStridedMetadataOp(source)).results
            self.sizes = self.given = [*meta[2:4]]
            self.strides = [*meta[4:]]

    def tile(
        self, build: Builder, at: Sequence[SSAValue], shape: Sequence[int]
    ) -> SSAValue:
        """The tile of ``shape`` at ``at``."""
        type_ = TileType(list(shape), self.element)
        init = InitTileOp(self.source, at, type_, self.given, self.strides)
        return build.insert(init)

    def tile_shape(self, most: Sequence[int]) -> list[int]:
        """``most``, or less where the matrix is known to be smaller."""
        sizes = zip(self.sizes, most)
        return [min(s, m) if isinstance(s, int) else m for s, m in sizes]


def loops(
    build: Builder, sizes: Sequence[Index], shape: Sequence[int]
) -> tuple[Builder, list[SSAValue]]:
    """Serial loops over tiles: a builder inside, and where the tile starts."""
    at: list[SSAValue] = []
    for size, step in zip(sizes, shape):
        loop = build.for_loop(0, size, step)
        end = scf.YieldOp()
        loop.body.block.add_op(end)
        build = Builder.before(end)
        at.append(loop.body.block.args[0])
    return build, at


def converted(build: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """A vector of floats in another type."""
    type_ = vector_type(value)
    if type_.element_type == element:
        return value
    cast = arith.ExtfOp if element == f32 else arith.TruncfOp
    return build.insert(cast(value, VectorType(element, type_.get_shape())))


def rows_of_pairs(build: Builder, source: SSAValue) -> SSAValue:
    """(k / 2, n, 2) as the matrix (k / 2, 2 n)."""
    type_, (row, *pair) = memref_type(source), _strides(source)
    if pair != [PAIR, 1]:
        raise VerifyException("the pairs are torn apart")
    rows, columns, _ = type_.get_shape()
    layout = StridedLayoutAttr([row, 1], NoneAttr())
    result = MemRefType(type_.element_type, [rows, PAIR * columns], layout)
    return build.insert(memref.CollapseShapeOp(source, result, [[0], [1, 2]]))


def _strides(source: SSAValue) -> list[int]:
    type_ = memref_type(source)
    strides = strides_of(type_)
    if strides is None or not has_static_layout(type_):
        raise VerifyException(f"a shape or stride is not known from {type_}")
    return [each or 0 for each in strides]


def part(
    build: Builder,
    source: SSAValue,
    at: Sequence[Index],
    sizes: Sequence[int],
    dropped: int,
) -> SSAValue:
    """A box of a memref without dimension ``dropped``, which has one element."""
    strides = _strides(source)
    kept = [dim for dim in range(len(sizes)) if dim != dropped]
    layout = StridedLayoutAttr([strides[dim] for dim in kept], NoneAttr())
    shape = [sizes[dim] for dim in kept]
    result = MemRefType(memref_type(source).element_type, shape, layout)
    ones = [1] * len(sizes)
    return build.insert(memref.SubviewOp(source, at, sizes, ones, result))
