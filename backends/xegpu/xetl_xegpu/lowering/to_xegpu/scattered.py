"""Gathers, scatters and atomics: an offset for each element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import ON_INTEGERS, atomic_name
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import AtomicRmwTileOp, LoadGatherOp, StoreScatterOp
from xetl_xegpu.dialect import (
    AtomicRmwOp,
    CreateTdescOp,
    ScatterTdescAttr,
    TensorDescType,
)
from xetl_xegpu.dialect.syntax import READ_HINTS, WRITE_HINTS
from xetl_xegpu.lowering.fragments import LANES, Grid
from xetl_xegpu.lowering.to_xegpu.lines import (
    first_lanes,
    from_lines,
    lines_of,
    to_lines,
)
from xetl_xegpu.lowering.to_xegpu.rows import (
    Access,
    all_lanes,
    from_memory,
    line_access,
    load_line,
    scattered_access,
    store_line,
    to_memory,
)
from xetl_xegpu.lowering.to_xegpu.tiles import hints_of
from xetl_xegpu.lowering.to_xegpu.values import Pieces, Scattered, Tile, vector_of
from xetl_xegpu.lowering.to_xegpu.views import stored_type
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def accesses(
    c: Converter, tile: Scattered, mask: Pieces | None
) -> Iterator[tuple[Access, SSAValue | None]]:
    """Where the lines of a scattered tile are, and which lanes they have there."""
    grid = tile.indices.grid
    masks: Sequence[SSAValue | None] = [None] * len(lines_of(grid))
    if mask is not None:
        masks = to_lines(c, mask)
    for line, at, wanted in zip(lines_of(grid), to_lines(c, tile.indices), masks):
        here = c.emit.both(first_lanes(c, line.used), wanted)
        if tile.size is not None:
            pair = at, c.spread(c.index(tile.size), LANES)
            inside = c.emit.once("ult", pair, lambda: arith.CmpiOp("ult", *pair))  # noqa: B023 (called at once)
            here = c.emit.both(here, inside)
        offsets = at
        if tile.stride != 1:
            pace = c.spread(c.index(tile.stride), LANES)
            offsets = c.emit.value(arith.MuliOp(at, pace))
        yield scattered_access(c, tile.start, tile.element, offsets, here), here


def _gather(c: Converter, op: LoadGatherOp) -> None:
    tile, hints = c.scattered(op.tile), hints_of(op, READ_HINTS)
    padding = 0 if op.padding is None else splat_value(op.padding) or 0
    lines = [
        load_line(c, access, padding, hints)
        for access, _ in accesses(c, tile, c.pieces(op.mask))
    ]
    grid = tile.indices.grid
    c.give_parts(op.result, from_lines(c, grid, tile.element, lines))


def _scatter(c: Converter, op: StoreScatterOp) -> None:
    tile, hints = c.scattered(op.tile), hints_of(op, WRITE_HINTS)
    values = to_lines(c, c.pieces(op.value))
    pairs = accesses(c, tile, c.pieces(op.mask))
    for (access, _), value in zip(pairs, values):
        store_line(c, access, value, hints)


# Atomics ----------------------------------------------------------------------------


def _kind_name(kind: str, element: Attribute) -> str:
    """MLIR's name; of i1 memory holds bytes, 0 or 1: the bitwise kind on those."""
    if integer_width(element) == 1 and kind != "assign":
        kind = ON_INTEGERS[kind].on_bits
    return atomic_name(kind, element)


def atomic_line(c: Converter, kind: str, access: Access, value: SSAValue) -> SSAValue:
    """Combine a line with memory; the old elements, 0 where the mask is not set."""
    element = stored_type(access.element)
    space = "slm" if access.base.type != i64 else "global"
    encoding = ScatterTdescAttr(memory_space=space)
    type_ = TensorDescType((LANES,), element, encoding)
    places = c.emit.value(CreateTdescOp(access.base, access.offsets, type_))
    name, mask = _kind_name(kind, access.element), all_lanes(c, access.mask)
    old = c.emit.value(AtomicRmwOp(name, places, mask, to_memory(c, value)))
    if access.mask is not None:
        zero = c.emit.constant(0, vector_of(element, LANES))
        old = c.emit.value(arith.SelectOp(mask, old, zero))
    return from_memory(c, old, access.element)


def _atomic(c: Converter, op: AtomicRmwTileOp) -> None:
    found, value = c.found(op.tile), c.pieces(op.value)
    mask = None if op.mask is None else c.pieces(op.mask)
    grid, kind = value.grid, op.kind.data
    places = (
        [access for access, _ in accesses(c, found, mask)]
        if isinstance(found, Scattered)
        else list(_block(c, found, grid, mask))
    )
    old = [
        atomic_line(c, kind, access, line)
        for access, line in zip(places, to_lines(c, value))
    ]
    element = vector_type(op.result).element_type
    c.give_parts(op.result, from_lines(c, grid, element, old))


def _block(
    c: Converter, tile: object, grid: Grid, mask: Pieces | None
) -> Iterator[Access]:
    assert isinstance(tile, Tile)
    masks: Sequence[SSAValue | None] = [None] * len(lines_of(grid))
    if mask is not None:
        masks = to_lines(c, mask)
    for line, wanted in zip(lines_of(grid), masks):
        access = line_access(c, tile, line, exact=True)
        yield access._replace(mask=c.emit.both(access.mask, wanted))


RULES: dict[type[Operation], Rule] = {
    LoadGatherOp: _gather,
    StoreScatterOp: _scatter,
    AtomicRmwTileOp: _atomic,
}
