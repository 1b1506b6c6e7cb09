"""Rules of gathers, scatters, atomics, single elements and copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, integer_width, known, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import ENDLESS
from xetl.dialects.reduction_kinds import ON_INTEGERS, atomic_name, normalize_kind
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import AtomicRmwTileOp, LoadGatherOp, StoreScatterOp
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.dialect.attributes import READ_HINTS, WRITE_HINTS

from .block_messages import Move, load_fragments
from .conversion import Converter, Rule
from .fragments import (
    LANES,
    Fragments,
    Grid,
    Matrix,
    Scattered,
    Start,
    Tile,
    View,
    grid_of,
    vector_of,
)
from .lines import (
    Access,
    Line,
    all_lanes,
    element_line,
    first_lanes,
    from_lines,
    from_memory,
    line_access,
    lines_of,
    lines_of_any,
    load_line,
    scattered_access,
    store_line,
    to_lines,
    to_memory,
)
from .surfaces import surface_of
from .tiles import hints_of
from .views import moved, stored_type


def accesses(c: Converter, tile: Scattered, mask: Fragments | None) -> Iterator[Access]:
    """Yield the accesses to the lines of a scatter tile."""
    lines, masks = lines_of(tile.indices.grid), lines_of_any(c, mask)
    for line, at, wanted in zip(lines, to_lines(c, tile.indices), masks):
        here = c.emit.conjunction(first_lanes(c, line.used), wanted)
        if tile.size is not None and known(tile.size) != ENDLESS:
            size = c.spread(c.index(tile.size), LANES)
            here = c.emit.conjunction(here, c.emit.compare("ult", at, size))
        offsets = at
        if tile.stride != 1:
            pace = c.spread(c.index(tile.stride), LANES)
            offsets = c.emit.insert(arith.MuliOp(at, pace))
        yield scattered_access(c, tile.start, tile.element, offsets, here)


def _mask(c: Converter, mask: SSAValue) -> Fragments | None:
    """Return the fragments of a mask. Return None if it is true everywhere."""
    owner = mask.owner
    is_set = isinstance(owner, arith.ConstantOp) and splat_value(owner.value)
    return None if is_set else c.fragments(mask)


_RANK = 2


def _gather_rows(c: Converter, op: LoadGatherOp) -> Sequence[SSAValue] | None:
    """Load each row by a message. Return None if messages cannot load them."""
    found = c.plan.gathered.get(op)
    if found is None:
        return None
    view, first = c.view(found.cast.source), found.start.operands[0]
    rows, columns = vector_type(op.result).get_shape()
    if len(view.sizes) != _RANK or columns % LANES:
        return None
    (height, width), (pitch, step) = view.sizes, view.strides
    matrix = Matrix(view.start, view.element, (height, width), (pitch, step))
    whole = Tile(matrix, 0, first)
    surface = surface_of(c, whole, found.divisor)
    if surface is None or surface.by_lanes:
        return None
    one, lines = grid_of(1, columns), list[SSAValue]()
    hints, numbers = hints_of(op, READ_HINTS), c.fragments(found.rows)
    for number in range(rows):
        tile = replace(whole, row=element_line(c, numbers, number))
        move = Move(tile, surface, one, hints)
        parts = load_fragments(c, move)
        lines += to_lines(c, Fragments((1, columns), view.element, parts))
    return from_lines(c, grid_of(rows, columns), view.element, lines)


def _gather(c: Converter, op: LoadGatherOp) -> None:
    by_messages = _gather_rows(c, op)
    if by_messages is not None:
        c.set_fragments(op.result, by_messages)
        return
    tile, hints = c.scattered(op.tile), hints_of(op, READ_HINTS)
    padding = 0 if op.padding is None else splat_value(op.padding) or 0
    lines = [
        load_line(c, access, padding, hints)
        for access in accesses(c, tile, _mask(c, op.mask))
    ]
    grid = tile.indices.grid
    c.set_fragments(op.result, from_lines(c, grid, tile.element, lines))


def _scatter(c: Converter, op: StoreScatterOp) -> None:
    tile, hints = c.scattered(op.tile), hints_of(op, WRITE_HINTS)
    values = to_lines(c, c.fragments(op.value))
    places = accesses(c, tile, _mask(c, op.mask))
    for access, value in zip(places, values):
        store_line(c, access, value, hints)


# Atomics ----------------------------------------------------------------------------


def atomic_line(
    c: Converter,
    kind: str,
    access: Access,
    value: SSAValue,
    expected: SSAValue | None = None,
) -> SSAValue:
    """Combine a line with memory. Return the old elements, 0 where masked off."""
    element = stored_type(access.element)
    space = "slm" if access.base.type != i64 else "global"
    encoding = xegpu.ScatterTdescAttr(memory_space=space)
    type_ = xegpu.TensorDescType((LANES,), element, encoding)
    places = c.emit.insert(xegpu.CreateTdescOp(access.base, access.offsets, type_))
    if integer_width(access.element) == 1 and kind != "assign":
        kind = ON_INTEGERS[kind].on_bits  # an i1 is a byte of 0 or 1
    name, mask = atomic_name(kind, access.element), all_lanes(c, access.mask)
    if expected is not None:
        expected = to_memory(c, expected)
    update = xegpu.AtomicRmwOp(places, mask, to_memory(c, value), expected, kind=name)
    old = c.emit.insert(update)
    if access.mask is not None:
        zero = c.emit.constant(0, vector_of(element, LANES))
        old = c.emit.insert(arith.SelectOp(mask, old, zero))
    return from_memory(c, old, access.element)


def _atomic(c: Converter, op: AtomicRmwTileOp) -> None:
    found, value = c.lowered(op.tile), c.fragments(op.value)
    mask = None if op.mask is None else c.fragments(op.mask)
    grid, kind = value.grid, op.kind.data
    places = list(
        accesses(c, found, mask)
        if isinstance(found, Scattered)
        else _block(c, found, grid, mask)
    )
    expected = None if op.expected is None else c.fragments(op.expected)
    wanted = lines_of_any(c, expected)
    old = [
        atomic_line(c, kind, *each) for each in zip(places, to_lines(c, value), wanted)
    ]
    element = vector_type(op.result).element_type
    c.set_fragments(op.result, from_lines(c, grid, element, old))


def _block(
    c: Converter, tile: object, grid: Grid, mask: Fragments | None
) -> Iterator[Access]:
    assert isinstance(tile, Tile)
    for line, wanted in zip(lines_of(grid), lines_of_any(c, mask)):
        access = line_access(c, tile, line, exact=True)
        yield access._replace(mask=c.emit.conjunction(access.mask, wanted))


def element_start(c: Converter, view: View, indices: Sequence[Index]) -> Start:
    """Return the position of an element of a memref."""
    start = view.start
    for index, stride in zip(indices, view.strides):
        start = moved(c, start, c.emit.times(index, stride))
    return start


def _scalar_access(
    c: Converter,
    op: memref.LoadOp | memref.StoreOp | memref.AtomicRmwOp,
    lanes: int = 1,
) -> Access:
    """Return the access to one element by the first lanes."""
    view = c.view(op.memref)
    zeros = c.emit.constant(0, vector_of(IndexType(), LANES))
    start = element_start(c, view, op.indices)
    return scattered_access(c, start, view.element, zeros, first_lanes(c, lanes))


def _load_scalar(c: Converter, op: memref.LoadOp) -> None:
    line = load_line(c, _scalar_access(c, op, LANES))
    c.bind(op.result, c.emit.insert(vector.ExtractOp(line, [0])))


def _store_scalar(c: Converter, op: memref.StoreOp) -> None:
    store_line(c, _scalar_access(c, op), c.spread(op.value, LANES))


def _atomic_scalar(c: Converter, op: memref.AtomicRmwOp) -> None:
    access, kind = _scalar_access(c, op), normalize_kind(op.kind_name)
    old = atomic_line(c, kind, access, c.spread(op.value, LANES))
    c.bind(op.result, c.emit.insert(vector.ExtractOp(old, [0])))


_LINE = Line(0, 0, LANES, 1)


def _nest(
    c: Converter, source: View, target: View, at: Sequence[SSAValue], dim: int
) -> None:
    """Copy by a loop for each dimension; the last loop has steps of a line."""
    sizes = source.sizes or (1,)
    last = dim == len(sizes) - 1
    body = Block(arg_types=[IndexType()])
    low, high, step = map(c.index, (0, sizes[dim], LANES if last else 1))
    with c.emit.inside(body):
        here = [*at, body.args[0]]
        if last:
            tiles: list[Tile] = []
            for view in (source, target):
                start = element_start(c, view, here[:-1])
                stride = view.strides[-1] if view.strides else 1
                matrix = Matrix(start, view.element, (1, sizes[dim]), (0, stride))
                tiles.append(Tile(matrix, 0, here[-1]))
            value = load_line(c, line_access(c, tiles[0], _LINE, exact=True))
            store_line(c, line_access(c, tiles[1], _LINE, exact=True), value)
        else:
            _nest(c, source, target, here, dim + 1)
        c.emit.add(scf.YieldOp())
    c.emit.add(scf.ForOp(low, high, step, [], Region(body)))


RULES: dict[type[Operation], Rule] = {
    LoadGatherOp: _gather,
    StoreScatterOp: _scatter,
    AtomicRmwTileOp: _atomic,
    memref.LoadOp: _load_scalar,
    memref.StoreOp: _store_scalar,
    memref.AtomicRmwOp: _atomic_scalar,
    memref.CopyOp: lambda c, op: _nest(c, c.view(op.source), c.view(op.target), [], 0),
}
