"""Emit the GEMM of one block: C = A @ B or C += A @ B for one run of k.

The loops, outermost first:

    blocks of mc rows    of A, k wide, they stay in L2
      panels of B        k x nr, read from L2 or L1 by all strips
        strips of mr rows (outside of the panels if these stay in L1)
          micro-kernel   mr x nr accumulators

A is read in place, row by row: ``mr`` words of A are broadcast one after the other, and
multiplied by the vectors of B, which are loaded once for all of them.  A strip that
reaches past the last row computes that row again (its pointers are clamped), so one
micro-kernel serves all strips.

C is scratch, in the type of the accumulators.  If the caller does not accumulate, C
need not even be zero.  The last run of k can store from registers to the user's matrix:
then a product of one run never touches scratch.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import field, replace
from functools import partial

from xetl.imports import late
from xetl.records import record
from xetl_cpu.llvm import (
    I32,
    I64,
    Builder,
    Function,
    Module,
    Type,
    Value,
    begin,
    const,
    ir,
    mark_final,
    vector,
)
from xetl_cpu.microkernels import epilogue
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.prefetch import (
    Ahead,
    Strip,
    next_operands,
    or_next_pieces,
    prefetch_row,
)
from xetl_cpu.microkernels.surplus import Surplus
from xetl_cpu.targets import Target

__all__ = ["emit_block_gemm"]

_emit_amx_block_gemm = late("xetl_cpu.microkernels.amx", "emit_amx_block_gemm")

_FOLLOWED = 16
"""Steps of k from which on hardware prefetches a result that is written in order.

[measured] Emerald Rapids, f32, GFLOP/s, by instructions and by hardware: 4000 x 8 x
1000 65, 49; 4000 x 16 x 2048 93, 102; 4096 x 32 x 512 132, 148.
"""

_loop = partial(Builder.counted_loop, is_hidden=True)


def emit_block_gemm(
    module: Module,
    target: Target,
    blocking: Blocking,
    out: str | None = None,
    is_made: bool = False,
    compute: Function | None = None,
    has_ldb: bool = False,
) -> Function:
    """Get or create the block GEMM.

    ``void(a, lda, rows, k, b, panel_stride, panels, c, accumulate, later,
    later_stride, pieces)``:

    C[rows, panels * nr] = A[rows, k] @ B[k, panels * nr], where

    * ``a`` is row-major in ``blocking.compute``, rows ``lda`` elements apart; nothing
      outside its rows x k elements is read;
    * ``b`` holds panels ``panel_stride`` elements apart, each of the form
      [ceil(k/k_pack)][nr][k_pack] and zero where k is padded; its bytes are shifted if
      the arithmetic says so;
    * ``c`` holds accumulators, rows ``blocking.ldc`` apart; rows up to the next
      multiple of ``mr`` are overwritten with rubbish;
    * if ``accumulate`` (i1), what is in ``c`` is added;
    * ``later`` is null, or the start of ``pieces`` pieces of memory, ``later_stride``
      bytes apart, that will be packed next: they are prefetched, never read.

    With ``has_ldb``, ``ldb, b_cols`` follow: the elements from one row of a panel to
    the next, so that ``b`` may be a matrix in place, and the columns that may be read
    of its last row. If the target has no masks, all columns of panels are read.

    With ``out``, a matrix's dtype, ``out, out_stride, cols`` follow: if the pointer is
    not null, the result goes there instead, with rows ``out_stride`` elements apart,
    and only ``cols`` columns of it.  Then ``c`` holds no results.

    If ``is_made``, the program has computed A, and nothing is packed next: memory
    behind A is not needed.  With 16 registers strips then prefetch nothing, which saves
    1 to 2 % of attention's time.  This was not measured with 32 registers.

    Alignment only affects speed: 64 bytes for ``b`` and ``c``.  AMX needs more, see
    `emit_amx_block_gemm`.
    """
    if blocking.uses_tiles:
        return _emit_amx_block_gemm(module, blocking, out, compute)
    name = (
        f"xetl_block_gemm_{target.name}_{blocking.arithmetic.name}"
        f"_{blocking.mr}x{blocking.nr}"
        f"_m{blocking.mc}u{blocking.unroll}_ld{blocking.ldc}_{out or 'scratch'}"
    )
    last = _last_rows(target, blocking)
    name += f"_l{last}" if last else ""
    asks = blocking.asks_ahead and not (is_made and target.vector_registers < 32)
    name += "_alone" if blocking.asks_ahead > asks else ""
    name += "_ldb" if has_ldb else ""
    parameters = epilogue.block_gemm_parameters(out, has_ldb)
    function, builder = begin(module, name, parameters)
    if builder is None:
        return function
    mark_final(function)
    _emit_loops(builder, target, blocking, function, out, last, asks, has_ldb)
    builder.ret_void()
    return function


def _emit_loops(
    builder: Builder,
    target: Target,
    blocking: Blocking,
    function: Function,
    out: str | None,
    last: int,
    asks: bool,
    has_ldb: bool,
) -> None:
    a, lda, rows, k, b, panel_stride, panels, c, accumulate, *rest = function.args
    later, output = (rest[0], rest[1], rest[2]), rest[3:]
    ldb, b_cols = (output.pop(0), output.pop(0)) if has_ldb else (None, None)
    element = ir.IntType(8 * blocking.compute_bytes)
    total = blocking.arithmetic.accumulator_type
    last_row, shifts = builder.sub(rows, 1), blocking.arithmetic.shifts_b
    room = Surplus.room(builder, blocking) if shifts else None
    by_rows, is_asked = _order(builder, target, blocking, k, panels)
    with _loop(builder, rows, step=blocking.mc, name="block") as block:
        end = builder.minimum(builder.add(block.index, blocking.mc), rows)
        for strip, panel in _strips(
            builder, blocking.mr, (block.index, end), panels, by_rows
        ):
            b_panel = builder.offset(b, element, builder.mul(panel, panel_stride))
            column = builder.mul(panel, blocking.nr)
            c_panel = builder.offset(c, total, column)
            c_strip = builder.offset(c_panel, total, builder.mul(strip, blocking.ldc))
            strip_rows = epilogue.StripRows(builder, strip, last_row, blocking.mr)
            with builder.if_then(accumulate):
                epilogue.prefetch_c(builder, blocking, c_strip)
            a_rows = strip_rows.of(a, lda, element)
            b_left = builder.sub(b_cols, column) if b_cols is not None else None
            tile = RegisterTile(
                *(builder, blocking, a_rows, b_panel, blocking.vectors, ldb),
                columns=b_left if target.has_masks else None,
            )
            if asks:
                who = Strip(builder, blocking, strip, block.index, panel)
                tile.ahead = or_next_pieces(
                    who, next_operands(who, function.args, ldb), later, (rows, panels)
                )
            left = builder.sub(output[-1], column) if output else None
            to = None
            if out is not None:
                to = epilogue.Output(out, strip_rows, column, *output)
                to.prefetch(builder, blocking, is_asked)
            sums = _sums(tile, k, left, (builder.sub(end, strip), last))
            if room is not None:
                at = builder.offset(room, I32, builder.sub(strip, block.index))
                surplus = Surplus(builder, blocking, a_rows, at)
                with builder.if_then(builder.icmp_signed("==", panel, 0)):
                    surplus.compute(k)
                sums = surplus.subtracted_from(sums)
            sums = epilogue.with_c(builder, blocking, sums, c_strip, accumulate)
            if to is None:
                epilogue.store_sums(builder, blocking, sums, c_strip)
            else:
                epilogue.finish(builder, blocking, sums, c_strip, to)


def _order(
    builder: Builder, target: Target, blocking: Blocking, k: Value, panels: Value
) -> tuple[Value, Value]:
    """Return whether panels of a strip follow each other, and whether to prefetch C.

    Otherwise strips of a panel follow each other. Panel after panel the result is
    written in the order of memory, but they have to stay in an eighth of L2, from which
    B streams anyway, or in L1 (f32, GFLOP/s, on Emerald Rapids strip after strip, in
    this order, and MKL's: 256 x 64 x 25,088 95, 131 and 91; 2048 x 48 x 2048 102, 134,
    99; 3072 x 128 x 3072 141, 152, 137).
    """
    size = builder.mul(builder.mul(k, panels), blocking.nr * blocking.compute_bytes)
    machine = target.machine
    most = max(machine.l2.size // 8, machine.l1.size * 2 // 3)
    by_rows, by_panels = (builder.icmp_signed(op, size, most) for op in ("<=", ">"))
    is_quick = builder.icmp_signed("<", k, _FOLLOWED)
    return by_rows, builder.or_(by_panels, is_quick)


def _strips(
    builder: Builder,
    mr: int,
    rows: tuple[Value, Value],
    panels: Value,
    by_rows: Value,
) -> Generator[tuple[Value, Value]]:
    """Loop over the strips of a block: yield the first row and the panel of each."""
    start, end = rows
    strips = builder.udiv(builder.add(builder.sub(end, start), mr - 1), mr)
    outer, inner = (
        builder.select(by_rows, *both) for both in ((strips, panels), (panels, strips))
    )
    with (
        _loop(builder, outer, name="outer") as one,
        _loop(builder, inner, name="strip") as other,
    ):
        strip = builder.select(by_rows, one.index, other.index)
        panel = builder.select(by_rows, other.index, one.index)
        yield builder.add(start, builder.mul(strip, mr)), panel


def _last_rows(target: Target, blocking: Blocking) -> int:
    """Return the rows of a block behind its strips, if separate code saves 2 %; else 0.

    This was not measured with 32 registers.
    """
    block_m, mr = blocking.block_m, blocking.mr
    rows = block_m % mr
    saves = mr < block_m <= 50 * (mr - rows) and 3 * rows <= 2 * mr
    is_plain = target.vector_registers < 32 and blocking.vectors > 1
    return rows if saves and is_plain else 0


def _sums(
    tile: RegisterTile,
    k: Value,
    cols: Value | None,
    rows: tuple[Value, int],
) -> list[Value]:
    """Return the sums of a strip; only of half of the vectors or few rows, if it ends.

    At 1000 x 1000 x 1000 the last panel has 8 of 32 columns. 64 rows are 10 strips of 6
    and one of 4, not 11.
    """
    builder, blocking, half = tile.builder, tile.blocking, tile.vectors // 2
    once = replace(blocking, unroll=1)  # one panel, or strip: less to compile
    few = replace(tile, blocking=once, ahead=[])
    ways = list[tuple[str, Value, RegisterTile]]()
    if cols is not None and half:
        is_narrow = builder.icmp_signed("<=", cols, half * blocking.lanes)
        ways.append(("narrow", is_narrow, replace(few, vectors=half)))
    below, last = rows
    if last:
        is_low = builder.icmp_signed("<=", below, last)
        ways.append(("low", is_low, replace(few, a_rows=tile.a_rows[:last])))
    return _first_of(ways, tile, k)


def _first_of(
    ways: list[tuple[str, Value, RegisterTile]], tile: RegisterTile, k: Value
) -> list[Value]:
    """Return the sums of the first tile whose condition holds, else of ``tile``."""
    if not ways:
        return tile.sums(k)
    (name, is_so, few), *others = ways
    rest = partial(_first_of, others, tile, k)
    return tile.builder.one_of(is_so, (partial(few.sums, k), rest), name)


@record()
class RegisterTile:
    """The sums over k of a[mr, k] * b[k, nr], which stay in registers.

    Attributes:
        a_rows: the first element of each row of A.
        b: a panel of B.
        vectors: how many vectors of each row are computed; the panel may have more.
        ldb: elements from one row of the panel to the next; None: it has no gaps.
        ahead: memory to prefetch, once in the body of the loop.
        columns: those that may be read of B's last row; None: all of the panel.
    """

    builder: Builder
    blocking: Blocking
    a_rows: list[Value]
    b: Value
    vectors: int
    ldb: Value | None = None
    ahead: list[Ahead] = field(default_factory=list[Ahead])
    columns: Value | None = None

    def sums(self, k: Value) -> list[Value]:
        """Return the sums over ``k`` row by row, and zeros for vectors not computed.

        Rows that are not computed repeat the last one.
        """
        few, last = self._few_sums(k), len(self.a_rows) - 1
        zeros = [const(self.lanes_of_c, 0)] * (self.blocking.vectors - self.vectors)
        starts = [min(n, last) * self.vectors for n in range(self.blocking.mr)]
        return [
            total for at in starts for total in (*few[at : at + self.vectors], *zeros)
        ]

    def _few_sums(self, k: Value) -> list[Value]:
        builder, blocking = self.builder, self.blocking
        k_pack = blocking.k_pack
        steps = builder.ashr(k, k_pack.bit_length() - 1)
        ends = const(ir.IntType(1), 0)
        if self.columns is not None:
            ends = builder.icmp_signed("<", self.columns, blocking.nr)
            ends = builder.and_(ends, builder.icmp_signed(">", k, 0))
            steps = builder.sub(steps, builder.zext(ends, I64))
        unrolled = builder.and_(steps, -blocking.unroll)
        count = self._sums()
        sums = [const(self.lanes_of_c, 0)] * (count * blocking.sets)
        start = const(I64, 0)
        sums, b_at = self._loop(sums, self.b, start, unrolled, blocking.unroll)
        sums = self._together(sums, count)
        if blocking.unroll > 1:
            rest = replace(self, ahead=[])
            sums, b_at = rest._loop(sums, b_at, unrolled, steps, 1)
        if self.columns is not None:
            last = partial(self._last_row, sums, b_at, steps)
            return builder.one_of(ends, (last, lambda: sums), "row")
        if k_pack > 1:
            sums = self._last_step(sums, b_at, k)
        return sums

    @property
    def lanes_of_c(self) -> Type:
        """LLVM's type of a vector of sums."""
        return vector(self.blocking.arithmetic.accumulator_type, self.blocking.lanes)

    def _sums(self) -> int:
        return len(self.a_rows) * self.vectors

    def _together(self, sums: list[Value], count: int) -> list[Value]:
        """Add all sets of accumulators up to one set of ``count``."""
        add = self.blocking.arithmetic.add
        total = sums[:count]
        for start in range(count, len(sums), count):
            more = sums[start : start + count]
            total = [add(self.builder, *pair) for pair in zip(total, more, strict=True)]
        return total

    def _loop(
        self, sums: list[Value], b: Value, start: Value, stop: Value, unroll: int
    ) -> tuple[list[Value], Value]:
        """Add the steps start to stop; return the sums and the place behind in B.

        With several sets of sums, the steps use the sets in turn. The place in a B
        whose rows have an unknown distance is hidden: strength reduction would make a
        pointer for each step, for which loads come early, and go through the stack
        (five of 16 in 6 x 64; 1024 cubed on Sapphire Rapids 2 % slower).
        """
        blocking = self.blocking
        element = ir.IntType(8 * blocking.compute_bytes)
        distance = blocking.nr * blocking.k_pack if self.ldb is None else self.ldb
        with _loop(
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
            count = self._sums()
            word = blocking.arithmetic.word
            rows: list[Value] = [
                self.builder.offset(row, word, loop.index) for row in self.a_rows
            ]
            for step in range(unroll):
                first, rest = sums[:count], sums[count:]
                if self.ldb is not None and blocking.asks_ahead:
                    prefetch_row(self.builder, blocking, b, self.ldb)
                sums = [*rest, *self._step(first, b, rows, step)]
                b = self.builder.offset(b, element, distance)
            if self.ldb is not None:
                b = self.builder.hidden(b)
            loop.next = [*sums, b, *places]
        return loop.results[: len(sums)], loop.results[len(sums)]

    def _step(
        self,
        sums: list[Value],
        b: Value,
        rows: list[Value],
        step: int,
        masks: Sequence[Value] = (),
    ) -> list[Value]:
        """Emit one update of rank ``k_pack``; a word of A holds as many elements."""
        word, aligned = self.blocking.arithmetic.word, self.blocking.compute_bytes
        places = [self.builder.offset(row, word, step) for row in rows]
        words: list[Value] = [
            self.builder.load(at, typ=word, align=aligned) for at in places
        ]
        return self._update(sums, words, self._load_b(b, masks))

    def _load_b(self, b: Value, masks: Sequence[Value] = ()) -> list[Value]:
        builder, lanes = self.builder, self.blocking.lanes
        type_ = vector(self.blocking.arithmetic.word, lanes)
        starts = range(0, self.vectors * lanes, lanes)
        places = [builder.offset(b, self.blocking.arithmetic.word, at) for at in starts]
        if not masks:
            aligned = self.blocking.compute_bytes
            return [builder.load(at, typ=type_, align=aligned) for at in places]
        loads = zip(places, masks)
        return [builder.masked_load(at, type_, mask) for at, mask in loads]

    def _update(
        self, sums: list[Value], words: list[Value], b_vectors: list[Value]
    ) -> list[Value]:
        """Multiply B's vectors by each row's word and add them to the row's sums."""
        builder, arithmetic = self.builder, self.blocking.arithmetic
        updated: list[Value] = []
        for row, word in enumerate(words):
            many = builder.splat(word, self.blocking.lanes)
            first = row * self.vectors
            for total, b in zip(sums[first:], b_vectors):
                updated.append(arithmetic.multiply_add(builder, many, b, total))
        return updated

    def _last_row(self, sums: list[Value], b: Value, step: Value) -> list[Value]:
        """Add the last step: the columns behind those of B may be outside of memory."""
        builder, blocking = self.builder, self.blocking
        masks = [
            builder.lane_mask(builder.sub(self.columns, at), blocking.lanes)
            for at in range(0, blocking.nr, blocking.lanes)
        ]
        word = blocking.arithmetic.word
        rows = [builder.offset(row, word, step) for row in self.a_rows]
        return self._step(sums, b, rows, 0, masks)

    def _last_step(self, sums: list[Value], b: Value, k: Value) -> list[Value]:
        """Add the end of k if it fills no word: memory behind it may not be ours."""
        builder = self.builder
        rest = builder.and_(k, self.blocking.k_pack - 1)
        is_some = builder.icmp_signed(">", rest, 0)

        def with_rest() -> list[Value]:
            first = builder.sub(k, rest)
            words = [self._part_of_word(row, first, rest) for row in self.a_rows]
            return self._update(sums, words, self._load_b(b))

        return builder.one_of(is_some, (with_rest, lambda: sums), "rest")

    def _part_of_word(self, row: Value, first: Value, rest: Value) -> Value:
        """Load the first ``rest`` elements of a word, at least one; others are 0."""
        builder, size = self.builder, self.blocking.compute_bytes
        element, word = ir.IntType(8 * size), const(I32, 0)
        for part in range(self.blocking.k_pack - 1):
            exists = builder.icmp_signed("<", part, rest)
            index = builder.select(exists, const(I64, part), 0)
            at = builder.offset(row, element, builder.add(first, index))
            bits = builder.zext(builder.load(at, typ=element, align=size), I32)
            bits = builder.shl(bits, 8 * size * part)
            word = builder.or_(word, builder.select(exists, bits, 0))
        return word
