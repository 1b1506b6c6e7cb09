"""Indices of gathers and scatters in 64 bits, from what they were computed of.

`row * stride + column` of i32 numbers wraps where an array has 2**31 elements and more,
so the sums and products that an index is made of are computed once more, in 64 bits.
What `//` and `%` give, bits, narrowed numbers and what a loop carries keep their range.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.frontend.context import Context
from xetl.frontend.types import Vector
from xetl.language.dtypes import index

_ARITHMETIC = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp),
    *(arith.MinsiOp, arith.MaxsiOp, arith.MinuiOp, arith.MaxuiOp),
)
_SHAPES = (vector.ShapeCastOp, TileBroadcastOp, TileTransposeOp)


def as_indices(ctx: Context, indices: Vector) -> SSAValue:
    """An integer vector as a vector of `index`."""
    if indices.dtype == index:
        return indices.ssa
    root = indices.ssa, indices.dtype.kind == "u"
    found: dict[_Number, SSAValue] = {}
    waiting = [root]
    while waiting:
        number = waiting[-1]
        parts = _parts(ctx, *number)
        missing = [part for part in parts if part not in found]
        if missing and number not in found:
            waiting += missing
            continue
        waiting.pop()
        if number not in found:
            found[number] = _widened(ctx, number, [found[part] for part in parts])
    return found[root]


def _parts(ctx: Context, value: SSAValue, unsigned: bool) -> list[_Number]:
    """What ``value`` is a sum, a product, a choice or another shape of."""
    op = value.owner
    if not isinstance(op, Operation) or value in ctx.divided:
        return []
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp):
        narrow = element_type(op.operands[0].type)
        return [] if narrow == i1 else [(op.operands[0], isinstance(op, arith.ExtuiOp))]
    if isinstance(op, arith.SelectOp):
        return [(op.true_value, unsigned), (op.false_value, unsigned)]
    if isinstance(op, (*_ARITHMETIC, *_SHAPES)):
        return [(operand, unsigned) for operand in op.operands]
    return []


def _widened(ctx: Context, number: _Number, parts: list[SSAValue]) -> SSAValue:
    """A number in 64 bits: from its parts in 64 bits, or itself converted."""
    (value, unsigned), op = number, number[0].owner
    type_ = VectorType(IndexType(), vector_type(value).get_shape())
    if isinstance(op, arith.ExtsiOp | arith.ExtuiOp) and parts:
        return parts[0]
    if isinstance(op, Operation) and parts:
        condition = [op.condition] if isinstance(op, arith.SelectOp) else []
        new = type(op).create(
            operands=[*condition, *parts],
            result_types=[type_],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        return ctx.emit(new)
    if isinstance(op, arith.IndexCastOp) and op.operands[0].type == type_:
        return op.operands[0]  # of `arange`
    if isinstance(op, vector.BroadcastOp) and not is_vector(op.operands[0].type):
        scalar = op.operands[0].owner
        if isinstance(scalar, arith.IndexCastOp):
            # A scalar of the language has 64 bits.
            return ctx.emit(vector.BroadcastOp(scalar.operands[0], type_))
    cast = arith.IndexCastuiOp if unsigned else arith.IndexCastOp
    return ctx.emit(cast(value, type_))


_Number = tuple[SSAValue, bool]
"""A value, and whether it is an unsigned number."""
