"""Vectors of indices: computed in 64 bits; the first of those that count up."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.dialects.base import element_type as element_of
from xetl.dialects.base import is_vector, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.frontend.context import Context
from xetl.frontend.types import Extent, Vector
from xetl.ir.builder import Builder, remade
from xetl.language import dtypes
from xetl.worklist import sources_first

_ARITHMETIC = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp),
    *(arith.MinsiOp, arith.MaxsiOp, arith.MinuiOp, arith.MaxuiOp),
)
_SHAPES = (vector.ShapeCastOp, TileBroadcastOp, TileTransposeOp)


def as_indices(ctx: Context, indices: Vector) -> SSAValue:
    """Convert an integer vector to a vector of `index`, computed in 64 bits.

    Its sums and products are computed again in 64 bits, where they do not overflow.
    """
    if indices.dtype == dtypes.index:
        return indices.ssa
    root = indices.ssa, indices.dtype.kind == "u"
    found: dict[_Number, SSAValue] = {}
    for number in sources_first(root, lambda each: _parts(ctx, *each)):
        parts = [found[part] for part in _parts(ctx, *number)]
        found[number] = _widened(ctx, number, parts)
    return found[root]


def _parts(ctx: Context, value: SSAValue, unsigned: bool) -> list[_Number]:
    """Return the operands of a sum, product, extension, select or reshape, else []."""
    op = value.owner
    if not isinstance(op, Operation) or value in ctx.divided:
        return []
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp):
        narrow = element_of(op.operands[0].type)
        return [] if narrow == i1 else [(op.operands[0], type(op) is arith.ExtuiOp)]
    if isinstance(op, arith.SelectOp):
        return [(op.true_value, unsigned), (op.false_value, unsigned)]
    if isinstance(op, (*_ARITHMETIC, *_SHAPES)):
        return [(operand, unsigned) for operand in op.operands]
    return []


def _widened(ctx: Context, number: _Number, parts: list[SSAValue]) -> SSAValue:
    """Compute a number in 64 bits from its parts in 64 bits, or convert it."""
    (value, unsigned), op = number, number[0].owner
    type_ = VectorType(IndexType(), vector_type(value).get_shape())
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp) and parts:
        return parts[0]
    if isinstance(op, Operation) and parts:
        condition = [op.condition] if isinstance(op, arith.SelectOp) else []
        return ctx.emit(remade(op, [*condition, *parts], [type_]))
    if isinstance(op, arith.IndexCastOp) and op.operands[0].type == type_:
        return op.operands[0]  # the value is of `arange`
    if isinstance(op, vector.BroadcastOp) and not is_vector(op.operands[0].type):
        scalar = op.operands[0].owner
        if isinstance(scalar, arith.IndexCastOp):
            # A scalar of the language has 64 bits.
            return ctx.emit(vector.BroadcastOp(scalar.operands[0], type_))
    cast = arith.IndexCastuiOp if unsigned else arith.IndexCastOp
    return ctx.emit(cast(value, type_))


_Number = tuple[SSAValue, bool]
"""A value, and whether it is an unsigned number."""


def first_of_counted(ctx: Context, indices: SSAValue) -> Extent | None:
    """Return the first of indices that count up by one; None if they do not."""
    build, first = Builder(InsertPoint.at_end(ctx.block), ctx.location()), 0
    while not isinstance(op := indices.owner, vector.StepOp):
        if not isinstance(op, Operation) or "map" in op.attributes:
            return None
        if isinstance(op, vector.ShapeCastOp):
            (indices,) = op.operands
        elif isinstance(op, arith.AddiOp) and (number := _number(op.rhs)) is not None:
            indices, first = op.lhs, build.plus(first, number)
        elif isinstance(op, arith.AddiOp) and (number := _number(op.lhs)) is not None:
            indices, first = op.rhs, build.plus(first, number)
        elif isinstance(op, arith.SubiOp) and (number := _number(op.rhs)) is not None:
            indices, first = op.lhs, build.minus(first, number)
        else:
            return None
    return first


def _number(value: SSAValue) -> Extent | None:
    """Return the number that all elements are; None if it is unknown."""
    op = value.owner
    if isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type):
        return op.source
    if isinstance(op, vector.ShapeCastOp):
        return _number(op.operands[0])
    if isinstance(op, arith.IndexCastOp):  # of a constant: scalars are cast as such
        op = op.operands[0].owner
    number = splat_value(op.value) if isinstance(op, arith.ConstantOp) else None
    return None if number is None else int(number)
