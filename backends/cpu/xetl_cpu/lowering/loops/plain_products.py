"""Products without packed operands.

Products of few rows read B in place, if strides and types allow it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp, SkinnyGemmOp, element_attribute
from xetl_cpu.lowering.loops.state import Buffer, Factor, State
from xetl_cpu.microkernels.blocking import LOW_BYTES, Blocking

_DOTS = 8
"""The least steps (of ``k_pack``) for each row, for dot products of contiguous columns;
of fewer steps, the sums of lanes cost more than packing does. [measured] Zen 4, f32, 20
x 20 x 200: 6.2 us, then 2.7; 12 would lose 10 % for 16 x 128 x 8192."""


def zeros(state: State, op: BrgemmTileOp) -> SSAValue:
    """Return a value of zeros in the shape of the result."""
    type_ = vector_type(op.result)
    splat = arith.ConstantOp.of(0, type_)
    Builder.before(op).add(splat)
    state.dead.append(splat)
    return splat.result


def may_stream(blocking: Blocking, a: Factor, b: Factor) -> bool:
    """Whether strides and types allow B to stay in place, and A, or a copy of A."""
    is_plain = blocking.dtype == blocking.compute
    if not (a.matrix.is_contiguous() or is_plain):
        return False
    if not (blocking.is_skinny or blocking.is_low):
        return False
    along_n = b.matrix.is_contiguous() and not blocking.arithmetic.is_bytes
    return along_n or b.matrix.transposed().is_contiguous()


def streams(
    build: Builder, blocking: Blocking, a: Factor, b: Factor, extents: tuple[Index, ...]
) -> SSAValue:
    """Return whether rows of B are long enough, and no element of both is padding.

    Contiguous columns of B have to be long, too: each dot product ends with sums of
    lanes. ``extents``: rows, k, cols.
    """
    rows, k, cols = extents
    pairs = ((a.rows, rows), (a.cols, k), (b.rows, k), (b.cols, cols))
    if blocking.is_low:
        pairs = (*pairs, (build.times(cols, blocking.compute_bytes), LOW_BYTES))
        if not b.matrix.is_contiguous():
            least = build.times(rows, _DOTS * blocking.k_pack)
            pairs = (*pairs, (k, least))
    return build.both(*(build.compare("sge", *pair) for pair in pairs))


def multiply_in_place(
    build: Builder,
    op: BrgemmTileOp,
    a: Factor,
    b: Factor,
    extents: tuple[Index, ...],
    result: Buffer,
) -> None:
    """Emit the whole product as one operation."""
    rows, k, cols = extents
    left = [a.matrix.memref, *map(build.index, (a.row, a.col, rows, k))]
    height, width = build.plus(b.row, b.rows), build.plus(b.col, b.cols)
    elements = build.times(height, width)
    right = [b.matrix.memref, *map(build.index, (b.row, b.col, cols, elements))]
    build.add(SkinnyGemmOp(*left, *right, result.memref, plan=op.blocking()))


def clear(
    build: Builder, blocking: Blocking, result: Buffer, extents: tuple[Index, ...]
) -> None:
    """Set rows of the accumulators to zero, up to a whole number of vectors."""
    _fill(build, blocking, result, (0, extents[0]), extents[2], None)


def repeat_last_row(
    build: Builder, blocking: Blocking, result: Buffer, extents: tuple[Index, ...]
) -> None:
    """Copy the last row of the accumulators to the rest of its strip."""
    rows, _, cols = extents
    padding = rows, build.rounded_up(rows, blocking.mr)
    _fill(build, blocking, result, padding, cols, build.minus(rows, 1))


def _fill(
    build: Builder,
    blocking: Blocking,
    result: Buffer,
    rows: tuple[Index, Index],
    cols: Index,
    source: Index | None,
) -> None:
    """Set ``rows`` of the accumulators to those of a row, or to zero."""
    element = element_attribute(blocking.arithmetic.accumulator)
    type_ = VectorType(element, [blocking.lanes])
    value = build.insert(arith.ConstantOp.of(0, type_))
    inner, row = build.repeat(*rows, 1)
    inner, col = inner.repeat(0, cols, blocking.lanes)
    if source is not None:
        at = [inner.index(source), col]
        value = inner.insert(vector.LoadOp(result.memref, at, type_))
    inner.add(vector.StoreOp(value, result.memref, [row, col]))
