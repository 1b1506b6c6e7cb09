"""Emission of ``xsmm``: each operation is one call of a micro-kernel function."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from xetl.analysis.memory import roots_of
from xetl.codegen.emitter import EmitTable, Strided, constant, is_constant
from xetl.codegen.types import I1, I64, PTR, Function, Value, ll, memory_type
from xetl.dialects.base import is_memref, memref_type
from xetl.dialects.xsmm import TileConfigDispatchOp, TileConfigOp
from xetl.errors import IRError
from xetl.imports import late
from xetl_cpu import dialect
from xetl_cpu.emit import parallel
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.llvm import bits_of, define, vector
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.copy_block import Unit
from xetl_cpu.microkernels.gemm import emit_block_gemm
from xetl_cpu.microkernels.packing import emit_pack

_MICROKERNELS = "xetl_cpu.microkernels"
_emit_configure = late(f"{_MICROKERNELS}.amx_tiles", "emit_configure")
_emit_release = late(f"{_MICROKERNELS}.amx_tiles", "emit_release")
_emit_skinny_gemm = late(f"{_MICROKERNELS}.small_m_gemm", "emit_skinny_gemm")
_emit_dots = late(f"{_MICROKERNELS}.dots", "emit_dots")
_emit_low_gemm = late(f"{_MICROKERNELS}.small_m_gemm", "emit_low_gemm")


def _at(em: KernelEmitter, value: SSAValue, *indices: SSAValue) -> Value:
    return em.element_address(em.strided(value), em.all(indices))


def _from(em: KernelEmitter, panels: SSAValue, offset: SSAValue) -> Value:
    """Return the address of an element of packed panels."""
    element = memory_type(memref_type(panels).element_type)
    address = em.strided(panels).address
    return em.builder.gep(address, [em.get(offset)], source_etype=element)


def _unit(source: Strided) -> Unit | None:
    """Return the contiguous dimension if the type tells; only its code is compiled."""
    units: tuple[Unit, Unit] = ("minor", "major")
    for name, stride in zip(units, reversed(source.strides)):
        if is_constant(stride, 1):
            return name
    return None


def _plan(em: KernelEmitter, op: dialect.BlockOp) -> Blocking:
    """Return the plan, which may be written by hand.

    Raises:
        IRError: the target does not have its instruction, or numbers do not fit.
    """
    plan, has = op.blocking(), {"amx": em.target.has_amx, "vnni": em.target.has_vnni}
    has |= {"dpbf16": em.target.has_bf16_dot}
    how = plan.arithmetic
    wrong = plan.problem()
    if not has.get(how.instruction, True) or plan.lanes != em.target.lanes(
        how.accumulator
    ):
        wrong = f"`{em.target.name}` has no {how.instruction} of {plan.lanes} lanes"
    if wrong is not None:
        raise IRError(f"a plan of a product cannot be followed: {wrong}", code="X0705")
    return plan


def _pack(em: KernelEmitter, op: dialect.PackOp) -> None:
    blocking, source = _plan(em, op), em.strided(op.source)
    name = dialect.element_name(op.source)
    if name == "i8" and blocking.arithmetic.unsigned[op.is_b]:
        name = "u8"  # its extension differs
    how = (blocking, op.operand.data, name, _unit(source))
    numbers = [op.rows_valid, op.cols_valid, op.rows, op.cols]
    em.builder.call(
        emit_pack(em.module, em.target, *how),
        [
            _at(em, op.source, op.row, op.col),
            *source.strides,
            *em.all(numbers),
            _from(em, op.dest, op.offset),
            em.get(op.stride),
        ],
    )


def _block_gemm(em: KernelEmitter, op: dialect.BlockGemmOp) -> None:
    blocking = _plan(em, op)
    output = op.output()
    out = None if output is None else dialect.element_name(output.matrix)
    is_given = any(isinstance(root, BlockArgument) for root in roots_of(op.a))
    is_made = not is_given and op.later() is None
    compute, context = _epilogue(em, op)
    how = (blocking, out, is_made, compute, op.ldb is not None)
    function = emit_block_gemm(em.module, em.target, *how)
    a = em.strided(op.a)
    panels = _from(em, op.b, op.b_offset)
    arguments = [
        _at(em, op.a, op.m0, op.k0),
        a.strides[0],
        *em.all([op.rows, op.k]),
        panels,
        *em.all([op.panel_stride, op.panels]),
        em.strided(op.c).address,
        em.get(op.accumulate) if op.accumulate is not None else ll.Constant(I1, 1),
        *_later(em, op, blocking),
        *em.all([each for each in (op.ldb, op.b_cols) if each is not None]),
        *_output(em, output, blocking),
        *context,
    ]
    em.builder.call(function, arguments)


def _epilogue(
    em: KernelEmitter, op: dialect.BlockGemmOp
) -> tuple[Function | None, list[Value]]:
    """Emit the function of an epilogue; return it and its context, if there is one.

    It is inlined, because a call would save no tiles.
    """
    if op.epilogue is None or not op.epilogue.blocks:
        return None, []
    block, output = op.epilogue.block, op.output()
    assert output is not None
    outside, parts = parallel.captured_parts(em, op)
    start = em.all([output.row, output.col])
    context = parallel.store_context(em, [*start, *parts])
    sums, *places = block.args
    lanes = op.blocking().lanes
    bits = vector(bits_of(dialect.element_name(output.matrix)), lanes)
    total = vector(op.blocking().arithmetic.accumulator_type, lanes)
    params = [("context", PTR), ("sums", total), ("row", I64), ("column", I64)]
    name: str = em.module.get_unique_name("xetl_epilogue")
    function = define(em.module, name, bits, params)
    function.attributes.add("alwaysinline")
    inner = em.inside(function)
    b, (own, totals, *distances) = inner.builder, function.args
    parallel.load_captured(em, inner, own, outside, len(start))
    inner.set(sums, totals)
    for number, (place, distance) in enumerate(zip(places, distances)):
        first = b.load(b.word_at(own, number), typ=I64, align=8)
        inner.set(place, b.add(first, distance))
    inner.emit_block(block)
    end = block.last_op
    assert end is not None
    b.ret(b.bitcast(inner.get(end.operands[0]), bits))
    return function, [context]


def _later(
    em: KernelEmitter, op: dialect.BlockGemmOp, blocking: Blocking
) -> list[Value]:
    """Return the memory that is packed next, as contiguous pieces; null: unknown."""
    later = op.later()
    if later is None:
        return [ll.Constant(PTR, None), constant(0), constant(0)]
    b = em.strided(later.matrix)
    is_row = _unit(b) != "major"
    pieces = blocking.chunk if is_row else blocking.block_n
    stride = b.strides[0 if is_row else 1]
    size = bits_of(dialect.element_name(later.matrix)).width // 8
    distance = em.builder.mul(stride, size)
    start = _if(em, later.is_wanted, _at(em, later.matrix, later.k, later.n))
    return [start, distance, constant(pieces)]


def _if(em: KernelEmitter, is_wanted: SSAValue, address: Value) -> Value:
    null = ll.Constant(address.type, None)
    return em.builder.select(em.get(is_wanted), address, null)


def _output(
    em: KernelEmitter, output: dialect.Output | None, blocking: Blocking
) -> list[Value]:
    """Return the destination of the sums; null: C."""
    if output is None:
        return []
    at, matrix = (
        _at(em, output.matrix, output.row, output.col),
        em.strided(output.matrix),
    )
    place = [_if(em, output.is_wanted, at), matrix.strides[0], em.get(output.cols)]
    return place + (_far_stores(em, at, output) if blocking.uses_tiles else [])


def _far_stores(em: KernelEmitter, at: Value, output: dialect.Output) -> list[Value]:
    """Return whether stores bypass the caches, and whether lines are prefetched.

    L2 does not hold C: lines bypass the caches if all rows are whole lines, else they
    are prefetched to be written. Measured on silicon: a line that is read from L3 to be
    overwritten costs more than it costs the reader to fetch it again (0.42 and 0.51 of
    the peak at 2048). L2 does not hold a C of its own size either: 1024 cubed to twelve
    C in turn gains 8 to 17 %, and to the same one nothing. 192 products of 197 x 64 x
    197 on Sapphire Rapids: 7.6 ms without prefetches, 4.7 with them; in L2 they would
    cost 5 to 15 %.
    """
    build, matrix = em.builder, em.strided(output.matrix)
    size = bits_of(dialect.element_name(output.matrix)).width // 8
    distance = build.mul(matrix.strides[0], size)
    root = next(iter(roots_of(output.matrix)))
    whole = em.strided(root) if root and is_memref(root.type) else matrix
    extent = build.mul(build.mul(whole.strides[0], size), whole.sizes[0])
    is_far = build.icmp_signed(">=", extent, constant(em.target.machine.l2.size))
    places = build.or_(build.ptrtoint(at, distance.type), distance)
    odd = build.and_(places, constant(LINE - 1))
    is_whole = build.icmp_signed("==", odd, constant(0))
    return [build.and_(is_far, is_whole), build.and_(is_far, build.not_(is_whole))]


def _skinny_gemm(em: KernelEmitter, op: dialect.SkinnyGemmOp) -> None:
    blocking = _plan(em, op)
    a, b = em.strided(op.a), em.strided(op.b)
    assert _unit(b) is not None, "`plan-gemm` streams only B with a unit stride"
    skinny = _emit_skinny_gemm if blocking.is_skinny else _emit_low_gemm
    # With one column, both strides may be 1.
    is_by_columns = is_constant(b.strides[0], 1)
    emit = _emit_dots if is_by_columns else skinny
    function = emit(em.module, em.target, blocking)
    em.builder.call(
        function,
        [
            _at(em, op.a, op.m0, op.k0),
            a.strides[0],
            *em.all([op.rows, op.k]),
            _at(em, op.b, op.bk0, op.bn0),
            b.strides[is_by_columns],
            *em.all([op.n, op.elements]),
            em.strided(op.c).address,
        ],
    )


def _configure(em: KernelEmitter, op: TileConfigOp) -> None:
    """Configure this thread's tiles, or release them."""
    emit = _emit_configure if _sets_up(op.kernel) else _emit_release
    emit(em.builder)


def _sets_up(kernel: SSAValue) -> bool:
    dispatch = kernel.owner
    assert isinstance(dispatch, TileConfigDispatchOp)
    return "no_reset_tileconfig" in dispatch.flag_names()


TABLE: EmitTable = {
    dialect.PackOp: _pack,
    dialect.BlockGemmOp: _block_gemm,
    dialect.SkinnyGemmOp: _skinny_gemm,
    # Our own kernels need no address: the operations that use them know the kernel.
    TileConfigDispatchOp: lambda em, op: constant(0),
    TileConfigOp: _configure,
    # The task around all programs has done this (`parallel.py`).
    dialect.ThreadTilesOp: lambda em, op: None,
}
