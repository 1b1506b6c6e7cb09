"""Emit the GEMM of a few rows: C += A @ B with B where it is, unpacked.

With up to `SKINNY_ROWS` rows every element of B is used that often only, so packing
would cost as much as the product.  B is streamed through once, in the order of its
memory:

* its rows are contiguous (``unit = "minor"``): some rows of B at a time, so that C,
  which stays in the first cache, is read and written less often than B is read;
* its columns are (``unit = "major"``): some columns at a time, one dot product each.

While some rows (or columns) are read, the next ones are asked for, line by line: what
fetches ahead in the processor stops at the end of each page, and memory waits.

Measured at 1 x 4096 x 4096: packing first takes more than twice the time. In f32 on
Zen 4, eight rows at a time give 30 GB/s and with the next eight asked for 37, as much
as a loop that only reads; four give 27 and 34, sixteen 23, the next but one 36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xetl.records import record
from xetl_cpu.llvm import (
    I8,
    I64,
    VOID,
    Builder,
    Function,
    Module,
    Type,
    Value,
    bits_of,
    const,
    convert,
    declare,
    define,
    parameters,
    vector,
)
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.targets import Target

if TYPE_CHECKING:
    from xetl_cpu.microkernels.copy_block import Unit

_AT_ONCE = 8
"""Rows of B, or columns, at a time: as many streams give memory's speed."""

STREAMING_PARAMETERS = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 ldb, i64 n, i64 elements, ptr c"
)
"""Of a product that reads B where it is."""


@record()
class Streamed:
    """The arguments of such a function, while it is written."""

    builder: Builder
    target: Target
    blocking: Blocking
    a: Value
    lda: Value
    rows: Value
    k: Value
    b: Value
    ldb: Value
    n: Value
    elements: Value
    c: Value

    @property
    def bits(self) -> Type:
        """An element of A and B."""
        return bits_of(self.blocking.dtype)


class Streams:
    """Rows of B, or columns, that are read together."""

    def __init__(
        self, product: Streamed, first: Value, skipped: Sequence[Value]
    ) -> None:
        """Number ``first``, and what begins so many elements behind it."""
        self._product, self._skipped, builder = product, skipped, product.builder
        at = builder.mul(first, product.ldb)
        self._start = builder.offset(product.b, product.bits, at)
        size = product.bits.width // 8
        most = product.target.machine.l3.size // 2 // size
        is_far = builder.icmp_signed(">", product.elements, most)
        following = builder.mul(product.ldb, len(skipped))
        self._distance = builder.select(is_far, following, -LINE // size)

    def places(self, index: Value) -> list[Value]:
        """Element ``index`` of each."""
        product = self._product
        at = product.builder.offset(self._start, product.bits, index)
        return [
            product.builder.offset(at, product.bits, more) for more in self._skipped
        ]

    def ask(self, index: Value, size: int = LINE) -> None:
        """For ``size`` bytes of the ones behind these, into the second cache.

        If B stays in the third cache, for what was read before, which does nothing:
        asking would cost 15 % there, as much as it gains where memory is read.
        """
        builder = self._product.builder
        index = builder.add(index, self._distance)
        for place in self.places(index):
            for line in range(0, size, LINE):
                builder.prefetch_to_l2(builder.offset(place, I8, line))


def emit_skinny_gemm(
    module: Module, target: Target, blocking: Blocking, unit: Unit
) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    C[rows, n] += A[rows, k] @ B[k, n].  ``a`` and ``b`` hold ``blocking.dtype``; A's
    rows are contiguous and ``lda`` apart, B is contiguous along ``unit``, ``ldb`` is
    its other stride, and the matrix that it is a part of has so many ``elements``.
    Nothing outside is read.  ``c`` is as for the block GEMM; its columns past ``n`` and
    rows past ``rows`` may be overwritten.
    """
    name = (
        f"xetl_skinny_gemm_{target.name}_{blocking.dtype}_{unit}_{blocking.block_m}"
        f"_ld{blocking.ldc}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, STREAMING_PARAMETERS)
    builder = Builder(function.append_basic_block("entry"))
    # Half of the registers hold what is kept meanwhile, factors or sums.
    fitting = target.vector_registers // 2 // blocking.block_m
    at_once = _AT_ONCE if fitting >= _AT_ONCE else _AT_ONCE // 2
    kernel = _Skinny(builder, target, blocking, *function.args, at_once=at_once)
    if unit == "minor":
        kernel.add_rows_of_b()
    else:
        kernel.dot_columns_of_b()
    builder.ret_void()
    return function


@record()
class _Skinny(Streamed):
    """The two ways through B, ``at_once`` rows or columns at a time."""

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
        factors = [
            [
                builder.splat(self._load(offset_, 1, None), lanes)
                for offset_ in self._elements(row, first, count)
            ]
            for row in self._rows_of_a()
        ]
        b_rows = Streams(self, first, [builder.mul(self.ldb, i) for i in range(count)])
        whole = builder.and_(self.n, -self._width)
        with builder.counted_loop(
            whole, step=self._width, name="columns", is_hidden=True
        ) as column:
            if count > 1:
                b_rows.ask(column.index)
            for start in range(0, self._width, lanes):
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
        b_vectors = [self._load(at, lanes, mask) for at in b_rows.places(column)]
        for row, words in enumerate(factors):
            place = self._c_at(row, column)
            aligned = self.blocking.arithmetic.accumulator_bytes
            total = builder.load(place, typ=b_vectors[0].type, align=aligned)
            for word, b_vector in zip(words, b_vectors, strict=True):
                total = self.blocking.arithmetic.fma(builder, word, b_vector, total)
            builder.store(total, place, aligned)

    def dot_columns_of_b(self) -> None:
        """C's elements one by one: a row of A times a column of B."""
        builder, at_once = self.builder, self.at_once
        last = builder.sub(self.n, 1)
        with builder.counted_loop(self.n, step=at_once, name="columns") as column:
            left = builder.sub(last, column.index)
            columns = [builder.minimum(left, i) for i in range(at_once)]
            skipped = [builder.mul(self.ldb, i) for i in columns]
            streams = Streams(self, column.index, skipped)
            sums = self._dots(self._rows_of_a(), streams)
            for number, total in enumerate(sums):
                row, i = divmod(number, at_once)
                index = builder.add(column.index, i)
                self._add_to_c(row, index, total)

    def _dots(self, a_rows: list[Value], b_columns: Streams) -> list[Value]:
        """The vectors that the dot products are sums of."""
        builder, lanes = self.builder, self.blocking.lanes
        zero = const(vector(self._total, lanes), 0)
        whole = builder.and_(self.k, -self._width)
        sums = [zero] * (len(a_rows) * self.at_once)
        with builder.counted_loop(
            whole, step=self._width, carried=sums, is_hidden=True
        ) as step:
            b_columns.ask(step.index)
            step.next = step.values
            for start in range(0, self._width, lanes):
                places = (a_rows, b_columns, builder.add(step.index, start))
                step.next = self._products(*places, step.next, None)
        sums = step.results
        with builder.counted_loop(
            self.k, start=whole, step=lanes, carried=sums
        ) as step:
            left = builder.sub(self.k, step.index)
            mask = builder.lane_mask(left, lanes)
            places = (a_rows, b_columns, step.index)
            step.next = self._products(*places, step.values, mask)
        return step.results

    def _products(
        self,
        a_rows: list[Value],
        b_columns: Streams,
        at: Value,
        sums: list[Value],
        mask: Value | None,
    ) -> list[Value]:
        builder, lanes = self.builder, self.blocking.lanes
        a_places = [builder.offset(row, self.bits, at) for row in a_rows]
        a_vectors, b_vectors = (
            [self._load(place, lanes, mask) for place in places]
            for places in (a_places, b_columns.places(at))
        )
        pairs = [(one, other) for one in a_vectors for other in b_vectors]
        return [
            self.blocking.arithmetic.fma(builder, *pair, total)
            for pair, total in zip(pairs, sums, strict=True)
        ]

    def _add_to_c(self, row: int, column: Value, total: Value) -> None:
        builder = self.builder
        kind = f"v{total.type.count}{self.blocking.arithmetic.accumulator}"
        name = f"llvm.vector.reduce.fadd.{kind}"
        zero = const(self._total, 0)
        reduce = declare(builder.module, name, self._total, [zero.type, total.type])
        # In any order: one lane after the other would take 16 additions.
        number = builder.call(reduce, [zero, total], fastmath=("reassoc",))
        place = self._c_at(row, column)
        aligned = self.blocking.arithmetic.accumulator_bytes
        old = builder.load(place, typ=self._total, align=aligned)
        builder.store(builder.fadd(old, number), place, aligned)

    # Places and numbers -------------------------------------------------------------

    @property
    def _width(self) -> int:
        """Elements of a line of B, or of a vector if that is more."""
        return max(LINE * 8 // self.bits.width, self.blocking.lanes)

    @property
    def _total(self) -> Type:
        return self.blocking.arithmetic.accumulator_type

    def _rows_of_a(self) -> list[Value]:
        """Where A's rows begin; past the last one, the last one again."""
        builder, found = self.builder, list[Value]()
        last = builder.sub(self.rows, 1)
        for row in range(self.blocking.block_m):
            index = builder.minimum(row, last) if row else const(I64, 0)
            at = builder.mul(index, self.lda)
            found.append(builder.offset(self.a, self.bits, at))
        return found

    def _elements(self, row: Value, first: Value, count: int) -> list[Value]:
        at = self.builder.offset(row, self.bits, first)
        return [self.builder.offset(at, self.bits, i) for i in range(count)]

    def _c_at(self, row: int, column: Value) -> Value:
        at = self.builder.offset(self.c, self._total, row * self.blocking.ldc)
        return self.builder.offset(at, self._total, column)

    def _load(self, place: Value, lanes: int, mask: Value | None) -> Value:
        """Elements as the accumulator has them."""
        builder, dtype = self.builder, self.blocking.dtype
        wide = vector(self.bits, lanes)
        if mask is None:
            bits = builder.load(place, typ=wide, align=self.bits.width // 8)
        else:
            bits = builder.masked_load(place, wide, mask)
        total = self.blocking.arithmetic.accumulator
        return builder.bitcast(
            convert(builder, bits, dtype, total), vector(self._total, lanes)
        )
