"""Emit the GEMM of few rows: C += A @ B with B in place, its rows contiguous.

`emit_skinny_gemm`, up to 4 rows.  Every element of B is used only as often as there are
rows, so packing would cost as much as the product.  B is streamed once, some rows at a
time, so that C, which stays in L1, is read and written less often than B is read.

Measured at 1 x 4096 x 4096: packing first takes more than twice the time. In f32 on Zen
4, eight rows at a time reach 30 GB/s, and 37 with prefetches of the next eight, as much
as a loop that only reads; four reach 27 and 34, sixteen 23, eight with prefetches of
the next but one 36.

`emit_low_gemm`, 5 to 32 rows.  So few rows do not hide the cost of packing, which reads
B from memory, writes and reads panels, while the product waits.  Here B is streamed
once,

    some rows of B      8 steps of k, as many of the next are prefetched
      two vectors       of columns; B's 16 vectors stay in registers
        rows of A       8 broadcasts of A for 16 products; C is in L1

so memory works while the program computes, and two products share each broadcast. Pairs
of bf16 are interleaved from two rows of B, once for all rows of A.  The 8 words of each
row of A are copied: rows a power of two apart share the sets of L1.

`dots.py` is for contiguous columns of B.
"""

from __future__ import annotations

from xetl.records import record
from xetl_cpu.llvm import I32, I64, Function, Module, Value, begin, const, vector
from xetl_cpu.microkernels.blocking import LOW_ROWS, Blocking
from xetl_cpu.microkernels.streaming import STREAMING_PARAMETERS, Streamed, Streams
from xetl_cpu.targets import Target

_AT_ONCE = 8
"""Rows of B at a time: as many streams reach the speed of memory."""


def emit_skinny_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    C[rows, n] += A[rows, k] @ B[k, n].  ``a`` and ``b`` hold ``blocking.dtype``; the
    rows of both are contiguous, ``lda`` and ``ldb`` elements apart, and the matrix that
    contains B has ``elements`` elements.  Nothing outside is read.  ``c`` is as for the
    block GEMM; its columns past ``n`` and rows past ``rows`` may be overwritten.
    """
    name = (
        f"xetl_skinny_gemm_{target.name}_{blocking.dtype}_{blocking.block_m}"
        f"_ld{blocking.ldc}"
    )
    function, builder = begin(module, name, STREAMING_PARAMETERS)
    if builder is None:
        return function
    # Half of the registers hold the factors.
    fitting = target.vector_registers // 2 // blocking.block_m
    at_once = _AT_ONCE if fitting >= _AT_ONCE else _AT_ONCE // 2
    _Skinny(builder, target, blocking, *function.args, at_once=at_once).add_rows_of_b()
    builder.ret_void()
    return function


@record()
class _Skinny(Streamed):
    """The loops over B, ``at_once`` rows at a time."""

    at_once: int

    def add_rows_of_b(self) -> None:
        """Multiply some rows of B at a time by elements of A, and add them to C."""
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
            mask = builder.lane_mask(builder.sub(self.n, column.index), lanes)
            self._add_columns(column.index, b_rows, factors, mask)

    def _add_columns(
        self,
        column: Value,
        b_rows: Streams,
        factors: list[list[Value]],
        mask: Value | None,
    ) -> None:
        """Update one vector of each row of C."""
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


_VECTORS = 2
_WORD = 4


def emit_low_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    As `emit_skinny_gemm`, but rows past ``rows`` stay as they are.
    """
    name = f"xetl_low_gemm_{target.name}_{blocking.arithmetic.name}_ld{blocking.ldc}"
    function, builder = begin(module, name, STREAMING_PARAMETERS)
    if builder is None:
        return function
    steps_at_once = target.vector_registers // 4
    words = builder.stack_array(blocking.arithmetic.word, LOW_ROWS * steps_at_once)
    _Low(builder, target, blocking, *function.args, words=words).add_all(steps_at_once)
    builder.ret_void()
    return function


@record()
class _Low(Streamed):
    """The loops over B; ``words`` is memory for some words of each row of A."""

    words: Value

    def add_all(self, at_once: int) -> None:
        """Add all of k: ``at_once`` words of A's rows at a time, one word, the rest."""
        builder, k_pack = self.builder, self.blocking.k_pack
        whole = builder.and_(self.k, -at_once * k_pack)
        with builder.counted_loop(whole, step=at_once * k_pack, name="steps") as step:
            self._add(step.index, at_once)
        words = builder.and_(self.k, -k_pack)
        with builder.counted_loop(words, start=whole, step=k_pack, name="step") as step:
            self._add(step.index, 1)
        if k_pack > 1:
            with builder.counted_loop(self.k, start=words, name="rest") as step:
                self._add(step.index, 1, elements=1)

    def _add(self, first: Value, words: int, elements: int | None = None) -> None:
        """Add rows of B from ``first`` on; ``elements`` of each word, None: all."""
        builder, lanes = self.builder, self.blocking.lanes
        width = _VECTORS * lanes
        whole = builder.and_(self.n, -width)
        each = elements or self.blocking.k_pack
        skipped = [builder.mul(self.ldb, row) for row in range(words * each)]
        step = _Step(self, Streams(self, first, skipped), first, words, each)
        step.copy_a()
        with builder.counted_loop(whole, step=width, name="columns") as column:
            if words > 1:
                step.b.ask(column.index, _VECTORS * lanes * self.blocking.compute_bytes)
            step.multiply(column.index, _VECTORS, None)
        with builder.counted_loop(self.n, start=whole, step=lanes) as column:
            left = builder.sub(self.n, column.index)
            step.multiply(column.index, 1, builder.lane_mask(left, lanes))


@record()
class _Step:
    """Some rows of B, from row ``first`` of k on: ``words`` times ``elements``."""

    low: _Low
    b: Streams
    first: Value
    words: int
    elements: int

    def multiply(self, column: Value, vectors: int, mask: Value | None) -> None:
        """Update ``vectors`` of all rows of C, from ``column`` on."""
        low, blocking = self.low, self.low.blocking
        builder, lanes = low.builder, blocking.lanes
        starts = [builder.add(column, lanes * number) for number in range(vectors)]
        b = [
            [self._b_words(word, start, mask) for start in starts]
            for word in range(self.words)
        ]
        total = blocking.arithmetic.accumulator_type
        aligned = blocking.arithmetic.accumulator_bytes
        with builder.counted_loop(low.rows, name="row") as row:
            a = [builder.splat(word, lanes) for word in self._a_words(row.index)]
            c_row = builder.offset(low.c, total, builder.mul(row.index, blocking.ldc))
            for number, start in enumerate(starts):
                place = builder.offset(c_row, total, start)
                sums = builder.load(place, typ=vector(total, lanes), align=aligned)
                for many, words in zip(a, b, strict=True):
                    how, b_words = blocking.arithmetic, words[number]
                    sums = how.multiply_add(builder, many, b_words, sums)
                builder.store(sums, place, aligned)

    def copy_a(self) -> None:
        """Copy the words of all rows of A, one row behind the other."""
        low, blocking = self.low, self.low.blocking
        builder, word = low.builder, blocking.arithmetic.word
        size = blocking.compute_bytes
        with builder.counted_loop(low.rows, name="row") as row:
            at = builder.add(builder.mul(row.index, low.lda), self.first)
            place = builder.offset(low.a, self.low.bits, at)
            if self.elements < blocking.k_pack:
                found = builder.load(place, typ=self.low.bits, align=size)
                found = builder.zext(found, word)
            else:
                found = builder.load(place, typ=vector(word, self.words), align=size)
            builder.store(found, self._copied(row.index), _WORD)

    def _a_words(self, row: Value) -> list[Value]:
        builder, word = self.low.builder, self.low.blocking.arithmetic.word
        place = self._copied(row)
        return [
            builder.load(builder.offset(place, word, number), typ=word, align=_WORD)
            for number in range(self.words)
        ]

    def _copied(self, row: Value) -> Value:
        builder, word = self.low.builder, self.low.blocking.arithmetic.word
        return builder.offset(self.low.words, word, builder.mul(row, self.words))

    def _b_words(self, word: int, column: Value, mask: Value | None) -> Value:
        """Return a vector of columns of B: each lane is multiplied by a word of A."""
        blocking = self.low.blocking
        first = word * blocking.k_pack
        places = self.b.places(column)[first : first + self.elements]
        bits, lanes = self.low.bits, blocking.lanes
        lane = blocking.arithmetic.word if blocking.k_pack == 1 else bits
        rows = [self.low.load_bits(place, lanes, mask, lane) for place in places]
        if blocking.k_pack == 1:
            return rows[0]
        builder = self.low.builder
        high = rows[1] if len(rows) > 1 else const(rows[0].type, 0)
        order = [lane for low in range(lanes) for lane in (low, lanes + low)]
        woven = builder.shuffle(rows[0], high, order)
        return builder.bitcast(woven, vector(I32, lanes))
