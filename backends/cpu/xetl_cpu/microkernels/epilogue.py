"""Stores of a register tile's sums: to C in scratch, or to the user's matrix.

Parameters of the product select the destination, for all emitters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xetl.records import record
from xetl_cpu.llvm import (
    Builder,
    Function,
    Type,
    Value,
    bits_of,
    convert,
    ir,
    parameters,
    vector,
)
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.blocking import Blocking

_BLOCK_GEMM = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 panel_stride, i64 panels, ptr c, "
    "i1 accumulate, ptr later, i64 later_stride, i64 pieces"
)
OUTPUT = parameters("ptr out, i64 out_stride, i64 cols")


def block_gemm_parameters(
    out: str | None, has_ldb: bool = False
) -> tuple[tuple[str, Type], ...]:
    """Return the parameters of `emit_block_gemm`; ``out``: C may go elsewhere."""
    given = _BLOCK_GEMM + parameters("i64 ldb, i64 b_cols") if has_ldb else _BLOCK_GEMM
    return given if out is None else given + OUTPUT


@record()
class StripRows:
    """The rows of a strip; rows past the last one are replaced by the last one."""

    builder: Builder
    first: Value
    last: Value
    count: int

    def of(self, base: Value, stride: Value, element: Type) -> list[Value]:
        """Return the start of each row of a matrix; ``stride`` in elements."""
        builder = self.builder
        behind = builder.sub(self.last, self.first)
        row = builder.offset(base, element, builder.mul(self.first, stride))
        pointers = [row]
        for number in range(1, self.count):
            exists = builder.icmp_signed(">=", behind, number)
            step = builder.select(exists, stride, 0)
            row = builder.offset(row, element, step)
            pointers.append(row)
        return pointers


@record()
class Output:
    """The user's matrix: its dtype, a strip of it, and the other function arguments.

    Rows past the last one are the last one, computed and stored again.  If ``past``,
    whole lines bypass the caches: then rows start at cache lines.  In a strip of one
    row, ``compute(*context, sums, row, column)`` returns the bits that are stored;
    None: the sums are converted.
    """

    dtype: str
    rows: StripRows
    column: Value
    base: Value
    stride: Value
    cols: Value
    past: Value | None = None
    compute: Function | None = field(default=None, kw_only=True)
    context: Sequence[Value] = field(default=(), kw_only=True)

    def is_given(self, builder: Builder) -> Value:
        """Return whether there is a matrix; else C gets the sums."""
        null = ir.Constant(self.base.type, None)
        return builder.icmp_unsigned("!=", self.base, null)

    def prefetch(self, builder: Builder, blocking: Blocking, is_asked: Value) -> None:
        """Prefetch the strip if asked to, to be written when its sums are done.

        If products are short, stores of lines that are not in L2 hold up the next
        strips (weight @ pixels of 56 x 56, 8 images, on Sapphire Rapids, busy: 64 to 64
        channels 3.4 ms, then 2.3; 64 to 256 13.1, 9.4).
        """
        bits = bits_of(self.dtype)
        with builder.if_then(builder.and_(self.is_given(builder), is_asked)):
            base = builder.offset(self.base, bits, self.column)
            for row in self.rows.of(base, self.stride, bits):
                for column in range(0, blocking.nr, 8 * LINE // bits.width):
                    builder.prefetch_to_write(builder.offset(row, bits, column))


def prefetch_c(builder: Builder, blocking: Blocking, c: Value) -> None:
    """Prefetch C now: it is not needed before the k loop ends."""
    element = blocking.arithmetic.accumulator_type
    line = 64 // blocking.arithmetic.accumulator_bytes
    for row in range(blocking.mr):
        for column in range(0, blocking.nr, line):
            at = row * blocking.ldc + column
            builder.prefetch(builder.offset(c, element, at))


def with_c(
    builder: Builder, blocking: Blocking, sums: list[Value], c: Value, accumulate: Value
) -> list[Value]:
    """Return the sums, plus the values in C if ``accumulate``."""
    arithmetic = blocking.arithmetic
    aligned = arithmetic.accumulator_bytes

    def added() -> list[Value]:
        found: list[Value] = []
        for total, at in zip(sums, _places(builder, blocking, c), strict=True):
            old = builder.load(at, typ=total.type, align=aligned)
            found.append(arithmetic.add(builder, old, total))
        return found

    return builder.one_of(accumulate, (added, lambda: sums), "add")


def store_sums(
    builder: Builder, blocking: Blocking, sums: list[Value], c: Value
) -> None:
    """Store the sums to C."""
    aligned = blocking.arithmetic.accumulator_bytes
    for total, at in zip(sums, _places(builder, blocking, c), strict=True):
        builder.store(total, at, aligned)


def _places(builder: Builder, blocking: Blocking, c: Value) -> list[Value]:
    """Return the address of each sum in C."""
    element = blocking.arithmetic.accumulator_type
    return [
        builder.offset(c, element, row * blocking.ldc + number * blocking.lanes)
        for row in range(blocking.mr)
        for number in range(blocking.vectors)
    ]


def finish(
    builder: Builder, blocking: Blocking, sums: list[Value], c: Value, to: Output
) -> None:
    """Store the sums to the user's matrix if it is given, else to C."""
    is_given = to.is_given(builder)
    left = builder.sub(to.cols, to.column)
    is_whole = builder.icmp_signed(">=", left, blocking.nr)
    with builder.if_else(is_given) as (given, scratch):
        with given:
            bits = bits_of(to.dtype)
            base = builder.offset(to.base, bits, to.column)
            rows = to.rows.of(base, to.stride, bits)
            narrow = [
                _elements(builder, blocking, to, one, number * blocking.lanes)
                for number, one in enumerate(sums)
            ]
            with builder.if_else(is_whole) as (whole, part):
                with whole:
                    _store_whole_rows(builder, blocking, narrow, rows, to.past)
                with part:
                    _store_rows(builder, blocking, narrow, rows, left)
        with scratch:
            store_sums(builder, blocking, sums, c)


def _elements(
    builder: Builder, blocking: Blocking, to: Output, total: Value, lane: int
) -> Value:
    """Return the bits that are stored for a vector of sums."""
    if to.compute is None:
        source = blocking.arithmetic.accumulator
        bits = builder.bitcast(total, vector(bits_of(source), total.type.count))
        return convert(builder, bits, source, to.dtype)
    column = builder.add(to.column, lane)
    return builder.call(to.compute, [*to.context, total, to.rows.first, column])


def _store_whole_rows(
    builder: Builder,
    blocking: Blocking,
    values: list[Value],
    rows: list[Value],
    past: Value | None,
) -> None:
    """Store all columns of a strip; if ``past``, past the caches in whole lines."""
    if past is None:
        _store_rows(builder, blocking, values, rows)
        return
    with builder.if_else(past) as (streams, stays):
        with streams:
            element, vectors = values[0].type.element, blocking.vectors
            for number, row in enumerate(rows):
                parts = values[number * vectors :][:vectors]
                while len(parts) > 1 and parts[0].type.count * element.width < 8 * LINE:
                    parts = [
                        builder.shuffle(*pair, range(2 * pair[0].type.count))
                        for pair in zip(parts[::2], parts[1::2])
                    ]
                for part, value in enumerate(parts):
                    at = builder.offset(row, element, part * value.type.count)
                    builder.store_past_caches(value, at)
        with stays:
            _store_rows(builder, blocking, values, rows)


def _store_rows(
    builder: Builder,
    blocking: Blocking,
    values: list[Value],
    rows: list[Value],
    left: Value | None = None,
) -> None:
    """Store a strip; ``left``: the number of remaining columns, None: all."""
    lanes, vectors = blocking.lanes, blocking.vectors
    masks = [
        None
        if left is None
        else builder.lane_mask(builder.sub(left, number * lanes), lanes)
        for number in range(vectors)
    ]
    for index, value in enumerate(values):
        row, number = divmod(index, vectors)
        element = value.type.element
        at = builder.offset(rows[row], element, number * lanes)
        mask = masks[number]
        if mask is None:
            builder.store(value, at, element.width // 8)
        else:
            builder.masked_store(value, at, mask)
