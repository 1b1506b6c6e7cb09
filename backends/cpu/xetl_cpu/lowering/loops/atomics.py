"""``atomic_rmw_tile`` as a loop over elements, with an atomic update of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from xetl.dialects.reduction_kinds import atomic_name, operation_of
from xetl.dialects.upstream import arith, memref
from xetl.dialects.xetile import AtomicRmwTileOp
from xetl.ir.builder import Builder
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import CompareAndSwapOp
from xetl_cpu.lowering.loops.chunks import Chunks, chunk_at
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.nest import At
from xetl_cpu.lowering.loops.runs import scatter_lanes
from xetl_cpu.lowering.loops.state import (
    Buffer,
    ScatterTile,
    State,
    TileAt,
    element_of,
    shape_of,
)
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.tiles import root


def atomic_rmw(state: State, op: AtomicRmwTileOp) -> None:
    """Update each element inside the matrix; store the old values to a buffer."""
    rows, cols = shape_of(op.value)
    remark(op, "loop", f"{rows} x {cols} elements, one after the other")
    old = _zeroed(state, op) if any(True for _ in op.result.uses) else None

    def body(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        at = chunk_at(ev)
        # Both are evaluated before the branch: code behind the branch uses them, too.
        value = ev.eval(op.value, at)
        expected = None if op.expected is None else ev.eval(op.expected, at)
        active, base, indices = _target(state, ev, op, at)
        inside = ev.nest.places[2].when(active)
        if expected is None:
            found = _update(inside, op.kind.data, value, base, indices)
        else:
            found = inside.insert(CompareAndSwapOp(expected, value, base, indices))
        if old is not None:
            where = [at.row] if old.is_column else [at.row, at.col]
            place = [inside.index(i) for i in where]
            inside.add(memref.StoreOp(found, old.memref, place))
        return []

    Chunks(replace(state, lanes=1), op, (rows, cols), body).emit()
    if old is not None:
        state.buffers[op.result] = old


def _update(
    build: Builder,
    kind: str,
    value: SSAValue,
    base: SSAValue,
    indices: Sequence[SSAValue],
) -> SSAValue:
    """Combine an element in memory with a value; return the old element."""
    if not isinstance(root(base).owner, memref.AllocaOp):
        name = atomic_name(kind, value.type)
        return build.insert(memref.AtomicRmwOp(value, base, indices, name))
    # Scratch belongs to the thread: no other thread can see a partial update.
    found = build.insert(memref.LoadOp(base, indices))
    if kind != "assign":
        value = build.insert(operation_of(kind, value.type)(found, value))
    build.add(memref.StoreOp(value, base, indices))
    return found


def _zeroed(state: State, op: AtomicRmwTileOp) -> Buffer:
    """Return a buffer of zeros: the old values of elements that are not updated."""
    element = element_of(op.result)
    buffer = state.allocate(shape_of(op.result), element)
    zeros = arith.ConstantOp.of(0, op.result.type)
    Builder.before(op).add(zeros)
    state.dead.append(zeros)
    write(state, zeros.result, buffer, op)
    return buffer


def _target(
    state: State, ev: Evaluator, op: AtomicRmwTileOp, at: At
) -> tuple[SSAValue, SSAValue, list[SSAValue]]:
    """Return whether an element is updated, and where it is."""
    tile, build = state.tiles[op.tile], ev.nest.places[2]
    if isinstance(tile, ScatterTile):
        index, active = scatter_lanes(ev, tile, op.mask, at)
        return active, tile.memref, [index]
    assert isinstance(tile, TileAt)
    row, col = build.plus(at.row, tile.row), build.plus(at.col, tile.col)
    active = build.both(
        build.compare("ult", row, tile.matrix.rows),
        build.compare("ult", col, tile.matrix.cols),
    )
    if op.mask is not None:
        active = build.both(active, ev.eval(op.mask, at))
    return active, tile.matrix.memref, [build.index(row), build.index(col)]
