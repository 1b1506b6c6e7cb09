"""Reductions of any dimensions as those of rows; contractions as products of matrices.

With a batch, a dimension that all three have, what is left of a contraction is one of
(b, m, k) x (b, k, n) -> (b, m, n) with all of the batch in one dimension: backends loop
or repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import element_type, is_vector, shape_of, vector_type
from xetl.dialects.literals import make_splat
from xetl.dialects.reduction_kinds import identity_of, operation_of, sums_run_in
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileMmaOp, TileReduceOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.shapes import as_matrix, cast, permuted
from xetl.transforms.rewriting import Rule, Values


def reduced(b: Builder, value: SSAValue, kind: str, dims: Sequence[int]) -> SSAValue:
    """Reduce some dimensions: a matrix with what remains, row by row.

    Reduced dimensions at the end are the columns of a matrix.  Those before come first
    and are reduced first: see `LEADING`.
    """
    shape, element = shape_of(value.type), element_type(value.type)
    gone = [dim for dim, size in enumerate(shape) if dim in dims and size > 1]
    rest = prod(shape) // prod(shape[dim] for dim in gone)
    if not gone:
        return as_matrix(b, value)
    if rest == 1:
        return b.insert(TileReduceOp(kind, as_matrix(b, value), [0, 1]))
    end = len(shape)
    while end - 1 in gone or shape[end - 1] == 1:
        end -= 1
    outer = [dim for dim in gone if dim < end]
    if not outer:
        matrix = cast(b, value, (rest, prod(shape) // rest))
        return b.insert(TileReduceOp(kind, matrix, [1]))
    inner = prod(shape[dim] for dim in gone if dim > end - 1)
    sums = sums_run_in(kind, element) if inner > 1 else element
    value = b.widened(value, sums)  # one rounding, whatever the number of steps
    kept = [dim for dim in range(len(shape)) if dim not in outer]
    value = _over_leading(b, permuted(b, value, [*outer, *kept]), kind, len(outer))
    if inner > 1:
        value = b.insert(TileReduceOp(kind, cast(b, value, (rest, inner)), [1]))
    return b.narrowed(value, element)


def _over_leading(b: Builder, value: SSAValue, kind: str, count: int) -> SSAValue:
    """Reduce the first dimensions of a vector: a matrix with what remains."""
    shape, element = shape_of(value.type), element_type(value.type)
    depth, columns = prod(shape[:count]), shape[-1]
    rows = prod(shape) // depth // columns
    if rows == 1:
        return b.insert(TileReduceOp(kind, cast(b, value, (depth, columns)), [0]))
    start = b.constant(identity_of(kind, element), VectorType(element, [rows, columns]))
    whole = cast(b, value, (depth, rows, columns))
    return b.insert(vector.MultiReductionOp(whole, start, kind, LEADING))


LEADING = (0,)
"""The dimensions of the one `vector.multi_reduction` that is left to backends.

It reduces the first of three dimensions and starts from the identity: matrices are
combined, element by element or as rows of a longer matrix.
"""


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


def multi_reduction(b: Builder, op: vector.MultiReductionOp) -> Values | None:
    """Reduce some dimensions of a vector of any rank."""
    if len(shape_of(op.source.type)) == 3 and op.dims == LEADING and _is_identity(op):
        return None
    return _reduce(b, op, op.dims)


def _is_identity(op: vector.MultiReductionOp) -> bool:
    """Whether a reduction starts from a constant that changes nothing."""
    type_, start = op.acc.type, op.acc.owner
    neutral = identity_of(op.kind.kind, element_type(type_))
    return isinstance(start, arith.ConstantOp) and start.value == make_splat(
        neutral, type_
    )


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


RULES: dict[type[Operation], Rule] = {
    vector.ReductionOp: lambda b, op: _reduce(b, op, [0]),
    vector.MultiReductionOp: multi_reduction,
    vector.ContractOp: contract,
}
