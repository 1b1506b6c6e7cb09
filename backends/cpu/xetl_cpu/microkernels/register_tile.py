"""The register tile of a block GEMM: c[mr, nr] = sum over k of a[mr, k] * b[k, nr].

``mr`` words of A, broadcast one after the other, meet the vectors of B that were loaded
once for all of them; the sums stay in registers.
"""

from dataclasses import field

from xetl.records import record
from xetl_cpu.llvm import (
    I32,
    I64,
    Builder,
    Type,
    Value,
    const,
    counted_loop,
    either,
    ir,
    load,
    offset,
    splat,
    vector,
)
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.prefetch import Ahead

__all__ = ["RegisterTile"]


@record()
class RegisterTile:
    """Where it reads: the first element of each row of A, and a panel of B.

    Attributes:
        vectors: of each row, how many are computed; the panel may have more.
        ahead: what else it asks for, step by step.
    """

    builder: Builder
    blocking: Blocking
    a_rows: list[Value]
    b: Value
    vectors: int
    ahead: list[Ahead] = field(default_factory=list[Ahead])

    def sums(self, k: Value) -> list[Value]:
        """The sums over ``k``, row by row: zeros for vectors that are not computed."""
        few = self._few_sums(k)
        zeros = [const(self.lanes_of_c, 0)] * (self.blocking.vectors - self.vectors)
        rows = range(0, len(few), self.vectors)
        return [
            total for row in rows for total in (*few[row : row + self.vectors], *zeros)
        ]

    def _few_sums(self, k: Value) -> list[Value]:
        builder, blocking = self.builder, self.blocking
        k_pack = blocking.k_pack
        steps = builder.ashr(k, const(I64, k_pack.bit_length() - 1))
        unrolled = builder.and_(steps, const(I64, -blocking.unroll))
        count = self._sums() + self._surplus()
        sums = [const(self.lanes_of_c, 0)] * (count * blocking.sets)
        start = const(I64, 0)
        sums, b_at = self._loop(sums, self.b, start, unrolled, blocking.unroll)
        sums = self._together(sums, count)
        if blocking.unroll > 1:
            sums, b_at = self._loop(sums, b_at, unrolled, steps, 1)
        if k_pack > 1:
            sums = self._last_step(sums, b_at, k)
        return self._made_good(sums)

    @property
    def lanes_of_c(self) -> Type:
        """LLVM's type of a vector of sums."""
        return vector(self.blocking.arithmetic.accumulator_type, self.blocking.lanes)

    def _sums(self) -> int:
        return self.blocking.mr * self.vectors

    def _surplus(self) -> int:
        """Sums beside those of C, see `Arithmetic.surplus`."""
        return self.vectors if self.blocking.arithmetic.moves_a else 0

    def _together(self, sums: list[Value], count: int) -> list[Value]:
        """All sets of accumulators as one of ``count``."""
        add = self.blocking.arithmetic.add
        total = sums[:count]
        for start in range(count, len(sums), count):
            more = sums[start : start + count]
            total = [add(self.builder, *pair) for pair in zip(total, more, strict=True)]
        return total

    def _loop(
        self, sums: list[Value], b: Value, start: Value, stop: Value, unroll: int
    ) -> tuple[list[Value], Value]:
        """Add the steps start to stop; returns the sums and where B goes on.

        With several sets of sums, each step adds to the next.
        """
        blocking = self.blocking
        step_size = blocking.nr * blocking.k_pack
        element = ir.IntType(8 * blocking.compute_bytes)
        with counted_loop(
            self.builder,
            stop,
            start=start,
            step=unroll,
            carried=[*sums, b, *(each.place for each in self.ahead)],
            name=f"k{unroll}",
        ) as loop:
            sums, (b, *places) = loop.values[: len(sums)], loop.values[len(sums) :]
            asked = zip(self.ahead, places, strict=True)
            places = [each.ask(self.builder, place) for each, place in asked]
            count = self._sums() + self._surplus()
            for step in range(unroll):
                b_step = offset(self.builder, b, element, step * step_size)
                first, rest = sums[:count], sums[count:]
                sums = [*rest, *self._step(first, b_step, loop.index, step)]
            b = offset(self.builder, b, element, unroll * step_size)
            loop.next = [*sums, b, *places]
        return loop.results[: len(sums)], loop.results[len(sums)]

    def _step(
        self, sums: list[Value], b: Value, index: Value, step: int
    ) -> list[Value]:
        """One update of rank ``k_pack``; a word of A holds as many elements."""
        word = self.blocking.arithmetic.word
        words: list[Value] = []
        for pointer in self.a_rows:
            at = offset(self.builder, pointer, word, index)
            at = offset(self.builder, at, word, step)
            words.append(load(self.builder, at, word, self.blocking.compute_bytes))
        return self._update(sums, words, self._load_b(b))

    def _load_b(self, b: Value) -> list[Value]:
        lanes, word = self.blocking.lanes, self.blocking.arithmetic.word
        aligned = self.blocking.compute_bytes
        return [
            load(
                self.builder,
                offset(self.builder, b, word, number * lanes),
                vector(word, lanes),
                aligned,
            )
            for number in range(self.vectors)
        ]

    def _update(
        self, sums: list[Value], words: list[Value], b_vectors: list[Value]
    ) -> list[Value]:
        """Multiply B's vectors by each row's word and add them to the row's sums."""
        builder, arithmetic = self.builder, self.blocking.arithmetic
        updated: list[Value] = []
        for row, word in enumerate(words):
            many = splat(builder, word, self.blocking.lanes)
            many = arithmetic.move(builder, many)
            first = row * self.vectors
            for total, b in zip(sums[first:], b_vectors):
                updated.append(arithmetic.multiply_add(builder, many, b, total))
        if arithmetic.moves_a:
            for total, b in zip(sums[len(updated) :], b_vectors):
                updated.append(arithmetic.surplus(builder, b, total))
        return updated

    def _last_step(self, sums: list[Value], b: Value, k: Value) -> list[Value]:
        """The end of k where it fills no word: what is behind it may not be ours."""
        builder = self.builder
        rest = builder.and_(k, const(I64, self.blocking.k_pack - 1))
        is_some = builder.icmp_signed(">", rest, const(I64, 0))
        with either(builder, sums, is_some, "rest") as branch:
            first = builder.sub(k, rest)
            words = [self._part_of_word(row, first, rest) for row in self.a_rows]
            branch.values = self._update(sums, words, self._load_b(b))
        return branch.results

    def _part_of_word(self, row: Value, first: Value, rest: Value) -> Value:
        """The first ``rest`` elements of a word, at least one; the others are 0."""
        builder, size = self.builder, self.blocking.compute_bytes
        element, word = ir.IntType(8 * size), const(I32, 0)
        for part in range(self.blocking.k_pack - 1):
            exists = builder.icmp_signed("<", const(I64, part), rest)
            index = builder.select(exists, const(I64, part), const(I64, 0))
            at = offset(builder, row, element, builder.add(first, index))
            bits = builder.zext(load(builder, at, element, size), I32)
            bits = builder.shl(bits, const(I32, 8 * size * part))
            word = builder.or_(word, builder.select(exists, bits, const(I32, 0)))
        return word

    def _made_good(self, sums: list[Value]) -> list[Value]:
        """The sums of C without what moving A has added."""
        if not self._surplus():
            return sums
        count, vectors = self._sums(), self.vectors
        surplus = sums[count:]
        return [
            self.builder.sub(total, surplus[number % vectors])
            for number, total in enumerate(sums[:count])
        ]
