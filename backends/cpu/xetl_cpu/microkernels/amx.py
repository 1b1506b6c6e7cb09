"""Emit the GEMM of one block for AMX: tiles of 16 rows of 64 bytes.

A strip is up to 32 x 32 of C: four tiles of C (0 to 3), two of A (4, 5) and two of B
(6, 7); each step of k is 64 bytes of a row of A.  All eight tiles always have their
full size, so there is one configuration for all kernels, and every thread sets it once
for a whole launch: `emit_configure` and `emit_release` are called by whoever runs the
thread, never here.  Edges are zero-padded copies instead of smaller tiles.

The plain intrinsics are used: with the others LLVM chooses tiles itself and configures
them again behind every call (measured: 54 ldtilecfg for 4 steps).

Source: Intel SDM, volume 1, chapter 18; the panel of B is the tile of `tdpbf16ps`.
"""

from __future__ import annotations

from xetl_cpu.llvm import (
    I8,
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
    minimum,
    offset,
)
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.parameters import BLOCK_GEMM_PARAMETERS

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


def emit_amx_block_gemm(module: Module, blocking: Blocking) -> Function:
    """As `emit_block_gemm`, for whole strips.

    ``rows`` is a multiple of ``blocking.row_step`` and ``k`` of ``blocking.k_step``,
    with zeros where there is nothing; the thread holds `CONFIG`.
    """
    arithmetic = blocking.arithmetic
    name = (
        f"xetl_block_gemm_{arithmetic.name}_{blocking.mr}x{blocking.nr}"
        f"_ld{blocking.ldc}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, BLOCK_GEMM_PARAMETERS)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit_loops(builder, blocking, function)
    builder.ret_void()
    return function


def _emit_loops(builder: Builder, blocking: Blocking, function: Function) -> None:
    """Chunks of k, panels and strips, outermost first, as for vectors."""
    a, lda, rows, k, b, panel_stride, panels, c = function.args
    size = blocking.compute_bytes
    row_bytes = builder.mul(lda, const(I64, size))
    with counted_loop(builder, k, step=blocking.chunk, name="chunk") as chunk:
        length = minimum(
            builder, const(I64, blocking.chunk), builder.sub(k, chunk.index)
        )
        a_chunk = offset(builder, a, I8, builder.mul(chunk.index, const(I64, size)))
        skip = builder.mul(chunk.index, const(I64, blocking.nr * size))
        b_chunk = offset(builder, b, I8, skip)
        with counted_loop(builder, panels, name="panel") as panel:
            at = builder.mul(panel.index, builder.mul(panel_stride, const(I64, size)))
            b_panel = offset(builder, b_chunk, I8, at)
            at = builder.mul(panel.index, const(I64, 4 * blocking.nr))
            c_panel = offset(builder, c, I8, at)
            with counted_loop(builder, rows, step=blocking.mr, name="strip") as strip:
                at = builder.mul(strip.index, row_bytes)
                a_strip = offset(builder, a_chunk, I8, at)
                at = builder.mul(strip.index, const(I64, 4 * blocking.ldc))
                c_strip = offset(builder, c_panel, I8, at)
                kernel = _MicroKernel(builder, blocking, a_strip, row_bytes)
                kernel.emit(b_panel, c_strip, length)


class _MicroKernel:
    """One strip: C's tiles are loaded, added to for all of k, and stored."""

    def __init__(
        self, builder: Builder, blocking: Blocking, a: Value, row_bytes: Value
    ) -> None:
        self.builder, self.blocking = builder, blocking
        self.a, self.row_bytes = a, row_bytes
        self.down = range(blocking.mr // _ROWS)
        self.across = range(blocking.nr // 16)

    def emit(self, b: Value, c: Value, k: Value) -> None:
        """The code for one panel and ``k`` elements of A's rows."""
        builder, blocking = self.builder, self.blocking
        self._move_c("tileloadd64", c)
        # A word of a panel is 4 bytes, of each of its nr columns one to a row.
        b_row = const(I64, 4 * blocking.nr)
        with counted_loop(builder, k, step=blocking.k_step, name="k") as loop:
            at = builder.mul(loop.index, const(I64, blocking.compute_bytes))
            a_step = offset(builder, self.a, I8, at)
            at = builder.mul(at, const(I64, blocking.nr))
            b_step = offset(builder, b, I8, at)
            for column in self.across:
                at = offset(builder, b_step, I8, column * _ROW_BYTES)
                self._move("tileloadd64", _B + column, at, b_row)
            for row in self.down:
                skip = builder.mul(self.row_bytes, const(I64, row * _ROWS))
                at = offset(builder, a_step, I8, skip)
                self._move("tileloadd64", _A + row, at, self.row_bytes)
                for column in self.across:
                    self._multiply(row, column)
        self._move_c("tilestored64", c)

    def _move_c(self, instruction: str, c: Value) -> None:
        row_bytes = const(I64, 4 * self.blocking.ldc)
        for row in self.down:
            for column in self.across:
                skip = row * _ROWS * 4 * self.blocking.ldc + column * _ROW_BYTES
                at = offset(self.builder, c, I8, skip)
                self._move(instruction, self._tile_of_c(row, column), at, row_bytes)

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
