"""Vectors of any rank in memrefs: loads, stores, transfers, gathers, masks.

Each line of 16 elements is one message with an offset for each lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from xetl.dialects.base import Index, ints_of, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector
from xetl_xegpu.lowering.to_xegpu.conversion import Converter, Rule, known
from xetl_xegpu.lowering.to_xegpu.element_access import element_start
from xetl_xegpu.lowering.to_xegpu.fragments import (
    LANES,
    Start,
    View,
    grid_of,
    matrix_shape,
    vector_of,
)
from xetl_xegpu.lowering.to_xegpu.lines import (
    Access,
    Line,
    assembled,
    first_lanes,
    from_lines,
    lines_of,
    load_line,
    scattered_access,
    store_line,
    to_lines,
)
from xetl_xegpu.lowering.to_xegpu.rearranging import indices_at


@dataclass(frozen=True, slots=True)
class Window:
    """A vector's elements in memory.

    Attributes:
        view: of the memory.
        start: of the first element.
        shape: of the vector.
        strides: for each dimension of it, in elements.
        bounds: for some dimensions the place of the first element, and the size.
    """

    view: View
    start: Start
    shape: tuple[int, ...]
    strides: tuple[Index, ...]
    bounds: dict[int, tuple[Index, Index]]


def _lines(shape: Sequence[int]) -> list[Line]:
    return lines_of(grid_of(*matrix_shape(shape)))


def _indices(shape: Sequence[int], line: Line) -> list[list[int]]:
    """For each lane of a line the index of its element; the last one's behind it."""
    found: list[list[int]] = []
    for lane in range(LANES):
        at = min(lane, line.used - 1)
        row, column = (
            (line.row, line.column + at) if line.dim else (line.row + at, line.column)
        )
        found.append(indices_at(shape, row, column))
    return found


class _Sum:
    """A number for each lane: one that all have, and what differs."""

    def __init__(self, c: Converter) -> None:
        self._c = c
        self.shared: Index = 0
        self.own: SSAValue | None = None

    def add(self, numbers: Sequence[int], factor: Index) -> None:
        """Add a constant of each lane times a factor."""
        c = self._c
        self.shared = c.emit.plus(self.shared, c.emit.times(numbers[0], factor))
        rest = [each - numbers[0] for each in numbers]
        if not any(rest) or known(factor) == 0:
            return
        lanes = _table(c, rest)
        if known(factor) != 1:
            pair = lanes, c.spread(c.index(factor), LANES)
            lanes = c.emit.once("*", pair, lambda: arith.MuliOp(*pair))
        if self.own is not None:
            both = self.own, lanes
            lanes = c.emit.once("+", both, lambda: arith.AddiOp(*both))
        self.own = lanes

    def whole(self) -> SSAValue:
        """All of it, for each lane."""
        c = self._c
        shared = c.spread(c.index(self.shared), LANES)
        if self.own is None:
            return shared
        pair = self.own, shared
        return c.emit.once("+", pair, lambda: arith.AddiOp(*pair))


def _table(c: Converter, numbers: Sequence[int]) -> SSAValue:
    """A constant for each lane."""
    step = numbers[1] - numbers[0]
    lanes = c.lane_ids()
    if all(number == lane * step for lane, number in enumerate(numbers)):
        if step == 1:
            return lanes
        pair = lanes, c.emit.constant(step, vector_of(IndexType(), LANES))
        return c.emit.once("*", pair, lambda: arith.MuliOp(*pair))
    values = [c.index(number) for number in numbers]
    type_ = vector_of(IndexType(), LANES)
    return c.emit.once("elements", values, lambda: vector.FromElementsOp(values, type_))


def _accesses(
    c: Converter, window: Window, mask: SSAValue | None
) -> Iterator[tuple[Access, SSAValue | None]]:
    """Where the lines of a window are; and their masks, without what is behind them."""
    lines = _lines(window.shape)
    masks: Sequence[SSAValue | None] = [None] * len(lines)
    if mask is not None:
        masks = to_lines(c, c.pieces(mask))
    for line, wanted in zip(lines, masks):
        indices = _indices(window.shape, line)
        inside = wanted
        for dim, (first, size) in window.bounds.items():
            place = _Sum(c)
            place.shared = first
            place.add([index[dim] for index in indices], 1)
            inside = c.emit.both(inside, _below(c, place, size))
        at = _Sum(c)
        for dim, stride in enumerate(window.strides):
            at.add([index[dim] for index in indices], stride)
        here = c.emit.both(inside, first_lanes(c, line.used))
        start = _moved(c, window.start, at.shared)
        offsets = at.own
        if offsets is None:
            offsets = c.emit.constant(0, vector_of(IndexType(), LANES))
        yield scattered_access(c, start, window.view.element, offsets, here), inside


def _below(c: Converter, place: _Sum, size: Index) -> SSAValue:
    if place.own is None:
        return c.spread(c.emit.below(place.shared, size), LANES)
    pair = place.whole(), c.spread(c.index(size), LANES)
    return c.emit.once("ult", pair, lambda: arith.CmpiOp("ult", *pair))


def _moved(c: Converter, start: Start, by: Index) -> Start:
    return Start(start.root, c.emit.plus(start.offset, by), start.space)


def _window(
    c: Converter, base: SSAValue, indices: Sequence[SSAValue], shape: tuple[int, ...]
) -> Window:
    """A vector along the last dimensions of a memref; all of it lies inside."""
    view = c.view(base)
    strides = view.strides[len(view.strides) - len(shape) :]
    return Window(view, element_start(c, view, indices), shape, strides, {})


def _read(
    c: Converter,
    window: Window,
    value: SSAValue,
    mask: SSAValue | None,
    other: Sequence[SSAValue] | None,
) -> None:
    """Load a window; ``other`` has the lines of what is not loaded."""
    found: list[SSAValue] = []
    for number, (access, inside) in enumerate(_accesses(c, window, mask)):
        line = load_line(c, access)
        if other is not None and inside is not None:
            line = c.emit.value(arith.SelectOp(inside, line, other[number]))
        found.append(line)
    grid = grid_of(*matrix_shape(window.shape))
    c.give_parts(value, from_lines(c, grid, window.view.element, found))


def _write(
    c: Converter, window: Window, value: SSAValue, mask: SSAValue | None
) -> None:
    lines = to_lines(c, c.pieces(value))
    for (access, _), line in zip(_accesses(c, window, mask), lines):
        store_line(c, access, line)


def _load(c: Converter, op: vector.LoadOp) -> None:
    shape = vector_type(op.result).get_shape()
    _read(c, _window(c, op.base, op.indices, shape), op.result, None, None)


def _store(c: Converter, op: vector.StoreOp) -> None:
    shape = vector_type(op.value).get_shape()
    _write(c, _window(c, op.base, op.indices, shape), op.value, None)


def _maskedload(c: Converter, op: vector.MaskedloadOp) -> None:
    window = _window(c, op.base, op.indices, vector_type(op.result).get_shape())
    _read(c, window, op.result, op.mask, to_lines(c, c.pieces(op.pass_thru)))


def _maskedstore(c: Converter, op: vector.MaskedstoreOp) -> None:
    window = _window(c, op.base, op.indices, vector_type(op.value).get_shape())
    _write(c, window, op.value, op.mask)


# Transfers --------------------------------------------------------------------------


def _transfer(
    c: Converter, op: vector.TransferReadOp | vector.TransferWriteOp, value: SSAValue
) -> Window:
    """A window along any dimensions, of which some may reach outside."""
    view, shape = c.view(op.base), vector_type(value).get_shape()
    dims = [
        each.position if isinstance(each, AffineDimExpr) else None
        for each in op.permutation_map.data.results
    ]
    strides = tuple(0 if dim is None else view.strides[dim] for dim in dims)
    bounds: dict[int, tuple[Index, Index]] = {}
    for axis, (dim, flag) in enumerate(zip(dims, op.in_bounds.data)):
        surely = isinstance(flag, IntegerAttr) and flag.value.data
        if dim is not None and not surely:
            bounds[axis] = op.indices[dim], view.sizes[dim]
    return Window(view, element_start(c, view, op.indices), shape, strides, bounds)


def _transfer_read(c: Converter, op: vector.TransferReadOp) -> None:
    window = _transfer(c, op, op.result)
    fill = c.spread(op.padding, LANES)
    other = [fill] * len(_lines(window.shape))
    _read(c, window, op.result, op.mask, other)


def _transfer_write(c: Converter, op: vector.TransferWriteOp) -> None:
    _write(c, _transfer(c, op, op.value), op.value, op.mask)


# Gathers ----------------------------------------------------------------------------


def _indexed(
    c: Converter, op: vector.GatherOp | vector.ScatterOp
) -> Iterator[tuple[Access, SSAValue | None]]:
    view, start = c.view(op.base), element_start(c, c.view(op.base), op.indices)
    stride = view.strides[-1] if view.strides else 1
    pieces = c.pieces(op.index_vec)
    masks, lines = to_lines(c, c.pieces(op.mask)), lines_of(pieces.grid)
    wide = vector_of(IndexType(), LANES)
    for line, at, mask in zip(lines, to_lines(c, pieces), masks):
        if at.type != wide:
            at = c.emit.value(arith.IndexCastOp(at, wide))
        if known(stride) != 1:
            pace = c.spread(c.index(stride), LANES)
            at = c.emit.value(arith.MuliOp(at, pace))
        here = c.emit.both(mask, first_lanes(c, line.used))
        yield scattered_access(c, start, view.element, at, here), mask


def _gather(c: Converter, op: vector.GatherOp) -> None:
    others = to_lines(c, c.pieces(op.pass_thru))
    found: list[SSAValue] = []
    for (access, mask), other in zip(_indexed(c, op), others):
        line = load_line(c, access)
        assert mask is not None
        found.append(c.emit.value(arith.SelectOp(mask, line, other)))
    grid, element = c.pieces(op.index_vec).grid, c.view(op.base).element
    c.give_parts(op.result, from_lines(c, grid, element, found))


def _scatter(c: Converter, op: vector.ScatterOp) -> None:
    lines = to_lines(c, c.pieces(op.value))
    for (access, _), line in zip(_indexed(c, op), lines):
        store_line(c, access, line)


# Masks ------------------------------------------------------------------------------


def _masked(c: Converter, value: SSAValue, bounds: Sequence[Index]) -> None:
    """Which elements are in the corner of these sizes; sizes may be negative."""
    type_ = vector_type(value)
    shape = type_.get_shape()
    grid = grid_of(*matrix_shape(shape))

    def one(row: int, group: int) -> SSAValue:
        column = group * grid.width
        line = Line(row, column, grid.used(group), 1)
        indices = _indices(shape, line)
        found: SSAValue | None = None
        for dim, bound in enumerate(bounds):
            numbers = [index[dim] for index in indices]
            found = c.emit.both(found, _less(c, numbers, bound, grid.spread))
        assert found is not None
        return c.spread(found, LANES) if grid.spread else found

    c.give_parts(value, assembled(c, grid, type_.element_type, one))


def _less(c: Converter, numbers: Sequence[int], bound: Index, spread: bool) -> SSAValue:
    """A comparison with signs: of all lanes, or of what is the same in each."""
    if spread and any(each != numbers[0] for each in numbers):
        place = _Sum(c)
        place.add(numbers, 1)
        pair = place.whole(), c.spread(c.index(bound), LANES)
    else:
        pair = c.index(numbers[0]), c.index(bound)
    found = c.emit.once("slt", pair, lambda: arith.CmpiOp("slt", *pair))
    return c.spread(found, LANES) if spread and not is_vector(found.type) else found


def _create_mask(c: Converter, op: vector.CreateMaskOp) -> None:
    _masked(c, op.result, op.bounds)


def _constant_mask(c: Converter, op: vector.ConstantMaskOp) -> None:
    _masked(c, op.result, ints_of(op.mask_dim_sizes))


RULES: dict[type[Operation], Rule] = {
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedloadOp: _maskedload,
    vector.MaskedstoreOp: _maskedstore,
    vector.TransferReadOp: _transfer_read,
    vector.TransferWriteOp: _transfer_write,
    vector.GatherOp: _gather,
    vector.ScatterOp: _scatter,
    vector.CreateMaskOp: _create_mask,
    vector.ConstantMaskOp: _constant_mask,
}
