"""Where values end: in a buffer, in memory, in a reduction. Each writes one nest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerType,
    VectorType,
    f32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import StoreScatterOp, StoreTileOp, TileReduceOp
from xetl_cpu.lowering.loops.build import Build, Index, before
from xetl_cpu.lowering.loops.evaluate import (
    COLUMNS,
    At,
    Evaluator,
    constant_op,
    scatter_lanes,
)
from xetl_cpu.lowering.loops.nest import Nest, open_nest
from xetl_cpu.lowering.loops.state import (
    Buffer,
    ScatterTile,
    State,
    TileAt,
    shape_of,
)

_UNROLL = 4
"""Independent partial sums: the latency of an addition times its throughput, halved."""


def element_of(value: SSAValue) -> Attribute:
    """The element type of a vector value."""
    type_ = value.type
    assert isinstance(type_, VectorType)
    return type_.element_type


def materialize(state: State, value: SSAValue, op: Operation) -> Buffer:
    """Compute a value in front of ``op`` into scratch memory of its own."""
    found = state.buffers.get(value)
    if found is None:
        found = state.allocate(shape_of(value), element_of(value))
        write(state, value, found, op)
        state.buffers[value] = found
    return found


def write(state: State, value: SSAValue, to: Buffer, op: Operation) -> None:
    """Compute a value in front of ``op`` into a buffer of its shape."""
    rows, cols = to.shape
    lanes = state.lanes
    if to.is_column:
        nest = open_nest(op, 1, rows, lanes)
        at = At(nest.inner, 0, 1 - COLUMNS, lanes)
        indices = [nest.inner]
    else:
        nest = open_nest(op, rows, cols, lanes)
        at = At(nest.outer, nest.inner, COLUMNS, lanes)
        indices = [nest.outer, nest.inner]
    result = Evaluator(state, nest).eval(value, at)
    inner = nest.places[2]
    inner.emit(vector.StoreOp(result, to.memref, [inner.value(i) for i in indices]))
    nest.close()


def extract(
    state: State, value: SSAValue, position: tuple[int, int], op: Operation
) -> SSAValue:
    """One element of a value as a scalar, in front of ``op``."""
    build = before(op)
    nest = Nest(0, 0, None, None, (build, build, build))  # pyright: ignore[reportArgumentType]
    return Evaluator(state, nest).eval(value, At(*position, COLUMNS, 1))


def store_tile(state: State, op: StoreTileOp) -> None:
    """Write what lies inside the matrix; the traversal follows the memory."""
    tile = state.tiles[op.tile]
    assert isinstance(tile, TileAt)
    rows, cols = tile.shape
    down = cols == 1 or (
        rows > 1
        and not tile.matrix.is_contiguous()
        and tile.transposed().matrix.is_contiguous()
    )
    target = tile.transposed() if down else tile
    start = before(op)
    (row_from, row_to), (col_from, col_to) = (
        _inside(start, size, offset, extent, tile.non_negative)
        for size, offset, extent in (
            (target.matrix.rows, target.row, target.shape[0]),
            (target.matrix.cols, target.col, target.shape[1]),
        )
    )
    outer: Index = 1 if target.shape[0] == 1 and tile.non_negative else row_to
    # A single row that lies outside must not be written: no columns then.
    inner = col_to
    if isinstance(outer, int):
        inside = start.compare("sgt", row_to, 0)
        inner = start.select(inside, col_to, 0)
    nest = open_nest(op, outer, inner, state.lanes)
    if nest.outer_loop is not None and row_from != 0:
        nest.outer_loop.operands[0] = start.value(row_from)
    ev = Evaluator(state, nest)
    at = At(nest.outer, nest.inner, COLUMNS, state.lanes)
    value = ev.eval(op.value, at.transposed() if down else at)
    _store_lanes(ev, value, target, at, inner, col_from)
    nest.close()


def _inside(
    build: Build, size: Index, offset: Index, extent: int, non_negative: bool
) -> tuple[Index, Index]:
    """First and one past the last index of a tile's dimension inside the matrix."""
    upper = build.minimum(build.sub(size, offset), extent)
    if non_negative:
        return 0, upper
    return build.maximum(build.sub(0, offset), 0), upper


def _store_lanes(
    ev: Evaluator, value: SSAValue, tile: TileAt, at: At, end: Index, first: Index
) -> None:
    nest, build = ev.nest, ev.nest.places[2]
    row, col = nest.add(at.row, tile.row), nest.add(at.col, tile.col)
    mask = build.mask(build.sub(end, at.col), at.lanes)
    if not (isinstance(first, int) and first == 0):
        early = build.mask(build.sub(first, at.col), at.lanes)
        keep = build.insert(
            arith.XoriOp(early, ev.constant(IntegerType(1), 1, at.lanes))
        )
        mask = build.insert(arith.AndiOp(mask, keep))
    indices = [build.value(row), build.value(col)]
    if tile.matrix.is_contiguous():
        build.emit(vector.MaskedstoreOp(tile.matrix.memref, indices, mask, value))
    else:
        numbers = build.lane_numbers(at.lanes)
        build.emit(vector.ScatterOp(tile.matrix.memref, indices, numbers, mask, value))


def store_scatter(state: State, op: StoreScatterOp) -> None:
    """Write each active lane at its own index."""
    tile = state.tiles[op.tile]
    assert isinstance(tile, ScatterTile)
    rows, cols = tile.shape
    nest = open_nest(op, rows, cols, state.lanes)
    ev, build = Evaluator(state, nest), nest.places[2]
    at = At(nest.outer, nest.inner, COLUMNS, state.lanes)
    indices, mask = scatter_lanes(ev, tile, op.mask, at)
    tail = build.mask(build.sub(cols, nest.inner), state.lanes)
    mask = build.insert(arith.AndiOp(mask, tail))
    value = ev.eval(op.value, at)
    build.emit(vector.ScatterOp(tile.memref, [build.value(0)], indices, mask, value))
    nest.close()


def reduce_tile(state: State, op: TileReduceOp) -> None:
    """Reduce one or both dimensions into a buffer."""
    dims = op.dims
    source = op.source
    if dims == (0, 1):
        columns = reduce_value(state, op, source, 0)
        result = _reduce_buffer_rows(state, op, columns)
    else:
        result = reduce_value(state, op, source, dims[0])
    state.buffers[op.results[0]] = result


def _reduce_buffer_rows(state: State, op: TileReduceOp, columns: Buffer) -> Buffer:
    """The second step of a reduction to one element: along the row of partials."""
    stand_in = vector.BroadcastOp(
        before(op).insert(constant_op(element_of(op.source), 0, 1)),
        VectorType(element_of(op.source), list(columns.shape)),
    )
    state.buffers[stand_in.result] = columns
    return reduce_value(state, op, stand_in.result, 1)


def reduce_value(state: State, op: TileReduceOp, source: SSAValue, dim: int) -> Buffer:
    """Reduce ``dim`` of a value; rows end in one lane, columns stay lanes."""
    rows, cols = shape_of(source)
    shape = (rows, 1) if dim == 1 else (1, cols)
    to = state.allocate(shape, element_of(op.results[0]))
    if shape_of(source)[dim] == 1:
        write(state, source, replace(to), op)
    elif dim == 1:
        _reduce_rows(state, op, source, to)
    else:
        _reduce_columns(state, op, source, to)
    return to


class _Combine:
    """The operation of a reduction and its identity; narrow floats go through f32."""

    def __init__(self, kind: str, element: Attribute) -> None:
        narrow = isinstance(element, Float16Type | BFloat16Type)
        self.narrow = element if narrow else None
        self.element: Attribute = f32 if narrow else element
        self.kind = kind
        self.is_float = not isinstance(element, IntegerType | IndexType)

    def widen(self, build: Build, value: SSAValue) -> SSAValue:
        """The value as it is accumulated."""
        if self.narrow is None:
            return value
        type_ = value.type
        to = (
            VectorType(f32, type_.get_shape()) if isinstance(type_, VectorType) else f32
        )
        return build.insert(arith.ExtfOp(value, to))

    def narrow_back(self, build: Build, value: SSAValue) -> SSAValue:
        """The accumulated value rounded once to the type of the result."""
        if self.narrow is None:
            return value
        type_ = value.type
        to: Attribute = self.narrow
        if isinstance(type_, VectorType):
            to = VectorType(to, type_.get_shape())
        return build.insert(arith.TruncfOp(value, to))

    def apply(self, build: Build, left: SSAValue, right: SSAValue) -> SSAValue:
        """left combined with right."""
        table = _FLOAT_KINDS if self.is_float else _INT_KINDS
        return build.insert(table[self.kind](left, right))

    def identity(self) -> float:
        """The value that changes nothing."""
        element = self.element
        bits = element.width.data if isinstance(element, IntegerType) else 64
        signed_max = 1 if bits == 1 else 2 ** (bits - 1) - 1
        return {
            "add": 0,
            "or": 0,
            "xor": 0,
            "mul": 1,
            "and": -1,
            "minsi": signed_max,
            "maxsi": -signed_max - 1,
            "minui": -1,
            "maxui": 0,
            "minimumf": float("inf"),
            "minnumf": float("inf"),
            "maximumf": float("-inf"),
            "maxnumf": float("-inf"),
        }[self.kind]


_INT_KINDS: dict[str, Any] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "minsi": arith.MinsiOp,
    "minui": arith.MinuiOp,
    "maxsi": arith.MaxsiOp,
    "maxui": arith.MaxuiOp,
    "and": arith.AndiOp,
    "or": arith.OriOp,
    "xor": arith.XoriOp,
}
_FLOAT_KINDS: dict[str, Any] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "minimumf": arith.MinimumfOp,
    "maximumf": arith.MaximumfOp,
    "minnumf": arith.MinnumfOp,
    "maxnumf": arith.MaxnumfOp,
}


def _reduce_rows(state: State, op: TileReduceOp, source: SSAValue, to: Buffer) -> None:
    """Each row: vectors of partial results, then across the lanes."""
    rows, cols = shape_of(source)
    lanes = state.lanes
    combine = _Combine(op.kind.data, element_of(source))
    ways = _UNROLL if cols % (lanes * _UNROLL) == 0 else 1
    start = before(op)
    identity = start.insert(constant_op(combine.element, combine.identity(), lanes))
    nest = open_nest(op, rows, cols, lanes * ways, [identity] * ways)
    ev, build = Evaluator(state, nest), nest.places[2]
    partial: list[SSAValue] = []
    for way, carried in enumerate(nest.carried):
        col = nest.add(nest.inner, way * lanes)
        value = ev.eval(source, At(nest.outer, col, COLUMNS, lanes))
        value = combine.widen(build, value)
        if cols % lanes:
            mask = build.mask(build.sub(cols, col), lanes)
            value = build.insert(arith.SelectOp(mask, value, identity))
        partial.append(combine.apply(build, carried, value))
    results = nest.close(*partial)
    _finish_row(nest, combine, list(results), to, op)


def _finish_row(
    nest: Nest, combine: _Combine, partial: list[SSAValue], to: Buffer, op: Operation
) -> None:
    """Behind the inner loop: fold the partial vectors, then the lanes."""
    if nest.outer_loop is None:
        build = before(op)
    else:
        last = nest.outer_loop.body.block.last_op
        assert last is not None
        build = before(last)
    while len(partial) > 1:
        left, right, *rest = partial
        partial = [*rest, combine.apply(build, left, right)]
    scalar = build.insert(vector.ReductionOp(combine.kind, partial[0]))
    scalar = combine.narrow_back(build, scalar)
    build.emit(memref.StoreOp(scalar, to.memref, [build.value(nest.outer)]))


def _reduce_columns(
    state: State, op: TileReduceOp, source: SSAValue, to: Buffer
) -> None:
    """Chunks of columns outside, rows inside: lanes never mix."""
    rows, cols = shape_of(source)
    lanes = state.lanes
    combine = _Combine(op.kind.data, element_of(source))
    start = before(op)
    identity = start.insert(constant_op(combine.element, combine.identity(), lanes))
    chunks = -(-cols // lanes)
    nest = open_nest(op, chunks, rows, 1, [identity])
    col = nest.outer if isinstance(nest.outer, int) else nest.scaled_outer(lanes)
    ev, build = Evaluator(state, nest), nest.places[2]
    value = ev.eval(source, At(nest.inner, col, COLUMNS, lanes))
    value = combine.widen(build, value)
    (result,) = nest.close(combine.apply(build, nest.carried[0], value))
    last = op if nest.outer_loop is None else nest.outer_loop.body.block.last_op
    assert last is not None
    end = before(last)
    result = combine.narrow_back(end, result)
    if to.is_column:
        first = end.insert(vector.ExtractOp(result, [0]))
        end.emit(memref.StoreOp(first, to.memref, [end.value(0)]))
    else:
        end.emit(vector.StoreOp(result, to.memref, [end.value(0), end.value(col)]))
