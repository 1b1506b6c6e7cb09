"""Masks by bounds as comparisons of the places of elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    VectorType,
    i1,
)
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, shape_of
from xetl.dialects.upstream import arith, vector
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.shapes import cast, matrix_shape, spread
from xetl.transforms.rewriting import Rule, Values


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


def conjunction(b: Builder, one: SSAValue | None, other: SSAValue) -> SSAValue:
    """Elements for which both hold; None holds for all."""
    return other if one is None else b.insert(arith.AndiOp(one, other))


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
        whole = conjunction(b, whole, spread(b, inside, matrix))
    return [cast(b, all_of(b, whole, matrix), shape)]


RULES: dict[type[Operation], Rule] = {
    vector.CreateMaskOp: _mask,
    vector.ConstantMaskOp: _mask,
}
