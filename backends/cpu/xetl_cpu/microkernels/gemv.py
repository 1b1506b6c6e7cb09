"""Emit the GEMM of a few rows: C += A @ B with B where it is, unpacked.

With up to `SKINNY_ROWS` rows every element of B is used that often only, so packing
would cost as much as the product.  B is streamed through once, in the order of its
memory:

* its rows are contiguous (``unit = "minor"``): some rows of B at a time, so that C,
  which stays in the first cache, is read and written less often than B is read;
* its columns are (``unit = "major"``): four columns at a time, one dot product each.

Measured at 1 x 4096 x 4096: packing first takes more than twice the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.records import record
from xetl_cpu.llvm import (
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
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.targets import Target

if TYPE_CHECKING:
    from xetl_cpu.microkernels.copy_block import Unit

_COLUMNS = 4
"""Dot products at a time."""

STREAMING_PARAMETERS = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 ldb, i64 n, ptr c"
)
"""Of a product that reads B where it is."""


@record()
class Streamed:
    """The arguments of such a function, while it is written."""

    builder: Builder
    blocking: Blocking
    a: Value
    lda: Value
    rows: Value
    k: Value
    b: Value
    ldb: Value
    n: Value
    c: Value


def emit_skinny_gemm(
    module: Module, target: Target, blocking: Blocking, unit: Unit
) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, c)``.

    C[rows, n] += A[rows, k] @ B[k, n].  ``a`` and ``b`` hold ``blocking.dtype``; A's
    rows are contiguous and ``lda`` apart, B is contiguous along ``unit`` and ``ldb`` is
    its other stride.  Nothing outside is read.  ``c`` is as for the block GEMM; its
    columns past ``n`` and rows past ``rows`` may be overwritten.
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
    kernel = _Skinny(builder, blocking, *function.args)
    if unit == "minor":
        kernel.add_rows_of_b()
    else:
        kernel.dot_columns_of_b()
    builder.ret_void()
    return function


class _Skinny(Streamed):
    """The two ways through B."""

    def add_rows_of_b(self) -> None:
        """Some rows of B times what A has for them, added to C."""
        builder = self.builder
        at_once = 8 if self.blocking.block_m == 1 else 4
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
        b_rows = [self._b_at(builder.add(first, i)) for i in range(count)]
        whole = builder.and_(self.n, -lanes)
        with builder.counted_loop(whole, step=lanes, name="columns") as column:
            self._add_columns(column.index, b_rows, factors, None)
        with builder.counted_loop(self.n, start=whole, step=lanes) as column:
            left = builder.sub(self.n, column.index)
            mask = builder.lane_mask(left, lanes)
            self._add_columns(column.index, b_rows, factors, mask)

    def _add_columns(
        self,
        column: Value,
        b_rows: list[Value],
        factors: list[list[Value]],
        mask: Value | None,
    ) -> None:
        """One vector of each row of C."""
        builder, lanes = self.builder, self.blocking.lanes
        b_vectors = [
            self._load(builder.offset(row, self._bits, column), lanes, mask)
            for row in b_rows
        ]
        for row, words in enumerate(factors):
            place = self._c_at(row, column)
            aligned = self.blocking.arithmetic.accumulator_bytes
            total = builder.load(place, typ=b_vectors[0].type, align=aligned)
            for word, b_vector in zip(words, b_vectors, strict=True):
                total = self.blocking.arithmetic.fma(builder, word, b_vector, total)
            builder.store(total, place, aligned)

    def dot_columns_of_b(self) -> None:
        """C's elements one by one: a row of A times a column of B."""
        builder = self.builder
        last = builder.sub(self.n, 1)
        with builder.counted_loop(self.n, step=_COLUMNS, name="columns") as column:
            places: list[Value] = []
            for i in range(_COLUMNS):
                index = builder.add(column.index, i)
                places.append(self._b_at(builder.minimum(index, last)))
            sums = self._dots(self._rows_of_a(), places)
            for number, total in enumerate(sums):
                row, i = divmod(number, _COLUMNS)
                index = builder.add(column.index, i)
                self._add_to_c(row, index, total)

    def _dots(self, a_rows: list[Value], b_columns: list[Value]) -> list[Value]:
        """The vectors that the dot products are sums of."""
        builder, lanes = self.builder, self.blocking.lanes
        zero = const(vector(self._total, lanes), 0)
        whole = builder.and_(self.k, -lanes)
        sums = [zero] * (len(a_rows) * len(b_columns))
        with builder.counted_loop(whole, step=lanes, carried=sums) as step:
            places = (a_rows, b_columns, step.index)
            step.next = self._products(*places, step.values, None)
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
        b_columns: list[Value],
        at: Value,
        sums: list[Value],
        mask: Value | None,
    ) -> list[Value]:
        builder, lanes = self.builder, self.blocking.lanes
        a_vectors, b_vectors = (
            [self._load(builder.offset(p, self._bits, at), lanes, mask) for p in group]
            for group in (a_rows, b_columns)
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
    def _bits(self) -> Type:
        return bits_of(self.blocking.dtype)

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
            found.append(builder.offset(self.a, self._bits, at))
        return found

    def _elements(self, row: Value, first: Value, count: int) -> list[Value]:
        at = self.builder.offset(row, self._bits, first)
        return [self.builder.offset(at, self._bits, i) for i in range(count)]

    def _b_at(self, index: Value) -> Value:
        at = self.builder.mul(index, self.ldb)
        return self.builder.offset(self.b, self._bits, at)

    def _c_at(self, row: int, column: Value) -> Value:
        at = self.builder.offset(self.c, self._total, row * self.blocking.ldc)
        return self.builder.offset(at, self._total, column)

    def _load(self, place: Value, lanes: int, mask: Value | None) -> Value:
        """Elements as the accumulator has them."""
        builder, dtype = self.builder, self.blocking.dtype
        wide = vector(self._bits, lanes)
        if mask is None:
            bits = builder.load(place, typ=wide, align=self._bits.width // 8)
        else:
            bits = builder.masked_load(place, wide, mask)
        total = self.blocking.arithmetic.accumulator
        return builder.bitcast(
            convert(builder, bits, dtype, total), vector(self._total, lanes)
        )
