"""Emit the GEMM of a low block, 5 to 32 rows: C += A @ B with B where it is.

So few rows do not hide what packing costs: it reads B from memory, writes and reads
panels, and the product waits meanwhile.  Here B is streamed through once,

    some rows of B      8 steps of k, as many of the next are asked for
      two vectors       of columns; B's 16 vectors stay in registers
        rows of A       8 broadcasts of A for 16 products; C is in the first cache

so memory works while the program computes, and two products share each broadcast.
Pairs of bf16 are woven from two rows of B, once for all rows of A.  The 8 words of each
row of A are copied: rows a power of two apart share the sets of the first cache.
"""

from __future__ import annotations

from xetl.records import record
from xetl_cpu.llvm import (
    I32,
    VOID,
    Builder,
    Function,
    Module,
    Type,
    Value,
    const,
    define,
    vector,
)
from xetl_cpu.microkernels.blocking import LOW_ROWS, Blocking
from xetl_cpu.microkernels.streaming import STREAMING_PARAMETERS, Streamed, Streams
from xetl_cpu.targets import Target

_VECTORS = 2
_WORD = 4


def emit_low_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, ldb, n, elements, c)``.

    C[rows, n] += A[rows, k] @ B[k, n].  ``a`` and ``b`` hold ``blocking.dtype``; the
    rows of both are contiguous, ``lda`` and ``ldb`` elements apart, and the matrix that
    B is a part of has so many ``elements``.  Nothing outside is read.  ``c`` is as for
    the block GEMM; its columns past ``n`` may be overwritten.
    """
    name = f"xetl_low_gemm_{target.name}_{blocking.arithmetic.name}_ld{blocking.ldc}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, STREAMING_PARAMETERS)
    builder = Builder(function.append_basic_block("entry"))
    steps_at_once = target.vector_registers // 4
    words = builder.stack_array(blocking.arithmetic.word, LOW_ROWS * steps_at_once)
    _Low(builder, target, blocking, *function.args, words=words).add_all(steps_at_once)
    builder.ret_void()
    return function


@record()
class _Low(Streamed):
    """The way through B; ``words`` is room for some words of each row of A."""

    words: Value

    def add_all(self, at_once: int) -> None:
        """All of k: ``at_once`` words of A's rows at a time, one, then its rest."""
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
        """Rows of B from ``first`` on; ``elements`` of each word, None: all."""
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
    """Some rows of B, from row ``first`` of k: ``words`` times ``elements``."""

    low: _Low
    b: Streams
    first: Value
    words: int
    elements: int

    def multiply(self, column: Value, vectors: int, mask: Value | None) -> None:
        """``vectors`` of all rows of C, from ``column`` on."""
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
            at = builder.mul(row.index, blocking.ldc)
            c_row = builder.offset(low.c, total, at)
            for number, start in enumerate(starts):
                place = builder.offset(c_row, total, start)
                sums = builder.load(place, typ=vector(total, lanes), align=aligned)
                for many, words in zip(a, b, strict=True):
                    sums = blocking.arithmetic.multiply_add(
                        builder, many, words[number], sums
                    )
                builder.store(sums, place, aligned)

    def copy_a(self) -> None:
        """The words of all rows of A, one row behind the other."""
        low, blocking = self.low, self.low.blocking
        builder, word = low.builder, blocking.arithmetic.word
        size = blocking.compute_bytes
        with builder.counted_loop(low.rows, name="row") as row:
            at = builder.add(builder.mul(row.index, low.lda), self.first)
            place = builder.offset(low.a, self.low.bits, at)
            if self.elements < blocking.k_pack:
                found = builder.zext(
                    builder.load(place, typ=self.low.bits, align=size), word
                )
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
        at = builder.mul(row, self.words)
        return builder.offset(self.low.words, word, at)

    def _b_words(self, word: int, column: Value, mask: Value | None) -> Value:
        """A vector of columns of B: in each lane what is multiplied by a word of A."""
        blocking = self.low.blocking
        first = word * blocking.k_pack
        places = self.b.places(column)[first : first + self.elements]
        rows = [self._b_row(place, mask) for place in places]
        if blocking.k_pack == 1:
            return rows[0]
        builder, lanes = self.low.builder, blocking.lanes
        high = rows[1] if len(rows) > 1 else const(rows[0].type, 0)
        order = [lane for low in range(lanes) for lane in (low, lanes + low)]
        woven = builder.shuffle(rows[0], high, order)
        return builder.bitcast(woven, vector(I32, lanes))

    def _b_row(self, place: Value, mask: Value | None) -> Value:
        type_ = vector(self._lane, self.low.blocking.lanes)
        if mask is not None:
            return self.low.builder.masked_load(place, type_, mask)
        return self.low.builder.load(
            place, typ=type_, align=self.low.blocking.compute_bytes
        )

    @property
    def _lane(self) -> Type:
        """What a lane of a row of B is loaded as."""
        blocking = self.low.blocking
        return blocking.arithmetic.word if blocking.k_pack == 1 else self.low.bits
