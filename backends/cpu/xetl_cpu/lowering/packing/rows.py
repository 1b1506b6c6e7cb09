"""A whose rows are not contiguous is copied once for a launch, before programs run.

Each program would else copy its part chunk by chunk of k, as often as there are
programs along n. What is copied is the whole matrix, row by row; the products then read
it in place. Measured for ``A.T @ B`` with tiles of 64, 1024 cubed: 0.69 of the speed of
``A @ B`` before.

Left alone: what a program computes or writes, matrices of a batch, and element types
that are widened for the product.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import Index
from xetl.dialects.upstream import memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, element_attribute, pack
from xetl_cpu.lowering.loops.state import Matrix, matrix_of, reinterpret
from xetl_cpu.lowering.packing.plans import is_written
from xetl_cpu.lowering.tiles import tile_sizes
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels import Blocking

_ROWS = 64
"""Of A that one task copies."""

_CHUNK = 256
"""Steps of k that it copies of them."""


@record()
class RowCopy:
    """The copy of one A: the matrix (m, k), and where it goes.

    Attributes:
        op: the product, that reads the copy already.
        source: what is copied.
        buffer: the memory.
        row_stride: elements from one row of it to the next.
    """

    op: BrgemmTileOp
    source: Matrix
    buffer: SSAValue
    row_stride: Index


def reserve_rows(
    op: BrgemmTileOp, loop: scf.ParallelOp, blocking: Blocking
) -> RowCopy | None:
    """Memory for the copy, if A is worth one; the product reads that from now on."""
    init = op.a.owner
    if not isinstance(init, InitTileOp) or not _may_copy(op, init, loop, blocking):
        return None
    build = Builder.before(loop)
    matrix = matrix_of(init, build)
    if op.trans_a is not None:
        matrix = matrix.transposed()
    if matrix.is_contiguous():
        return None
    remark(op, "packing", "a is copied once, row by row, before the programs run")
    stride = _odd_lines(matrix.cols, blocking, build)
    count = build.index(build.times(matrix.rows, stride))
    type_ = MemRefType(element_attribute(blocking.compute), [DYNAMIC_INDEX])
    buffer = build.insert(memref.AllocOp([count], (), type_))
    buffer.name_hint = "rows"
    sizes = (matrix.rows, matrix.cols)
    whole = reinterpret(build, buffer, 0, sizes, (stride, 1))
    new = _on_copy(op, init, whole, (*sizes, stride))
    return RowCopy(new, matrix, buffer, stride)


def _odd_lines(cols: Index, blocking: Blocking, build: Builder) -> Index:
    """Elements of a row that is an odd number of cache lines, see `copied_row`."""
    line = LINE // blocking.compute_bytes
    pairs = build.ceil_divided(build.plus(cols, line), 2 * line)
    return build.plus(build.times(pairs, 2 * line), line)


def _may_copy(
    op: BrgemmTileOp, init: InitTileOp, loop: scf.ParallelOp, blocking: Blocking
) -> bool:
    """Whether it is one matrix for all programs, of what is computed with."""
    if blocking.dtype != blocking.compute or blocking.is_called or op.count is None:
        return False
    sizes = tile_sizes(init)
    if init.indices is not None or sizes is None or len(init.mixed_offsets) != 2:
        return False
    fixed = [init.source, *sizes, *init.mixed_strides]
    if not all(is_defined_outside(value, loop) for value in fixed):
        return False
    return not is_written(init.source, loop)


def emit_rows(copy: RowCopy, build: Builder) -> None:
    """A parallel loop over (rows, chunk of k)."""
    source, stride = copy.source, copy.row_stride
    extents = (
        build.ceil_divided(source.rows, _ROWS),
        build.ceil_divided(source.cols, _CHUNK),
    )
    inner, (task, part) = build.parallel(extents)
    row, first = inner.times(task, _ROWS), inner.times(part, _CHUNK)
    rows = inner.minimum(inner.minus(source.rows, row), _ROWS)
    k = inner.minimum(inner.minus(source.cols, first), _CHUNK)
    at = inner.plus(inner.times(row, stride), first)
    numbers = (row, first, rows, k, rows, k)
    blocking = copy.op.blocking()
    pack(inner, "a", blocking, source.memref, numbers, copy.buffer, at, stride)


def _on_copy(
    op: BrgemmTileOp,
    init: InitTileOp,
    whole: SSAValue,
    extents: tuple[Index, Index, Index],
) -> BrgemmTileOp:
    """The product on the copy; ``extents``: rows, columns, distance of rows."""
    rows, cols, stride = extents
    offsets = list(init.mixed_offsets)
    type_ = init.result.type
    assert isinstance(type_, TileType)
    shape = list(type_.shape)
    if op.trans_a is not None:
        offsets.reverse()
        shape.reverse()
    tile = InitTileOp(
        whole,
        offsets,
        TileType(shape, type_.element_type),
        sizes=[rows, cols],
        strides=[stride, 1],
        location=init.location,
    )
    new = op.changed(a=tile.result, trans_a=None)
    Rewriter.replace_op(op, [tile, new])
    return new
