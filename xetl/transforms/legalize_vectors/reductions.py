"""Reductions of any dimensions of a vector as those of the rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, shape_of
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.reduction_kinds import operation_of
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import TileReduceOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.shapes import as_matrix, cast, permuted
from xetl.transforms.rewriting import Rule, Values


def reduced(b: Builder, value: SSAValue, kind: str, dims: Sequence[int]) -> SSAValue:
    """Reduce some dimensions: a matrix of one row or column with what remains.

    Where the dimensions that stay are not side by side, the reduced ones come first,
    or last if the last one is among them: rows are whole then.
    """
    shape = shape_of(value.type)
    sides = [
        (is_reduced, prod(shape[dim] for dim in group))
        for is_reduced, group in groupby(range(len(shape)), lambda dim: dim in dims)
    ]
    sides = [side for side in sides if side[1] > 1]
    flags = [is_reduced for is_reduced, _ in sides]
    if True not in flags:
        return cast(b, value, (1, prod(shape)))
    if flags == [True]:
        return b.insert(TileReduceOp(kind, as_matrix(b, value), [0, 1]))
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    if len(flags) > 2:
        order = [*kept, *dims] if flags[-1] else [*dims, *kept]
        value = permuted(b, value, order)
    rest = prod(shape[dim] for dim in kept)
    count = prod(shape) // rest
    if flags[-1]:
        return b.insert(TileReduceOp(kind, cast(b, value, (rest, count)), [1]))
    return b.insert(TileReduceOp(kind, cast(b, value, (count, rest)), [0]))


def _reduce(
    b: Builder, op: vector.ReductionOp | vector.MultiReductionOp, dims: Sequence[int]
) -> Values:
    """Reduce, then combine with ``acc``: that is an operation of its own."""
    kind, result = op.kind.kind, op.result.type
    value = reduced(b, op.source, kind, dims)
    if is_vector(result):
        value = cast(b, value, result.get_shape())
    else:
        value = b.insert(vector.ExtractOp(value, [0, 0]))
    if op.acc is not None:
        value = b.insert(operation_of(kind, element_type(result))(value, op.acc))
    return [value]


def _reduction(b: Builder, op: vector.ReductionOp) -> Values:
    return _reduce(b, op, [0])


def multi_reduction(b: Builder, op: vector.MultiReductionOp) -> Values:
    """Reduce some dimensions of a vector of any rank."""
    return _reduce(b, op, op.dims)


RULES: dict[type[Operation], Rule] = {
    vector.ReductionOp: _reduction,
    vector.MultiReductionOp: multi_reduction,
}
