"""Emit the GEMM of one block: C += A @ B, with C in an f32 scratch buffer.

The loops, outermost first:

    k in chunks of kc    a panel's chunk (kc x nr) then stays in L1,
      panels of B        the rows of A (kc wide) in L2
        strips of mr rows
          micro-kernel   mr x nr accumulators; C is added at its end

A is read in place, row by row, each element broadcast.  A strip that reaches past the
last row reads that row again (its pointers are clamped) and adds the rubbish to scratch
rows nobody looks at, so one micro-kernel serves all strips.
"""

from dataclasses import dataclass

from xetl_cpu.llvm import (
    BF16,
    F32,
    I16,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Function,
    Module,
    Value,
    call_intrinsic,
    const,
    counted_loop,
    define,
    ir,
    load,
    minimum,
    offset,
    splat,
    store,
    vector,
)
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.targets import Target

__all__ = ["emit_block_gemm"]

_PARAMS = (
    ("a", PTR),
    ("lda", I64),
    ("rows", I64),
    ("k", I64),
    ("b", PTR),
    ("panel_stride", I64),
    ("panels", I64),
    ("c", PTR),
)


def emit_block_gemm(module: Module, target: Target, blocking: Blocking) -> Function:
    """Get or create ``void(a, lda, rows, k, b, panel_stride, panels, c)``.

    C[rows, panels * nr] += A[rows, k] @ B[k, panels * nr], where

    * ``a`` is row-major in ``blocking.compute``, rows ``lda`` elements apart; nothing
      outside its rows x k elements is read;
    * ``b`` holds panels ``panel_stride`` elements apart, each of the form
      [ceil(k/k_pack)][nr][k_pack] and zero where k is padded;
    * ``c`` is f32, rows ``blocking.ldc`` apart; rows up to the next multiple of ``mr``
      are overwritten with rubbish.

    Alignment is a matter of speed only: 64 bytes for ``b`` and ``c``.
    """
    name = (
        f"xetl_block_gemm_{target.name}_{blocking.compute}_{blocking.mr}x{blocking.nr}"
        f"_k{blocking.kc}u{blocking.unroll}_ld{blocking.ldc}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, _PARAMS)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _emit_loops(builder, blocking, function)
    builder.ret_void()
    return function


def _emit_loops(builder: Builder, blocking: Blocking, function: Function) -> None:
    a, lda, rows, k, b, panel_stride, panels, c = function.args
    element = ir.IntType(8 * blocking.compute_bytes)
    last_row = builder.sub(rows, const(I64, 1))
    with counted_loop(builder, k, step=blocking.kc, name="chunk") as chunk:
        length = minimum(builder, const(I64, blocking.kc), builder.sub(k, chunk.index))
        a_chunk = offset(builder, a, element, chunk.index)
        b_skip = builder.mul(chunk.index, const(I64, blocking.nr))
        b_chunk = offset(builder, b, element, b_skip)
        with counted_loop(builder, panels, name="panel") as panel:
            panel_at = builder.mul(panel.index, panel_stride)
            b_panel = offset(builder, b_chunk, element, panel_at)
            c_column = builder.mul(panel.index, const(I64, blocking.nr))
            c_panel = offset(builder, c, F32, c_column)
            with counted_loop(builder, rows, step=blocking.mr, name="strip") as strip:
                a_rows: list[Value] = []
                for row in range(blocking.mr):
                    index = builder.add(strip.index, const(I64, row))
                    index = minimum(builder, index, last_row) if row else index
                    at = builder.mul(index, lda)
                    a_rows.append(offset(builder, a_chunk, element, at))
                c_row = builder.mul(strip.index, const(I64, blocking.ldc))
                c_strip = offset(builder, c_panel, F32, c_row)
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
        pairs = blocking.k_pack == 2
        steps = builder.ashr(k, const(I64, 1)) if pairs else k
        unrolled = builder.and_(steps, const(I64, -blocking.unroll))
        zero = const(vector(F32, blocking.lanes), 0.0)
        sums = [zero] * (blocking.mr * blocking.vectors)
        start = const(I64, 0)
        sums, b_at = self._loop(sums, self.b, start, unrolled, blocking.unroll)
        if blocking.unroll > 1:
            sums, b_at = self._loop(sums, b_at, unrolled, steps, 1)
        if pairs:
            sums = self._odd_step(sums, b_at, k)
        self._add_to_c(sums)

    def _prefetch_c(self) -> None:
        """Ask for C now: it is not needed before the k loop is through."""
        line = 64 // 4
        for row in range(self.blocking.mr):
            for column in range(0, self.blocking.nr, line):
                at = row * self.blocking.ldc + column
                arguments = [offset(self.builder, self.c, F32, at)]
                # read, keep in all caches, data
                arguments += [const(I32, code) for code in (0, 3, 1)]
                call_intrinsic(self.builder, "llvm.prefetch.p0", VOID, arguments)

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
        """One rank-1 (bf16: rank-2) update; one A element is 32 bits, a pair too."""
        b_vectors = self._load_b(b)
        sums = list(sums)
        word = F32 if self.blocking.k_pack == 1 else I32
        align = self.blocking.compute_bytes
        for row, pointer in enumerate(self.a_rows):
            at = offset(
                self.builder, offset(self.builder, pointer, word, index), word, step
            )
            self._update_row(sums, row, load(self.builder, at, word, align), b_vectors)
        return sums

    def _load_b(self, b: Value) -> list[Value]:
        lanes = self.blocking.lanes
        wide = vector(F32 if self.blocking.k_pack == 1 else I32, lanes)
        return [
            load(self.builder, offset(self.builder, b, F32, number * lanes), wide, 4)
            for number in range(self.blocking.vectors)
        ]

    def _update_row(
        self, sums: list[Value], row: int, word: Value, b_vectors: list[Value]
    ) -> None:
        """Multiply B's vectors by ``word`` and add them to the sums of ``row``."""
        many = splat(self.builder, word, self.blocking.lanes)
        first = row * self.blocking.vectors
        for number, b_vector in enumerate(b_vectors, first):
            sums[number] = self._multiply_add(many, b_vector, sums[number])

    def _multiply_add(self, a: Value, b: Value, total: Value) -> Value:
        lanes = self.blocking.lanes
        if self.blocking.k_pack == 1:
            name = f"llvm.fma.v{lanes}f32"
            return call_intrinsic(self.builder, name, total.type, [a, b, total])
        pairs = vector(BF16, 2 * lanes)
        operands = [total, *(self.builder.bitcast(x, pairs) for x in (a, b))]
        name = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}"
        return call_intrinsic(self.builder, name, total.type, operands)

    def _odd_step(self, sums: list[Value], b: Value, k: Value) -> list[Value]:
        """The last element of an odd k: the other half of its pair may not be ours."""
        builder = self.builder
        before = builder.block
        odd = builder.append_basic_block("odd")
        after = builder.append_basic_block("odd.end")
        is_odd = builder.trunc(k, ir.IntType(1))
        builder.cbranch(is_odd, odd, after)
        builder.position_at_end(odd)
        b_vectors = self._load_b(b)
        added = list(sums)
        last = builder.sub(k, const(I64, 1))
        for row, pointer in enumerate(self.a_rows):
            half = load(builder, offset(builder, pointer, I16, last), I16, 2)
            self._update_row(added, row, builder.zext(half, I32), b_vectors)
        builder.branch(after)
        builder.position_at_end(after)
        merged: list[Value] = []
        for old, new in zip(sums, added, strict=True):
            phi = builder.phi(old.type)
            phi.add_incoming(old, before)
            phi.add_incoming(new, odd)
            merged.append(phi)
        return merged

    def _add_to_c(self, sums: list[Value]) -> None:
        blocking = self.blocking
        for number, total in enumerate(sums):
            row, column = divmod(number, blocking.vectors)
            at = row * blocking.ldc + column * blocking.lanes
            pointer = offset(self.builder, self.c, F32, at)
            old = load(self.builder, pointer, total.type, 4)
            store(self.builder, self.builder.fadd(old, total), pointer, 4)
