"""``tile_scan``: running sums (or other combinations) along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects.upstream import memref, vector
from xetl.dialects.xetile import TileScanOp
from xetl.ir.builder import Builder
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.chunks import chunk_at, over_chunks, put
from xetl_cpu.lowering.loops.evaluator import Evaluator, constant_op
from xetl_cpu.lowering.loops.materialization import materialize
from xetl_cpu.lowering.loops.nest import COLUMNS, At
from xetl_cpu.lowering.loops.reductions import Combine
from xetl_cpu.lowering.loops.state import Buffer, State, element_of, shape_of
from xetl_cpu.lowering.loops.stores import write


def scan_tile(state: State, op: TileScanOp) -> None:
    """Down the columns a row at a time; along a row a vector at a time."""
    result = state.allocate(shape_of(op.source), element_of(op.result))
    combine = Combine(op.kind.data, element_of(op.source))
    rows, cols = shape_of(op.source)
    way = f"along rows, in vectors of {state.lanes}" if op.dim == 1 else "row by row"
    remark(op, "loop", f"a pass over {rows} x {cols} elements, {way}")
    if op.dim == 1 and result.is_column:
        write(state, op.source, result, op)
    elif op.dim == 1:
        _along_rows(state, op, result, combine)
    else:
        materialize(state, op.source, op)
        _down_columns(state, op, result, combine)
    state.buffers[op.result] = result


def _along_rows(state: State, op: TileScanOp, to: Buffer, combine: Combine) -> None:
    """Each vector by itself, then what all before it came to.

    What is carried waits for one operation a vector only: the total of a vector does
    not depend on those before it. Source: W. D. Hillis, G. L. Steele, Data Parallel
    Algorithms, CACM 29(12), 1986.
    """
    lanes = state.lanes
    neutral = constant_op(combine.element, combine.identity(), lanes)
    first = Builder.before(op).insert(neutral)

    def body(ev: Evaluator, carried: Sequence[SSAValue]) -> list[SSAValue]:
        build, at = ev.nest.places[2], chunk_at(ev)
        value = combine.widen(build, ev.eval(op.source, at))
        step = 1
        while step < lanes:
            before = [n if n < step else lanes + n - step for n in range(lanes)]
            shifted = build.insert(vector.ShuffleOp(first, value, mask=before))
            value = combine.apply(build, shifted, value)
            step *= 2
        total = build.insert(vector.ShuffleOp(value, value, mask=[lanes - 1] * lanes))
        result = combine.apply(build, carried[0], value)
        put(ev, combine.narrow_back(build, result), to, at)
        return [combine.apply(build, carried[0], total)]

    over_chunks(state, op, shape_of(op.source), body, inits=[first])


def _down_columns(state: State, op: TileScanOp, to: Buffer, combine: Combine) -> None:
    """The running row is kept as wide as it is summed; each row is a rounded copy."""
    rows, cols = shape_of(op.source)
    partial = state.allocate((1, max(cols, 2)), combine.element)
    type_ = VectorType(combine.element, [state.lanes])

    def at_partial(ev: Evaluator) -> At:
        return At(0, ev.nest.inner, COLUMNS, state.lanes)

    def fill(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = ev.constant(combine.element, combine.identity(), state.lanes)
        put(ev, value, partial, at_partial(ev))
        return []

    def add(ev: Evaluator, _: Sequence[SSAValue]) -> list[SSAValue]:
        build = ev.nest.places[2]
        value = combine.widen(build, ev.eval(op.source, chunk_at(ev)))
        indices = [build.index(0), build.index(ev.nest.inner)]
        have = build.insert(vector.LoadOp(partial.memref, indices, type_))
        total = combine.apply(build, have, value)
        put(ev, total, partial, at_partial(ev))
        _put_row(ev, combine.narrow_back(build, total), to)
        return []

    over_chunks(state, op, (1, cols), fill)
    over_chunks(state, op, (rows, cols), add)


def _put_row(ev: Evaluator, value: SSAValue, to: Buffer) -> None:
    """A chunk of a row; of a single column its one element."""
    if not to.is_column:
        put(ev, value, to, chunk_at(ev))
        return
    build = ev.nest.places[2]
    element = build.insert(vector.ExtractOp(value, [0]))
    build.add(memref.StoreOp(element, to.memref, [build.index(ev.nest.outer)]))
