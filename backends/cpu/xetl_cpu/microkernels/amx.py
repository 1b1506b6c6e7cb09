"""Emit the GEMM of one block for AMX: tiles of 16 rows of 64 bytes.

A strip is up to 32 x 32 of C: four tiles of C (0 to 3), two of A (4, 5) and two of B
(6, 7); each step of k is 64 bytes of a row of A.  All eight tiles always have their
full size, so there is one configuration for all kernels, and every thread sets it once
for a whole launch: `emit_configure` and `emit_release` are called by whoever runs the
thread, never here.  Edges are zero-padded copies instead of smaller tiles.

C leaves the tiles through 4 KB in L1; vectors add what earlier pieces of k gave,
convert and store.  Loading C into tiles costs a quarter of the time on silicon.

The plain intrinsics are used: with the others LLVM chooses tiles itself and configures
them again behind every call (measured: 54 ldtilecfg for 4 steps).

Source: Intel SDM, volume 1, chapter 18; the panel of B is the tile of `tdpbf16ps`.
"""

from __future__ import annotations

from dataclasses import replace

from xetl.records import record
from xetl_cpu.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Function,
    Module,
    Value,
    call_intrinsic,
    const,
    counted_loop,
    define,
    ir,
    load,
    maximum,
    minimum,
    offset,
    stack_array,
    vector,
)
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.epilogue import Output, StripRows, finish, store_sums, with_c
from xetl_cpu.microkernels.parameters import block_gemm_parameters

__all__ = ["CONFIG", "emit_amx_block_gemm", "emit_configure", "emit_release"]

_ROWS, _ROW_BYTES = 16, 64
CONFIG = bytes([1] + [0] * 15 + [_ROW_BYTES, 0] * 8 + [0] * 16 + [_ROWS] * 8 + [0] * 8)
"""The 64 bytes of ldtilecfg: palette 1, then bytes of a row and rows of each tile."""

_A, _B = 4, 6
"""The first tiles of A and of B; those of C come before, row by row."""

_PRODUCTS = {
    (False, False): "tdpbssd",
    (False, True): "tdpbsud",
    (True, False): "tdpbusd",
    (True, True): "tdpbuud",
}


def emit_configure(builder: Builder) -> None:
    """Give this thread its tiles; their content is zero."""
    name = "xetl_amx_config"
    known = builder.module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(builder.module, ir.ArrayType(I8, 64), name)
        known.linkage, known.global_constant = "internal", True
        known.initializer = ir.Constant(known.value_type, bytearray(CONFIG))
        known.align = 64
    config = builder.bitcast(known, PTR)
    call_intrinsic(builder, "llvm.x86.ldtilecfg", VOID, [config])


def emit_release(builder: Builder) -> None:
    """Take this thread's tiles away."""
    call_intrinsic(builder, "llvm.x86.tilerelease", VOID, [])


def emit_amx_block_gemm(
    module: Module, blocking: Blocking, out: str | None = None
) -> Function:
    """As `emit_block_gemm`, for whole strips and steps.

    A and ``c`` have rows up to a multiple of ``blocking.row_step``, and ``k`` is one of
    ``blocking.k_step``, with zeros where there is nothing; the thread holds `CONFIG`.
    """
    arithmetic = blocking.arithmetic
    name = (
        f"xetl_block_gemm_{arithmetic.name}_{blocking.mr}x{blocking.nr}"
        f"_k{blocking.kc}m{blocking.mc}_ld{blocking.ldc}_{out or 'scratch'}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, block_gemm_parameters(out))
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    turn = stack_array(builder, I32, blocking.mr * blocking.nr)
    turn.align = LINE
    _emit_loops(builder, blocking, function, (turn, out))
    builder.ret_void()
    return function


def _emit_loops(
    builder: Builder,
    blocking: Blocking,
    function: Function,
    to: tuple[Value, str | None],
) -> None:
    """Blocks of rows, panels, pieces of k and strips, outermost first.

    A piece of a panel, ``kc`` steps, stays in L1 while all strips of the block meet it.
    """
    a, lda, rows, k, b, panel_stride, panels, c, accumulate, *rest = function.args
    turn, out = to
    size, one = blocking.compute_bytes, const(I64, 1)
    row_bytes = builder.mul(lda, const(I64, size))
    # Zeros have to be written, too: one piece of nothing where there is no k.
    pieces = maximum(builder, k, one)
    with (
        counted_loop(builder, rows, step=blocking.mc, name="block") as block,
        counted_loop(builder, panels, name="panel") as panel,
        counted_loop(builder, pieces, step=blocking.kc, name="piece") as piece,
    ):
        end = minimum(builder, builder.add(block.index, const(I64, blocking.mc)), rows)
        left = builder.sub(k, piece.index)
        length = minimum(builder, const(I64, blocking.kc), left)
        is_first = builder.icmp_signed("==", piece.index, const(I64, 0))
        add = builder.or_(accumulate, builder.not_(is_first))
        a_piece = offset(builder, a, I8, builder.mul(piece.index, const(I64, size)))
        at = builder.mul(panel.index, panel_stride)
        at = builder.add(at, builder.mul(piece.index, const(I64, blocking.nr)))
        b_piece = offset(builder, b, I8, builder.mul(at, const(I64, size)))
        column = builder.mul(panel.index, const(I64, blocking.nr))
        where = _Where(turn, c, column, rows, add, None)
        if out is not None:
            base, stride, cols = rest[-3:]
            is_last = builder.icmp_signed("<=", left, const(I64, blocking.kc))
            base = builder.select(is_last, base, ir.Constant(PTR, None))
            where.output = (out, base, stride, cols)
        with counted_loop(
            builder, end, start=block.index, step=blocking.mr, name="strip"
        ) as strip:
            at = builder.mul(strip.index, row_bytes)
            a_strip = offset(builder, a_piece, I8, at)
            kernel = _MicroKernel(builder, blocking, a_strip, row_bytes)
            kernel.emit(b_piece, turn, length)
            _finish(builder, blocking, strip.index, where)


@record()
class _Where:
    """Where the sums of strips go.

    Attributes:
        turn: has them, as tiles have left them.
        c: the scratch C.
        column: their first column.
        rows: of the whole product.
        add: whether what is in C is added.
        output: the user's matrix: its dtype, the pointer (null: to C), the distance of
            its rows, how many columns it has.
    """

    turn: Value
    c: Value
    column: Value
    rows: Value
    add: Value
    output: tuple[str, Value, Value, Value] | None


def _finish(builder: Builder, blocking: Blocking, first: Value, to: _Where) -> None:
    """Row by row by vectors, those that exist: to C in scratch, or to the user."""
    row_of_tile = replace(blocking, mr=1)
    total = blocking.arithmetic.accumulator_type
    last = builder.sub(to.rows, const(I64, 1))
    left = minimum(builder, builder.sub(to.rows, first), const(I64, blocking.mr))
    with counted_loop(builder, left, name="row") as row:
        at = builder.mul(row.index, const(I64, blocking.nr))
        sums = [
            load(
                builder,
                offset(builder, to.turn, total, builder.add(at, const(I64, lane))),
                vector(total, blocking.lanes),
                LINE,
            )
            for lane in range(0, blocking.nr, blocking.lanes)
        ]
        number = builder.add(first, row.index)
        at = builder.mul(number, const(I64, blocking.ldc))
        c_row = offset(builder, to.c, total, builder.add(at, to.column))
        sums = with_c(builder, row_of_tile, sums, c_row, to.add)
        if to.output is None:
            store_sums(builder, row_of_tile, sums, c_row)
        else:
            dtype, base, stride, cols = to.output
            rows = StripRows(builder, number, last, 1)
            output = Output(dtype, rows, to.column, base, stride, cols)
            finish(builder, row_of_tile, sums, c_row, output)


class _MicroKernel:
    """One strip: tiles of C begin as zeros, are added to, and stored one by one.

    A streams and is loaded as such (``tileloaddt1``), so that it does not throw B out
    of L1: measured on silicon, 96 % of the peak against 67.
    """

    def __init__(
        self, builder: Builder, blocking: Blocking, a: Value, row_bytes: Value
    ) -> None:
        self.builder, self.blocking = builder, blocking
        self.a, self.row_bytes = a, row_bytes
        self.down = range(blocking.mr // _ROWS)
        self.across = range(blocking.nr // 16)

    def emit(self, b: Value, turn: Value, k: Value) -> None:
        """A panel times ``k`` elements of A's rows; the sums go to ``turn``."""
        builder, blocking = self.builder, self.blocking
        tiles = [(row, column) for row in self.down for column in self.across]
        for tile in tiles:
            number = const(I8, self._tile_of_c(*tile))
            call_intrinsic(builder, "llvm.x86.tilezero", VOID, [number])
        # A word of a panel is 4 bytes, of each of its nr columns one to a row.
        b_row = const(I64, 4 * blocking.nr)
        with counted_loop(builder, k, step=blocking.k_step, name="k") as loop:
            at = builder.mul(loop.index, const(I64, blocking.compute_bytes))
            a_step = offset(builder, self.a, I8, at)
            at = builder.mul(at, const(I64, blocking.nr))
            b_step = offset(builder, b, I8, at)
            for row in self.down:
                for column in self.across:
                    # B 0, A 0, product, B 1, product, A 1, two products.
                    if row == 0:
                        at = offset(builder, b_step, I8, column * _ROW_BYTES)
                        self._move("tileloadd64", _B + column, at, b_row)
                    if column == 0:
                        skip = builder.mul(self.row_bytes, const(I64, row * _ROWS))
                        at = offset(builder, a_step, I8, skip)
                        self._move("tileloaddt164", _A + row, at, self.row_bytes)
                    self._multiply(row, column)
        for row, column in tiles:
            skip = (row * _ROWS * blocking.nr + column * 16) * 4
            at = offset(builder, turn, I8, skip)
            self._move("tilestored64", self._tile_of_c(row, column), at, b_row)

    def _tile_of_c(self, row: int, column: int) -> int:
        return 2 * row + column

    def _move(self, instruction: str, tile: int, at: Value, stride: Value) -> None:
        arguments = [const(I8, tile), at, stride]
        call_intrinsic(self.builder, f"llvm.x86.{instruction}", VOID, arguments)

    def _multiply(self, row: int, column: int) -> None:
        arithmetic = self.blocking.arithmetic
        name = _PRODUCTS[arithmetic.unsigned] if arithmetic.is_bytes else "tdpbf16ps"
        tiles = (self._tile_of_c(row, column), _A + row, _B + column)
        arguments = [const(I8, tile) for tile in tiles]
        call_intrinsic(self.builder, f"llvm.x86.{name}", VOID, arguments)
