"""Rules that compute some elements of each operation's result (see `evaluator`)."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import is_vector, row_type, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, math, memref, vector
from xetl.errors import InternalError
from xetl.imports import late
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.evaluator import RULES, Evaluator, Rule, load_if
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_mask, lane_numbers, splat
from xetl_cpu.lowering.loops.runs import (
    bounds_of,
    limit_of_columns,
    run_lanes,
    scatter_lanes,
)
from xetl_cpu.lowering.loops.state import ScatterTile, TileAt, shape_of
from xetl_cpu.lowering.loops.transposes import lies_across


def _elementwise(ev: Evaluator, op: Operation, at: At) -> SSAValue:
    """Return the same operation on fewer elements."""
    if isinstance(op, arith.CmpiOp) and at.lanes > 1 and at.axis == COLUMNS:
        limit = limit_of_columns(op)
        if limit is not None:
            build = ev.place(at)
            return lane_mask(build, build.minus(limit, at.col), at.lanes)
    if isinstance(op, arith.SelectOp) and _chooses_what_is_loaded(ev, op, at):
        return ev.eval(op.true_value, at)
    if (
        not op.name.startswith(("arith.", "math.", "vector.fma"))
        or len(op.results) != 1
    ):
        raise InternalError(f"`{op.name}` cannot be evaluated element by element")
    operands = [ev.eval(operand, at) for operand in op.operands]
    type_ = vector_type(op.results[0])
    element = type_.element_type
    result = element if at.lanes == 1 else row_type(element, at.lanes)
    cls = math.FmaOp if isinstance(op, vector.FmaOp) else type(op)
    new = cls.create(
        operands=operands, result_types=[result], properties=dict(op.properties)
    )
    new.location = op.location
    return ev.place(at).insert(new)


def _chooses_what_is_loaded(ev: Evaluator, op: arith.SelectOp, at: At) -> bool:
    """Whether an unmasked loop ends at a load's limit, where the choice changes too."""
    tiles = bounds_of(ev.state, op)
    return ev.goes_along(at) and any(ev.is_whole(tile, at) for tile in tiles)


def _constant(ev: Evaluator, op: arith.ConstantOp, at: At) -> SSAValue:
    value, type_ = op.value, op.result.type
    assert is_vector(type_)
    number = splat_value(value)
    if number is None:
        raise InternalError("a constant vector of different elements has no buffer")
    return ev.constant(type_.element_type, number, at.lanes)


def _broadcast(ev: Evaluator, op: Operation, at: At) -> SSAValue:
    (source,) = op.operands
    if is_vector(source.type):
        raise InternalError("vector.broadcast of a vector reached the loops")
    key = (id(source), "splat", at.lanes)
    if key not in ev.memo:
        ev.memo[key] = splat(ev.nest.places[0], source, at.lanes)
    return ev.memo[key]


def _step(ev: Evaluator, op: Operation, at: At) -> SSAValue:
    """Return column numbers."""
    build = ev.place(at)
    if at.lanes == 1:
        return build.index(at.col)
    if at.axis != COLUMNS:
        return splat(build, build.index(at.col), at.lanes)
    numbers = lane_numbers(ev.nest.places[0], at.lanes)
    first = splat(build, build.index(at.col), at.lanes)
    return build.insert(arith.AddiOp(numbers, first))


def _shape_cast(ev: Evaluator, op: Operation, at: At) -> SSAValue:
    """Between 1xN and Nx1, swap the coordinates; equal shapes share them."""
    (source,) = op.operands
    old, new = shape_of(source), shape_of(op.results[0])
    if old == new:
        return ev.eval(source, at)
    if old == (new[1], new[0]) and 1 in old:
        return ev.eval(source, at.transposed())
    raise InternalError(f"a reshape from {old} to {new} has no buffer")


def _tile_broadcast(ev: Evaluator, op: Operation, at: At) -> SSAValue:
    """Read a dimension of size 1 only at 0."""
    (source,) = op.operands
    rows, cols = shape_of(source)
    row = 0 if rows == 1 else at.row
    col = 0 if cols == 1 else at.col
    if (cols if at.axis == COLUMNS else rows) == 1:
        return ev.spread(source, at, row, col)
    return ev.eval(source, at.moved(row, col))


_APART = "gathered; strides of 2, 3 and -1 are loaded as vectors, 0 is repeated"


def _load_tile(ev: Evaluator, op: xetile.LoadTileOp, at: At) -> SSAValue:
    tile = ev.state.tiles[op.tile]
    assert isinstance(tile, TileAt)
    type_ = vector_type(op.results[0])
    padding = _padding(ev, op.padding, type_.element_type, at.lanes)
    ev.loads[op] = None
    if at.lanes == 1:
        return ev.load_one(tile, at, padding)
    if op in ev.outside and ev.goes_along(at):
        return padding
    if ev.goes_along(at) and ev.is_whole(tile, at) and not ev.is_within(tile, at):
        ev.ended.add(op)
    is_apart = not (tile.matrix.is_contiguous() or lies_across(tile.matrix))
    if at.axis == COLUMNS and is_apart:
        remark(op, "loop", _APART)
    return ev.load(tile, type_.element_type, at, padding)


def _padding(
    ev: Evaluator, padding: Attribute | None, element: Attribute, lanes: int
) -> SSAValue:
    number = 0.0
    if isinstance(padding, FloatAttr | IntegerAttr):
        number = padding.value.data
    return ev.constant(element, number, lanes)


_strided_load = late("xetl_cpu.lowering.loops.strides", "strided_load")


def _load_gather(ev: Evaluator, op: xetile.LoadGatherOp, at: At) -> SSAValue:
    """Load elements by index; return padding where the mask is off or outside."""
    tile = ev.state.tiles[op.tile]
    assert isinstance(tile, ScatterTile)
    type_ = vector_type(op.results[0])
    ev.loads[op] = None
    build = ev.place(at)
    run = run_lanes(ev, tile, op.mask, at)
    if run is not None:
        remark(op, "loop", f"neighbours by index: loaded {at.lanes} at a time")
        first, mask = run
        if mask is None:
            wide = row_type(type_.element_type, at.lanes)
            return build.insert(vector.LoadOp(tile.memref, [first], wide))
        padding = _padding(ev, op.padding, type_.element_type, at.lanes)
        return build.insert(vector.MaskedloadOp(tile.memref, [first], mask, padding))
    padding = _padding(ev, op.padding, type_.element_type, at.lanes)
    if at.lanes == 1:
        index, is_inside = scatter_lanes(ev, tile, op.mask, at)
        load = memref.LoadOp(tile.memref, [index])
        return load_if(build, is_inside, load, padding)
    found = _strided_load(ev, tile, op.mask, at, padding)
    if found is not None:
        remark(op, "loop", "a few places apart: loaded as vectors and shuffled")
        return found
    remark(op, "loop", "gathered: each element has an index of its own")
    indices, mask = scatter_lanes(ev, tile, op.mask, at)
    return build.insert(
        vector.GatherOp(tile.memref, [build.index(0)], indices, mask, padding)
    )


_RULES: dict[type[Operation], Rule] = {
    Operation: _elementwise,
    arith.ConstantOp: _constant,
    vector.BroadcastOp: _broadcast,
    vector.StepOp: _step,
    vector.ShapeCastOp: _shape_cast,
    xetile.TileTransposeOp: lambda ev, op, at: ev.eval(op.operands[0], at.transposed()),
    xetile.TileConvLayoutOp: lambda ev, op, at: ev.eval(op.operands[0], at),
    xetile.TileBroadcastOp: _tile_broadcast,
    xetile.LoadTileOp: _load_tile,
    xetile.LoadGatherOp: _load_gather,
}
RULES.update(_RULES)
