"""convert-xetile-to-loops: all rank-2 values become loops over vectors.

Every operation that ends a computation (a store, a reduction, a product, a value that
is read twice) becomes a loop nest over rows and vectors of ``lanes`` elements; the
operations that feed it are computed inside that nest. Values that must live longer get
a buffer in per-thread scratch memory. A load is done where its value is read, unless a
store that may touch the same memory comes in between: then the load is done before the
store.

Before: ``%v = load_tile %t; %e = math.exp %v; store_tile %e, %u``
After:  ``scf.for rows { scf.for columns { maskedload; math.exp; maskedstore } }``

Left alone: scalar code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import Index, is_memref, is_vector, memref_type, operations_in
from xetl.dialects.memref_layout import ENDLESS
from xetl.dialects.upstream import arith, gpu, memref, scf, vector
from xetl.dialects.upstream.xegpu import FenceOp
from xetl.errors import InternalError
from xetl.imports import late
from xetl.ir.builder import Builder, Pass
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BarrierOp, BrgemmTileOp, FibersOp, LogOp
from xetl_cpu.lowering.joined_stores import JOINED
from xetl_cpu.lowering.loops import evaluate as evaluate  # enters its rules
from xetl_cpu.lowering.loops import moves as moves  # the same
from xetl_cpu.lowering.loops.carried import adjacent_dims
from xetl_cpu.lowering.loops.control import lower_for, lower_if, lower_while
from xetl_cpu.lowering.loops.kept_copies import products_of_one_a
from xetl_cpu.lowering.loops.materialization import (
    materialize,
    materialize_cast,
    snapshot_loads_before,
)
from xetl_cpu.lowering.loops.reductions import reduce_tile
from xetl_cpu.lowering.loops.state import (
    Buffer,
    ScatterTile,
    Shape,
    State,
    TileAt,
    element_of,
    is_coordinate_swap,
    matrix_of,
    reinterpret,
    shape_of,
    tell_passes,
    view_address,
)
from xetl_cpu.lowering.loops.stores import extract, store_scatter, store_tiles, write
from xetl_cpu.lowering.place_values import BUFFER, REGISTERS, is_free, lanes_of
from xetl_cpu.lowering.tiles import is_non_negative, may_write
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class ConvertXetileToLoopsPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target)
        for loop in operations_in(op, scf.ParallelOp):
            body = loop.body.block
            lanes, adjacent = lanes_of(body, machine), adjacent_dims(loop)
            of_one_a = products_of_one_a(loop)
            state = State(machine, body, lanes, adjacent=adjacent, of_one_a=of_one_a)
            lower_block(state, body)
            tell_passes(state)
            for dead in reversed(state.dead):
                Rewriter.erase_op(dead, safe_erase=False)


_TERMINATORS = (scf.YieldOp, scf.ReduceOp, scf.ConditionOp)


def lower_block(state: State, block: Block) -> None:
    """Lower the operations of a block in order."""
    for op in list(block.ops):
        if op.parent is block and isinstance(op, _TERMINATORS):
            continue
        if isinstance(op, xetile.StoreTileOp) and JOINED in op.attributes:
            state.joined.append(op)
            continue
        if may_write(op) or (op.regions and any(may_write(o) for o in op.walk())):
            snapshot_loads_before(state, op)
        if op.regions:
            _buffer_what_regions_read(state, op)
        if isinstance(op, xetile.LoadTileOp | xetile.LoadGatherOp):
            state.pending_loads.setdefault(block, []).append(op)
        rule = _RULES.get(type(op))
        if rule is not None:
            rule(state, op)
            # Other values are computed at each place that reads them.
            if all(not is_vector(r.type) or r in state.buffers for r in op.results):
                state.lowered.add(op)
        elif any(is_vector(r.type) for r in op.results):
            _value(state, op)


def _buffer_what_regions_read(state: State, op: Operation) -> None:
    """Compute values that a nested region reads before it, not in each iteration."""
    inside = {id(inner) for inner in op.walk()}
    for inner in op.walk():
        for operand in inner.operands:
            owner = operand.owner
            if inner is op or not is_vector(operand.type):
                continue
            if (
                isinstance(owner, Operation)
                and id(owner) not in inside
                and not is_free(operand)
            ):
                materialize(state, operand, op)


def _value(state: State, op: Operation) -> None:
    """Compute a value into a buffer now, or leave it to be computed at its readers."""
    state.dead.append(op)
    (result, *more) = op.results
    if more:
        raise InternalError(f"`{op.name}` has several vector results")
    if result in state.buffers:
        return
    for place in (BUFFER, REGISTERS):
        why = op.attributes.get(place)
        if isinstance(why, StringAttr):
            remark(op, "values", why.data)
    if BUFFER in op.attributes and not materialize_cast(state, result, op):
        materialize(state, result, op)


def _init_tile(state: State, op: xetile.InitTileOp) -> None:
    state.dead.append(op)
    type_ = op.result.type
    assert isinstance(type_, xetile.TileType)
    rows, cols = (1, *type_.shape)[-2:]
    if op.indices is not None:
        base, size = _scatter_base(op)
        tile = ScatterTile(base, size, op.indices, (rows, cols))
        state.tiles[op.result] = tile
        return
    row, col = op.mixed_offsets[-2:]
    matrix = matrix_of(op, Builder.before(op))
    ends = (row, rows, matrix.rows), (col, cols, matrix.cols)
    is_inside = all(_fits(state, *each) for each in ends)
    forward = is_inside or (is_non_negative(row) and is_non_negative(col))
    where = row, col, (rows, cols)
    state.tiles[op.result] = TileAt(matrix, *where, forward, is_inside)


def _fits(state: State, start: Index, extent: int, size: Index) -> bool:
    """Whether a tile is known to be inside its matrix along a dimension."""
    found = state.ranges.of(start)
    if found is None or not isinstance(size, int):
        return False
    return found.low >= 0 and found.high + extent <= size


def _scatter_base(op: xetile.InitTileOp) -> tuple[SSAValue, Index | None]:
    """Return the rank-1 array of a scatter tile, and its length or None if unknown."""
    build = Builder.before(op)
    if is_memref(op.source.type):
        if memref_type(op.source).get_shape() == (ENDLESS,):
            return op.source, None
        return op.source, build.insert(memref.DimOp(op.source, build.index(0)))
    sizes, strides = op.mixed_sizes or (ENDLESS,), op.mixed_strides or (1,)
    base = view_address(build, op.source, xetile.tile_type(op.result), sizes, strides)
    return base, sizes[0] if op.mixed_sizes else None


def _shared_memory(state: State, op: memref.AllocOp) -> None:
    """Lower memory shared by subgroups to scratch: here a program is one thread."""
    type_ = memref_type(op.results[0])
    scratch = state.scratch_memref(
        list(type_.get_shape()), type_.element_type, type_.memory_space
    )
    op.results[0].replace_all_uses_with(scratch)
    state.dead.append(op)


def _update_tile(state: State, op: xetile.UpdateTileOffsetOp) -> None:
    state.dead.append(op)
    tile, build = state.tiles[op.tile], Builder.before(op)
    if isinstance(tile, ScatterTile):
        assert op.indices is not None
        moved = arith.AddiOp(tile.indices, op.indices)
        build.add(moved)
        state.dead.append(moved)
        state.tiles[op.result] = replace(tile, indices=moved.result)
        return
    down, right = op.mixed_offsets
    state.tiles[op.result] = TileAt(
        tile.matrix,
        build.plus(tile.row, down),
        build.plus(tile.col, right),
        tile.shape,
        tile.non_negative and is_non_negative(down) and is_non_negative(right),
    )


def _load(state: State, op: xetile.LoadTileOp) -> None:
    if len(op.results) != 1:
        raise InternalError("a load of several vectors reached the CPU backend")
    _value(state, op)


def _prefetch(state: State, op: xetile.PrefetchTileOp) -> None:
    """Prefetch tiles of one element; processors prefetch rows by themselves."""
    tile = state.tiles[op.tile]
    if isinstance(tile, TileAt) and tile.shape == (1, 1):
        build = Builder.before(op)
        at = [build.index(tile.row), build.index(tile.col)]
        hint = 3 if op.locality is None else op.locality.value.data
        base = tile.matrix.memref
        build.add(memref.PrefetchOp(base, at, False, hint, True))
    state.dead.append(op)


def _fibers(state: State, op: FibersOp) -> None:
    """Lower fibers; each has its own scratch: its values live across barriers."""
    outside, state.scratch = state.scratch, op.body.block
    lower_block(state, op.body.block)
    state.scratch = outside


def _keep(state: State, op: Operation) -> None:
    """Keep the operation as it is."""


def _store_tiles(state: State, op: xetile.StoreTileOp) -> None:
    """Lower a store, with the stores before it that share its loop."""
    stores = [*state.joined, op]
    state.joined.clear()
    store_tiles(state, stores)
    state.lowered.update(stores)
    state.dead += stores


def _sink(lower: Callable[[State, Any], None]) -> Callable[[State, Any], None]:
    def rule(state: State, op: Operation) -> None:
        lower(state, op)
        state.dead.append(op)

    return rule


def _extract(state: State, op: vector.ExtractOp) -> None:
    source = op.operands[0]
    position = [p for p in op.position if isinstance(p, int)]
    row, col = (0, *position)[-2:]
    op.result.replace_all_uses_with(extract(state, source, (row, col), op))
    state.dead.append(op)


def _shape_cast(state: State, op: vector.ShapeCastOp) -> None:
    if is_coordinate_swap(op):
        _value(state, op)
        return
    state.buffers[op.result] = _reshape(state, op)
    state.dead.append(op)


def _log(state: State, op: xetile.PrintOp | xetile.AssertOp) -> None:
    """Lower each print or assertion to one ``cpu.log``."""
    values = [
        materialize(state, value, op).memref if is_vector(value.type) else value
        for value in op.arguments
    ]
    types: list[Attribute] = [value.type for value in op.arguments]
    condition = op.condition if isinstance(op, xetile.AssertOp) else None
    new = LogOp(
        *(condition, values),
        template=op.template,
        types=types,
        unsigned=op.unsigned,
        location=op.location,
    )
    Builder.before(op).add(new)


def _reshape(state: State, op: vector.ShapeCastOp) -> Buffer:
    """Lower a reshape to a second view of the scratch of its source.

    Rows are written in order and without padding. The last vector of a row spills into
    the next row, which is written after it; in the last row it spills into the slack.
    """
    source, result = op.operands[0], op.results[0]
    rows, cols = shape_of(source)
    flat = state.scratch_memref([rows * cols + state.lanes], element_of(source))
    build = Builder.before(op)
    write(state, source, _view(build, flat, (rows, cols)), op)
    return _view(build, flat, shape_of(result))


def _view(build: Builder, flat: SSAValue, shape: Shape) -> Buffer:
    if shape[1] == 1:
        return Buffer(flat, shape)
    return Buffer(reinterpret(build, flat, 0, shape, (shape[1], 1)), shape)


def _later(module: str, name: str) -> Callable[[State, Any], None]:
    """Return a rule that is loaded late, because few kernels need it."""
    return late(f"xetl_cpu.lowering.loops.{module}", name)


_RULES: dict[type[Operation], Callable[[State, Any], None]] = {
    xetile.InitTileOp: _init_tile,
    xetile.UpdateTileOffsetOp: _update_tile,
    xetile.PrefetchTileOp: _prefetch,
    memref.AllocOp: _shared_memory,
    gpu.BarrierOp: _keep,
    BarrierOp: _keep,
    FenceOp: _keep,
    FibersOp: _fibers,
    xetile.LoadTileOp: _load,
    xetile.StoreTileOp: _store_tiles,
    xetile.StoreScatterOp: _sink(store_scatter),
    xetile.PrintOp: _sink(_log),
    xetile.AssertOp: _sink(_log),
    xetile.TileScanOp: _sink(_later("scans", "scan_tile")),
    xetile.TileAssociativeScanOp: _sink(_later("scans", "scan_by_function")),
    xetile.TileSortOp: _sink(_later("sorting", "sort_tile")),
    xetile.AtomicRmwTileOp: _sink(_later("atomics", "atomic_rmw")),
    xetile.TileReduceOp: _sink(reduce_tile),
    BrgemmTileOp: _sink(_later("matmul", "lower_brgemm")),
    vector.ExtractOp: _extract,
    vector.ShapeCastOp: _shape_cast,
    scf.ForOp: lambda state, op: lower_for(state, op, lower_block),
    scf.WhileOp: lambda state, op: lower_while(state, op, lower_block),
    scf.IfOp: lambda state, op: lower_if(state, op, lower_block),
}
