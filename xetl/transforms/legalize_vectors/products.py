"""Contractions as products of matrices.

With a batch, a dimension that all three have, what is left is a contraction
(b, m, k) x (b, k, n) -> (b, m, n) with all of the batch in one dimension: backends loop
or repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import shape_of, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import TileMmaOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.reductions import reduced
from xetl.transforms.legalize_vectors.shapes import cast, permuted
from xetl.transforms.rewriting import Rule, Values

BATCHED = ((0, 1, 3), (0, 3, 2), (0, 1, 2))
"""Which of (b, m, n, k) the dimensions of lhs, rhs and acc are."""
_ITERATORS = ("parallel", "parallel", "parallel", "reduction")


def contract(b: Builder, op: vector.ContractOp) -> Values | None:
    """Bring the dimensions of all sides in order, and sum up what only one side has."""
    if op.kind.kind != "add":
        raise VerifyException(f"products are added, not combined by `{op.kind.kind}`")
    lhs, rhs, acc = op.maps
    if (lhs, rhs, acc) == BATCHED:
        return None
    left, right = op.lhs, op.rhs
    batch = [dim for dim in acc if dim in lhs and dim in rhs]
    if acc[len(batch) :][:1] and acc[len(batch)] not in lhs:
        # The side that has the rows of the result comes first.
        left, right, lhs, rhs = right, left, rhs, lhs
    rows = [dim for dim in acc if dim in lhs and dim not in rhs]
    columns = [dim for dim in acc if dim in rhs and dim not in lhs]
    deep = [dim for dim in lhs if dim not in acc and dim in rhs]
    order = [*batch, *rows, *columns]
    extents = dict(zip(lhs, shape_of(left.type))) | dict(zip(rhs, shape_of(right.type)))
    count, m, k, n = (
        prod(extents[dim] for dim in dims) for dims in (batch, rows, deep, columns)
    )
    left = _ordered(b, left, lhs, [*batch, *rows, *deep])
    right = _ordered(b, right, rhs, [*batch, *deep, *columns])
    start = _addend(b, op, [acc.index(dim) for dim in order])
    if count == 1:
        sides = cast(b, left, (m, k)), cast(b, right, (k, n)), cast(b, start, (m, n))
        found = b.insert(TileMmaOp(*sides))
    else:
        left, right = cast(b, left, (count, m, k)), cast(b, right, (count, k, n))
        start = cast(b, start, (count, m, n))
        found = b.insert(vector.ContractOp(left, right, start, BATCHED, _ITERATORS))
    if not is_vector(op.result.type):
        return [b.insert(vector.ExtractOp(found, [0, 0]))]
    found = cast(b, found, [extents[dim] for dim in order])
    return [permuted(b, found, [order.index(dim) for dim in acc])]


def _addend(b: Builder, op: vector.ContractOp, dims: Sequence[int]) -> SSAValue:
    """What products are added to, its dimensions in order."""
    if is_vector(op.acc.type):
        return permuted(b, op.acc, dims)
    return b.insert(vector.BroadcastOp(op.acc, VectorType(op.acc.type, [1, 1])))


def _ordered(
    b: Builder, value: SSAValue, dims: Sequence[int], wanted: Sequence[int]
) -> SSAValue:
    """A side with its dimensions in order; what nobody else has is summed up."""
    alone = [place for place, dim in enumerate(dims) if dim not in wanted]
    if alone:
        shape = vector_type(value).get_shape()
        value = reduced(b, value, "add", alone)
        dims = [dim for dim in dims if dim in wanted]
        value = cast(b, value, [n for at, n in enumerate(shape) if at not in alone])
    return permuted(b, value, [list(dims).index(dim) for dim in wanted])


RULES: dict[type[Operation], Rule] = {vector.ContractOp: contract}
