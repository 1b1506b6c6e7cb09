"""Vectors of any rank: some dimensions become the columns of a matrix, others rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from xetl.dialects.kinds_of_types import Vector
from xetl_xegpu.lowering.fragments import BLOCKED, matrix_shape, position
from xetl_xegpu.lowering.to_xegpu.moves import Origin, indices_at, rearranged
from xetl_xegpu.lowering.to_xegpu.values import Pieces
from xetl_xegpu.lowering.to_xegpu.walker import Converter


def unravel(shape: Sequence[int], linear: int) -> list[int]:
    """The index of an element whose number, row by row, is known."""
    index: list[int] = []
    for extent in reversed(shape):
        linear, place = divmod(linear, extent)
        index.insert(0, place)
    return index


def ravel(shape: Sequence[int], index: Sequence[int]) -> int:
    """The number of an element, row by row."""
    linear = 0
    for extent, place in zip(shape, index):
        linear = linear * extent + place
    return linear


def columns_of(c: Converter, source: Pieces, dims: Sequence[int]) -> Pieces:
    """A matrix whose columns are the elements along ``dims``, all others its rows."""
    shape = source.shape
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    inner = [shape[dim] for dim in dims]
    outer = [shape[dim] for dim in kept]
    rows, columns = prod(outer), prod(inner)

    def where(row: int, column: int) -> Origin:
        index = [0] * len(shape)
        for dim, place in zip(kept, unravel(outer, row)):
            index[dim] = place
        for dim, place in zip(dims, unravel(inner, column)):
            index[dim] = place
        return Origin(source, *position(shape, index))

    parts = rearranged(c, rows, columns, source.element, where)
    return Pieces((rows, columns), source.element, parts)


def as_rows(c: Converter, source: Pieces) -> Pieces:
    """A matrix: the last dimension as its columns, all others as its rows."""
    shape = source.shape
    rows, columns = prod(shape[:-1]), shape[-1]
    if matrix_shape(shape) == (rows, columns) and len(shape) != BLOCKED:
        return source.reshaped((rows, columns))

    def where(row: int, column: int) -> Origin:
        return Origin(source, *position(shape, [*unravel(shape[:-1], row), column]))

    parts = rearranged(c, rows, columns, source.element, where)
    return Pieces((rows, columns), source.element, parts)


def cast_parts(c: Converter, source: Pieces, type_: Vector) -> list[SSAValue]:
    """The fragments of a vector with the elements of a matrix, row by row."""
    shape = type_.get_shape()
    wanted, columns = matrix_shape(shape), source.grid.columns
    if len(shape) != BLOCKED and wanted == (source.grid.rows, columns):
        return list(source.parts)

    def where(row: int, at: int) -> Origin:
        linear = ravel(shape, indices_at(shape, row, at))
        return Origin(source, *divmod(linear, columns))

    return rearranged(c, *wanted, type_.element_type, where)
