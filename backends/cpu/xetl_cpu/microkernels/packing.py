"""Emit the packers: B into zero-padded panels, A into rows of the compute type.

The packer of B reads a few rows at a time, for all panels before the next rows, and
prefetches 16 rows ahead: memory then reads long pieces of rows, not a panel's width of
each.  Measured at 128 x 4096 x 4096, where packing takes a third of the time: 14 %
faster in f32, 7 % in bf16.

If the major stride is 1, squares are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd

from xetl.records import record
from xetl_cpu.llvm import (
    I32,
    I64,
    VOID,
    Builder,
    Function,
    Module,
    Type,
    Value,
    bits_of,
    const,
    convert,
    define,
    ir,
    mark_final,
    vector,
)
from xetl_cpu.microkernels.arithmetic import shifted
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.copy_block import (
    PARAMS,
    Block,
    CopyKind,
    Unit,
    all_if,
    define_copy,
    emit_copy_rows,
)
from xetl_cpu.microkernels.transposing import transposed
from xetl_cpu.targets import Target


def transposes(target: Target, kind: CopyKind) -> bool:
    """Whether `emit_copy_columns` can do it: groups need masks."""
    return target.has_masks or kind.group == 1


def emit_copy_columns(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy for a major stride of 1.

    A square is ``lanes`` minors by ``lanes`` groups.  The copy does not depend on
    ``kind.minor``, so both packers share it.  Rows that do not exist are skipped by a
    branch, and only ends of rows are stored with masks: on Zen 4 a masked store takes
    20 cycles (64 x 1000 in f32: 38 us, then 8).
    """
    kind = replace(kind, minor=0, unit=None)
    function, builder = define_copy(module, target, kind, "columns")
    if builder is None:
        return function
    block = Block(builder, target, kind, *function.args).with_unit_stride("major")
    lanes = block.lanes
    with (
        builder.counted_loop(block.minor, step=lanes, name="square") as minor,
        builder.counted_loop(block.groups, step=lanes, name="square") as group,
    ):
        square = _Square(block, group.index, minor.index)
        if target.has_masks:
            square.copy_masked()
        else:
            square.copy_or_leave()
    builder.ret_void()
    return function


_SQUARES_AHEAD = 2
"""Lines are fetched before they are written, so many squares ahead; see
`lowering/loops/streaming_stores.py`."""


@record(frozen=True)
class _Square:
    """One square, from (group, minor) on."""

    block: Block
    group: Value
    minor: Value

    def copy_masked(self) -> None:
        """Copy any square: invalid elements read as 0, missing ones are not stored."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        left = builder.sub(block.valid_major, block.first_major(self.group))
        in_column = builder.lane_mask(left, lanes * block.kind.group)
        self._prefetch_later()
        left = builder.sub(block.valid_minor, self.minor)
        rows = self._transpose(self._load_columns((in_column, left)))
        there = builder.sub(block.groups, self.group)
        left = builder.sub(block.minor, self.minor)
        with builder.if_else(builder.icmp_signed(">=", left, lanes)) as (yes, no):
            with yes:
                self._store_some(rows, there, None)
            with no:
                self._store_some(rows, there, builder.lane_mask(left, lanes))

    def copy_or_leave(self) -> None:
        """Copy a fully valid square without masks; copy others element by element."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        assert block.kind.group == 1, "groups need a target with masks"
        group_stop = builder.add(self.group, lanes)
        minor_stop = builder.add(self.minor, lanes)
        group_stop = builder.minimum(group_stop, block.groups)
        minor_stop = builder.minimum(minor_stop, block.minor)
        with builder.if_else(self._is_valid()) as (yes, no):
            with yes:
                rows = self._transpose(self._load_columns(None))
                for row, place in zip(rows, self._places(len(rows)), strict=True):
                    self.block.store(row, place)
            with no:
                block.copy_elements(self.group, group_stop, self.minor, minor_stop)

    def _prefetch_later(self) -> None:
        """Prefetch the rows of the square after the next one, which is below."""
        builder, lanes = self.block.builder, self.block.lanes
        group = builder.add(self.group, _SQUARES_AHEAD * lanes)
        later = replace(self, group=group)
        for place in later._places(lanes):
            builder.prefetch_to_write(place)

    def _is_valid(self) -> Value:
        """Whether the square is inside of all four bounds; a group is one major."""
        block, builder = self.block, self.block.builder
        majors = builder.minimum(block.major, block.valid_major)
        minors = builder.minimum(block.minor, block.valid_minor)
        size = const(I64, block.lanes)
        return builder.and_(
            builder.icmp_signed("<=", builder.add(self.group, size), majors),
            builder.icmp_signed("<=", builder.add(self.minor, size), minors),
        )

    def _load_columns(self, valid: tuple[Value, Value] | None) -> list[Value]:
        """Load the majors of each minor as words: groups, or one element each.

        ``valid``: a mask of the majors, and how many minors there are; None: all. Other
        minors are loads of the first one without lanes: where memory is not mapped,
        such a load takes hundreds of cycles.
        """
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        element, wide = bits_of(block.kind.source), vector(self._word, lanes)
        first = pointer = block.source_at(block.first_major(self.group), self.minor)
        columns: list[Value] = []
        for number in range(lanes):
            place, mask = pointer, None
            if valid is not None:
                exists = builder.icmp_signed("<", number, valid[1])
                place = builder.select(exists, pointer, first)
                mask = all_if(builder, exists, valid[0])
            value = block.load(place, lanes * block.kind.group, mask)
            if block.kind.group > 1:
                value = builder.bitcast(value, wide)
            elif value.type.element is not self._word:
                value = builder.zext(value, wide)
            columns.append(value)
            pointer = builder.offset(pointer, element, block.stride_minor)
        return columns

    @property
    def _word(self) -> Type:
        return I64 if self.block.kind.result == "f64" else I32

    def _transpose(self, columns: list[Value]) -> list[Value]:
        block, builder = self.block, self.block.builder
        rows = transposed(columns, self._word.width // 8, builder.shuffle)
        if block.kind.group > 1 or block.kind.result in ("f32", "f64"):
            return rows
        narrow = vector(bits_of(block.kind.result), block.lanes)
        return [builder.trunc(row, narrow) for row in rows]

    def _store_some(self, rows: list[Value], count: Value, mask: Value | None) -> None:
        """Store the first ``count`` rows, each under a branch: see the docstring."""
        builder = self.block.builder
        for number, (row, place) in enumerate(zip(rows, self._places(len(rows)))):
            with builder.if_then(builder.icmp_signed("<", number, count)):
                self.block.store(row, place, mask)

    def _places(self, count: int) -> list[Value]:
        """Return where each of ``count`` rows of the result begins."""
        block, builder = self.block, self.block.builder
        bits = bits_of(block.kind.result).width * block.kind.group
        places = [block.result_at(self.group, self.minor)]
        for _ in range(1, count):
            places.append(builder.offset(places[-1], ir.IntType(bits), block.ldd))
        return places


_ROWS = 8
"""Rows of B that are packed to all panels before the next; a multiple of ``k_pack``."""

_ROWS_FOR_TILES = 32
"""`_ROWS` if AMX computes.  Its cores have as many streams in flight, and a copy of few
rows is dominated by its start: 4096 x 4096 in bf16 at 7.7 and 12 GB/s, 512 x 512 at 25
and 28.  Prefetching later rows gains nothing there, or costs 10 %."""

_AHEAD = 16
"""How many rows ahead to prefetch."""

_ALL = 1 << 40
"""More rows than exist: contiguous columns are read to their end."""


def emit_pack(
    module: Module,
    target: Target,
    blocking: Blocking,
    operand: str,
    source: str,
    unit: Unit | None = None,
) -> Function:
    """Get or create the packer of "a" or "b"; its arguments are ``copy_block.PARAMS``.

    The block of A, majors along m and minors along k, is copied to rows ``ldd`` apart.
    That of B, majors along k, is copied to panels ``ldd`` apart, and k is padded with
    zeros to a multiple of ``k_pack``. ``dst`` is the place of the first packed k in
    panel 0, because k may be packed in parts, cut at such multiples.

    Elements are converted from the dtype ``source`` (any) to ``blocking.compute``;
    invalid elements become zero. Bytes of B may be shifted (`arithmetic.py`), and zeros
    with them. Pass the stride that is known to be 1 as ``unit``: then less is compiled,
    and that stride is not tested.
    """
    if operand == "a":
        kind = CopyKind(source, blocking.compute, 1, 0, unit)
        return emit_block_copy(module, target, kind)
    kind = CopyKind(
        *(source, blocking.compute, blocking.k_pack, blocking.nr, unit),
        shifts=blocking.arithmetic.shifts_b,
    )
    how = "_for_tiles" if blocking.uses_tiles else ""
    name = f"xetl_pack{how}_{target.name}_{kind.name}_{unit or 'any'}"
    known = module.globals.get(name)
    if known is not None:
        return known
    copy = emit_block_copy(module, target, kind)
    function = define(module, name, VOID, PARAMS)
    mark_final(function)
    src, stride_k, stride_n, k_valid, n_valid, k, n, dst, stride = function.args
    builder = Builder(function.append_basic_block("entry"))
    nr, element = const(I64, blocking.nr), bits_of(source)
    few = _ROWS_FOR_TILES if blocking.uses_tiles else _ROWS
    most = _rows_at_once(builder, stride_n, unit, few)
    panels = builder.udiv(builder.add(n, blocking.nr - 1), nr)
    with (
        builder.counted_loop(k, step=most, name="rows", is_hidden=True) as rows,
        builder.counted_loop(panels, name="panel", is_hidden=True) as panel,
    ):
        column = builder.mul(panel.index, nr)
        at = builder.add(
            builder.mul(column, stride_n), builder.mul(rows.index, stride_k)
        )
        from_ = builder.offset(src, element, at)
        if unit != "major" and not blocking.uses_tiles:
            _ask_for_later(builder, from_, element, stride_k, blocking.nr)
        at = builder.add(builder.mul(panel.index, stride), builder.mul(rows.index, nr))
        to = builder.offset(dst, bits_of(blocking.compute), at)
        length = builder.minimum(builder.sub(k, rows.index), most)
        valid = builder.maximum(builder.sub(k_valid, rows.index), 0)
        left = builder.sub(n_valid, column)
        given = [from_, stride_k, stride_n, valid, left, length, nr, to, nr]
        if unit == "minor":
            whole = _Rows(builder, target, kind, from_, stride_k, few)
            with builder.if_else(whole.are_there(valid, length, left)) as (yes, no):
                with yes:
                    whole.copy(to)
                with no:
                    builder.call(copy, given)
        else:
            builder.call(copy, given)
    builder.ret_void()
    return function


@record(frozen=True)
class _Rows:
    """``count`` rows of a panel's width, ``stride`` elements apart.

    Most rows of an operand are complete: they are copied without masks or calls.
    """

    builder: Builder
    target: Target
    kind: CopyKind
    first: Value
    stride: Value
    count: int

    @property
    def width(self) -> int:
        """Elements of a row that are moved at once: at most one register."""
        widest = max(bits_of(self.kind.source).width, bits_of(self.kind.result).width)
        return gcd(8 * self.target.vector_bytes // widest, self.kind.minor)

    def are_there(self, valid: Value, length: Value, columns: Value) -> Value:
        """Return whether all rows and columns are valid."""
        builder = self.builder
        return builder.and_(
            builder.icmp_signed(
                ">=", builder.minimum(valid, length), const(I64, self.count)
            ),
            builder.icmp_signed(">=", columns, const(I64, self.kind.minor)),
        )

    def copy(self, to: Value) -> None:
        """Copy all rows to a panel, `_ROWS` at a time."""
        builder, result = self.builder, bits_of(self.kind.result)
        with builder.counted_loop(self.count, step=_ROWS) as part:
            skip = builder.mul(part.index, self.stride)
            first = builder.offset(self.first, bits_of(self.kind.source), skip)
            at = builder.mul(part.index, self.kind.minor)
            replace(self, first=first)._copy_some(builder.offset(to, result, at))

    def _copy_some(self, to: Value) -> None:
        kind, result, at = self.kind, bits_of(self.kind.result), 0
        element = bits_of(kind.source)
        rows = [*_rows(self.builder, self.first, element, self.stride)]
        for first in range(0, _ROWS, kind.group):
            for column in range(0, kind.minor, self.width):
                group = rows[first : first + kind.group]
                parts = [self._load(row, column) for row in group]
                for value in _interleave(self.builder, parts):
                    value = shifted(self.builder, value) if kind.shifts else value
                    place = self.builder.offset(to, result, at)
                    self.builder.store(value, place, result.width // 8)
                    at += self.width

    def _load(self, row: Value, column: int) -> Value:
        """Load a piece of a row, and convert it."""
        builder, (source, result) = self.builder, (self.kind.source, self.kind.result)
        element = bits_of(source)
        pointer = builder.offset(row, element, column)
        type_ = vector(element, self.width)
        value = builder.load(pointer, typ=type_, align=element.width // 8)
        return convert(builder, value, source, result)


def _interleave(builder: Builder, rows: Sequence[Value]) -> list[Value]:
    """Interleave the elements of 1, 2 or 4 rows, into as many vectors."""
    if len(rows) == 1:
        return [*rows]
    size = rows[0].type.count
    pairs = [(lane, size + lane) for lane in range(size)]
    halves = [
        [x for pair in half for x in pair]
        for half in (pairs[: size // 2], pairs[size // 2 :])
    ]
    even, odd = (_interleave(builder, rows[part::2]) for part in (0, 1))
    return [
        builder.shuffle(a, b, half)
        for a, b in zip(even, odd, strict=True)
        for half in halves
    ]


def _rows_at_once(
    builder: Builder, stride_n: Value, unit: Unit | None, rows: int
) -> Value:
    few, everything = const(I64, rows), const(I64, _ALL)
    if unit is not None:
        return everything if unit == "major" else few
    is_row = builder.icmp_signed("==", stride_n, 1)
    return builder.select(is_row, few, everything)


def _ask_for_later(
    builder: Builder, place: Value, element: Type, stride_k: Value, width: int
) -> None:
    """Prefetch a panel's width of the rows ``_AHEAD`` later, which may not exist."""
    line = 64 * 8 // element.width
    first = builder.offset(place, element, builder.mul(stride_k, _AHEAD))
    for row in _rows(builder, first, element, stride_k):
        for column in range(0, width, line):
            builder.prefetch(builder.offset(row, element, column))


def _rows(
    builder: Builder, first: Value, element: Type, stride: Value
) -> Iterator[Value]:
    """Yield the starts of `_ROWS` rows."""
    yield (row := first)
    for _ in range(1, _ROWS):
        yield (row := builder.offset(row, element, stride))


def emit_block_copy(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy; its arguments are ``copy_block.PARAMS``.

    Strides are in source elements and may be 0 or negative; ``ldd`` is in groups.  The
    stride that ``kind.unit`` names is 1, and is not tested.
    """
    if kind.unit == "minor":
        return emit_copy_rows(module, target, kind)
    if kind.unit == "major" and transposes(target, kind):
        return emit_copy_columns(module, target, kind)
    function, builder = define_copy(module, target, kind, "any")
    if builder is not None:
        _choose(builder, Block(builder, target, kind, *function.args))
    return function


def _choose(builder: Builder, block: Block) -> None:
    """Call the fastest copy that the strides allow."""
    module, target, kind = builder.module, block.target, block.kind
    roads = [(block.stride_minor, emit_copy_rows)]
    if transposes(target, kind):
        roads.append((block.stride_major, emit_copy_columns))
    for stride, emit in roads:
        is_unit = builder.icmp_signed("==", stride, 1)
        with builder.if_then(is_unit):
            builder.call(emit(module, target, kind), [*builder.function.args])
            builder.ret_void()
    zero = const(I64, 0)
    block.copy_elements(zero, block.groups, zero, block.minor)
    builder.ret_void()
