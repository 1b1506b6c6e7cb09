"""Emit the GEMM of one block: C = A @ B or C += A @ B for one run of k.

The loops, outermost first:

    blocks of mc rows    of A, k wide, they stay in L2
      panels of B        k x nr, read from L2 or L1 by all strips
        strips of mr rows
          micro-kernel   mr x nr accumulators

A is read in place, row by row, each element broadcast.  A strip that reaches past the
last row computes that row again (its pointers are clamped), so one micro-kernel serves
all strips.

C is scratch, in the type that is added up in.  Where the caller says that nothing is to
be added to, it need not even be zero.  The last run of k can go on from registers to
the user's matrix: then a product of one run never touches scratch.
"""

from dataclasses import replace

from xetl_cpu.llvm import (
    I64,
    VOID,
    Builder,
    Function,
    Module,
    Value,
    const,
    counted_loop,
    define,
    either,
    ir,
    minimum,
    offset,
)
from xetl_cpu.microkernels.amx import emit_amx_block_gemm
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.epilogue import (
    Output,
    StripRows,
    finish,
    prefetch_c,
    store_sums,
    with_c,
)
from xetl_cpu.microkernels.parameters import block_gemm_parameters
from xetl_cpu.microkernels.prefetch import Strip, next_panel, next_rows, or_next_pieces
from xetl_cpu.microkernels.register_tile import RegisterTile
from xetl_cpu.targets import Target

__all__ = ["emit_block_gemm"]


def emit_block_gemm(
    module: Module, target: Target, blocking: Blocking, out: str | None = None
) -> Function:
    """Get or create the block GEMM.

    ``void(a, lda, rows, k, b, panel_stride, panels, c, accumulate, later,
    later_stride, pieces)``:

    C[rows, panels * nr] = A[rows, k] @ B[k, panels * nr], where

    * ``a`` is row-major in ``blocking.compute``, rows ``lda`` elements apart; nothing
      outside its rows x k elements is read;
    * ``b`` holds panels ``panel_stride`` elements apart, each of the form
      [ceil(k/k_pack)][nr][k_pack] and zero where k is padded;
    * ``c`` holds accumulators, rows ``blocking.ldc`` apart; rows up to the next
      multiple of ``mr`` are overwritten with rubbish;
    * if ``accumulate`` (i1), what is in ``c`` is added;
    * ``later`` is null, or where ``pieces`` pieces of memory begin, ``later_stride``
      bytes apart, that will be packed next: they are asked for, never read.

    With ``out``, a matrix's dtype, ``out, out_stride, cols`` follow: if the pointer
    is not null, the result goes there instead, rows ``out_stride`` elements apart, and
    only ``cols`` columns of it.  Nor does ``c`` hold results behind these.

    Alignment is a matter of speed only: 64 bytes for ``b`` and ``c``.  AMX asks for
    more, see `emit_amx_block_gemm`.
    """
    if blocking.uses_tiles:
        return emit_amx_block_gemm(module, blocking, out)
    name = (
        f"xetl_block_gemm_{target.name}_{blocking.arithmetic.name}"
        f"_{blocking.mr}x{blocking.nr}"
        f"_m{blocking.mc}u{blocking.unroll}_ld{blocking.ldc}_{out or 'scratch'}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, block_gemm_parameters(out))
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit_loops(builder, blocking, function, out)
    builder.ret_void()
    return function


def _emit_loops(
    builder: Builder, blocking: Blocking, function: Function, out: str | None
) -> None:
    a, lda, rows, k, b, panel_stride, panels, c, accumulate, *rest = function.args
    start, distance, pieces, *output = rest
    element = ir.IntType(8 * blocking.compute_bytes)
    total = blocking.arithmetic.accumulator_type
    last_row = builder.sub(rows, const(I64, 1))
    with (
        counted_loop(builder, rows, step=blocking.mc, name="block") as block,
        counted_loop(builder, panels, name="panel") as panel,
    ):
        end = builder.add(block.index, const(I64, blocking.mc))
        end = minimum(builder, end, rows)
        b_panel = offset(builder, b, element, builder.mul(panel.index, panel_stride))
        column = builder.mul(panel.index, const(I64, blocking.nr))
        c_panel = offset(builder, c, total, column)
        with counted_loop(
            builder, end, start=block.index, step=blocking.mr, name="strip"
        ) as strip:
            c_row = builder.mul(strip.index, const(I64, blocking.ldc))
            c_strip = offset(builder, c_panel, total, c_row)
            strip_rows = StripRows(builder, strip.index, last_row, blocking.mr)
            with builder.if_then(accumulate):
                prefetch_c(builder, blocking, c_strip)
            tile = RegisterTile(
                builder,
                blocking,
                strip_rows.of(a, lda, element),
                b_panel,
                blocking.vectors,
            )
            if blocking.asks_ahead:
                who = Strip(builder, blocking, strip.index, block.index, panel.index)
                steps = builder.udiv(k, const(I64, blocking.k_pack))
                following = offset(builder, b_panel, element, panel_stride)
                usual = (
                    next_panel(who, following, steps),
                    next_rows(who, a, lda),
                )
                later = (start, distance, pieces)
                tile.ahead = or_next_pieces(who, usual, later, (rows, panels))
            sums = _sums(tile, k, builder.sub(output[-1], column) if output else None)
            sums = with_c(builder, blocking, sums, c_strip, accumulate)
            if out is None:
                store_sums(builder, blocking, sums, c_strip)
            else:
                to = Output(out, strip_rows, column, *output)
                finish(builder, blocking, sums, c_strip, to)


def _sums(tile: RegisterTile, k: Value, left: Value | None) -> list[Value]:
    """The sums of a strip; half of the vectors if only their columns are left.

    At 1000 x 1000 x 1000 the last panel has 8 of 32 columns.
    """
    half = tile.vectors // 2
    if left is None or half == 0:
        return tile.sums(k)
    builder = tile.builder
    is_narrow = builder.icmp_signed("<=", left, const(I64, half * tile.blocking.lanes))
    narrow = replace(tile, vectors=half, ahead=[])
    zeros = [const(tile.lanes_of_c, 0)] * (tile.blocking.mr * tile.vectors)
    with either(builder, zeros, is_narrow, "narrow") as branch:
        branch.values = narrow.sums(k)
    with either(builder, branch.results, builder.not_(is_narrow), "wide") as branch:
        branch.values = tile.sums(k)
    return branch.results
