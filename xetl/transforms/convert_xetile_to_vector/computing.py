"""Operations on tile values as those of `vector` on matrices."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import ints_of, vector_type, with_element
from xetl.dialects.literals import make_splat
from xetl.dialects.reduction_kinds import identity_of, sums_run_in
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TileMmaOp,
    TilePackOp,
    TileReduceOp,
    TileTransposeOp,
    TileUnpackOp,
)
from xetl.ir.builder import Builder

_MAPS = ((0, 2), (2, 1), (0, 1))
_ITERATORS = ("parallel", "parallel", "reduction")


def problem_with(op: Operation) -> str | None:
    """Why `vector` cannot say what ``op`` does; None if it can."""
    if isinstance(op, TileMmaOp) and vector_type(op.a).get_num_dims() != 2:
        return "its operands are looked at in blocks"
    if isinstance(op, TileMmaOp) and op.precision is not None:
        return f"`vector.contract` has no precision `{op.precision.data}`"
    if isinstance(op, TileReduceOp) and op.reduction_size is not None:
        return None if len(op.dims) == 1 else "it reduces groups in two dimensions"
    return None


def multiply(op: TileMmaOp, build: Builder) -> SSAValue:
    """A contraction in the type sums run in, rounded once."""
    result = op.result.type
    element = result.element_type
    wide = f32 if isinstance(element, Float16Type | BFloat16Type) else element
    type_ = VectorType(wide, result.shape)
    a, b = _sides(op, wide, build)
    acc = _constant(0, type_, build) if op.c is None else _extended(op.c, wide, build)
    product = vector.ContractOp(a, b, acc, _MAPS, _ITERATORS)
    return _truncated(build.insert(product), element, build)


def _sides(op: TileMmaOp, wide: Attribute, build: Builder) -> tuple[SSAValue, SSAValue]:
    """Both sides; integers without sign in the type of the result."""
    flags = op.a_unsigned is not None, op.b_unsigned is not None
    if not any(flags) or vector_type(op.a).element_type == wide:
        return op.a, op.b
    sides: list[SSAValue] = []
    for side, unsigned in zip((op.a, op.b), flags):
        extend = arith.ExtuiOp if unsigned else arith.ExtsiOp
        sides.append(build.insert(extend(side, with_element(side.type, wide))))
    return sides[0], sides[1]


def transpose(op: TileTransposeOp, build: Builder) -> SSAValue:
    """Rows become columns."""
    return build.insert(vector.TransposeOp(op.source, ints_of(op.permutation)))


def pack(op: TilePackOp, build: Builder) -> SSAValue:
    """Rows and columns are split in two; the inner halves come last."""
    rows, columns, *block = op.result.type.get_shape()
    split = VectorType(op.result.type.element_type, [rows, block[0], columns, block[1]])
    parts = build.insert(vector.ShapeCastOp(op.source, split))
    return build.insert(vector.TransposeOp(parts, (0, 2, 1, 3)))


def unpack(op: TileUnpackOp, build: Builder) -> SSAValue:
    """Undo `pack`."""
    parts = build.insert(vector.TransposeOp(op.source, (0, 2, 1, 3)))
    return build.insert(vector.ShapeCastOp(parts, op.result.type))


def broadcast(op: TileBroadcastOp, build: Builder) -> SSAValue:
    """A dimension of size 1 is repeated."""
    return build.insert(vector.BroadcastOp(op.source, op.result.type))


def reduce(op: TileReduceOp, build: Builder) -> SSAValue:
    """A reduction from the identity; its dimension comes back with size 1."""
    kind, element = op.kind.data, vector_type(op.source).element_type
    wide = sums_run_in(kind, element)
    value, dims = _extended(op.source, wide, build), op.dims
    if op.reduction_size is not None:
        value, dims = _in_groups(op, value, build)
    shape = vector_type(value).get_shape()
    kept = [extent for dim, extent in enumerate(shape) if dim not in dims]
    type_ = VectorType(wide, kept) if kept else wide
    start = _constant(identity_of(kind, wide), type_, build)
    found = build.insert(vector.MultiReductionOp(kind, value, start, dims))
    full = VectorType(wide, op.result.type.shape)
    shaped = vector.ShapeCastOp if kept else vector.BroadcastOp
    return _truncated(build.insert(shaped(found, full)), element, build)


def _in_groups(
    op: TileReduceOp, value: SSAValue, build: Builder
) -> tuple[SSAValue, tuple[int, ...]]:
    """Neighbours that are combined get a dimension of their own."""
    assert op.reduction_size is not None
    size, (dim,) = op.reduction_size.value.data, op.dims
    shape = list(vector_type(value).get_shape())
    shape[dim : dim + 1] = [shape[dim] // size, size]
    type_ = VectorType(vector_type(value).element_type, shape)
    return build.insert(vector.ShapeCastOp(value, type_)), (dim + 1,)


def _constant(number: float, type_: Attribute, build: Builder) -> SSAValue:
    return build.insert(arith.ConstantOp(make_splat(number, type_), type_))


def _extended(value: SSAValue, wide: Attribute, build: Builder) -> SSAValue:
    type_ = with_element(value.type, wide)
    return value if type_ == value.type else build.insert(arith.ExtfOp(value, type_))


def _truncated(value: SSAValue, element: Attribute, build: Builder) -> SSAValue:
    type_ = with_element(value.type, element)
    if type_ == value.type:
        return value
    return build.insert(arith.TruncfOp(value, type_))
