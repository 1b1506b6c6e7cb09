"""Emit the GEMM of up to 32 rows with contiguous columns of B: dot products.

B is read in place, once from memory: it need not be transposed for panels.

    parts of k             with more than 4 rows: then A's part stays in half of L2
      some columns         up to 8
        strips of rows     up to 4; the sums with these columns fill half the registers

Dot products are of pairs of bf16 and of four bytes, if the processor has instructions
for these.  Vectors of sums are added up together, in a tree.
"""

from __future__ import annotations

from xetl.records import record
from xetl_cpu.llvm import I32, I64, Function, Module, Value, begin, const, vector
from xetl_cpu.microkernels.arithmetic import shifted
from xetl_cpu.microkernels.blocking import LOW_ROWS, Blocking
from xetl_cpu.microkernels.streaming import STREAMING_PARAMETERS, Streamed, Streams
from xetl_cpu.targets import Target

_ROWS = 4
"""Rows of a strip."""

_COLUMNS = 8
"""Columns at a time: as many streams reach the speed of memory."""


def emit_dots(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    As `emit_skinny_gemm`, but B's columns are contiguous, ``ldb`` elements apart, and
    rows past ``rows`` stay as they are.
    """
    name = (
        f"xetl_dots_{target.name}_{blocking.dtype}_{blocking.arithmetic.name}"
        f"_{min(blocking.block_m, _ROWS + 1)}_ld{blocking.ldc}"
    )
    function, builder = begin(module, name, STREAMING_PARAMETERS)
    if builder is None:
        return function
    strip = min(blocking.block_m, _ROWS)
    most = min(_COLUMNS, blocking.lanes, target.vector_registers // 2 // strip)
    columns = 1 << most.bit_length() - 1
    dots = _Dots(builder, target, blocking, *function.args, tile=(strip, columns))
    dots.add_all()
    builder.ret_void()
    return function


@record()
class _Dots(Streamed):
    """The loops over B; ``tile``: rows and columns whose sums are in registers."""

    tile: tuple[int, int]

    def add_all(self) -> None:
        """Add all of k, part by part."""
        builder = self.builder
        if self.blocking.block_m <= _ROWS:
            self._add(const(I64, 0), self.k)
            return
        size = self.target.machine.l2.size // 2 // LOW_ROWS
        part = size * 8 // self.bits.width // self.width * self.width
        with builder.counted_loop(self.k, step=part, name="part") as at:
            end = builder.minimum(builder.add(at.index, part), self.k)
            self._add(at.index, end)

    def _add(self, start: Value, end: Value) -> None:
        """Add the part of k from ``start`` to ``end``."""
        builder, (strip, columns) = self.builder, self.tile
        last = builder.sub(self.n, 1)
        with builder.counted_loop(self.n, step=columns, name="columns") as column:
            left = builder.sub(last, column.index)
            behind = [builder.minimum(left, i) for i in range(columns)]
            skipped = [builder.mul(self.ldb, i) for i in behind]
            streams = Streams(self, column.index, skipped)
            with builder.counted_loop(self.rows, step=strip, name="strip") as row:
                a_rows = self.rows_of_a(row.index, strip)
                sums = self._sums(a_rows, streams, start, end)
                self._add_to_c(row.index, column.index, self._made_good(sums))

    def _sums(
        self, a_rows: list[Value], b_columns: Streams, start: Value, end: Value
    ) -> list[Value]:
        """Return the vectors whose lanes add up to the dot products, row by row."""
        builder, lanes = self.builder, self._lanes
        zero = const(vector(self.total, self.blocking.lanes), 0)
        count = self.tile[1] + self.blocking.arithmetic.shifts_b
        sums = [zero] * (len(a_rows) * count)
        whole = builder.and_(builder.sub(end, start), -self.width)
        whole = builder.add(start, whole)
        with builder.counted_loop(
            whole, start=start, step=self.width, carried=sums, is_hidden=True
        ) as step:
            b_columns.ask(step.index)
            step.next = step.values
            for first in range(0, self.width, lanes):
                places = (a_rows, b_columns, builder.add(step.index, first))
                step.next = self._products(*places, step.next, None)
        sums = step.results
        with builder.counted_loop(end, start=whole, step=lanes, carried=sums) as step:
            mask = builder.lane_mask(builder.sub(end, step.index), lanes)
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
        builder, how = self.builder, self.blocking.arithmetic
        a_places = [builder.offset(row, self.bits, at) for row in a_rows]
        a_vectors, b_vectors = (
            [self._words(place, mask) for place in places]
            for places in (a_places, b_columns.places(at))
        )
        if how.shifts_b:
            b_vectors += [const(b_vectors[0].type, 0)]
            b_vectors = [shifted(builder, b) for b in b_vectors]
        pairs = [(one, other) for one in a_vectors for other in b_vectors]
        multiply = how.multiply_add if self._has_words else how.fma
        return [multiply(builder, *pair, x) for pair, x in zip(pairs, sums)]

    def _made_good(self, sums: list[Value]) -> list[Value]:
        """Subtract the last sum of each row, of zeros, if B is shifted."""
        if not self.blocking.arithmetic.shifts_b:
            return sums
        step = self.tile[1] + 1
        rows = [sums[at : at + step] for at in range(0, len(sums), step)]
        return [self.builder.sub(x, surplus) for *row, surplus in rows for x in row]

    def _add_to_c(self, row: Value, column: Value, sums: list[Value]) -> None:
        builder, (strip, columns) = self.builder, self.tile
        arithmetic, lanes = self.blocking.arithmetic, self.blocking.lanes
        totals, aligned = arithmetic.totals(builder, sums), arithmetic.accumulator_bytes
        left = builder.sub(self.rows, row)
        for number in range(strip):
            which, first = divmod(number * columns, lanes)
            order = range(first, first + columns)
            found = builder.shuffle(totals[which], totals[which], order)
            with builder.if_then(builder.icmp_signed(">", left, number)):
                place = self.c_at(builder.add(row, number), column)
                old = builder.load(place, typ=found.type, align=aligned)
                builder.store(arithmetic.add(builder, old, found), place, aligned)

    def _words(self, place: Value, mask: Value | None) -> Value:
        """Load elements of A or B, in the form that the instruction takes."""
        if not self._has_words:
            return self.load(place, self.blocking.lanes, mask)
        bits = self.load_bits(place, self._lanes, mask)
        return self.builder.bitcast(bits, vector(I32, self.blocking.lanes))

    @property
    def _has_words(self) -> bool:
        """Whether an instruction multiplies several elements in each lane."""
        return self.blocking.arithmetic.instruction in ("dpbf16", "vnni")

    @property
    def _lanes(self) -> int:
        """Elements of a row of A that are multiplied at once."""
        each = self.blocking.k_pack if self._has_words else 1
        return self.blocking.lanes * each
