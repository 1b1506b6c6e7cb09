"""Emit the GEMM of one block for AMX: tiles of 16 rows of 64 bytes.

A strip is up to 32 x 32 of C: four tiles of C (0 to 3), two of A (4, 5) and two of B
(6, 7); each step of k is 64 bytes of a row of A.  Every thread configures its tiles
once for a whole launch: the code that runs the thread calls `emit_configure` and
`emit_release` (`amx_tiles.py`), this module does not.  The last strip overlaps the one
before; k ends with zeros.  Of 16 rows or columns that are left only half a strip is
computed: 16 products of 197 x 512 x 197 take 11 % less.

Sums that start in scratch C are stored there.  All others leave the tiles through 4 KB
in L1; vector code adds the sums of earlier pieces of k, converts and stores.  Loading C
into tiles costs a quarter of the time on silicon.  The vector code of a strip is
interleaved with the products of the next strip, some rows in each step of k: it needs
no tile, so it runs during the products.  After all products it would fill the reorder
window of the processor, and the next products would wait: measured on silicon.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from xetl.codegen.division import or_one
from xetl.records import record
from xetl_cpu import llvm
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels import epilogue
from xetl_cpu.microkernels.amx_tiles import ROWS, TileKernel, asked_bytes
from xetl_cpu.microkernels.blocking import FEW_PANELS, Blocking

_NULL = llvm.ir.Constant(llvm.PTR, None)

_FAR = llvm.parameters("i1 past, i1 prefetch")
_CONTEXT = llvm.parameters("ptr context")
"""Parameters after `OUTPUT`: whether whole lines bypass the caches, or lines are
prefetched to be written; and what the function reads that computes the elements."""


@record(frozen=True)
class _Destination:
    """A matrix of ``dtype``; ``compute``: see `emit_amx_block_gemm`."""

    dtype: str
    compute: llvm.Function | None

    def parameters(self) -> tuple[tuple[str, llvm.Type], ...]:
        """Return the parameters of the block GEMM for it."""
        return epilogue.OUTPUT + _FAR + (_CONTEXT if self.compute else ())


def emit_amx_block_gemm(
    module: llvm.Module,
    blocking: Blocking,
    dtype: str | None = None,
    compute: llvm.Function | None = None,
) -> llvm.Function:
    """Emit `emit_block_gemm` for whole steps and at least one whole strip.

    A and ``c`` have at least ``blocking.least_rows`` rows, and ``k`` is a multiple of
    ``blocking.k_step``, padded with zeros. The thread is configured with `CONFIG`.

    With ``dtype``, the arguments for a matrix of it are followed by two i1: whole lines
    bypass the caches, or lines are prefetched to be written.
    ``compute(context, sums, row, column)`` returns the bits that are stored for a
    vector of sums, and ``context`` follows; None: the sums are converted.
    """
    out = None if dtype is None else _Destination(dtype, compute)
    arithmetic = blocking.arithmetic
    name = (
        f"xetl_block_gemm_{arithmetic.name}_{blocking.mr}x{blocking.nr}"
        f"_k{blocking.kc}m{blocking.mc}_ld{blocking.ldc}"
        f"_{dtype or 'scratch'}{'_' + compute.name if compute else ''}"
    )
    known = module.globals.get(name)
    if known is not None:
        return known
    finish_rest = _emit_finish(module, blocking, out, name + "_finish")
    given = epilogue.block_gemm_parameters(None) + (out.parameters() if out else ())
    function = llvm.define(module, name, llvm.VOID, given)
    builder = llvm.Builder(function.append_basic_block("entry"))
    before = _Before(builder, blocking, out, finish_rest)
    _emit_loops(builder, blocking, function, before)
    before.finish_rest(before.of("first"))
    builder.ret_void()
    return function


_KEPT = llvm.parameters(
    "ptr turn, ptr c, i64 ldc, i64 top, i64 first, i64 end, i64 column, i1 add"
)
"""A strip that waits: its sums are in ``turn``, which starts with row ``top``.  Rows
``first`` to ``end`` are to be stored, from ``column`` on. Sums of earlier pieces of k
are in ``c``, rows ``ldc`` apart, and are added first if ``add``."""


class _Before:
    """The strip whose sums wait in L1 to be finished; at first there is none.

    Sums have two buffers, which alternate: so stores of new sums need not wait for
    loads of the old ones.
    """

    def __init__(
        self,
        builder: llvm.Builder,
        blocking: Blocking,
        out: _Destination | None,
        function: llvm.Function,
    ) -> None:
        self.builder, self.blocking, self.out = builder, blocking, out
        self.function = function
        self.types = dict(_kept(out)) | {"free": llvm.PTR}
        self.slots = {
            name: builder.stack_array(type_, 1) for name, type_ in self.types.items()
        }
        for name, type_ in self.types.items():
            if name in ("turn", "free"):
                value = builder.stack_array(llvm.I32, blocking.mr * blocking.nr)
                value.align = LINE
            else:
                value = llvm.const(type_, 0) if type_ != llvm.PTR else _NULL
            builder.store(value, self.slots[name])

    def of(self, name: str) -> llvm.Value:
        """Load a field of the waiting strip."""
        return self.builder.load(self.slots[name], typ=self.types[name])

    def put(self, name: str, value: llvm.Value) -> None:
        """Set a field of the waiting strip."""
        self.builder.store(value, self.slots[name])

    def keep(self, values: list[llvm.Value]) -> None:
        """Set another strip, by its `_KEPT`; its sums are in the free buffer."""
        turns = [self.of("free"), self.of("turn")]
        names = [name for name in self.slots if name not in ("turn", "free")]
        for name, value in zip(
            ["turn", "free", *names], [*turns, *values], strict=True
        ):
            self.builder.store(value, self.slots[name])

    def finish_some(self, first: llvm.Value, count: llvm.Value) -> llvm.Value:
        """Add, convert and store ``count`` rows from ``first`` on, if there are any.

        Return the next row.
        """
        builder = self.builder
        end = builder.minimum(builder.add(first, count), self.of("end"))
        kept = [self.of(name) for name, _ in _kept(self.out)]
        with builder.counted_loop(end, start=first, name="row") as row:
            _finish_row(builder, self.blocking, self.out, row.index, kept)
        return builder.maximum(first, end)

    def finish_rest(self, first: llvm.Value) -> None:
        """Finish the rows from ``first`` on."""
        kept = {name: self.of(name) for name, _ in _kept(self.out)} | {"first": first}
        self.builder.call(self.function, [*kept.values()])


def _kept(out: _Destination | None) -> tuple[tuple[str, llvm.Type], ...]:
    return _KEPT + out.parameters() if out else _KEPT


def _emit_loops(
    builder: llvm.Builder, blocking: Blocking, function: llvm.Function, before: _Before
) -> None:
    """Emit the loops over blocks of rows, panels, pieces of k and strips.

    A piece of a panel (`_even_piece`) stays in L1: all strips of the block read it.
    If k is long and panels are few, k is one piece and a block is one strip: B stays in
    L2, and A is read row by row.
    """
    a, lda, rows, k, b, panel_stride, panels, _, accumulate, *rest = function.args
    size = blocking.compute_bytes
    # Zeros have to be written, too: if k is 0, one empty piece runs.
    pieces = builder.maximum(k, llvm.const(llvm.I64, 1))
    is_few = builder.icmp_signed("<=", panels, FEW_PANELS)
    # Otherwise B in L1 is read as often as A in L2: 512 x 1024 by 64 1588 to 1400
    # GFLOP/s.
    is_long = builder.icmp_signed(">", k, builder.mul(panels, blocking.kc))
    is_few = builder.and_(is_few, is_long)
    kc = builder.select(is_few, pieces, _even_piece(builder, blocking, pieces))
    mc = builder.select(
        is_few, llvm.const(llvm.I64, blocking.mr), llvm.const(llvm.I64, blocking.mc)
    )
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
        output: list[llvm.Value] = [*rest[3:]]
        if output:
            is_last = builder.icmp_signed("<=", left, kc)
            output[0] = builder.select(is_last, output[0], _NULL)
        strips = _Strips(
            a=builder.offset(a, llvm.I8, builder.mul(piece.index, size)),
            row_bytes=builder.mul(lda, size),
            rows=rows,
            b=builder.offset(b, llvm.I8, builder.mul(at, size)),
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


def _even_piece(builder: llvm.Builder, blocking: Blocking, k: llvm.Value) -> llvm.Value:
    """Return the length of a piece of k; pieces are as long, up to 5/4 of ``kc``.

    A short piece costs most, for its sums leave the tiles as those of others do. So
    much of B still stays in L1, beside A that streams (bf16 on Emerald Rapids, GFLOP/s,
    pieces of ``kc`` and these: 512 x 640 x 512 1046, 1216; 512 x 576 x 1024 947, 1190;
    1024 x 768 x 3072 1133, 1174; up to 3/2 of ``kc`` 512 x 768 x 3072 950, not 1030).
    """
    step = blocking.k_step
    most = blocking.kc * 5 // 4 // step * step
    pieces = builder.udiv(builder.add(k, most - 1), most)
    even = builder.udiv(builder.add(k, builder.sub(pieces, 1)), or_one(builder, pieces))
    return builder.and_(builder.add(even, step - 1), -step)


@record(frozen=True)
class _Strips:
    """All strips of a block for one piece of a panel.

    Attributes:
        a: the piece of k in A's first row; the next row is ``row_bytes`` further.
        rows: the number of all rows of A.
        b: the piece of the panel.
        length: the length of the piece, in elements of k.
        later: the part of B to prefetch meanwhile.
        block: the first row of the block.
        end: the row behind the last one.
        sums: where pieces of k store their sums, and the distance of rows.
        column: the first column of C in the panel.
        add: whether sums of earlier pieces exist.
        output: where the result goes; the first value is null before the last piece.
    """

    a: llvm.Value
    row_bytes: llvm.Value
    rows: llvm.Value
    b: llvm.Value
    length: llvm.Value
    later: llvm.Value
    block: llvm.Value
    end: llvm.Value
    sums: list[llvm.Value]
    column: llvm.Value
    add: llvm.Value
    output: list[llvm.Value]

    def emit(self, builder: llvm.Builder, blocking: Blocking, before: _Before) -> None:
        """Emit the loop over strips."""
        mr = llvm.const(llvm.I64, blocking.mr)
        height = builder.sub(self.end, self.block)
        is_narrow = llvm.const(llvm.I1, 0)
        if self.output:
            left = builder.sub(self.output[2], self.column)
            is_narrow = builder.icmp_signed("<=", left, blocking.lanes)
        where = (self.a, self.row_bytes)
        streams = _streams(builder, blocking, height, self.length, where)
        # Rows of the waiting strip in each step: a piece of `kc` finishes all of them.
        each = llvm.const(llvm.I64, ceil(blocking.mr * blocking.k_step / blocking.kc))
        with builder.counted_loop(
            self.end, start=self.block, step=blocking.mr, name="strip"
        ) as strip:
            # The last strip may overlap the one before: A needs no rows of zeros.
            left = builder.sub(self.rows, strip.index)
            is_low = builder.icmp_signed("<=", left, ROWS)
            needed = builder.select(is_low, llvm.const(llvm.I64, ROWS), mr)
            last = builder.maximum(builder.sub(self.rows, needed), 0)
            first = builder.minimum(strip.index, last)
            a = builder.offset(self.a, llvm.I8, builder.mul(first, self.row_bytes))
            done = builder.sub(strip.index, self.block)
            part = builder.mul(done, asked_bytes(blocking))
            part = builder.offset(self.later, llvm.I8, part)
            halves = is_low, is_narrow
            kernel = TileKernel(builder, blocking, a, self.row_bytes, part, halves)
            self._prefetch_output(builder, blocking, before, strip.index)
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

    def _prefetch_output(
        self,
        builder: llvm.Builder,
        blocking: Blocking,
        before: _Before,
        strip: llvm.Value,
    ) -> None:
        """Prefetch the strip of the user's matrix, to be written during the next."""
        if before.out is None:
            return
        base, stride, _, _, prefetch, *_ = self.output
        bits = llvm.bits_of(before.out.dtype)
        is_given = builder.icmp_unsigned("!=", base, _NULL)
        with builder.if_then(builder.and_(is_given, prefetch)):
            stop = builder.minimum(builder.add(strip, blocking.mr), self.rows)
            with builder.counted_loop(stop, start=strip, name="ahead") as row:
                at = builder.add(builder.mul(row.index, stride), self.column)
                at = builder.offset(base, bits, at)
                size = blocking.nr * bits.width // 8
                for byte in (*range(0, size, LINE), size - 1):
                    builder.prefetch_to_write(builder.offset(at, llvm.I8, byte))

    def _leave(
        self, kernel: TileKernel, before: _Before, first: llvm.Value, strip: llvm.Value
    ) -> None:
        """Store the sums of the strip from the tiles; ``first``: their first row."""
        builder, blocking = kernel.builder, kernel.blocking
        # Rows that overlap may belong to the block before, which has finished them.
        stays = builder.icmp_signed("==", first, strip)
        stays = builder.and_(stays, builder.not_(self.add))
        if self.output:  # else all is done: sums that begin in scratch are stored there
            is_scratch = builder.icmp_unsigned("==", self.output[0], _NULL)
            stays = builder.and_(stays, is_scratch)
        c, ldc = self.sums
        in_c = builder.offset(c, llvm.I32, builder.mul(first, ldc))
        to = builder.select(stays, in_c, before.of("free"))
        kernel.store(to, builder.select(stays, ldc, llvm.const(llvm.I64, blocking.nr)))
        stop = builder.minimum(builder.add(strip, blocking.mr), self.rows)
        stop = builder.select(stays, strip, stop)
        before.keep([c, ldc, first, strip, stop, self.column, self.add, *self.output])


def _next_piece(
    builder: llvm.Builder,
    blocking: Blocking,
    function: llvm.Function,
    panel: llvm.Value,
    here: tuple[llvm.Value, llvm.Value, llvm.Value],
) -> llvm.Value:
    """Return where B continues after this piece: strips prefetch it while they compute.

    After the last panel the first one follows, for other rows.  ``here``: the start of
    the piece in elements, the rest of k, and the length of a piece.
    """
    b, panel_stride, panels = function.args[4:7]
    at, left, kc = here
    after = builder.add(panel, 1)
    is_more = builder.icmp_signed("<", after, panels)
    later = builder.select(is_more, builder.mul(after, panel_stride), 0)
    goes_on = builder.icmp_signed(">", left, kc)
    behind = builder.add(at, builder.mul(kc, blocking.nr))
    later = builder.select(goes_on, behind, later)
    return builder.offset(b, llvm.I8, builder.mul(later, blocking.compute_bytes))


def _place_of_sums(
    builder: llvm.Builder,
    blocking: Blocking,
    function: llvm.Function,
    column: llvm.Value,
) -> list[llvm.Value]:
    """Return where pieces of k store their sums, and the distance of rows.

    Sums that no code reads after this product are stored panel after panel, the rows of
    a panel without gaps: a strip is 4 KB, not pieces of 128 bytes in as many pages. If
    a call does all of k, all panels use the same memory, which stays in L1.
    """
    (c, accumulate), out = function.args[7:9], function.args[12:13]
    total = blocking.arithmetic.accumulator_type
    if not out:
        return [builder.offset(c, total, column), llvm.const(llvm.I64, blocking.ldc)]
    is_whole = builder.icmp_unsigned("!=", out[0], _NULL)
    is_whole = builder.and_(is_whole, builder.not_(accumulate))
    panel = builder.mul(column, blocking.rows_padded)
    panel = builder.select(is_whole, llvm.const(llvm.I64, 0), panel)
    return [builder.offset(c, total, panel), llvm.const(llvm.I64, blocking.nr)]


def _streams(
    builder: llvm.Builder,
    blocking: Blocking,
    rows: llvm.Value,
    k: llvm.Value,
    a: tuple[llvm.Value, llvm.Value],
) -> llvm.Value:
    """Whether a block of A streams through L1; ``a``: its address and bytes of a row.

    It does not stream if its rows stay there beside the piece of a panel, because
    ``kc`` fits L1: then B comes from L2, and A must stay. In attention, where k is
    short, a step takes 90 % to 75 % of the cycles. It does not stream either if rows
    cross lines, because each line is used in two steps (4096 x 4096 by 16: 265 GFLOP/s,
    and 355).
    """
    elements = builder.mul(builder.add(rows, blocking.nr), k)
    is_long = builder.icmp_signed(">", elements, blocking.kc * blocking.nr)
    place = builder.or_(builder.ptrtoint(a[0], llvm.I64), a[1])
    apart = builder.icmp_signed("==", builder.and_(place, LINE - 1), 0)
    return builder.and_(is_long, apart)


def _emit_finish(
    module: llvm.Module, blocking: Blocking, out: _Destination | None, name: str
) -> llvm.Function:
    """Emit ``void(...)`` with `_KEPT` and perhaps an output; it finishes the rest."""
    function = llvm.define(module, name, llvm.VOID, _kept(out))
    function.attributes.add("noinline")
    kept: list[llvm.Value] = [*function.args]
    builder = llvm.Builder(function.append_basic_block("entry"))
    first, end = kept[4:6]
    with builder.counted_loop(end, start=first, name="row") as row:
        _finish_row(builder, blocking, out, row.index, kept)
    builder.ret_void()
    return function


def _finish_row(
    builder: llvm.Builder,
    blocking: Blocking,
    out: _Destination | None,
    number: llvm.Value,
    kept: list[llvm.Value],
) -> None:
    """Store the sums of row ``number`` to C in scratch, or to the user's matrix."""
    turn, c, ldc, top, _, _, column, add, *to = kept
    row_of_tile = replace(blocking, mr=1)
    total = blocking.arithmetic.accumulator_type
    at = builder.mul(builder.sub(number, top), blocking.nr)
    sums: list[llvm.Value] = [
        builder.load(
            builder.offset(turn, total, builder.add(at, lane)),
            typ=llvm.vector(total, blocking.lanes),
            align=LINE,
        )
        for lane in range(0, blocking.nr, blocking.lanes)
    ]
    c_row = builder.offset(c, total, builder.mul(number, ldc))
    sums = epilogue.with_c(builder, row_of_tile, sums, c_row, add)
    if out is None:
        epilogue.store_sums(builder, row_of_tile, sums, c_row)
    else:
        rows = epilogue.StripRows(builder, number, number, 1)
        base, stride, cols, past, _, *context = to
        where = epilogue.Output(out.dtype, rows, column, base, stride, cols, past)
        output = replace(where, compute=out.compute, context=context)
        epilogue.finish(builder, row_of_tile, sums, c_row, output)
