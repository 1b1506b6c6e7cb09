"""Emit the GEMM of one block for AMX: tiles of 16 rows of 64 bytes.

A strip is up to 32 x 32 of C: four tiles of C (0 to 3), two of A (4, 5) and two of B
(6, 7); each step of k is 64 bytes of a row of A.  Every thread sets its tiles once for
a whole launch: `emit_configure` and `emit_release` (`amx_tiles.py`) are called by
whoever runs the thread, never here.  The last strip overlaps the one before; k ends
with zeros.

C that begins in scratch is stored there.  All else leaves the tiles through 4 KB in L1;
vectors add what earlier pieces of k gave, convert and store.  Loading C into tiles
costs a quarter of the time on silicon.  The vectors of a strip stand between the
products of the next one, some rows in each step of k: they need no tile, so they run
while the products do.  Behind all products they fill the window of the processor, and
the next products wait: measured on silicon.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from xetl.records import record
from xetl_cpu.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Function,
    Module,
    Type,
    Value,
    const,
    define,
    ir,
    parameters,
    vector,
)
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.amx_tiles import TileKernel, asked_bytes
from xetl_cpu.microkernels.blocking import FEW_PANELS, Blocking
from xetl_cpu.microkernels.epilogue import (
    OUTPUT,
    Output,
    StripRows,
    block_gemm_parameters,
    finish,
    store_sums,
    with_c,
)

_NULL = ir.Constant(PTR, None)

_PAST = parameters("i1 past")
"""Behind `OUTPUT`: whether whole lines go past the caches."""


def emit_amx_block_gemm(
    module: Module, blocking: Blocking, out: str | None = None
) -> Function:
    """As `emit_block_gemm`, for whole steps and at least one whole strip.

    A and ``c`` have ``blocking.least_rows`` rows at least, and ``k`` is a multiple of
    ``blocking.k_step``, with zeros where there is nothing; the thread holds `CONFIG`.
    """
    arithmetic = blocking.arithmetic
    name = (
        f"xetl_block_gemm_{arithmetic.name}_{blocking.mr}x{blocking.nr}"
        f"_k{blocking.kc}m{blocking.mc}_ld{blocking.ldc}_{out or 'scratch'}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    finish_rest = _emit_finish(module, blocking, out, name + "_finish")
    given = block_gemm_parameters(out) + (_PAST if out else ())
    function = define(module, name, VOID, given)
    builder = Builder(function.append_basic_block("entry"))
    before = _Before(builder, blocking, out, finish_rest)
    _emit_loops(builder, blocking, function, before)
    before.finish_rest(before.of("first"))
    builder.ret_void()
    return function


_KEPT = parameters(
    "ptr turn, ptr c, i64 ldc, i64 top, i64 first, i64 end, i64 column, i1 add"
)
"""Of a strip that waits: its sums stand in ``turn`` from row ``top`` on.  Rows from
``first`` to ``end`` are stored, from ``column`` on; what earlier pieces of k gave is in
``c``, rows ``ldc`` apart, and is added before if ``add``."""


class _Before:
    """The strip whose sums wait in L1 to be finished; none at first.

    Sums have two places, which take turns: those that leave the tiles need not wait for
    loads of those before.
    """

    def __init__(
        self, builder: Builder, blocking: Blocking, out: str | None, function: Function
    ) -> None:
        self.builder, self.blocking, self.out = builder, blocking, out
        self.function = function
        self.types = dict(_kept(out)) | {"free": PTR}
        self.slots = {
            name: builder.stack_array(type_, 1) for name, type_ in self.types.items()
        }
        for name, type_ in self.types.items():
            if name in ("turn", "free"):
                value = builder.stack_array(I32, blocking.mr * blocking.nr)
                value.align = LINE
            else:
                value = const(type_, 0) if type_ != PTR else _NULL
            builder.store(value, self.slots[name])

    def of(self, name: str) -> Value:
        """What is known of the strip."""
        return self.builder.load(self.slots[name], typ=self.types[name])

    def put(self, name: str, value: Value) -> None:
        """Something else is known of it."""
        self.builder.store(value, self.slots[name])

    def keep(self, values: list[Value]) -> None:
        """Another one, whose sums are in the place that was free: its `_KEPT`."""
        turns = [self.of("free"), self.of("turn")]
        names = [name for name in self.slots if name not in ("turn", "free")]
        for name, value in zip(
            ["turn", "free", *names], [*turns, *values], strict=True
        ):
            self.builder.store(value, self.slots[name])

    def finish_some(self, first: Value, count: Value) -> Value:
        """Add, convert and store ``count`` rows from ``first`` on, if there are any.

        Returns the next row.
        """
        builder = self.builder
        end = builder.minimum(builder.add(first, count), self.of("end"))
        kept = [self.of(name) for name, _ in _kept(self.out)]
        with builder.counted_loop(end, start=first, name="row") as row:
            _finish_row(builder, self.blocking, self.out, row.index, kept)
        return builder.maximum(first, end)

    def finish_rest(self, first: Value) -> None:
        """The rows from ``first`` on."""
        kept = {name: self.of(name) for name, _ in _kept(self.out)} | {"first": first}
        self.builder.call(self.function, [*kept.values()])


def _kept(out: str | None) -> tuple[tuple[str, Type], ...]:
    return _KEPT + OUTPUT + _PAST if out else _KEPT


def _emit_loops(
    builder: Builder, blocking: Blocking, function: Function, before: _Before
) -> None:
    """Blocks of rows, panels, pieces of k and strips, outermost first.

    A piece of a panel, ``kc`` steps, stays in L1 while all strips of the block meet it.
    A long k of few panels is one piece, and a strip a block: they stay in L2, and A is
    read row by row.
    """
    a, lda, rows, k, b, panel_stride, panels, _, accumulate, *rest = function.args
    size = blocking.compute_bytes
    # Zeros have to be written, too: one piece of nothing where there is no k.
    pieces = builder.maximum(k, const(I64, 1))
    is_few = builder.icmp_signed("<=", panels, FEW_PANELS)
    # Else B is met in L1 as often as A is in L2: 512 x 1024 by 64 1588 to 1400 GFLOP/s.
    is_long = builder.icmp_signed(">", k, builder.mul(panels, blocking.kc))
    is_few = builder.and_(is_few, is_long)
    kc = builder.select(is_few, pieces, const(I64, blocking.kc))
    mc = builder.select(is_few, const(I64, blocking.mr), const(I64, blocking.mc))
    with (
        builder.counted_loop(rows, step=mc, name="block") as block,
        builder.counted_loop(panels, name="panel") as panel,
        builder.counted_loop(pieces, step=kc, name="piece") as piece,
    ):
        end = builder.minimum(builder.add(block.index, mc), rows)
        left = builder.sub(k, piece.index)
        is_first = builder.icmp_signed("==", piece.index, 0)
        at = builder.mul(panel.index, panel_stride)
        at = builder.add(at, builder.mul(piece.index, blocking.nr))
        column = builder.mul(panel.index, blocking.nr)
        output: list[Value] = [*rest[3:]]
        if output:
            is_last = builder.icmp_signed("<=", left, kc)
            output[0] = builder.select(is_last, output[0], _NULL)
        strips = _Strips(
            a=builder.offset(a, I8, builder.mul(piece.index, size)),
            row_bytes=builder.mul(lda, size),
            rows=rows,
            b=builder.offset(b, I8, builder.mul(at, size)),
            length=builder.minimum(kc, left),
            later=_next_piece(builder, blocking, function, panel.index, (at, left, kc)),
            block=block.index,
            end=end,
            sums=_place_of_sums(builder, blocking, function, column),
            column=column,
            add=builder.or_(accumulate, builder.not_(is_first)),
            output=output,
        )
        strips.emit(builder, blocking, before)


@record(frozen=True)
class _Strips:
    """All strips of a block that meet one piece of a panel.

    Attributes:
        a: the piece of k of A's first row; ``row_bytes`` on is the next row.
        rows: of A, all of them.
        b: the piece of the panel.
        length: of the piece, in elements of k.
        later: what of B is asked for meanwhile.
        block: the first row of the block.
        end: the row behind the last.
        sums: where pieces of k leave their sums, and the distance of rows.
        column: of C, where the panel begins.
        add: whether there are sums of earlier pieces.
        output: where the result goes; the first is null if it is not one yet.
    """

    a: Value
    row_bytes: Value
    rows: Value
    b: Value
    length: Value
    later: Value
    block: Value
    end: Value
    sums: list[Value]
    column: Value
    add: Value
    output: list[Value]

    def emit(self, builder: Builder, blocking: Blocking, before: _Before) -> None:
        """The loop over strips."""
        mr = const(I64, blocking.mr)
        last_whole = builder.maximum(builder.sub(self.rows, mr), 0)
        height = builder.sub(self.end, self.block)
        where = (self.a, self.row_bytes)
        streams = _streams(builder, blocking, height, self.length, where)
        # Of the strip before in each step: all of them in a whole piece.
        each = const(I64, ceil(blocking.mr * blocking.k_step / blocking.kc))
        with builder.counted_loop(
            self.end, start=self.block, step=blocking.mr, name="strip"
        ) as strip:
            # The last strip may overlap the one before: A needs no rows of zeros.
            first = builder.minimum(strip.index, last_whole)
            a = builder.offset(self.a, I8, builder.mul(first, self.row_bytes))
            part = builder.mul(
                builder.sub(strip.index, self.block), asked_bytes(blocking)
            )
            part = builder.offset(self.later, I8, part)
            kernel = TileKernel(builder, blocking, a, self.row_bytes, part)
            kernel.begin()
            with builder.if_else(streams) as ways:
                for way, load in zip(ways, ("tileloaddt164", "tileloadd64")):
                    with way:
                        known = [before.of("first")]
                        with kernel.steps(self.b, self.length, load, known) as loop:
                            loop.next.append(before.finish_some(loop.values[0], each))
                        before.put("first", loop.results[0])
            done = before.of("first")
            with builder.if_then(builder.icmp_signed("<", done, before.of("end"))):
                before.finish_rest(done)
            self._leave(kernel, before, first, strip.index)

    def _leave(
        self, kernel: TileKernel, before: _Before, first: Value, strip: Value
    ) -> None:
        """The sums of the strip leave the tiles; ``first``: the row they begin with."""
        builder, blocking = kernel.builder, kernel.blocking
        # Rows that overlap may be of the block before, which is through with them.
        stays = builder.icmp_signed("==", first, strip)
        stays = builder.and_(stays, builder.not_(self.add))
        if self.output:  # else all is done: sums that begin in scratch are stored there
            is_scratch = builder.icmp_unsigned("==", self.output[0], _NULL)
            stays = builder.and_(stays, is_scratch)
        c, ldc = self.sums
        in_c = builder.offset(c, I32, builder.mul(first, ldc))
        to = builder.select(stays, in_c, before.of("free"))
        kernel.store(to, builder.select(stays, ldc, const(I64, blocking.nr)))
        stop = builder.minimum(builder.add(strip, blocking.mr), self.rows)
        stop = builder.select(stays, strip, stop)
        known = [c, ldc, first, strip, stop, self.column, self.add, *self.output]
        before.keep(known)


def _next_piece(
    builder: Builder,
    blocking: Blocking,
    function: Function,
    panel: Value,
    here: tuple[Value, Value, Value],
) -> Value:
    """Where B goes on behind a piece: strips ask for it while they compute.

    Behind the last panel comes the first, for other rows.  ``here``: where the piece
    begins, in elements, how much of k is left, and how much a piece is.
    """
    b, panel_stride, panels = function.args[4:7]
    at, left, kc = here
    after = builder.add(panel, 1)
    is_more = builder.icmp_signed("<", after, panels)
    later = builder.select(is_more, builder.mul(after, panel_stride), 0)
    goes_on = builder.icmp_signed(">", left, kc)
    behind = builder.add(at, builder.mul(kc, blocking.nr))
    later = builder.select(goes_on, behind, later)
    return builder.offset(b, I8, builder.mul(later, blocking.compute_bytes))


def _place_of_sums(
    builder: Builder, blocking: Blocking, function: Function, column: Value
) -> list[Value]:
    """Where pieces of k leave their sums, and the distance of rows.

    Sums that nobody needs behind this product lie panel after panel, the rows of one
    without gaps: 4 KB of a strip, not pieces of 128 bytes in as many pages. Where a
    call does all of k, all panels have one place, which stays in L1.
    """
    (c, accumulate), out = function.args[7:9], function.args[12:13]
    total = blocking.arithmetic.accumulator_type
    if not out:
        return [builder.offset(c, total, column), const(I64, blocking.ldc)]
    is_whole = builder.icmp_unsigned("!=", out[0], _NULL)
    is_whole = builder.and_(is_whole, builder.not_(accumulate))
    panel = builder.mul(column, blocking.rows_padded)
    panel = builder.select(is_whole, const(I64, 0), panel)
    return [builder.offset(c, total, panel), const(I64, blocking.nr)]


def _streams(
    builder: Builder, blocking: Blocking, rows: Value, k: Value, a: tuple[Value, Value]
) -> Value:
    """Whether a block of A streams through L1; ``a``: where, and bytes of a row.

    Not if its rows stay there beside the piece of a panel, for ``kc`` is what L1 keeps:
    then it is B that comes from L2, and A must not leave. In attention, where k is
    short, a step takes 90 % to 75 % of the cycles. Nor if rows lie across lines: each
    line is for two steps (4096 x 4096 by 16: 265 GFLOP/s, and 355).
    """
    elements = builder.mul(builder.add(rows, blocking.nr), k)
    is_long = builder.icmp_signed(">", elements, blocking.kc * blocking.nr)
    place = builder.or_(builder.ptrtoint(a[0], I64), a[1])
    apart = builder.icmp_signed("==", builder.and_(place, LINE - 1), 0)
    return builder.and_(is_long, apart)


def _emit_finish(
    module: Module, blocking: Blocking, out: str | None, name: str
) -> Function:
    """``void(...)`` with `_KEPT`, and where they go if anywhere: all rows left."""
    function = define(module, name, VOID, _kept(out))
    function.attributes.add("noinline")
    kept: list[Value] = [*function.args]
    builder = Builder(function.append_basic_block("entry"))
    first, end = kept[4:6]
    with builder.counted_loop(end, start=first, name="row") as row:
        _finish_row(builder, blocking, out, row.index, kept)
    builder.ret_void()
    return function


def _finish_row(
    builder: Builder,
    blocking: Blocking,
    out: str | None,
    number: Value,
    kept: list[Value],
) -> None:
    """The sums of row ``number`` go on: to C in scratch, or to the user."""
    turn, c, ldc, top, _, _, column, add, *to = kept
    row_of_tile = replace(blocking, mr=1)
    total = blocking.arithmetic.accumulator_type
    at = builder.mul(builder.sub(number, top), blocking.nr)
    sums: list[Value] = [
        builder.load(
            builder.offset(turn, total, builder.add(at, lane)),
            typ=vector(total, blocking.lanes),
            align=LINE,
        )
        for lane in range(0, blocking.nr, blocking.lanes)
    ]
    c_row = builder.offset(c, total, builder.mul(number, ldc))
    sums = with_c(builder, row_of_tile, sums, c_row, add)
    if out is None:
        store_sums(builder, row_of_tile, sums, c_row)
    else:
        rows = StripRows(builder, number, number, 1)
        output = Output(out, rows, column, *to)
        finish(builder, row_of_tile, sums, c_row, output)
