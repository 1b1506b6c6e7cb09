"""Reductions and products of vectors of any rank, as those of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.reduction_kinds import operation_of, sums_run_in
from xetl.dialects.upstream import vector
from xetl_xegpu.lowering.to_xegpu.conversion import Converter, Rule
from xetl_xegpu.lowering.to_xegpu.elementwise import narrowed, widened
from xetl_xegpu.lowering.to_xegpu.fragments import (
    Pieces,
    grid_of,
    matrix_shape,
    position,
    vector_of,
)
from xetl_xegpu.lowering.to_xegpu.lines import element_line
from xetl_xegpu.lowering.to_xegpu.products import multiplied
from xetl_xegpu.lowering.to_xegpu.rearranging import (
    Origin,
    as_rows,
    cast_parts,
    indices_at,
    ravel,
    rearranged,
    unravel,
)
from xetl_xegpu.lowering.to_xegpu.reductions import combined, reduced


def _reduce(
    c: Converter, op: vector.ReductionOp | vector.MultiReductionOp, dims: Sequence[int]
) -> None:
    """Reduce, then combine with ``acc``: that is an operation of its own."""
    source, kind, value = c.pieces(op.source), op.kind.kind, op.result
    found = _over(c, kind, source, dims)
    combine = operation_of(kind, source.element)
    if not is_vector(value.type):
        number = element_line(c, found, 0)
        if op.acc is not None:
            number = c.emit.value(combine(number, op.acc))
        c.bind(value, number)
        return
    parts = cast_parts(c, found, vector_type(value))
    if op.acc is not None:
        pairs = zip(parts, c.pieces(op.acc).parts)
        parts = [c.emit.value(combine(*pair)) for pair in pairs]
    c.give_parts(value, parts)


def _over(c: Converter, kind: str, source: Pieces, dims: Sequence[int]) -> Pieces:
    """All elements along some dimensions combined: a matrix of what is left.

    Its columns are the last dimension, or one if that is combined, too.
    """
    shape = source.shape
    last = len(shape) - 1
    matrix = as_rows(c, source)
    outer = [dim for dim in dims if dim != last]
    kept = [dim for dim in range(last) if dim not in dims]
    if outer and prod(shape[dim] for dim in kept) == 1:
        matrix = reduced(c, kind, matrix, [0])
    elif outer:
        matrix = _slices(c, kind, matrix, shape, outer, kept)
    return reduced(c, kind, matrix, [1]) if last in dims else matrix


def _slices(
    c: Converter,
    kind: str,
    matrix: Pieces,
    shape: Sequence[int],
    outer: Sequence[int],
    kept: Sequence[int],
) -> Pieces:
    """Rows that differ only in some dimensions combined, element by element."""
    extents = [shape[dim] for dim in kept]
    rows, columns = prod(extents), shape[-1]
    sums = sums_run_in(kind, matrix.element)
    found: list[list[SSAValue]] = []
    for at in product(*(range(shape[dim]) for dim in outer)):
        fixed = dict(zip(outer, at))

        def where(row: int, column: int, fixed: dict[int, int] = fixed) -> Origin:
            index = fixed | dict(zip(kept, unravel(extents, row)))
            place = ravel(shape[:-1], [index[dim] for dim in range(len(shape) - 1)])
            return Origin(matrix, place, column)

        parts = rearranged(c, rows, columns, matrix.element, where)
        found.append([widened(c, part, sums) for part in parts])
    whole = [combined(c, kind, each) for each in zip(*found)]
    parts = [narrowed(c, part, matrix.element) for part in whole]
    return Pieces((rows, columns), matrix.element, parts)


def _reduction(c: Converter, op: vector.ReductionOp) -> None:
    _reduce(c, op, [0])


def _multi_reduction(c: Converter, op: vector.MultiReductionOp) -> None:
    _reduce(c, op, op.dims)


# Products ---------------------------------------------------------------------------


def _contract(c: Converter, op: vector.ContractOp) -> None:
    """A product of matrices for each index that all three have."""
    left, right, result = (list(each) for each in op.maps)
    if op.kind.kind != "add":
        raise c.refusal(op, f"products are added, not combined by `{op.kind.kind}`")
    batch = [d for d in result if d in left and d in right]
    rows = [d for d in result if d in left and d not in right]
    columns = [d for d in result if d in right and d not in left]
    deep = [d for d in left if d not in result and d in right]
    lhs, left = _summed(c, c.pieces(op.lhs), left, [*batch, *rows, *deep])
    rhs, right = _summed(c, c.pieces(op.rhs), right, [*batch, *deep, *columns])
    extents = dict(zip(left, lhs.shape)) | dict(zip(right, rhs.shape))
    found: dict[tuple[int, ...], Pieces] = {}
    for at in product(*(range(extents[dim]) for dim in batch)):
        fixed = dict(zip(batch, at))
        a = _matrix(c, lhs, left, fixed, rows, deep)
        b = _matrix(c, rhs, right, fixed, deep, columns)
        acc = _addend(c, op, result, fixed, rows, columns, extents)
        found[at] = multiplied(c, a, b, acc)
    _give(c, op.result, result, found, (batch, rows, columns), extents)


def _summed(
    c: Converter, side: Pieces, dims: list[int], wanted: Sequence[int]
) -> tuple[Pieces, list[int]]:
    """What nobody else has is summed up."""
    alone = [place for place, dim in enumerate(dims) if dim not in wanted]
    if not alone:
        return side, dims
    left = _over(c, "add", side, alone)
    kept = [place for place in range(len(dims)) if place not in alone]
    shape = tuple(side.shape[place] for place in kept)
    parts = cast_parts(c, left, vector_of(side.element, *shape))
    return Pieces(shape, side.element, parts), [dims[place] for place in kept]


def _matrix(
    c: Converter,
    side: Pieces,
    dims: Sequence[int],
    fixed: dict[int, int],
    down: Sequence[int],
    right: Sequence[int],
) -> Pieces:
    """Some dimensions as rows, some as columns, the others at a place."""
    extents = dict(zip(dims, side.shape))
    heights, widths = [extents[d] for d in down], [extents[d] for d in right]
    rows, columns = prod(heights), prod(widths)

    def where(row: int, column: int) -> Origin:
        at = dict(fixed)
        at |= zip(down, unravel(heights, row))
        at |= zip(right, unravel(widths, column))
        return Origin(side, *position(side.shape, [at[dim] for dim in dims]))

    parts = rearranged(c, rows, columns, side.element, where)
    return Pieces((rows, columns), side.element, parts)


def _addend(
    c: Converter,
    op: vector.ContractOp,
    dims: Sequence[int],
    fixed: dict[int, int],
    rows: Sequence[int],
    columns: Sequence[int],
    extents: dict[int, int],
) -> Pieces:
    if is_vector(op.acc.type):
        return _matrix(c, c.pieces(op.acc), dims, fixed, rows, columns)
    shape = prod(extents[d] for d in rows), prod(extents[d] for d in columns)
    grid = grid_of(*shape)
    parts = [c.spread(op.acc, height, grid.width) for height in grid.heights()]
    return Pieces(shape, op.acc.type, parts)


def _give(
    c: Converter,
    value: SSAValue,
    dims: Sequence[int],
    found: dict[tuple[int, ...], Pieces],
    groups: tuple[Sequence[int], Sequence[int], Sequence[int]],
    extents: dict[int, int],
) -> None:
    batch, rows, columns = groups
    if not is_vector(value.type):
        c.bind(value, element_line(c, found[()], 0))
        return
    type_ = vector_type(value)
    shape = type_.get_shape()
    heights, widths = [extents[d] for d in rows], [extents[d] for d in columns]

    def where(row: int, column: int) -> Origin:
        at = dict(zip(dims, indices_at(shape, row, column)))
        whole = found[tuple(at[dim] for dim in batch)]
        place = ravel(heights, [at[d] for d in rows])
        return Origin(whole, place, ravel(widths, [at[d] for d in columns]))

    parts = rearranged(c, *matrix_shape(shape), type_.element_type, where)
    c.give_parts(value, parts)


RULES: dict[type[Operation], Rule] = {
    vector.ReductionOp: _reduction,
    vector.MultiReductionOp: _multi_reduction,
    vector.ContractOp: _contract,
}
