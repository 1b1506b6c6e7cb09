"""Rewrite operations of `linalg` on memrefs as loops over tiles.

    linalg.matmul ins(%a, %b) outs(%c)
    ->
    scf.for %m, %n by tiles { acc = load c; scf.for %k { acc += a @ b }; store acc }

A product is added up in f32 (f64, i32) and rounded once; batches.py has those that
reduce a batch of blocks.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import ints_of, memref_type
from xetl.dialects.upstream import linalg, scf, vector
from xetl.dialects.xetile import LoadTileOp, StoreTileOp, TileMmaOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_text.matrices import (
    COLUMNS,
    DEPTH,
    PAIR,
    ROWS,
    SUMS,
    Matrix,
    converted,
    loops,
    part,
    rows_of_pairs,
)
from xetl.transforms.rewriting import Rule, Values


def _matmul(b: Builder, op: linalg.MatmulOp) -> Values:
    left, right, to = (Matrix(b, each) for each in (op.a, op.b, op.c))
    if left.element != right.element or str(left.element) not in SUMS:
        found = f"{left.element} by {right.element}"
        raise VerifyException(f"there are no products of {found}")
    sums = SUMS[str(left.element)]
    if to.element not in (sums, left.element) or (sums == i32 != to.element):
        raise VerifyException(f"{left.element} is added up in {sums}, not {to.element}")
    shape = to.tile_shape((ROWS, COLUMNS))
    depth = left.tile_shape((ROWS, DEPTH))[1]
    build, (row, column) = loops(b, to.sizes, shape)
    place = to.tile(build, [row, column], shape)
    start = converted(build, build.insert(LoadTileOp(place)), sums)
    loop = build.for_loop(0, left.sizes[1], depth, [start])
    inner = Builder.at_end(loop.body.block)
    k, total = loop.body.block.args
    one = left.tile(inner, [row, k], [shape[0], depth])
    other = right.tile(inner, [k, column], [depth, shape[1]])
    one, other = (inner.insert(LoadTileOp(each)) for each in (one, other))
    inner.add(scf.YieldOp(inner.insert(TileMmaOp(one, other, total))))
    build.add(StoreTileOp(converted(build, loop.results[0], to.element), place))
    return []


def _copy(b: Builder, op: linalg.CopyOp) -> Values:
    source, to = Matrix(b, op.source), Matrix(b, op.to)
    shape = to.tile_shape((DEPTH, COLUMNS))
    build, at = loops(b, to.sizes, shape)
    value = build.insert(LoadTileOp(source.tile(build, at, shape)))
    build.add(StoreTileOp(value, to.tile(build, at, shape)))
    return []


def _fill(b: Builder, op: linalg.FillOp) -> Values:
    to = Matrix(b, op.to)
    if op.value.type != to.element:
        raise VerifyException(f"{op.value.type} cannot fill {to.element}")
    shape = to.tile_shape((DEPTH, COLUMNS))
    build, at = loops(b, to.sizes, shape)
    value = build.insert(vector.BroadcastOp(op.value, VectorType(to.element, shape)))
    build.add(StoreTileOp(value, to.tile(build, at, shape)))
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
    value = LoadTileOp(source.tile(inner, [column, row], shape[::-1]))
    turned = inner.insert(TileTransposeOp(inner.insert(value)))
    inner.add(StoreTileOp(turned, to.tile(inner, [row, column], shape)))


def _pack_pairs(build: Builder, source: SSAValue, to: Matrix) -> None:
    """Rows (k / 2, 2, n) to (k / 2, n, 2), which is the matrix (k / 2, 2 n)."""
    pairs, _, columns = memref_type(source).get_shape()
    zero = build.index(0)
    halves = [
        Matrix(build, part(build, source, [0, half, 0], [pairs, 1, columns], 1))
        for half in range(PAIR)
    ]
    tiles = [each.tile(build, [zero, zero], [pairs, columns]) for each in halves]
    even, odd = (build.insert(LoadTileOp(tile)) for tile in tiles)
    woven = build.insert(vector.InterleaveOp(even, odd))
    build.add(StoreTileOp(woven, to.tile(build, [zero, zero], [pairs, 2 * columns])))


RULES: dict[type[Operation], Rule] = {
    linalg.MatmulOp: _matmul,
    linalg.CopyOp: _copy,
    linalg.FillOp: _fill,
    linalg.TransposeOp: _transpose,
}
