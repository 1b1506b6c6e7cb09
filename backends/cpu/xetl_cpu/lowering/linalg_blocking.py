"""A `linalg.matmul` on memrefs of static shape as blocks and a batch-reduce product.

    linalg.matmul ins(%A, %B) outs(%C)                      blocks of 32 x 32 x 32
    ->
    %a = memref.alloc() : memref<32x32x32x32xbf16>          (m, k) blocks of A
    scf.forall (%i, %j) in (32, 32) { linalg.copy of a block }
    %b = memref.alloc() : memref<32x32x16x32x2xbf16>        (n, k) blocks, pairs of k
    scf.forall (%i, %j) in (32, 32) { linalg.transpose of a block }
    scf.forall (%i, %j) in (32, 32) { linalg.generic: a row of blocks, a column, C }
    memref.dealloc ...

Blocks of f32 are copied as they lie.  Source: seed 003, "Kernel preprocessing".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import CopyOp, GenericOp, TransposeOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from xetl.dialects.base import Index, memref_type
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import has_static_layout, strides_of
from xetl.dialects.upstream import affine, arith, memref, scf
from xetl.ir.builder import Builder
from xetl.transforms.remarks import remark

_ALIGNMENT = 64
"""Bytes: a cache line."""

_PLAIN = ArrayAttr(
    [
        AffineMapAttr(AffineMap(3, 0, (AffineDimExpr(row), AffineDimExpr(column))))
        for row, column in ((0, 2), (2, 1), (0, 1))
    ]
)
"""What indexes A, B and C where no operand is transposed: (m, k), (k, n), (m, n)."""

_PAIR = 2
"""Consecutive k that lie together for bf16."""


def pack_matmul(op: Operation, blocks: Sequence[int]) -> None:
    """Replace a `linalg.matmul`, or remark why it stays; ``blocks``: of m, n and k."""
    reason = _why_not(op, blocks)
    if reason is not None:
        remark(op, "packing", f"the linalg.matmul stays: {reason}")
        return
    a, b, c = op.operands
    build, (bm, bn, bk) = Builder.before(op), blocks
    previous = op.prev_op
    packed_a = _pack_a(build, a, (bm, bk))
    packed_b = _pack_b(build, b, (bn, bk))
    _multiply(build, packed_a, packed_b, c, (bm, bn))
    build.add(memref.DeallocOp(packed_a))
    build.add(memref.DeallocOp(packed_b))
    _locate(op, previous)
    op.detach()
    op.erase()


def _why_not(op: Operation, blocks: Sequence[int]) -> str | None:
    if len(blocks) != 3 or min(blocks) < 1:
        return f"blocks are three positive numbers, of m, n and k; found {blocks}"
    if op.properties["indexing_maps"] != _PLAIN:
        return "one of its operands is transposed"
    types = [value.type for value in op.operands]
    if not all(is_memref(type_) and has_static_layout(type_) for type_ in types):
        return "its operands are not memrefs whose type says shape and strides"
    a, b, c = (memref_type(value) for value in op.operands)
    elements = {str(one.element_type) for one in (a, b, c)}
    if len(elements) > 1 or not elements <= {"f32", "bf16"}:
        return f"its elements are not all f32 or all bf16, but {sorted(elements)}"
    (m, k), (_, n) = a.get_shape(), b.get_shape()
    if any(extent % block for extent, block in zip((m, n, k), blocks)):
        return f"its m, n and k, {m}, {n} and {k}, are not multiples of {blocks}"
    if elements == {"bf16"} and blocks[2] % _PAIR:
        return f"a block of {blocks[2]} has no pairs of k"
    return None


def _locate(op: Operation, previous: Operation | None) -> None:
    """What stands between the two is new: it is on the line of ``op``."""
    new = op.prev_op
    while new is not None and new is not previous:
        for one in new.walk():
            one.location = op.location
        new = new.prev_op


# Views ------------------------------------------------------------------------------


def _alloc(build: Builder, shape: Sequence[int], element: Attribute) -> SSAValue:
    return build.insert(
        memref.AllocOp(MemRefType(element, shape), alignment=_ALIGNMENT)
    )


def _view_type(
    element: Attribute, shape: Sequence[int], strides: Sequence[int | None]
) -> MemRefType[Attribute]:
    known = [stride for stride in strides if stride is not None]
    return MemRefType(element, shape, StridedLayoutAttr(known, NoneAttr()))


def _subview(
    build: Builder,
    source: SSAValue,
    at: Sequence[Index],
    sizes: Sequence[int],
    rank: int,
) -> SSAValue:
    """A box of ``source``; of its dimensions the last ``rank`` are left."""
    type_ = memref_type(source)
    strides = strides_of(type_)
    assert strides is not None
    result = _view_type(type_.element_type, sizes[-rank:], strides[-rank:])
    ones = [1] * len(sizes)
    return build.insert(memref.SubviewOp(source, at, sizes, ones, result))


def _scaled(build: Builder, index: SSAValue, factor: int) -> SSAValue:
    map_ = AffineMapAttr(AffineMap(1, 0, (AffineDimExpr(0) * factor,)))
    return build.insert(affine.ApplyOp(map_, [index]))


@dataclass
class _Nest:
    """The inside of an `scf.forall` over a grid of blocks."""

    build: Builder
    outer: SSAValue
    inner: SSAValue


def _forall(build: Builder, outer: int, inner: int) -> _Nest:
    body = Block(arg_types=[IndexType(), IndexType()])
    end = scf.ForallInParallelOp()
    body.add_op(end)
    build.add(scf.ForallOp((0, 0), (outer, inner), (1, 1), (), Region(body)))
    return _Nest(Builder.before(end), *body.args)


# The three loops --------------------------------------------------------------------


def _pack_a(build: Builder, a: SSAValue, block: tuple[int, int]) -> SSAValue:
    type_, (bm, bk) = memref_type(a), block
    m, k = type_.get_shape()
    packed = _alloc(build, [m // bm, k // bk, bm, bk], type_.element_type)
    nest = _forall(build, m // bm, k // bk)
    inner = nest.build
    start = [_scaled(inner, nest.outer, bm), _scaled(inner, nest.inner, bk)]
    source = _subview(inner, a, start, block, 2)
    at = [nest.outer, nest.inner, 0, 0]
    to = _subview(inner, packed, at, [1, 1, bm, bk], 2)
    inner.add(CopyOp([source], [to], []))
    return packed


def _pack_b(build: Builder, b: SSAValue, block: tuple[int, int]) -> SSAValue:
    type_, (bn, bk) = memref_type(b), block
    k, n = type_.get_shape()
    element = type_.element_type
    in_pairs = str(element) == "bf16"
    shape = [bk // _PAIR, bn, _PAIR] if in_pairs else [bk, bn]
    packed = _alloc(build, [n // bn, k // bk, *shape], element)
    nest = _forall(build, n // bn, k // bk)
    inner = nest.build
    start = [_scaled(inner, nest.inner, bk), _scaled(inner, nest.outer, bn)]
    source = _subview(inner, b, start, [bk, bn], 2)
    at = [nest.outer, nest.inner, *(0 for _ in shape)]
    to = _subview(inner, packed, at, [1, 1, *shape], len(shape))
    if in_pairs:
        order = DenseArrayBase.from_list(i64, [0, 2, 1])
        inner.add(TransposeOp(_pairs(inner, source), to, order))
    else:
        inner.add(CopyOp([source], [to], []))
    return packed


def _pairs(build: Builder, block: SSAValue) -> SSAValue:
    """(k, n) as (k / 2, 2, n)."""
    type_ = memref_type(block)
    (k, n), strides = type_.get_shape(), strides_of(type_)
    assert strides is not None
    row, column = strides
    assert row is not None
    shape = [k // _PAIR, _PAIR, n]
    result = _view_type(type_.element_type, shape, [row * _PAIR, row, column])
    groups = [[0, 1], [2]]
    return build.insert(memref.ExpandShapeOp(block, shape, result, groups))


def _multiply(
    build: Builder, a: SSAValue, b: SSAValue, c: SSAValue, block: tuple[int, int]
) -> None:
    shape_a, shape_b = (memref_type(one).get_shape() for one in (a, b))
    nest = _forall(build, shape_a[0], shape_b[0])
    inner, (bm, bn) = nest.build, block
    start = [_scaled(inner, nest.outer, bm), _scaled(inner, nest.inner, bn)]
    row = _row_of_blocks(inner, a, nest.outer)
    column = _row_of_blocks(inner, b, nest.inner)
    to = _subview(inner, c, start, block, 2)
    inner.add(_batch_reduce(row, column, to))


def _row_of_blocks(build: Builder, packed: SSAValue, index: SSAValue) -> SSAValue:
    _, *shape = memref_type(packed).get_shape()
    at = [index, *(0 for _ in shape)]
    return _subview(build, packed, at, [1, *shape], len(shape))


def _batch_reduce(a: SSAValue, b: SSAValue, c: SSAValue) -> GenericOp:
    """``c += a @ b`` over a batch of blocks, with seed 003's maps."""
    element = memref_type(c).element_type
    in_pairs = memref_type(b).get_num_dims() == 4
    count = 5 if in_pairs else 4
    batch, m, n, k, *pair = (AffineDimExpr(d) for d in range(count))
    of_b = (batch, k // _PAIR, n, *pair) if in_pairs else (batch, k, n)
    results = [(batch, m, k), of_b, (m, n)]
    maps = [AffineMapAttr(AffineMap(count, 0, one)) for one in results]
    reduction, parallel = IteratorTypeAttr.reduction(), IteratorTypeAttr.parallel()
    kinds = [reduction, parallel, parallel, *[reduction] * (count - 3)]
    body = Block(arg_types=[element] * 3)
    left, right, old = body.args
    inside = Builder.at_end(body)
    product = inside.insert(arith.MulfOp(left, right))
    inside.add(YieldOp(inside.insert(arith.AddfOp(old, product))))
    return GenericOp([a, b], [c], Region(body), maps, kinds)
