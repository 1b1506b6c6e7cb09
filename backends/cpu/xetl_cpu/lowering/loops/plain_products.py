"""Products without packed operands.

Element types without a micro-kernel are multiplied by plain loops. Products of few rows
read B in place, if strides and types allow it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import TileMmaOp
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp, SkinnyGemmOp, element_attribute
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.materialization import materialize
from xetl_cpu.lowering.loops.nest import COLUMNS, At, open_nest, splat
from xetl_cpu.lowering.loops.state import Buffer, Factor, State, element_of, shape_of
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.microkernels.blocking import LOW_BYTES, Blocking

_DOTS = 8
"""The least steps (of ``k_pack``) for each row, for dot products of contiguous columns;
of fewer steps, the sums of lanes cost more than packing does. [measured] Zen 4, f32, 20
x 20 x 200: 6.2 us, then 2.7; 12 would lose 10 % for 16 x 128 x 8192."""


def lower_mma(state: State, op: TileMmaOp) -> None:
    """Multiply types without a micro-kernel: rows of C are sums of rows of B."""
    m, n = shape_of(op.result)
    a, b = (materialize(state, value, op) for value in (op.a, op.b))
    element = element_of(op.result)
    result = state.allocate((m, n), element)
    write(state, op.c if op.c is not None else zeros(state, op), result, op)
    depth = shape_of(op.a)[1]
    _accumulate(state, op, a, b, result, depth)
    state.buffers[op.result] = result


def _accumulate(
    state: State, op: TileMmaOp, a: Buffer, b: Buffer, c: Buffer, depth: int
) -> None:
    """Compute C[i, :] += A[i, k] * B[k, :] for each i, k.

    A single column is processed one element at a time, because its rows have no room
    for a vector.
    """
    m, n = c.shape
    lanes = 1 if c.is_column else state.lanes
    rows = Builder.before(op).for_loop(0, m, 1)
    end = scf.YieldOp()
    rows.body.block.add_op(end)
    row = rows.body.block.args[0]
    nest = open_nest(end, depth, n, lanes)
    nest.levels[row] = 0
    ev, build = Evaluator(state, nest), nest.places[2]
    at = At(row, nest.inner, COLUMNS, lanes)
    left = _widened(ev, op.a, a, At(row, nest.outer, COLUMNS, 1), op, "a_unsigned")
    left = splat(nest.at(nest.outer), left, lanes)
    right = _widened(ev, op.b, b, at.moved(nest.outer, nest.inner), op, "b_unsigned")
    have = ev.read(c, element_of(op.result), at)
    is_float = "f" in str(element_of(op.result))
    product = build.insert((arith.MulfOp if is_float else arith.MuliOp)(left, right))
    total = build.insert((arith.AddfOp if is_float else arith.AddiOp)(have, product))
    if c.is_column:
        build.add(memref.StoreOp(total, c.memref, [row]))
    else:
        where = [build.index(row), build.index(nest.inner)]
        build.add(vector.StoreOp(total, c.memref, where))
    nest.close()


def _widened(
    ev: Evaluator, value: SSAValue, buffer: Buffer, at: At, op: TileMmaOp, sign: str
) -> SSAValue:
    """Return an operand's elements in the type of the accumulator."""
    read = ev.read(buffer, element_of(value), at)
    to = element_of(op.result)
    if element_of(value) == to:
        return read
    type_ = to if at.lanes == 1 else VectorType(to, [at.lanes])
    if "f" in str(to):
        return ev.place(at).insert(arith.ExtfOp(read, type_))
    unsigned = op.properties.get(sign) is not None
    cast = arith.ExtuiOp if unsigned else arith.ExtsiOp
    return ev.place(at).insert(cast(read, type_))


def zeros(state: State, op: BrgemmTileOp | TileMmaOp) -> SSAValue:
    """Return a value of zeros in the shape of the result."""
    type_ = vector_type(op.result)
    splat = arith.ConstantOp.splat(0, type_)
    Builder.before(op).add(splat)
    state.dead.append(splat)
    return splat.result


def may_stream(blocking: Blocking, a: Factor, b: Factor) -> bool:
    """Whether strides and types allow both operands to stay in place."""
    if not a.matrix.is_contiguous():
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
    value = build.insert(arith.ConstantOp.splat(0, type_))
    inner, row = build.repeat(*rows, 1)
    inner, col = inner.repeat(0, cols, blocking.lanes)
    if source is not None:
        at = [inner.index(source), col]
        value = inner.insert(vector.LoadOp(result.memref, at, type_))
    inner.add(vector.StoreOp(value, result.memref, [row, col]))
