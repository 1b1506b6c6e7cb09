"""Emit the GEMM of one block: C += A @ B, with C in a scratch buffer.

The loops, outermost first:

    k in runs of kc
      blocks of mc rows    kc wide, they stay in L2
        panels of B        kc x nr, read from L2 or L1 by all strips
          strips of mr rows
            micro-kernel   mr x nr accumulators; C is added at its end

A is read in place, row by row, each element broadcast.  A strip that reaches past the
last row reads that row again (its pointers are clamped) and adds the rubbish to scratch
rows nobody looks at, so one micro-kernel serves all strips.
"""

from dataclasses import dataclass

from xetl_cpu.llvm import (
    I32,
    I64,
    VOID,
    Builder,
    Function,
    Module,
    Type,
    Value,
    const,
    counted_loop,
    define,
    ir,
    load,
    minimum,
    offset,
    prefetch,
    splat,
    store,
    vector,
)
from xetl_cpu.microkernels.amx import emit_amx_block_gemm
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.parameters import BLOCK_GEMM_PARAMETERS
from xetl_cpu.targets import Target

__all__ = ["emit_block_gemm"]


def emit_block_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, panel_stride, panels, c)``.

    C[rows, panels * nr] += A[rows, k] @ B[k, panels * nr], where

    * ``a`` is row-major in ``blocking.compute``, rows ``lda`` elements apart; nothing
      outside its rows x k elements is read;
    * ``b`` holds panels ``panel_stride`` elements apart, each of the form
      [ceil(k/k_pack)][nr][k_pack] and zero where k is padded;
    * ``c`` holds accumulators, rows ``blocking.ldc`` apart; rows up to the next
      multiple of ``mr`` are overwritten with rubbish.

    Alignment is a matter of speed only: 64 bytes for ``b`` and ``c``.  With AMX more
    is asked for, see `emit_amx_block_gemm`.
    """
    if blocking.arithmetic.instruction == "amx":
        return emit_amx_block_gemm(module, blocking)
    name = (
        f"xetl_block_gemm_{target.name}_{blocking.arithmetic.name}"
        f"_{blocking.mr}x{blocking.nr}"
        f"_k{blocking.kc}m{blocking.mc}u{blocking.unroll}_ld{blocking.ldc}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, BLOCK_GEMM_PARAMETERS)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit_loops(builder, blocking, function)
    builder.ret_void()
    return function


def _emit_loops(builder: Builder, blocking: Blocking, function: Function) -> None:
    a, lda, rows, k, b, panel_stride, panels, c = function.args
    element = ir.IntType(8 * blocking.compute_bytes)
    total = blocking.arithmetic.accumulator_type
    last_row = builder.sub(rows, const(I64, 1))
    with (
        counted_loop(builder, k, step=blocking.kc, name="run") as run,
        counted_loop(builder, rows, step=blocking.mc, name="block") as block,
        counted_loop(builder, panels, name="panel") as panel,
    ):
        length = minimum(builder, const(I64, blocking.kc), builder.sub(k, run.index))
        end = builder.add(block.index, const(I64, blocking.mc))
        end = minimum(builder, end, rows)
        a_run = offset(builder, a, element, run.index)
        b_at = builder.mul(run.index, const(I64, blocking.nr))
        b_at = builder.add(b_at, builder.mul(panel.index, panel_stride))
        b_panel = offset(builder, b, element, b_at)
        c_column = builder.mul(panel.index, const(I64, blocking.nr))
        c_panel = offset(builder, c, total, c_column)
        with counted_loop(
            builder, end, start=block.index, step=blocking.mr, name="strip"
        ) as strip:
            a_rows: list[Value] = []
            for row in range(blocking.mr):
                index = builder.add(strip.index, const(I64, row))
                index = minimum(builder, index, last_row) if row else index
                at = builder.mul(index, lda)
                a_rows.append(offset(builder, a_run, element, at))
            c_row = builder.mul(strip.index, const(I64, blocking.ldc))
            c_strip = offset(builder, c_panel, total, c_row)
            kernel = _MicroKernel(builder, blocking, a_rows, b_panel, c_strip)
            kernel.emit(length)


@dataclass
class _MicroKernel:
    """The register tile: c[mr, nr] += sum over k of a[mr, k] * b[k, nr]."""

    builder: Builder
    blocking: Blocking
    a_rows: list[Value]
    b: Value
    c: Value

    def emit(self, k: Value) -> None:
        builder, blocking = self.builder, self.blocking
        self._prefetch_c()
        k_pack = blocking.k_pack
        steps = builder.ashr(k, const(I64, k_pack.bit_length() - 1))
        unrolled = builder.and_(steps, const(I64, -blocking.unroll))
        sums = [const(self._lanes_of_c(), 0)] * (self._sums() + self._surplus())
        start = const(I64, 0)
        sums, b_at = self._loop(sums, self.b, start, unrolled, blocking.unroll)
        if blocking.unroll > 1:
            sums, b_at = self._loop(sums, b_at, unrolled, steps, 1)
        if k_pack > 1:
            sums = self._last_step(sums, b_at, k)
        self._add_to_c(self._made_good(sums))

    def _lanes_of_c(self) -> Type:
        return vector(self.blocking.arithmetic.accumulator_type, self.blocking.lanes)

    def _sums(self) -> int:
        return self.blocking.mr * self.blocking.vectors

    def _surplus(self) -> int:
        """Sums beside those of C, see `Arithmetic.surplus`."""
        return self.blocking.vectors if self.blocking.arithmetic.moves_a else 0

    def _prefetch_c(self) -> None:
        """Ask for C now: it is not needed before the k loop is through."""
        element = self.blocking.arithmetic.accumulator_type
        line = 64 // self.blocking.arithmetic.accumulator_bytes
        for row in range(self.blocking.mr):
            for column in range(0, self.blocking.nr, line):
                at = row * self.blocking.ldc + column
                prefetch(self.builder, offset(self.builder, self.c, element, at))

    def _loop(
        self, sums: list[Value], b: Value, start: Value, stop: Value, unroll: int
    ) -> tuple[list[Value], Value]:
        """Add the steps start to stop; returns the sums and where B goes on."""
        blocking = self.blocking
        step_size = blocking.nr * blocking.k_pack
        element = ir.IntType(8 * blocking.compute_bytes)
        with counted_loop(
            self.builder,
            stop,
            start=start,
            step=unroll,
            carried=[*sums, b],
            name=f"k{unroll}",
        ) as loop:
            *sums, b = loop.values
            for step in range(unroll):
                b_step = offset(self.builder, b, element, step * step_size)
                sums = self._step(sums, b_step, loop.index, step)
            loop.next = [*sums, offset(self.builder, b, element, unroll * step_size)]
        return loop.results[:-1], loop.results[-1]

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
            for number in range(self.blocking.vectors)
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
            first = row * self.blocking.vectors
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
        before = builder.block
        some = builder.append_basic_block("rest")
        after = builder.append_basic_block("rest.end")
        is_some = builder.icmp_signed(">", rest, const(I64, 0))
        builder.cbranch(is_some, some, after)
        builder.position_at_end(some)
        first = builder.sub(k, rest)
        words = [self._part_of_word(row, first, rest) for row in self.a_rows]
        added = self._update(sums, words, self._load_b(b))
        builder.branch(after)
        builder.position_at_end(after)
        merged: list[Value] = []
        for old, new in zip(sums, added, strict=True):
            phi = builder.phi(old.type)
            phi.add_incoming(old, before)
            phi.add_incoming(new, some)
            merged.append(phi)
        return merged

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
        count, vectors = self._sums(), self.blocking.vectors
        surplus = sums[count:]
        return [
            self.builder.sub(total, surplus[number % vectors])
            for number, total in enumerate(sums[:count])
        ]

    def _add_to_c(self, sums: list[Value]) -> None:
        blocking, arithmetic = self.blocking, self.blocking.arithmetic
        aligned = arithmetic.accumulator_bytes
        for number, total in enumerate(sums):
            row, column = divmod(number, blocking.vectors)
            at = row * blocking.ldc + column * blocking.lanes
            element = arithmetic.accumulator_type
            pointer = offset(self.builder, self.c, element, at)
            old = load(self.builder, pointer, total.type, aligned)
            new = arithmetic.add(self.builder, old, total)
            store(self.builder, new, pointer, aligned)
