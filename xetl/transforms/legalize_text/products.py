"""Rewrite operations of `linalg` on memrefs as loops over tiles.

    linalg.matmul ins(%a, %b) outs(%c)
    ->
    scf.for %m, %n by tiles { acc = load c; scf.for %k { acc += a @ b }; store acc }

A product is accumulated in f32 (f64, i32) and rounded once. Products that reduce a
batch of blocks are in batches.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects import xetile
from xetl.dialects.base import Index, Indices, ints_of, memref_type
from xetl.dialects.kernel_attributes import PARALLEL
from xetl.dialects.memref_layout import has_static_layout, strides_of
from xetl.dialects.upstream import linalg, memref, scf, vector
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values

ROWS, COLUMNS, DEPTH = 128, 256, 32
"""Rows and columns of a tile of C, and k of a step; smaller matrices are one tile."""

PAIR = 2
"""The number of consecutive k that are contiguous in the VNNI layout of bf16."""

SUMS: dict[str, Attribute] = {
    **{"f32": builtin.f32, "bf16": builtin.f32, "f16": builtin.f32},
    **{"f64": builtin.f64, "i8": builtin.i32},
}
"""The types in which products of elements are accumulated."""


class Matrix:
    """A memref of rank 2 that tiles are made of."""

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
            known = strides_of(type_) or [None, None]
            self.strides = [v if n is None else n for n, v in zip(known, meta[4:])]

    def tile(self, build: Builder, at: Values, shape: Sequence[int]) -> SSAValue:
        """Make a tile of ``shape`` at ``at``; of a subview in the matrix around it."""
        type_ = xetile.TileType(list(shape), self.element)
        source, box = self.source, self.source.owner
        fits = all(
            isinstance(s, int) and t and s % t == 0 for s, t in zip(self.sizes, shape)
        )
        if fits and isinstance(box, memref.SubviewOp) and _is_plain(box):
            source = box.source
            at = [build.index(build.plus(*pair)) for pair in zip(box.mixed_offsets, at)]
        init = xetile.InitTileOp(source, at, type_, self.given, self.strides)
        return build.insert(init)

    def tile_shape(self, most: Sequence[int]) -> list[int]:
        """Return ``most``, or less if the matrix has a smaller static size."""
        sizes = zip(self.sizes, most)
        return [min(s, m) if isinstance(s, int) else m for s, m in sizes]


def _is_plain(box: memref.SubviewOp) -> bool:
    """Whether a subview has unit strides, in a matrix of static layout."""
    type_ = memref_type(box.source)
    is_whole = type_.get_num_dims() == 2 and has_static_layout(type_)
    return is_whole and [*box.mixed_strides] == [1, 1]


def loops(
    build: Builder, sizes: Indices, shape: Sequence[int]
) -> tuple[Builder, list[SSAValue]]:
    """Loop over tiles, unless it is one; return a builder inside, and offsets."""
    at: list[SSAValue] = []
    for size, step in zip(sizes, shape):
        if isinstance(size, int) and size <= step:
            at.append(build.index(0))
            continue
        loop = build.for_loop(0, size, step)
        loop.attributes[PARALLEL] = builtin.UnitAttr()
        end = scf.YieldOp(location=loop.location)
        loop.body.block.add_op(end)
        build = Builder.before(end)
        at.append(loop.body.block.args[0])
    return build, at


def rows_of_pairs(build: Builder, source: SSAValue) -> SSAValue:
    """Return a view of (k / 2, n, 2) as the matrix (k / 2, 2 n)."""
    type_, (row, *pair) = memref_type(source), steps(source)
    if pair != [PAIR, 1]:
        raise VerifyException("the pairs are torn apart")
    rows, columns, _ = type_.get_shape()
    layout = builtin.StridedLayoutAttr([row, 1], builtin.NoneAttr())
    result = builtin.MemRefType(type_.element_type, [rows, PAIR * columns], layout)
    return build.insert(memref.CollapseShapeOp(source, result, [[0], [1, 2]]))


def steps(source: SSAValue) -> list[int]:
    """Return the strides of a memref, in elements; the type has to state them."""
    type_ = memref_type(source)
    strides = strides_of(type_)
    if strides is None or not has_static_layout(type_):
        raise VerifyException(f"a shape or stride is not known from {type_}")
    return [each or 0 for each in strides]


def part(
    build: Builder, source: SSAValue, at: Indices, sizes: Sequence[int], dropped: int
) -> SSAValue:
    """Return a subview of a memref without dimension ``dropped``, which has size 1."""
    strides = steps(source)
    kept = [dim for dim in range(len(sizes)) if dim != dropped]
    layout = builtin.StridedLayoutAttr(
        [strides[dim] for dim in kept], builtin.NoneAttr()
    )
    shape = [sizes[dim] for dim in kept]
    result = builtin.MemRefType(memref_type(source).element_type, shape, layout)
    ones = [1] * len(sizes)
    return build.insert(memref.SubviewOp(source, at, sizes, ones, result))


def _matmul(b: Builder, op: linalg.MatmulOp) -> Values:
    left, right, to = (Matrix(b, each) for each in (op.a, op.b, op.c))
    if left.element != right.element or str(left.element) not in SUMS:
        found = f"{left.element} by {right.element}"
        raise VerifyException(f"there are no products of {found}")
    sums = SUMS[str(left.element)]
    if to.element not in (sums, left.element) or (sums == builtin.i32 != to.element):
        raise VerifyException(f"{left.element} is added up in {sums}, not {to.element}")
    shape = to.tile_shape((ROWS, COLUMNS))
    depth = left.tile_shape((ROWS, DEPTH))[1]
    build, (row, column) = loops(b, to.sizes, shape)
    place = to.tile(build, [row, column], shape)
    start = build.widened(build.insert(xetile.LoadTileOp(place)), sums)
    loop = build.for_loop(0, left.sizes[1], depth, [start])
    inner = Builder.at_end(loop.body.block, build.location)
    k, total = loop.body.block.args
    one = left.tile(inner, [row, k], [shape[0], depth])
    other = right.tile(inner, [k, column], [depth, shape[1]])
    one, other = (inner.insert(xetile.LoadTileOp(each)) for each in (one, other))
    inner.add(scf.YieldOp(inner.insert(xetile.TileMmaOp(one, other, total))))
    build.add(xetile.StoreTileOp(build.narrowed(loop.results[0], to.element), place))
    return []


def _copy(b: Builder, op: linalg.CopyOp) -> Values:
    source, to = Matrix(b, op.source), Matrix(b, op.to)
    shape = to.tile_shape((DEPTH, COLUMNS))
    build, at = loops(b, to.sizes, shape)
    value = build.insert(xetile.LoadTileOp(source.tile(build, at, shape)))
    build.add(xetile.StoreTileOp(value, to.tile(build, at, shape)))
    return []


def _fill(b: Builder, op: linalg.FillOp) -> Values:
    to = Matrix(b, op.to)
    if op.value.type != to.element:
        raise VerifyException(f"{op.value.type} cannot fill {to.element}")
    shape = to.tile_shape((DEPTH, COLUMNS))
    build, at = loops(b, to.sizes, shape)
    value = build.insert(
        vector.BroadcastOp(op.value, builtin.VectorType(to.element, shape))
    )
    build.add(xetile.StoreTileOp(value, to.tile(build, at, shape)))
    return []


def _transpose(b: Builder, op: linalg.TransposeOp) -> Values:
    order, shape = [*ints_of(op.permutation)], memref_type(op.source).get_shape()
    if order == [1, 0]:
        _transpose_matrix(b, Matrix(b, op.source), Matrix(b, op.to))
    elif order == [0, 2, 1] and shape[1] == PAIR:
        _pack_pairs(b, op.source, Matrix(b, rows_of_pairs(b, op.to)))
    else:
        text = (
            "it transposes matrices, or puts rows in pairs: (k / 2, 2, n) to [0, 2, 1]"
        )
        raise VerifyException(text)
    return []


def _transpose_matrix(build: Builder, source: Matrix, to: Matrix) -> None:
    shape = to.tile_shape((DEPTH, DEPTH))
    inner, (row, column) = loops(build, to.sizes, shape)
    value = xetile.LoadTileOp(source.tile(inner, [column, row], shape[::-1]))
    turned = inner.insert(xetile.TileTransposeOp(inner.insert(value)))
    inner.add(xetile.StoreTileOp(turned, to.tile(inner, [row, column], shape)))


def _pack_pairs(build: Builder, source: SSAValue, to: Matrix) -> None:
    """Pack (k / 2, 2, n) to (k / 2, n, 2), which is the matrix (k / 2, 2 n)."""
    pairs, _, columns = memref_type(source).get_shape()
    zero = build.index(0)
    halves = [
        Matrix(build, part(build, source, [0, half, 0], [pairs, 1, columns], 1))
        for half in range(PAIR)
    ]
    tiles = [each.tile(build, [zero, zero], [pairs, columns]) for each in halves]
    even, odd = (build.insert(xetile.LoadTileOp(tile)) for tile in tiles)
    woven = build.insert(vector.InterleaveOp(even, odd))
    build.add(
        xetile.StoreTileOp(woven, to.tile(build, [zero, zero], [pairs, 2 * columns]))
    )


RULES: dict[type[Operation], Rule] = {
    linalg.MatmulOp: _matmul,
    linalg.CopyOp: _copy,
    linalg.FillOp: _fill,
    linalg.TransposeOp: _transpose,
}
