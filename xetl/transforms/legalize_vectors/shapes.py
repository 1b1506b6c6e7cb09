"""Vectors of any rank as matrices: casts, transposes, broadcasts; masks by bounds.

A mask by bounds is a comparison of the places of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, is_vector, shape_of, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a vector of any rank: its last dimension is a row."""
    return prod(shape[:-1]), prod(shape[-1:])


def cast(b: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The elements of a vector, row by row, in another shape."""
    type_ = vector_type(value)
    if type_.get_shape() == tuple(shape):
        return value
    before = value.owner
    if isinstance(before, vector.ShapeCastOp):
        value = before.source
        if shape_of(value.type) == tuple(shape):
            return value
    new = VectorType(type_.element_type, list(shape))
    return b.insert(vector.ShapeCastOp(value, new))


def as_matrix(b: Builder, value: SSAValue) -> SSAValue:
    """The vector as rows and columns."""
    return cast(b, value, matrix_shape(shape_of(value.type)))


def permuted(b: Builder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """The vector with its dimensions in another order."""
    found = _as_matrix_transpose(b, value, dims)
    return b.insert(vector.TransposeOp(value, list(dims))) if found is None else found


def _as_matrix_transpose(
    b: Builder, value: SSAValue, dims: Sequence[int]
) -> SSAValue | None:
    """`permuted` by casts and the transpose of a matrix; None if that is not enough."""
    shape = shape_of(value.type)
    result = [shape[dim] for dim in dims]
    runs = _runs([dim for dim in dims if shape[dim] > 1], shape)
    if len(runs) <= 1:
        return cast(b, value, result)
    if len(runs) > 2:
        return None
    columns, rows = (prod(shape[dim] for dim in run) for run in runs)
    turned = b.insert(TileTransposeOp(cast(b, value, (rows, columns))))
    return cast(b, turned, result)


def _runs(dims: Sequence[int], shape: Sequence[int]) -> list[list[int]]:
    """Dimensions that follow each other in the source, too, but for sizes of 1."""
    found: list[list[int]] = []
    for dim in dims:
        last = found[-1][-1] if found else dim
        if last < dim and prod(shape[last + 1 : dim]) == 1:
            found[-1].append(dim)
        else:
            found.append([dim])
    return found


def broadcasted(b: Builder, source: SSAValue, shape: Sequence[int]) -> SSAValue | None:
    """New dimensions in front, and those of size 1, repeat what is there.

    Returns:
        The vector; None if it is not one row or one column that is repeated.
    """
    have = shape_of(source.type)
    have = (*[1] * (len(shape) - len(have)), *have)
    if prod(have) == prod(shape):
        return cast(b, source, shape)
    if prod(have[:-1]) not in (1, prod(shape[:-1])):
        return None
    matrix = spread(b, cast(b, source, matrix_shape(have)), matrix_shape(shape))
    return cast(b, matrix, shape)


def spread(b: Builder, value: SSAValue, shape: tuple[int, int]) -> SSAValue:
    """A row, a column or one element repeated to a matrix."""
    pairs = zip(shape_of(value.type), shape)
    dims = [dim for dim, (old, new) in enumerate(pairs) if old != new]
    if not dims:
        return value
    full = VectorType(vector_type(value).element_type, list(shape))
    return b.insert(TileBroadcastOp(value, full, broadcast_dims=dims))


def transpose(b: Builder, op: vector.TransposeOp) -> Values | None:
    """Dimensions that change places, as rows that become columns if they are that."""
    found = _as_matrix_transpose(b, op.source, op.dims)
    return None if found is None else [found]


def broadcast(b: Builder, op: vector.BroadcastOp) -> Values | None:
    """A row, a column or one element is repeated; a number stays what it was."""
    if not is_vector(op.source.type):
        return None
    found = broadcasted(b, op.source, shape_of(op.result.type))
    return None if found is None else [found]


def places_along(b: Builder, shape: Sequence[int], dim: int) -> SSAValue:
    """For each element of a vector its place along a dimension.

    Returns:
        Indices: a row or a column of the matrix that has the vector's elements, which
        `spread` repeats.
    """
    rows, columns = matrix_shape(shape)
    if dim == len(shape) - 1:
        steps = b.insert(vector.StepOp(VectorType(IndexType(), [columns])))
        return cast(b, steps, (1, columns))
    inner = prod(shape[dim + 1 : -1])
    type_ = VectorType(IndexType(), [rows, 1])
    places = [row // inner % shape[dim] for row in range(rows)]
    dense = DenseIntOrFPElementsAttr.from_list(type_, places)
    return b.insert(arith.ConstantOp(dense, type_))


def compared(b: Builder, predicate: str, places: SSAValue, bound: Index) -> SSAValue:
    """Compare each of some places with one bound."""
    limit = b.insert(vector.BroadcastOp(b.index(bound), places.type))
    return b.insert(arith.CmpiOp(predicate, places, limit))


def all_of(b: Builder, mask: SSAValue | None, shape: tuple[int, int]) -> SSAValue:
    """A mask of a matrix; None: of all its elements."""
    return b.constant(1, VectorType(i1, list(shape))) if mask is None else mask


def _mask(b: Builder, op: vector.CreateMaskOp | vector.ConstantMaskOp) -> Values:
    """The corner of a vector that has these sizes; sizes may be negative."""
    shape = shape_of(op.result.type)
    matrix = matrix_shape(shape)
    whole: SSAValue | None = None
    for dim, bound in enumerate(op.bounds):
        if isinstance(bound, int) and bound >= shape[dim]:
            continue
        inside = compared(b, "slt", places_along(b, shape, dim), bound)
        whole = b.conjunction(whole, spread(b, inside, matrix))
    return [cast(b, all_of(b, whole, matrix), shape)]


RULES: dict[type[Operation], Rule] = {
    vector.TransposeOp: transpose,
    vector.BroadcastOp: broadcast,
    vector.CreateMaskOp: _mask,
    vector.ConstantMaskOp: _mask,
}
