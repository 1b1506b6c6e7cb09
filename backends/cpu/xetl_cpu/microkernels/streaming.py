"""Shared by products that read B in place: their arguments, and prefetches.

While some rows (or columns) are read, the next ones are prefetched line by line:
hardware prefetches stop at the end of each page, and then memory is idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from xetl.records import record
from xetl_cpu.llvm import I8, Builder, Type, Value, bits_of, convert, parameters, vector
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.epilogue import StripRows
from xetl_cpu.targets import Target

STREAMING_PARAMETERS = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 ldb, i64 n, i64 elements, ptr c"
)
"""The parameters of a product that reads B in place."""


@record()
class Streamed:
    """The arguments of such a product, while its function is written."""

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
        """The type of an element of A and B."""
        return bits_of(self.blocking.dtype)

    @property
    def total(self) -> Type:
        """The type of an element of C."""
        return self.blocking.arithmetic.accumulator_type

    @property
    def width(self) -> int:
        """Elements of a line of B, or of a vector if that is more."""
        return max(LINE * 8 // self.bits.width, self.blocking.lanes)

    def rows_of_a(self, first: Value, count: int) -> list[Value]:
        """Return the starts of rows of A; rows past the last one repeat it."""
        rows = StripRows(self.builder, first, self.builder.sub(self.rows, 1), count)
        return rows.of(self.a, self.lda, self.bits)

    def c_at(self, row: Value, column: Value) -> Value:
        """Return the address of an element of C."""
        builder = self.builder
        at = builder.add(builder.mul(row, self.blocking.ldc), column)
        return builder.offset(self.c, self.total, at)

    def load_bits(
        self, place: Value, count: int, mask: Value | None, as_: Type | None = None
    ) -> Value:
        """Load elements of A or B; ``as_``: as this type of their size."""
        type_ = vector(as_ or self.bits, count)
        if mask is not None:
            return self.builder.masked_load(place, type_, mask)
        return self.builder.load(place, typ=type_, align=self.bits.width // 8)

    def load(self, place: Value, lanes: int, mask: Value | None) -> Value:
        """Load elements of A or B, converted to the type of the accumulator."""
        builder, dtype = self.builder, self.blocking.dtype
        bits = self.load_bits(place, lanes, mask)
        bits = convert(builder, bits, dtype, self.blocking.arithmetic.accumulator)
        return builder.bitcast(bits, vector(self.total, lanes))


class Streams:
    """Rows of B, or columns, that are read together."""

    def __init__(
        self, product: Streamed, first: Value, skipped: Sequence[Value]
    ) -> None:
        """Start with row ``first``; the others are ``skipped`` elements behind it."""
        self._product, self._skipped, builder = product, skipped, product.builder
        at = builder.mul(first, product.ldb)
        self._start = builder.offset(product.b, product.bits, at)
        size = product.bits.width // 8
        most = product.target.machine.most_near(product.blocking.block_m) // size
        is_far = builder.icmp_signed(">", product.elements, most)
        following = builder.mul(product.ldb, len(skipped))
        self._distance = builder.select(is_far, following, -LINE // size)

    def places(self, index: Value) -> list[Value]:
        """Return the address of element ``index`` in each stream."""
        product = self._product
        at = product.builder.offset(self._start, product.bits, index)
        return [product.builder.offset(at, product.bits, n) for n in self._skipped]

    def ask(self, index: Value, size: int = LINE) -> None:
        """Prefetch ``size`` bytes of the streams after these into L2.

        If B stays in an L3 that is near, it prefetches what was read before, which does
        nothing: real prefetches would cost 15 % there, as much as they gain if memory
        is read.
        """
        if self._product.blocking.block_m < self._product.target.machine.asks_from:
            return
        builder = self._product.builder
        index = builder.add(index, self._distance)
        for place in self.places(index):
            for line in range(0, size, LINE):
                builder.prefetch_to_l2(builder.offset(place, I8, line))
