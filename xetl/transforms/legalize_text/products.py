"""Operations of `linalg` on memrefs as loops over tiles: backends know what those are.

    linalg.matmul ins(%a, %b) outs(%c)
    ->
    scf.for %m, %n by tiles { acc = load c; scf.for %k { acc += a @ b }; store acc }

A product is added up in f32 (f64, i32) and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType, f32, f64, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import has_static_layout
from xetl.dialects.upstream import arith, linalg, memref, scf, vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    StoreTileOp,
    TileMmaOp,
    TileType,
)
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values

_ROWS, _COLUMNS, _DEPTH = 128, 256, 32
"""Of a tile of C, and how much of k a step has; smaller matrices are one tile."""

_SUMS: dict[str, Attribute] = {
    **{"f32": f32, "bf16": f32, "f16": f32},
    **{"f64": f64, "i8": i32},
}
"""What products of elements are added up in."""


class _Matrix:
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


def _loops(
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


def _matmul(b: Builder, op: linalg.MatmulOp) -> Values:
    left, right, to = (_Matrix(b, each) for each in (op.a, op.b, op.c))
    if left.element != right.element or str(left.element) not in _SUMS:
        found = f"{left.element} by {right.element}"
        raise VerifyException(f"there are no products of {found}")
    sums = _SUMS[str(left.element)]
    if to.element not in (sums, left.element) or (sums == i32 != to.element):
        raise VerifyException(f"{left.element} is added up in {sums}, not {to.element}")
    shape = to.tile_shape((_ROWS, _COLUMNS))
    depth = left.tile_shape((_ROWS, _DEPTH))[1]
    build, (row, column) = _loops(b, to.sizes, shape)
    place = to.tile(build, [row, column], shape)
    start = _converted(build, build.insert(LoadTileOp(place)), sums)
    loop = build.for_loop(0, left.sizes[1], depth, [start])
    inner = Builder.at_end(loop.body.block)
    k, total = loop.body.block.args
    one = left.tile(inner, [row, k], [shape[0], depth])
    other = right.tile(inner, [k, column], [depth, shape[1]])
    one, other = (inner.insert(LoadTileOp(each)) for each in (one, other))
    inner.add(scf.YieldOp(inner.insert(TileMmaOp(one, other, total))))
    build.add(StoreTileOp(_converted(build, loop.results[0], to.element), place))
    return []


def _converted(build: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """A vector of floats in another type."""
    type_ = vector_type(value)
    if type_.element_type == element:
        return value
    cast = arith.ExtfOp if element == f32 else arith.TruncfOp
    return build.insert(cast(value, VectorType(element, type_.get_shape())))


def _copy(b: Builder, op: linalg.CopyOp) -> Values:
    source, to = _Matrix(b, op.source), _Matrix(b, op.to)
    shape = to.tile_shape((_DEPTH, _COLUMNS))
    build, at = _loops(b, to.sizes, shape)
    value = build.insert(LoadTileOp(source.tile(build, at, shape)))
    build.add(StoreTileOp(value, to.tile(build, at, shape)))
    return []


def _fill(b: Builder, op: linalg.FillOp) -> Values:
    to = _Matrix(b, op.to)
    if op.value.type != to.element:
        raise VerifyException(f"{op.value.type} cannot fill {to.element}")
    shape = to.tile_shape((_DEPTH, _COLUMNS))
    build, at = _loops(b, to.sizes, shape)
    value = build.insert(vector.BroadcastOp(op.value, VectorType(to.element, shape)))
    build.add(StoreTileOp(value, to.tile(build, at, shape)))
    return []


RULES: dict[type[Operation], Rule] = {
    linalg.MatmulOp: _matmul,
    linalg.CopyOp: _copy,
    linalg.FillOp: _fill,
}
