"""Folds of views and of vectors that only change their shape; see `folding`."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_dense, is_vector
from xetl.dialects.literals import make_splat, splat_value, with_type
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import TileTransposeOp

from .folding import Fold, Folded, constant_of


def fold_same_type(op: Operation) -> Folded:
    """A cast to the type its operand has."""
    source = op.operands[0]
    return source if source.type == op.results[0].type else None


def fold_shape_cast(op: Operation) -> Folded:
    """A cast to the same shape, back to the first one, or of a constant."""
    source, type_ = op.operands[0], op.results[0].type
    if source.type == type_:
        return source
    owner = source.owner
    if isinstance(owner, vector.ShapeCastOp) and owner.source.type == type_:
        return owner.source
    if isinstance(owner, arith.ConstantOp) and is_vector(type_):
        value = owner.value
        if is_dense(value):
            return with_type(value, type_)
    return None


def fold_extract(op: Operation) -> Folded:
    """An element of a constant that has one value, or of a broadcast scalar."""
    source, type_ = op.operands[0], op.results[0].type
    owner = source.owner
    if isinstance(owner, vector.BroadcastOp) and owner.source.type == type_:
        return None if isinstance(type_, VectorType) else owner.source
    if isinstance(owner, arith.ConstantOp):
        number = splat_value(owner.value)
        return None if number is None else make_splat(number, type_)
    return None


def fold_transpose(op: Operation) -> Folded:
    """The transpose of a transpose; maps must not be lost, so only without any."""
    assert isinstance(op, TileTransposeOp)
    inner = op.source.owner
    if isinstance(inner, TileTransposeOp) and not (op.attributes or inner.attributes):
        return inner.source
    return None


def fold_dim(op: Operation) -> Folded:
    """An extent that the type states."""
    assert isinstance(op, memref.DimOp)
    dim = constant_of(op.index)
    shape = memref_type(op.source).get_shape()
    if not isinstance(dim, int) or not 0 <= dim < len(shape):
        return None
    extent = shape[dim]
    return None if extent == DYNAMIC_INDEX else IntegerAttr(extent, IndexType())


def static_metadata(
    op: memref.ExtractStridedMetadataOp,
) -> list[tuple[SSAValue, Attribute]]:
    """Those sizes and strides that the type states."""
    type_ = memref_type(op.source)
    strides = strides_of(type_) or [None] * type_.get_num_dims()
    known = [None if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
    pairs = zip((*op.sizes, *op.strides), (*known, *strides))
    return [
        (value, IntegerAttr(number, IndexType()))
        for value, number in pairs
        if number is not None and value.uses
    ]


SHAPE_FOLDS: dict[type[Operation], Fold] = {
    vector.ShapeCastOp: fold_shape_cast,
    vector.BroadcastOp: fold_same_type,
    vector.BitcastOp: fold_same_type,
    arith.BitcastOp: fold_same_type,
    vector.ExtractOp: fold_extract,
    memref.CastOp: fold_same_type,
    memref.DimOp: fold_dim,
    TileTransposeOp: fold_transpose,
}
