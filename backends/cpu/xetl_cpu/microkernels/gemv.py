"""Emit the GEMM of up to four rows: C += A @ B with B where it is, unpacked.

Every element of B is used as often as there are rows only, so packing would cost as
much as the product.  Here B's rows are contiguous (`dots.py`: its columns).  B is
streamed through once, some rows at a time, so that C, which stays in the first cache,
is read and written less often than B is read.

Measured at 1 x 4096 x 4096: packing first takes more than twice the time. In f32 on
Zen 4, eight rows at a time give 30 GB/s and with the next eight asked for 37, as much
as a loop that only reads; four give 27 and 34, sixteen 23, the next but one 36.
"""

from __future__ import annotations

from xetl.records import record
from xetl_cpu.llvm import I64, VOID, Builder, Function, Module, Value, const, define
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.streaming import STREAMING_PARAMETERS, Streamed, Streams
from xetl_cpu.targets import Target

_AT_ONCE = 8
"""Rows of B at a time: as many streams give memory's speed."""


def emit_skinny_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    C[rows, n] += A[rows, k] @ B[k, n].  ``a`` and ``b`` hold ``blocking.dtype``; the
    rows of both are contiguous, ``lda`` and ``ldb`` elements apart, and the matrix that
    B is a part of has so many ``elements``.  Nothing outside is read.  ``c`` is as for
    the block GEMM; its columns past ``n`` and rows past ``rows`` may be overwritten.
    """
    name = (
        f"xetl_skinny_gemm_{target.name}_{blocking.dtype}_{blocking.block_m}"
        f"_ld{blocking.ldc}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, STREAMING_PARAMETERS)
    builder = Builder(function.append_basic_block("entry"))
    # Half of the registers hold the factors.
    fitting = target.vector_registers // 2 // blocking.block_m
    at_once = _AT_ONCE if fitting >= _AT_ONCE else _AT_ONCE // 2
    kernel = _Skinny(builder, target, blocking, *function.args, at_once=at_once)
    kernel.add_rows_of_b()
    builder.ret_void()
    return function


@record()
class _Skinny(Streamed):
    """The way through B, ``at_once`` rows at a time."""

    at_once: int

    def add_rows_of_b(self) -> None:
        """Some rows of B times what A has for them, added to C."""
        builder, at_once = self.builder, self.at_once
        whole = builder.and_(self.k, -at_once)
        with builder.counted_loop(whole, step=at_once, name="rows") as step:
            self._add_some_rows(step.index, at_once)
        with builder.counted_loop(self.k, start=whole, name="row") as step:
            self._add_some_rows(step.index, 1)

    def _add_some_rows(self, first: Value, count: int) -> None:
        builder, lanes = self.builder, self.blocking.lanes
        a_rows = self.rows_of_a(const(I64, 0), self.blocking.block_m)
        factors = [
            [
                builder.splat(self.load(place, 1, None), lanes)
                for place in self._elements(row, first, count)
            ]
            for row in a_rows
        ]
        b_rows = Streams(self, first, [builder.mul(self.ldb, i) for i in range(count)])
        whole = builder.and_(self.n, -self.width)
        with builder.counted_loop(
            whole, step=self.width, name="columns", is_hidden=True
        ) as column:
            if count > 1:
                b_rows.ask(column.index)
            for start in range(0, self.width, lanes):
                at = builder.add(column.index, start)
                self._add_columns(at, b_rows, factors, None)
        with builder.counted_loop(self.n, start=whole, step=lanes) as column:
            left = builder.sub(self.n, column.index)
            mask = builder.lane_mask(left, lanes)
            self._add_columns(column.index, b_rows, factors, mask)

    def _add_columns(
        self,
        column: Value,
        b_rows: Streams,
        factors: list[list[Value]],
        mask: Value | None,
    ) -> None:
        """One vector of each row of C."""
        builder, lanes = self.builder, self.blocking.lanes
        b_vectors = [self.load(at, lanes, mask) for at in b_rows.places(column)]
        for row, words in enumerate(factors):
            place = self.c_at(const(I64, row), column)
            aligned = self.blocking.arithmetic.accumulator_bytes
            total = builder.load(place, typ=b_vectors[0].type, align=aligned)
            for word, b_vector in zip(words, b_vectors, strict=True):
                total = self.blocking.arithmetic.fma(builder, word, b_vector, total)
            builder.store(total, place, aligned)

    def _elements(self, row: Value, first: Value, count: int) -> list[Value]:
        at = self.builder.offset(row, self.bits, first)
        return [self.builder.offset(at, self.bits, i) for i in range(count)]
