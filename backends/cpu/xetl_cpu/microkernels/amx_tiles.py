"""The operations of one strip on AMX tiles: loads, products, stores of sums.

All eight tiles always have their full size, so all kernels have one configuration. The
plain intrinsics are used: with the others, LLVM chooses tiles itself and configures
them again after every call (measured: 54 ldtilecfg for 4 steps).

Source: Intel SDM, volume 1, chapter 18; the panel of B is the tile of `tdpbf16ps`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import product
from math import ceil

from xetl_cpu.llvm import I8, I64, PTR, VOID, Builder, Loop, Value, const, ir
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking

ROWS, _ROW_BYTES = 16, 64
CONFIG = bytes([1] + [0] * 15 + [_ROW_BYTES, 0] * 8 + [0] * 16 + [ROWS] * 8 + [0] * 8)
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
    """Configure the tiles of this thread; their content becomes zero."""
    name = "xetl_amx_config"
    known = builder.module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(builder.module, ir.ArrayType(I8, 64), name)
        known.linkage, known.global_constant = "internal", True
        known.initializer = ir.Constant(known.value_type, bytearray(CONFIG))
        known.align = 64
    builder.intrinsic("llvm.x86.ldtilecfg", VOID, [builder.bitcast(known, PTR)])


def emit_release(builder: Builder) -> None:
    """Release the tiles of this thread."""
    builder.intrinsic("llvm.x86.tilerelease", VOID, [])


def asked_lines(blocking: Blocking) -> int:
    """Return how many lines of the next piece of B a strip prefetches in each step.

    Return 0 if a block has one strip: then B is streamed as fast as memory allows.
    """
    if blocking.mc <= blocking.mr:
        return 0
    step = blocking.nr * blocking.k_step * blocking.compute_bytes
    return ceil(step // LINE * blocking.mr / blocking.mc)


def asked_bytes(blocking: Blocking) -> int:
    """Return the prefetched bytes for each row of the strip."""
    return asked_lines(blocking) * LINE * blocking.kc // blocking.k_step // blocking.mr


class TileKernel:
    """One strip: tiles of C start as zeros and accumulate.

    If A streams it is loaded by ``tileloaddt1``, so that it does not evict B from L1:
    measured on silicon, 96 % of the peak against 67.
    """

    def __init__(
        self,
        builder: Builder,
        blocking: Blocking,
        a: Value,
        row_bytes: Value,
        later: Value,
        halves: tuple[Value, Value],
    ) -> None:
        """Take A's rows, what to prefetch, and whether to compute half the strip.

        ``halves``: whether only the upper rows, and only the left columns, are needed.
        The other tiles of C stay zeros.
        """
        self.builder, self.blocking = builder, blocking
        self.a, self.row_bytes, self.later = a, row_bytes, later
        self.is_low, self.is_narrow = halves
        self.down = range(blocking.mr // ROWS)
        self.across = range(blocking.nr // 16)

    def begin(self) -> None:
        """Set the sums in tiles to zero."""
        for tile in product(self.down, self.across):
            number = const(I8, self._tile_of_c(*tile))
            self.builder.intrinsic("llvm.x86.tilezero", VOID, [number])

    @contextmanager
    def steps(
        self, b: Value, k: Value, load_a: str, carried: list[Value]
    ) -> Generator[Loop]:
        """Multiply ``k`` elements of A's rows by a panel, and add to the tiles.

        The code of the ``with`` block needs no tiles, so it runs beside the products of
        each step; it sets the next values of ``carried``.
        """
        builder, blocking = self.builder, self.blocking
        # A row of the panel is a word of each of its columns.
        b_row, size = const(I64, 4 * blocking.nr), blocking.compute_bytes
        with builder.counted_loop(
            k, step=blocking.k_step, carried=carried, name="k"
        ) as loop:
            at = builder.mul(loop.index, size)
            a_step = builder.offset(self.a, I8, at)
            b_step = builder.offset(b, I8, builder.mul(at, blocking.nr))
            for row in self.down:
                with self._unless(self.is_low, row):
                    skip = builder.mul(self.row_bytes, row * ROWS)
                    a = builder.offset(a_step, I8, skip)
                    for column in self.across:
                        with self._unless(self.is_narrow, column):
                            # B 0, A 0, product, B 1, product, A 1, two products.
                            if row == 0:
                                at = builder.offset(b_step, I8, column * _ROW_BYTES)
                                self._move("tileloadd64", _B + column, at, b_row)
                            if column == 0:
                                self._move(load_a, _A + row, a, self.row_bytes)
                            self._multiply(row, column)
            lines = asked_lines(blocking)
            skip = builder.mul(loop.index, lines * LINE // blocking.k_step)
            wanted = builder.offset(self.later, I8, skip)
            for line in range(lines):
                builder.prefetch_to_l2(builder.offset(wanted, I8, line * LINE))
            yield loop

    def _unless(self, is_half: Value, tile: int) -> AbstractContextManager[object]:
        """Code for a row or column of tiles: the second one is not always needed."""
        builder = self.builder
        return builder.if_then(builder.not_(is_half)) if tile else nullcontext()

    def store(self, to: Value, row: Value) -> None:
        """Store the sums to ``to``, with rows ``row`` elements apart."""
        builder, stride = self.builder, self.builder.mul(row, 4)
        below = builder.mul(stride, ROWS)
        for down, across in product(self.down, self.across):
            at = builder.add(builder.mul(below, down), across * _ROW_BYTES)
            place = builder.offset(to, I8, at)
            self._move("tilestored64", self._tile_of_c(down, across), place, stride)

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
