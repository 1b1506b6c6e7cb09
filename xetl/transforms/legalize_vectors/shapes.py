"""Rewrite vectors of any rank as matrices.

The rules cover casts, transposes, broadcasts, reductions and products. A mask by bounds
becomes a comparison of the positions of elements.

A contraction with batch dimensions (which both sides and the result have) becomes
(b, m, k) x (b, k, n) -> (b, m, n), with one batch dimension: backends loop or repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import Index, element_type, is_vector, shape_of, vector_type
from xetl.dialects.literals import make_splat
from xetl.dialects.reduction_kinds import identity_of, operation_of, sums_run_in
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileMmaOp, TileReduceOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.transforms.exchange import spread
from xetl.transforms.rewriting import Rule, Values


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Return rows and columns of a vector of any rank: its last dimension is a row."""
    return prod(shape[:-1]), prod(shape[-1:])


def cast(b: Builder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Reshape a vector, in row-major order."""
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
    """Reshape a vector to its `matrix_shape`."""
    return cast(b, value, matrix_shape(shape_of(value.type)))


def permuted(b: Builder, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Permute the dimensions of a vector."""
    found = _as_matrix_transpose(b, value, dims)
    return b.insert(vector.TransposeOp(value, list(dims))) if found is None else found


def _as_matrix_transpose(
    b: Builder, value: SSAValue, dims: Sequence[int]
) -> SSAValue | None:
    """Permute by casts and a matrix transpose. Return None if that is impossible."""
    shape = shape_of(value.type)
    result = [shape[dim] for dim in dims]
    # Runs of dimensions that are also adjacent in the source, ignoring sizes of 1.
    runs: list[list[int]] = []
    for dim in [dim for dim in dims if shape[dim] > 1]:
        last = runs[-1][-1] if runs else dim
        if last < dim and prod(shape[last + 1 : dim]) == 1:
            runs[-1].append(dim)
        else:
            runs.append([dim])
    if len(runs) <= 1:
        return cast(b, value, result)
    if len(runs) > 2:
        return None
    columns, rows = (prod(shape[dim] for dim in run) for run in runs)
    turned = b.insert(TileTransposeOp(cast(b, value, (rows, columns))))
    return cast(b, turned, result)


def broadcasted(b: Builder, source: SSAValue, shape: Sequence[int]) -> SSAValue | None:
    """Repeat one row or one column of a vector; None for other broadcasts."""
    have = shape_of(source.type)
    have = (*[1] * (len(shape) - len(have)), *have)
    if prod(have) == prod(shape):
        return cast(b, source, shape)
    if prod(have[:-1]) not in (1, prod(shape[:-1])):
        return None
    matrix = spread(b, cast(b, source, matrix_shape(have)), matrix_shape(shape))
    return cast(b, matrix, shape)


def transpose(b: Builder, op: vector.TransposeOp) -> Values | None:
    """Rewrite a transpose as the transpose of a matrix, if that is possible."""
    found = _as_matrix_transpose(b, op.source, op.dims)
    return None if found is None else [found]


def broadcast(b: Builder, op: vector.BroadcastOp) -> Values | None:
    """Rewrite the broadcast of a row, a column or one element; a scalar's stays."""
    if not is_vector(op.source.type):
        return None
    found = broadcasted(b, op.source, shape_of(op.result.type))
    return None if found is None else [found]


def places_along(b: Builder, shape: Sequence[int], dim: int) -> SSAValue:
    """Return the position of each element along a dimension, as a row or column.

    The row or column belongs to the vector's matrix; `spread` repeats it.
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
    """Compare positions with one bound."""
    limit = b.insert(vector.BroadcastOp(b.index(bound), places.type))
    return b.insert(arith.CmpiOp(predicate, places, limit))


def all_of(b: Builder, mask: SSAValue | None, shape: tuple[int, int]) -> SSAValue:
    """Return the mask of a matrix, all true if ``mask`` is None."""
    return b.constant(1, VectorType(i1, list(shape))) if mask is None else mask


def _mask(b: Builder, op: vector.CreateMaskOp | vector.ConstantMaskOp) -> Values:
    """Rewrite a mask by bounds, which may be negative, as comparisons."""
    shape = shape_of(op.result.type)
    matrix = matrix_shape(shape)
    whole: SSAValue | None = None
    for dim, bound in enumerate(op.bounds):
        if isinstance(bound, int) and bound >= shape[dim]:
            continue
        inside = compared(b, "slt", places_along(b, shape, dim), bound)
        whole = b.conjunction(whole, spread(b, inside, matrix))
    return [cast(b, all_of(b, whole, matrix), shape)]


def reduced(b: Builder, value: SSAValue, kind: str, dims: Sequence[int]) -> SSAValue:
    """Reduce some dimensions; return the remaining elements as a row-major matrix.

    Trailing reduced dimensions are the columns of a matrix. All others are moved to
    the front and reduced first: see `LEADING`.
    """
    shape, element = shape_of(value.type), element_type(value.type)
    gone = [dim for dim, size in enumerate(shape) if dim in dims and size > 1]
    rest = prod(shape) // prod(shape[dim] for dim in gone)
    if not gone:
        return as_matrix(b, value)
    if rest == 1:
        return b.insert(TileReduceOp(as_matrix(b, value), kind, [0, 1]))
    end = len(shape)
    while end - 1 in gone or shape[end - 1] == 1:
        end -= 1
    outer = [dim for dim in gone if dim < end]
    if not outer:
        matrix = cast(b, value, (rest, prod(shape) // rest))
        return b.insert(TileReduceOp(matrix, kind, [1]))
    inner = prod(shape[dim] for dim in gone if dim > end - 1)
    sums = sums_run_in(kind, element) if inner > 1 else element
    value = b.widened(value, sums)  # one rounding, whatever the number of steps
    kept = [dim for dim in range(len(shape)) if dim not in outer]
    value = _over_leading(b, permuted(b, value, [*outer, *kept]), kind, len(outer))
    if inner > 1:
        value = b.insert(TileReduceOp(cast(b, value, (rest, inner)), kind, [1]))
    return b.narrowed(value, element)


def _over_leading(b: Builder, value: SSAValue, kind: str, count: int) -> SSAValue:
    """Reduce the first dimensions of a vector; return the rest as a matrix."""
    shape, element = shape_of(value.type), element_type(value.type)
    depth, columns = prod(shape[:count]), shape[-1]
    rows = prod(shape) // depth // columns
    if rows == 1:
        return b.insert(TileReduceOp(cast(b, value, (depth, columns)), kind, [0]))
    start = b.constant(identity_of(kind, element), VectorType(element, [rows, columns]))
    whole = cast(b, value, (depth, rows, columns))
    return b.insert(vector.MultiReductionOp(whole, start, kind, LEADING))


LEADING = (0,)
"""The dimensions of the only form of `vector.multi_reduction` that backends get.

It reduces the first of three dimensions and starts from the identity: backends combine
matrices element by element, or as rows of a longer matrix.
"""


def _reduce(
    b: Builder, op: vector.ReductionOp | vector.MultiReductionOp, dims: Sequence[int]
) -> Values:
    """Reduce, then combine with ``acc`` by a separate operation."""
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
    """Whether a reduction starts from the identity of its kind."""
    type_, start = op.acc.type, op.acc.owner
    neutral = identity_of(op.kind.kind, element_type(type_))
    return isinstance(start, arith.ConstantOp) and start.value == make_splat(
        neutral, type_
    )


BATCHED = ((0, 1, 3), (0, 3, 2), (0, 1, 2))
"""The dimensions of (b, m, n, k) that lhs, rhs and acc have, in order."""
_ITERATORS = ("parallel", "parallel", "parallel", "reduction")


def contract(b: Builder, op: vector.ContractOp) -> Values | None:
    """Permute the dimensions of all operands; sum over those that only one side has."""
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
    if is_vector(op.acc.type):
        start = permuted(b, op.acc, [acc.index(dim) for dim in order])
    else:
        one = VectorType(op.acc.type, [1, 1])
        start = b.insert(vector.BroadcastOp(op.acc, one))
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


def _ordered(
    b: Builder, value: SSAValue, dims: Sequence[int], wanted: Sequence[int]
) -> SSAValue:
    """Permute the dimensions of one side; sum over those that no other operand has."""
    alone = [place for place, dim in enumerate(dims) if dim not in wanted]
    if alone:
        shape = vector_type(value).get_shape()
        value = reduced(b, value, "add", alone)
        dims = [dim for dim in dims if dim in wanted]
        value = cast(b, value, [n for at, n in enumerate(shape) if at not in alone])
    return permuted(b, value, [list(dims).index(dim) for dim in wanted])


RULES: dict[type[Operation], Rule] = {
    vector.TransposeOp: transpose,
    vector.BroadcastOp: broadcast,
    vector.CreateMaskOp: _mask,
    vector.ConstantMaskOp: _mask,
    vector.ReductionOp: lambda b, op: _reduce(b, op, [0]),
    vector.MultiReductionOp: multi_reduction,
    vector.ContractOp: contract,
}
