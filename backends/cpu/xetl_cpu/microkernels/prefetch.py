"""Prefetches of a strip while it computes: memory that is needed next, into L2.

If hardware prefetches are not far enough ahead, the first strip of a panel of B waits
for L3, and the first panel of a block waits for rows of A.  So each strip prefetches
its share of the next panel, and one row of the next block of rows.  Measured on
prepacked f32 with a busy L3: 3 % at 1000, 2 % at 2048, nothing at 1024. After the last
panel the first one follows, for the next block. After the last block the next run of k
follows, if there is one: 1024 x 4096 x 1024 gains 3 % by that.

A program that packs B itself has its panels in L2.  There each strip prefetches two
pieces (rows of B, or columns if these are contiguous) of what is packed next: memory
works while the program computes, and packing reads L2.  Measured at 128 x 4096 x 4096
in f32: 5 % on one thread, 5 % on two; bf16 gains 1 % and nothing. If strips are so few
that most of it would not be prefetched, it costs 3 %.

A prefetch costs one load slot of six that are idle in a step of k, once in the body of
the loop.  If a step has fewer lines than strips to share them, a line is prefetched
several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from xetl.codegen.division import or_one
from xetl.records import record
from xetl_cpu.llvm import I64, Builder, Value, const, ir
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking

_BYTE = ir.IntType(8)

_MOST_PIECES = 4
"""Pieces to pack next for each strip, at most; two of them are prefetched."""


_K_AHEAD = 8
"""Bytes of k from which on a row of a B in place is prefetched into L1.

They are two rows of f32, one of f64. Only strips after the first find rows in L2, and
the first one makes hardware prefetch what is behind them: the next panel. Emerald
Rapids, f32, GFLOP/s without and with it: 64 x 1000 x 1008 131 and 142, 1024 x 1056 135
and 143; MKL does the same. Further rows are not in reach of an address of x86, and LLVM
then keeps vectors of B on the stack.
"""


@record(frozen=True)
class Ahead:
    """Memory to prefetch: ``stride`` bytes each time, in at most ``lines`` lines."""

    place: Value
    stride: Value | int
    lines: int = 1

    def ask(self, builder: Builder, place: Value) -> Value:
        """Prefetch the part of some steps of k; return the place for the next steps."""
        for line in range(self.lines):
            builder.prefetch_to_l2(builder.offset(place, _BYTE, line * LINE))
        return builder.offset(place, _BYTE, self.stride)


@record(frozen=True)
class Strip:
    """The strip that prefetches: its first row, its block of rows, its panel."""

    builder: Builder
    blocking: Blocking
    row: Value
    block: Value
    panel: Value

    def number_in_panel(self) -> Value:
        """Return its number among the strips of this block and panel."""
        in_block = self.builder.sub(self.row, self.block)
        return self.builder.udiv(in_block, self.blocking.mr)

    def number(self, panels: Value) -> Value:
        """Return its number among all strips, in the order of computation."""
        builder, blocking = self.builder, self.blocking
        before = builder.mul(self.block, panels)
        in_block = builder.mul(self.panel, blocking.mc)
        before = builder.add(before, builder.add(in_block, self.row))
        return builder.udiv(builder.sub(before, self.block), blocking.mr)


def next_operands(
    strip: Strip, arguments: Sequence[Value], ldb: Value | None
) -> tuple[Ahead, Ahead]:
    """Return the strip's share of the next panel, and a row of the next block of A.

    After the last block the next run of k follows, if A's rows are long enough for one.
    Otherwise these are the rows of the program that usually runs next.

    Args:
        arguments: of `emit_block_gemm`: A, its distance of rows, rows, k, B, and so on.
        ldb: the distance of rows of B, if they may lie in place.
    """
    builder, blocking = strip.builder, strip.blocking
    a, lda, rows, k, b, panel_stride, panels, *_ = arguments
    element = ir.IntType(8 * blocking.compute_bytes)
    behind = builder.add(strip.block, blocking.mc)
    goes_on = builder.and_(
        builder.icmp_signed(">=", behind, rows),
        builder.icmp_signed(">=", lda, builder.mul(k, 2)),
    )
    following = builder.select(goes_on, k, 0)

    after = builder.add(strip.panel, 1)
    is_last = builder.icmp_signed("==", after, panels)
    first = builder.mul(following, blocking.nr)
    at = builder.select(is_last, first, builder.mul(after, panel_stride))
    size = blocking.nr * blocking.k_pack * blocking.compute_bytes
    share = ceil(size * blocking.mr / blocking.mc)
    steps = builder.mul(strip.number_in_panel(), builder.udiv(k, blocking.k_pack))
    panel = builder.offset(b, element, at)
    panel = builder.offset(panel, _BYTE, builder.mul(steps, share))

    row = builder.urem(strip.panel, blocking.mr)
    row = builder.add(row, builder.sub(strip.row, strip.block))
    row = builder.add(row, builder.select(goes_on, 0, behind))
    at = builder.add(builder.mul(row, lda), following)
    each_time = share * blocking.unroll
    ahead = Ahead(panel, each_time, ceil(each_time / LINE))
    if ldb is not None:
        beside = builder.mul(after, panel_stride)
        below = builder.and_(is_last, goes_on)
        beside = builder.select(below, builder.mul(k, ldb), beside)
        place = builder.offset(b, element, beside)
        other = _in_place(strip, place, ldb)
        is_packed = builder.icmp_signed("==", ldb, blocking.nr)
        ahead = Ahead(
            builder.select(is_packed, panel, other.place),
            builder.select(is_packed, const(I64, each_time), other.stride),
            max(ahead.lines, other.lines),
        )
    return ahead, Ahead(builder.offset(a, element, at), _words(blocking))


def _in_place(strip: Strip, panel: Value, ldb: Value) -> Ahead:
    """Return the strip's share of the next panel, if B lies in place.

    Hardware prefetches no rows that are far apart. Each strip takes a pair of lines of
    one of the rows that a body of the loop multiplies, until a few strips have taken
    all. The panel behind the last one is that of the next run of k, or that of the
    program that usually runs next.
    (64 x 64 x 3136 in f32, Sapphire Rapids, B in L3: 392 us without, 266 with.)
    """
    builder, blocking = strip.builder, strip.blocking
    word, number = blocking.compute_bytes, strip.number_in_panel()
    lines = ceil(blocking.nr * word / LINE)
    pair = min(2, lines)
    parts = ceil(lines / pair)
    row = builder.urem(builder.udiv(number, parts), blocking.unroll)
    skip = builder.mul(builder.urem(number, parts), pair * LINE // word)
    skip = builder.add(skip, LINE // word - 1)  # as in `prefetch_row`
    at = builder.add(builder.mul(row, ldb), skip)
    place = builder.offset(panel, ir.IntType(8 * word), at)
    return Ahead(place, builder.mul(ldb, blocking.unroll * word), pair)


def prefetch_row(builder: Builder, blocking: Blocking, row: Value, ldb: Value) -> None:
    """Prefetch the row of B's panel that is `_K_AHEAD` behind ``row``."""
    word = blocking.compute_bytes
    place = builder.offset(row, ir.IntType(8 * _K_AHEAD), ldb)
    # The previous panel has the first line of a row that begins amid one.
    for line in range(0, blocking.nr * word, LINE):
        builder.prefetch(builder.offset(place, _BYTE, line + LINE - word))


def or_next_pieces(
    strip: Strip,
    usual: tuple[Ahead, Ahead],
    later: tuple[Value, Value, Value],
    extents: tuple[Value, Value],
) -> list[Ahead]:
    """Return two pieces of what is packed next if that is known, else ``usual``.

    Args:
        usual: two things to prefetch.
        later: the start of the pieces, their distance in bytes, their number.
        extents: rows and panels of the product.
    """
    builder, blocking = strip.builder, strip.blocking
    start, stride, pieces = later
    rows, panels = extents
    mr = const(I64, blocking.mr)
    strips = builder.udiv(builder.add(rows, builder.sub(mr, 1)), mr)
    strips = builder.mul(strips, panels)
    is_given = builder.icmp_unsigned("!=", start, ir.Constant(start.type, None))
    most = builder.mul(strips, _MOST_PIECES)
    is_given = builder.and_(is_given, builder.icmp_signed("<=", pieces, most))
    piece = builder.mul(strip.number(panels), pieces)
    piece = builder.mul(builder.udiv(piece, or_one(builder, strips)), stride)
    first = builder.offset(start, _BYTE, piece)
    second = builder.offset(first, _BYTE, stride)
    # A row of B's tile may have fewer words than a chunk has steps.
    row = blocking.block_n * blocking.compute_bytes * blocking.k_pack
    of_piece = min(blocking.unroll * ceil(row / blocking.chunk), _words(blocking))
    found: list[Ahead] = []
    for place, other in zip((first, second), usual, strict=True):
        stride = other.stride
        if stride != of_piece:
            stride = builder.select(is_given, const(I64, of_piece), stride)
        place = builder.select(is_given, place, other.place)
        found.append(Ahead(place, stride, other.lines))
    return found


def _words(blocking: Blocking) -> int:
    """Bytes of A (and at most as many of a row of B) for one body of the loop."""
    return blocking.unroll * blocking.k_pack * blocking.compute_bytes
