"""What products share that read B where it is: their arguments, and the way ahead.

While some rows (or columns) are read, the next ones are asked for, line by line: what
fetches ahead in the processor stops at the end of each page, and memory waits.
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

    @property
    def total(self) -> Type:
        """An element of C."""
        return self.blocking.arithmetic.accumulator_type

    @property
    def width(self) -> int:
        """Elements of a line of B, or of a vector if that is more."""
        return max(LINE * 8 // self.bits.width, self.blocking.lanes)

    def rows_of_a(self, first: Value, count: int) -> list[Value]:
        """Where some rows of A begin; past the last one, the last one again."""
        last = self.builder.sub(self.rows, 1)
        rows = StripRows(self.builder, first, last, count)
        return rows.of(self.a, self.lda, self.bits)

    def c_at(self, row: Value, column: Value) -> Value:
        """The address of an element of C."""
        builder = self.builder
        at = builder.add(builder.mul(row, self.blocking.ldc), column)
        return builder.offset(self.c, self.total, at)

    def load_bits(self, place: Value, count: int, mask: Value | None) -> Value:
        """Elements of A or B."""
        type_ = vector(self.bits, count)
        if mask is not None:
            return self.builder.masked_load(place, type_, mask)
        return self.builder.load(place, typ=type_, align=self.bits.width // 8)

    def load(self, place: Value, lanes: int, mask: Value | None) -> Value:
        """The same as the accumulator has them."""
        builder, dtype = self.builder, self.blocking.dtype
        bits = self.load_bits(place, lanes, mask)
        bits = convert(builder, bits, dtype, self.blocking.arithmetic.accumulator)
        return builder.bitcast(bits, vector(self.total, lanes))


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
        if self._product.blocking.block_m < self._product.target.machine.asks_from:
            return
        builder = self._product.builder
        index = builder.add(index, self._distance)
        for place in self.places(index):
            for line in range(0, size, LINE):
                builder.prefetch_to_l2(builder.offset(place, I8, line))
