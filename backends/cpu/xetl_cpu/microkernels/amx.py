"""Emit the GEMM of one block for AMX: tiles of 16 rows of 64 bytes.

A strip is up to 32 x 32 of C: four tiles of C (0 to 3), two of A (4, 5) and two of B
(6, 7); each step of k is 64 bytes of a row of A.  All eight tiles always have their
full size, so there is one configuration for all kernels, and every thread sets it once
for a whole launch: `emit_configure` and `emit_release` are called by whoever runs the
thread, never here.  The last strip overlaps the one before; k ends with zeros.

C leaves the tiles through 4 KB in L1; vectors add what earlier pieces of k gave,
convert and store.  Loading C into tiles costs a quarter of the time on silicon.  The
vectors of a strip come behind the products of the next one, before its sums leave the
tiles: they need no tile, so they run while the products do.

The plain intrinsics are used: with the others LLVM chooses tiles itself and configures
them again behind every call (measured: 54 ldtilecfg for 4 steps).

Source: Intel SDM, volume 1, chapter 18; the panel of B is the tile of `tdpbf16ps`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

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
    const,
    define,
    ir,
    parameters,
    vector,
)
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.epilogue import (
    OUTPUT,
    Output,
    StripRows,
    block_gemm_parameters,
    finish,
    store_sums,
    with_c,
)

__all__ = ["CONFIG", "emit_amx_block_gemm", "emit_configure", "emit_release"]

_ROWS, _ROW_BYTES = 16, 64
CONFIG = bytes([1] + [0] * 15 + [_ROW_BYTES, 0] * 8 + [0] * 16 + [_ROWS] * 8 + [0] * 8)
"""The 64 bytes of ldtilecfg: palette 1, then bytes of a row and rows of each tile."""

_NULL = ir.Constant(PTR, None)

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
    builder.intrinsic("llvm.x86.ldtilecfg", VOID, [config])


def emit_release(builder: Builder) -> None:
    """Take this thread's tiles away."""
    builder.intrinsic("llvm.x86.tilerelease", VOID, [])


def emit_amx_block_gemm(
    module: Module, blocking: Blocking, out: str | None = None
) -> Function:
    """As `emit_block_gemm`, for whole steps and at least one whole strip.

    A and ``c`` have ``blocking.least_rows`` rows at least, and ``k`` is a multiple of
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
    finish_strip = _emit_finish(module, blocking, out, name + "_finish")
    function = define(module, name, VOID, block_gemm_parameters(out))
    builder = Builder(function.append_basic_block("entry"))
    turn = builder.stack_array(I32, blocking.mr * blocking.nr)
    turn.align = LINE
    before = _Before(builder, finish_strip, [turn, function.args[7]])
    _emit_loops(builder, blocking, function, before)
    before.finish()
    builder.ret_void()
    return function


class _Before:
    """The strip whose sums lie in the turn, not finished yet; none at first."""

    def __init__(
        self, builder: Builder, function: Function, fixed: list[Value]
    ) -> None:
        self.builder, self.function, self.fixed = builder, function, fixed
        types = [each.type for each in function.args[len(fixed) :]]
        self.slots = [builder.stack_array(type_, 1) for type_ in types]
        self.keep([const(type_, 0) if type_ != PTR else _NULL for type_ in types])

    def keep(self, values: list[Value]) -> None:
        """Another one: the arguments of `_emit_finish`, but for turn and C."""
        for slot, value in zip(self.slots, values, strict=True):
            self.builder.store(value, slot)

    def finish(self) -> None:
        """Add, convert and store it."""
        kept = [
            self.builder.load(slot, typ=argument.type)
            for slot, argument in zip(self.slots, self.function.args[len(self.fixed) :])
        ]
        self.builder.call(self.function, [*self.fixed, *kept])


def _emit_loops(
    builder: Builder, blocking: Blocking, function: Function, before: _Before
) -> None:
    """Blocks of rows, panels, pieces of k and strips, outermost first.

    A piece of a panel, ``kc`` steps, stays in L1 while all strips of the block meet it.
    """
    a, lda, rows, k, b, panel_stride, panels, _, accumulate, *rest = function.args
    size, one = blocking.compute_bytes, const(I64, 1)
    mr = const(I64, blocking.mr)
    row_bytes = builder.mul(lda, size)
    last_whole = builder.maximum(builder.sub(rows, mr), 0)
    # Zeros have to be written, too: one piece of nothing where there is no k.
    pieces = builder.maximum(k, one)
    with (
        builder.counted_loop(rows, step=blocking.mc, name="block") as block,
        builder.counted_loop(panels, name="panel") as panel,
        builder.counted_loop(pieces, step=blocking.kc, name="piece") as piece,
    ):
        end = builder.minimum(builder.add(block.index, blocking.mc), rows)
        left = builder.sub(k, piece.index)
        length = builder.minimum(blocking.kc, left)
        is_first = builder.icmp_signed("==", piece.index, 0)
        add = builder.or_(accumulate, builder.not_(is_first))
        a_piece = builder.offset(a, I8, builder.mul(piece.index, size))
        at = builder.mul(panel.index, panel_stride)
        at = builder.add(at, builder.mul(piece.index, blocking.nr))
        b_piece = builder.offset(b, I8, builder.mul(at, size))
        column = builder.mul(panel.index, blocking.nr)
        output: list[Value] = [*rest[3:]]
        if output:
            is_last = builder.icmp_signed("<=", left, blocking.kc)
            output[0] = builder.select(is_last, output[0], _NULL)
        with builder.counted_loop(
            end, start=block.index, step=blocking.mr, name="strip"
        ) as strip:
            # The last strip may overlap the one before: A needs no rows of zeros.
            first = builder.minimum(strip.index, last_whole)
            a_strip = builder.offset(a_piece, I8, builder.mul(first, row_bytes))
            kernel = _MicroKernel(builder, blocking, a_strip, row_bytes)
            kernel.multiply(b_piece, length)
            before.finish()
            kernel.store(before.fixed[0])
            count = builder.minimum(builder.sub(rows, strip.index), mr)
            before.keep([first, strip.index, count, column, add, *output])


def _emit_finish(
    module: Module, blocking: Blocking, out: str | None, name: str
) -> Function:
    """The sums of a strip go on, row by row: to C in scratch, or to the user.

    ``void(turn, c, top, first, count, column, add)``: row ``top`` of the product is the
    first in ``turn``; of them ``count`` rows from ``first`` on, and the columns from
    ``column`` on, are stored, and if ``add`` (i1), what is in ``c`` is added before.
    What follows is as for `emit_block_gemm`.
    """
    given = parameters(
        "ptr turn, ptr c, i64 top, i64 first, i64 count, i64 column, i1 add"
    )
    function = define(module, name, VOID, given + OUTPUT if out else given)
    function.attributes.add("noinline")
    turn, c, top, first, count, column, add, *to = function.args
    builder = Builder(function.append_basic_block("entry"))
    row_of_tile = replace(blocking, mr=1)
    total = blocking.arithmetic.accumulator_type
    with builder.counted_loop(count, name="row") as row:
        number = builder.add(first, row.index)
        at = builder.mul(builder.sub(number, top), blocking.nr)
        sums: list[Value] = [
            builder.load(
                builder.offset(turn, total, builder.add(at, lane)),
                typ=vector(total, blocking.lanes),
                align=LINE,
            )
            for lane in range(0, blocking.nr, blocking.lanes)
        ]
        at = builder.mul(number, blocking.ldc)
        c_row = builder.offset(c, total, builder.add(at, column))
        sums = with_c(builder, row_of_tile, sums, c_row, add)
        if out is None:
            store_sums(builder, row_of_tile, sums, c_row)
        else:
            rows = StripRows(builder, number, number, 1)
            output = Output(out, rows, column, *to)
            finish(builder, row_of_tile, sums, c_row, output)
    builder.ret_void()
    return function


class _MicroKernel:
    """One strip: tiles of C begin as zeros and are added to.

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

    def multiply(self, b: Value, k: Value) -> None:
        """A panel times ``k`` elements of A's rows; the sums stay in tiles."""
        builder, blocking = self.builder, self.blocking
        for tile in product(self.down, self.across):
            number = const(I8, self._tile_of_c(*tile))
            builder.intrinsic("llvm.x86.tilezero", VOID, [number])
        b_row = self._row_of_panel()
        with builder.counted_loop(k, step=blocking.k_step, name="k") as loop:
            at = builder.mul(loop.index, blocking.compute_bytes)
            a_step = builder.offset(self.a, I8, at)
            at = builder.mul(at, blocking.nr)
            b_step = builder.offset(b, I8, at)
            for row in self.down:
                for column in self.across:
                    # B 0, A 0, product, B 1, product, A 1, two products.
                    if row == 0:
                        at = builder.offset(b_step, I8, column * _ROW_BYTES)
                        self._move("tileloadd64", _B + column, at, b_row)
                    if column == 0:
                        skip = builder.mul(self.row_bytes, row * _ROWS)
                        at = builder.offset(a_step, I8, skip)
                        self._move("tileloaddt164", _A + row, at, self.row_bytes)
                    self._multiply(row, column)

    def store(self, turn: Value) -> None:
        """The sums go to ``turn``, row by row."""
        for row, column in product(self.down, self.across):
            skip = (row * _ROWS * self.blocking.nr + column * 16) * 4
            at = self.builder.offset(turn, I8, skip)
            number = self._tile_of_c(row, column)
            self._move("tilestored64", number, at, self._row_of_panel())

    def _row_of_panel(self) -> Value:
        """Bytes of a word of each of its columns, and of as many sums."""
        return const(I64, 4 * self.blocking.nr)

    def _tile_of_c(self, row: int, column: int) -> int:
        return 2 * row + column

    def _move(self, instruction: str, tile: int, at: Value, stride: Value) -> None:
        arguments = [const(I8, tile), at, stride]
        self.builder.intrinsic(f"llvm.x86.{instruction}", VOID, arguments)

    def _multiply(self, row: int, column: int) -> None:
        arithmetic = self.blocking.arithmetic
        name = _PRODUCTS[arithmetic.unsigned] if arithmetic.is_bytes else "tdpbf16ps"
        tiles = (self._tile_of_c(row, column), _A + row, _B + column)
        arguments = [const(I8, tile) for tile in tiles]
        self.builder.intrinsic(f"llvm.x86.{name}", VOID, arguments)
