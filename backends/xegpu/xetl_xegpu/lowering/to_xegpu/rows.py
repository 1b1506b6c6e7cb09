"""Memory with an offset for each lane, and a mask: right for any base, pitch and shape.

One message a line.  What lies outside of the matrix is masked off and becomes padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType, i1, i8, i64
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.upstream import arith
from xetl_xegpu.dialect import LoadOp, PrefetchOp, StoreOp
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.emitter import known
from xetl_xegpu.lowering.to_xegpu.lines import Line, first_lanes
from xetl_xegpu.lowering.to_xegpu.values import Matrix, Start, Tile, vector_of
from xetl_xegpu.lowering.to_xegpu.views import (
    SHARED,
    address,
    stored_bytes,
    stored_type,
)
from xetl_xegpu.lowering.to_xegpu.walker import Converter

Hints = dict[str, Attribute]


class Access(NamedTuple):
    """Where the 16 elements of a line are.

    Attributes:
        base: an address (i64), or shared memory.
        offsets: of the lanes, in elements.
        mask: of the lanes; None: all.
        element: type of the elements as values.
    """

    base: SSAValue
    offsets: SSAValue
    mask: SSAValue | None
    element: Attribute


# Where ------------------------------------------------------------------------------


def line_access(c: Converter, tile: Tile, line: Line, *, exact: bool) -> Access:
    """A line of a tile.

    Args:
        c: the conversion.
        tile: the tile.
        line: which part of it.
        exact: whether lanes behind the line must be masked off: what is only read may
            as well be read behind the tile.
    """
    matrix = tile.matrix
    row = c.emit.plus(tile.row, line.row)
    column = c.emit.plus(tile.column, line.column)
    first, other = (column, row) if line.dim else (row, column)
    across = _inside(c, other, matrix.sizes[1 - line.dim])
    used = line.used if exact else LANES
    mask = _lanes_inside(c, first, matrix.sizes[line.dim], used)
    if exact:
        mask = _and(c, mask, first_lanes(c, line.used))
    mask = _and(c, mask, None if across is None else c.spread(across, LANES))
    there = (
        c.emit.times(row, matrix.strides[0]),
        c.emit.times(column, matrix.strides[1]),
    )
    return _access(c, matrix, c.emit.plus(*there), matrix.strides[line.dim], mask)


def _inside(c: Converter, at: Index, size: Index) -> SSAValue | None:
    """Whether ``0 <= at < size``; None: surely."""
    at, size = known(at), known(size)
    found = c.ranges.of(at)
    if found is not None and isinstance(size, int):
        if found.low >= 0 and found.high < size:
            return None
        if found.high < 0 or found.low >= size:
            return c.emit.constant(0, i1)
    return c.emit.below(at, size)


def _lanes_inside(
    c: Converter, first: Index, size: Index, used: int
) -> SSAValue | None:
    """Which of the ``used`` places from ``first`` on are in the matrix; None: all."""
    first, size = known(first), known(size)
    if isinstance(size, int):
        found = c.ranges.of(first)
        if found is not None and found.low >= 0 and found.high + used <= size:
            return None
        if first == 0:
            return first_lanes(c, max(size, 0))
    places = _plus_lanes(c, first, c.lane_ids())
    pair = places, c.spread(c.index(size), LANES)
    return c.emit.once("ult", pair, lambda: arith.CmpiOp("ult", *pair))


def _plus_lanes(c: Converter, first: Index, lanes: SSAValue) -> SSAValue:
    if first == 0:
        return lanes
    pair = lanes, c.spread(c.index(first), LANES)
    return c.emit.once("+", pair, lambda: arith.AddiOp(*pair))


def _and(
    c: Converter, left: SSAValue | None, right: SSAValue | None
) -> SSAValue | None:
    return c.emit.both(left, right)


def _steps(c: Converter, stride: Index) -> SSAValue:
    """The lane's number times a stride."""
    lanes = c.lane_ids()
    if known(stride) == 1:
        return lanes
    pair = lanes, c.spread(c.index(stride), LANES)
    return c.emit.once("*", pair, lambda: arith.MuliOp(*pair))


def _access(
    c: Converter, matrix: Matrix, at: Index, stride: Index, mask: SSAValue | None
) -> Access:
    start, element = matrix.start, matrix.element
    there = Start(start.root, c.emit.plus(start.offset, at), start.space)
    steps = _steps(c, stride)
    if start.space == SHARED:
        offsets = _plus_lanes(c, there.offset, steps)
        return Access(start.root, offsets, mask, element)
    base = address(c, there, stored_bytes(element))
    return Access(base, steps, mask, element)


def scattered_access(
    c: Converter,
    start: Start,
    element: Attribute,
    offsets: SSAValue,
    mask: SSAValue | None,
) -> Access:
    """Elements at offsets of their own, counted from ``start``."""
    if start.space == SHARED:
        offsets = _plus_lanes(c, start.offset, offsets)
        return Access(start.root, offsets, mask, element)
    base = address(c, start, stored_bytes(element))
    return Access(base, offsets, mask, element)


# What -------------------------------------------------------------------------------


def all_lanes(c: Converter, mask: SSAValue | None) -> SSAValue:
    """A mask as a value."""
    return c.emit.constant(1, vector_of(i1, LANES)) if mask is None else mask


def load_line(
    c: Converter, access: Access, padding: int | float = 0, hints: Hints | None = None
) -> SSAValue:
    """The elements; ``padding`` where the mask is not set."""
    stored = vector_of(stored_type(access.element), LANES)
    mask = all_lanes(c, access.mask)
    load = LoadOp(access.base, access.offsets, mask, stored)
    load.properties |= hints or {}
    found = c.emit.value(load)
    if access.mask is not None:
        fill = c.emit.constant(padding, stored)
        found = c.emit.value(arith.SelectOp(mask, found, fill))
    return from_memory(c, found, access.element)


def store_line(
    c: Converter, access: Access, value: SSAValue, hints: Hints | None = None
) -> None:
    """Write elements where the mask is set."""
    stored = to_memory(c, value)
    store = StoreOp(stored, access.base, access.offsets, all_lanes(c, access.mask))
    store.properties |= hints or {}
    c.emit.add(store)


def prefetch_line(c: Converter, access: Access, hints: Hints | None = None) -> None:
    """Ask for elements to be brought to a cache."""
    if access.base.type != i64:
        return  # shared memory has no cache
    size = stored_bytes(access.element)
    prefetch = PrefetchOp(access.base, access.offsets, offset_align_byte=size)
    prefetch.properties |= hints or {}
    c.emit.add(prefetch)


def from_memory(c: Converter, value: SSAValue, element: Attribute) -> SSAValue:
    """A line or fragment as it is computed with."""
    shape = _shape(value)
    if isinstance(element, IndexType):
        return c.emit.value(arith.IndexCastOp(value, vector_of(element, *shape)))
    width = integer_width(element)
    if width == 1:
        zero = c.emit.constant(0, value.type)
        return c.emit.value(arith.CmpiOp("ne", value, zero))
    if width is not None and width < i8.bitwidth:
        return c.emit.value(arith.TrunciOp(value, vector_of(element, *shape)))
    return value


def to_memory(c: Converter, value: SSAValue) -> SSAValue:
    """A line or fragment as it is stored."""
    shape = _shape(value)
    element = _element(value)
    stored = stored_type(element)
    if stored == element:
        return value
    widen = arith.IndexCastOp if isinstance(element, IndexType) else arith.ExtuiOp
    return c.emit.value(widen(value, vector_of(stored, *shape)))


def _shape(value: SSAValue) -> Sequence[int]:
    return vector_type(value).get_shape()


def _element(value: SSAValue) -> Attribute:
    return vector_type(value).element_type
