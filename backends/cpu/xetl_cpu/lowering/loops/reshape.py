"""General reshapes: the source in contiguous scratch, read with other extents."""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.dialects.upstream import vector
from xetl_cpu.lowering.loops.build import Build, before
from xetl_cpu.lowering.loops.sinks import element_of, write
from xetl_cpu.lowering.loops.state import Buffer, Shape, State, reinterpret, shape_of


def reshape(state: State, op: vector.ShapeCastOp) -> Buffer:
    """The result of a reshape as a second view of its source's scratch.

    Rows are written in order and without padding; the last vector of a row spills
    into the next row, which is written after it, and at the end into the slack.
    """
    source, result = op.operands[0], op.results[0]
    rows, cols = shape_of(source)
    flat = state.scratch_memref([rows * cols + state.lanes], element_of(source))
    build = before(op)
    write(state, source, _view(build, flat, (rows, cols)), op)
    return _view(build, flat, shape_of(result))


def _view(build: Build, flat: SSAValue, shape: Shape) -> Buffer:
    if shape[1] == 1:
        return Buffer(flat, shape)
    return Buffer(reinterpret(build, flat, 0, shape, (shape[1], 1)), shape)
