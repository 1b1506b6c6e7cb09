"""Reductions along rows or columns, and scans.

Fragments are first combined element by element. The one fragment that remains is
reduced in the lanes (rows) or across them (columns). Sums of f16 and bf16 are computed
in f32 and rounded once. Scans go row by row, or across lanes by shuffles of doubling
distance (Hillis and Steele, "Data parallel algorithms", 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.reduction_kinds import (
    CombiningKindAttr,
    identity_of,
    operation_of,
    sums_run_in,
)
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileReduceOp, TileScanOp

from . import rearranging
from .conversion import Converter, Rule
from .fragments import LANES, Elements, Fragments, vector_of
from .lines import assembled, element_line, filled_behind, fragment_of


def combined(c: Converter, kind: str, values: Sequence[SSAValue]) -> SSAValue:
    """Combine values of one type in a balanced tree, so that chains are short.

    Products are first added in groups of four: all but the first product of a group
    become multiply-adds.
    """
    operation = operation_of(kind, values[0].type)
    values = list(values)
    step = 8 if all(isinstance(value.owner, arith.MulfOp) for value in values) else 2
    while len(values) > 1:
        groups = [values[at : at + step] for at in range(0, len(values), step)]
        values = [
            reduce(lambda a, b: c.emit.insert(operation(a, b)), group)
            for group in groups
        ]
        step = 2
    return values[0]


def reduced(
    c: Converter, kind: str, source: Fragments, dims: Sequence[int]
) -> Fragments:
    """Reduce a value of any shape, read as a matrix, over its rows (0), columns (1).

    ``kind`` is one of `xetl.dialects.reduction_kinds`.
    """
    grid, sums = source.grid, sums_run_in(kind, source.element)
    found = c.widened(source, sums).reshaped((grid.rows, grid.columns))
    if 0 in dims:
        found = _along_rows(c, kind, found)
    if 1 in dims:
        found = _along_columns(c, kind, found)
    return c.narrowed(found, source.element)


def _along_rows(c: Converter, kind: str, source: Fragments) -> Fragments:
    grid = source.grid
    if grid.rows == 1:
        return source
    parts = [_rows_of_group(c, kind, source, group) for group in range(grid.groups)]
    return Fragments((1, grid.columns), source.element, parts)


def _rows_of_group(c: Converter, kind: str, source: Fragments, group: int) -> SSAValue:
    grid, element = source.grid, source.element
    by_height: dict[int, list[SSAValue]] = {}
    for number, span in enumerate(grid.spans):
        by_height.setdefault(span.count, []).append(source.part(number, group))
    lines: list[SSAValue] = []
    for height, parts in by_height.items():
        whole = combined(c, kind, parts)
        if not grid.spread:
            one = Fragments((height, 1), element, [whole])
            lines += [element_line(c, one, row) for row in range(height)]
        elif height == 1:
            lines.append(c.emit.insert(vector.ExtractOp(whole, [0])))
        else:
            lines.append(_multi(c, kind, whole, 0, LANES))
    return fragment_of(c, element, [combined(c, kind, lines)], grid.spread)


def _multi(c: Converter, kind: str, part: SSAValue, dim: int, left: int) -> SSAValue:
    element = vector_type(part).element_type
    start = c.emit.constant(identity_of(kind, element), vector_of(element, left))
    name = CombiningKindAttr(kind)
    return c.emit.insert(vector.MultiReductionOp(part, start, name, [dim]))


def _along_columns(c: Converter, kind: str, source: Fragments) -> Fragments:
    grid, element = source.grid, source.element
    if not grid.spread:
        return source
    neutral, parts = identity_of(kind, element), list[SSAValue]()
    for number, span in enumerate(grid.spans):
        row = [
            filled_behind(c, source.part(number, group), grid.used(group), neutral)
            for group in range(grid.groups)
        ]
        sums = _multi(c, kind, combined(c, kind, row), 1, span.count)
        type_ = vector_of(element, span.count, 1)
        parts.append(c.emit.insert(vector.ShapeCastOp(sums, type_)))
    return Fragments((grid.rows, 1), element, parts)


# Operations -------------------------------------------------------------------------


def _tile_reduce(c: Converter, op: TileReduceOp) -> None:
    source, result = c.fragments(op.source), vector_type(op.result)
    kind, dims = op.kind.data, op.dims
    if op.reduction_size is not None:
        _in_groups(c, op, source, op.reduction_size.value.data)
        return
    rank = len(source.shape)
    if rank == 4 and not _whole_axes(source.shape, dims):
        found = reduced(c, kind, rearranging.columns_of(c, source, dims), [1])
        elements = rearranging.elements_of(found).reshape(result.get_shape())
        rearranging.give(c, op.result, elements)
        return
    axes = sorted({dim % 2 for dim in dims})
    found = reduced(c, kind, source, axes)
    c.set(op.result, found.reshaped(result.get_shape()))


def _whole_axes(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether each axis of a blocked matrix is reduced fully or not at all.

    The shape has four dimensions: the outer two count blocks, the inner two are the
    dimensions of a block. A dimension of size 1 counts as reduced.
    """
    for outer in (0, 1):
        pair = (outer in dims, outer + 2 in dims)
        sizes = (shape[outer], shape[outer + 2])
        if pair[0] != pair[1] and sizes[pair.index(False)] != 1:
            return False
    return True


def _in_groups(c: Converter, op: TileReduceOp, source: Fragments, size: int) -> None:
    """Reduce groups of ``size`` neighbours: combine the i-th elements of all groups."""
    for dim in op.dims:
        elements = rearranging.elements_of(source)
        turns = [range(turn, source.shape[dim], size) for turn in range(size)]
        matrices = [elements.take(turn, dim) for turn in turns]
        source = _over_matrices(c, op.kind.data, source.element, matrices)
    c.set(op.result, source.reshaped(vector_type(op.result).get_shape()))


def _over_matrices(
    c: Converter, kind: str, element: Attribute, matrices: Sequence[Elements]
) -> Fragments:
    """Combine matrices of one shape, each given by the origins of its elements."""
    sums = sums_run_in(kind, element)
    sides = [rearranging.rearranged(c, element, matrix) for matrix in matrices]
    wide = [c.widened(side, sums).parts for side in sides]
    whole = [combined(c, kind, each) for each in zip(*wide)]
    return c.narrowed(Fragments(matrices[0].shape, sums, whole), element)


def _multi_reduction(c: Converter, op: vector.MultiReductionOp) -> None:
    """Reduce the first dimension: combine matrices element by element."""
    source = c.fragments(op.source)
    matrices = list(rearranging.elements_of(source))
    found = _over_matrices(c, op.kind.kind, source.element, matrices)
    c.set_fragments(op.result, found.parts)


def _scan(c: Converter, op: TileScanOp) -> None:
    source, kind = c.fragments(op.source), op.kind.data
    sums = sums_run_in(kind, source.element)
    scan = _down if op.dim == 0 else _right
    lines = scan(c, kind, c.widened(source, sums))
    element = vector_type(op.result).element_type
    parts = assembled(c, source.grid, sums, lambda row, group: lines[row, group])
    c.set_fragments(op.result, [c.emit.narrowed(part, element) for part in parts])


_Lines = dict[tuple[int, int], SSAValue]
"""Lines by row and group of columns."""


def _down(c: Converter, kind: str, source: Fragments) -> _Lines:
    """Scan down the columns: combine each row with the scan of the row above."""
    grid, combine, found = source.grid, operation_of(kind, source.element), _Lines()
    for group in range(grid.groups):
        for row in range(grid.rows):
            line = element_line(c, source, row, group)
            if row:
                line = c.emit.insert(combine(found[row - 1, group], line))
            found[row, group] = line
    return found


def _right(c: Converter, kind: str, source: Fragments) -> _Lines:
    """Scan along rows: within groups of 16 columns, then from group to group."""
    grid, combine, found = source.grid, operation_of(kind, source.element), _Lines()
    for row in range(grid.rows):
        before: SSAValue | None = None
        for group in range(grid.groups):
            line = element_line(c, source, row, group)
            if grid.spread:
                line = _across(c, kind, source, line)
            if before is not None:
                line = c.emit.insert(combine(c.spread(before, LANES), line))
            found[row, group] = line
            if group + 1 < grid.groups:
                before = c.emit.insert(vector.ExtractOp(line, [LANES - 1]))
    return found


def _across(c: Converter, kind: str, source: Fragments, line: SSAValue) -> SSAValue:
    element, combine = source.element, operation_of(kind, source.element)
    neutral = c.emit.constant(identity_of(kind, element), vector_of(element, LANES))
    reach = 1
    while reach < LANES:
        # Lanes without a partner at this distance take the neutral element.
        order = [
            lane if lane < reach else LANES + lane - reach for lane in range(LANES)
        ]
        shifted = c.emit.insert(vector.ShuffleOp(neutral, line, order))
        line = c.emit.insert(combine(shifted, line))
        reach *= 2
    return line


RULES: dict[type[Operation], Rule] = {
    TileReduceOp: _tile_reduce,
    vector.MultiReductionOp: _multi_reduction,
    TileScanOp: _scan,
}
