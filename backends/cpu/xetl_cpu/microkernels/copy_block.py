"""Copies of a strided 2-D block that convert its elements.

The block is ``major x minor`` elements.  ``group`` majors are adjacent in the result:

    dst[major / group][minor][group]        rows of groups ``ldd * group`` apart

Elements outside ``valid_major x valid_minor`` become zero.  There are three copies:

* `emit_copy_rows`     the minor stride is 1: copies vectors (interleaves a group)
* `emit_copy_columns`  the major stride is 1: squares of 32-bit elements or groups are
                       transposed in registers
* `emit_copy_elements` any strides: element by element

Edges are masked on AVX-512, and copied element by element on other targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

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
    bits_of,
    const,
    convert,
    mark_final,
    parameters,
    vector,
)
from xetl_cpu.microkernels.arithmetic import shifted
from xetl_cpu.targets import Target

Unit = Literal["major", "minor"]

PARAMS = parameters(
    "ptr src, i64 stride_major, i64 stride_minor, i64 valid_major, i64 valid_minor, "
    "i64 major, i64 minor, ptr dst, i64 ldd"
)


@record(frozen=True)
class CopyKind:
    """The facts that are fixed when the copy is compiled.

    Attributes:
        source: element type of the source.
        result: element type of the result.
        group: majors that are adjacent in the result: 1, or as many as fill 32 bits.
        minor: the number of minors if known (then a multiple of the lanes), else 0.
        unit: the stride that is known to be 1.
        shifts: whether 128 is added to each byte of the result, modulo 256.
    """

    source: str
    result: str
    group: int
    minor: int
    unit: Unit | None = None
    shifts: bool = False

    @property
    def name(self) -> str:
        """A part of the names of functions for it."""
        how = f"{self.source}_{self.result}" + "_shifted" * self.shifts
        return f"{how}_g{self.group}_n{self.minor}"


def define_copy(
    module: Module,
    target: Target,
    kind: CopyKind,
    road: str,
    params: Sequence[tuple[str, Type]] = PARAMS,
) -> tuple[Function, Builder | None]:
    """Get or create the function of this name; the builder is None if it existed."""
    name = f"xetl_copy_{road}_{target.name}_{kind.name}"
    function, builder = begin(module, name, params)
    # Inlined, it would be compiled again in each caller.
    function.attributes.add("noinline")
    mark_final(function)
    return function, builder


def groups_of(builder: Builder, majors: Value, group: int) -> Value:
    """Return the number of groups of ``majors``; the last one may be partial."""
    if group == 1:
        return majors
    last = builder.add(majors, group - 1)
    return builder.ashr(last, group.bit_length() - 1)


def all_if(builder: Builder, condition: Value, mask: Value | int) -> Value:
    """Return ``mask`` (or that many true lanes) if ``condition``, else no lane."""
    if isinstance(mask, int):
        return builder.splat(condition, mask)
    return builder.select(condition, mask, 0)


@record(frozen=True)
class Block:
    """The arguments of a copy, with the arithmetic on them."""

    builder: Builder
    target: Target
    kind: CopyKind
    src: Value
    stride_major: Value
    stride_minor: Value
    valid_major: Value
    valid_minor: Value
    major: Value
    minor: Value
    dst: Value
    ldd: Value

    def with_unit_stride(self, unit: Unit) -> Block:
        """Return the block with a constant 1 as one stride."""
        return replace(self, **{f"stride_{unit}": const(I64, 1)})

    @property
    def lanes(self) -> int:
        """Elements or groups at a time: as many as f32 (or f64) in a register."""
        return self.target.lanes("f64" if self.kind.result == "f64" else "f32")

    @property
    def groups(self) -> Value:
        """The rows of the result."""
        return groups_of(self.builder, self.major, self.kind.group)

    def first_major(self, group: Value) -> Value:
        """Return the first major of a group."""
        if self.kind.group == 1:
            return group
        return self.builder.mul(group, self.kind.group)

    def source_at(self, major: Value, minor: Value) -> Value:
        """Return the address of an element of the source."""
        builder, element = self.builder, bits_of(self.kind.source)
        row = builder.offset(self.src, element, builder.mul(major, self.stride_major))
        return builder.offset(row, element, builder.mul(minor, self.stride_minor))

    def result_at(self, group: Value, minor: Value) -> Value:
        """Return the address of an element (or of a group's first) of the result."""
        builder, element = self.builder, bits_of(self.kind.result)
        size = self.kind.group
        row = builder.mul(builder.mul(group, self.ldd), size)
        row = builder.offset(self.dst, element, row)
        return builder.offset(row, element, builder.mul(minor, size))

    def valid_lanes(self, minor: Value) -> Value:
        """Return a mask of the valid lanes from ``minor`` on."""
        left = self.builder.sub(self.valid_minor, minor)
        return self.builder.lane_mask(left, self.lanes)

    def load(self, pointer: Value, lanes: int, mask: Value | None) -> Value:
        """Load and convert ``lanes`` source elements."""
        element = bits_of(self.kind.source)
        wide = vector(element, lanes)
        if mask is None:
            bits = self.builder.load(pointer, typ=wide, align=element.width // 8)
        else:
            bits = self.builder.masked_load(pointer, wide, mask)
        return convert(self.builder, bits, self.kind.source, self.kind.result)

    def store(self, value: Value, pointer: Value, mask: Value | None = None) -> None:
        """Store result elements, or whole groups as wider elements."""
        if self.kind.shifts:
            value = shifted(self.builder, value)
        if mask is None:
            self.builder.store(value, pointer, bits_of(self.kind.result).width // 8)
        else:
            self.builder.masked_store(value, pointer, mask)

    def copy_elements(
        self, group: Value, group_stop: Value, minor: Value, minor_stop: Value
    ) -> None:
        """Call `emit_copy_elements` for the part from (group, minor) to the stops."""
        function = emit_copy_elements(self.builder.module, self.target, self.kind)
        given = [self.src, self.stride_major, self.stride_minor]
        given += [self.valid_major, self.valid_minor, self.dst, self.ldd]
        given += [group, group_stop, minor, minor_stop]
        self.builder.call(function, given)


_BOUNDS = parameters("i64 group, i64 group_stop, i64 minor, i64 minor_stop")


def emit_copy_elements(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy of the part from (group, minor) up to the stops."""
    kind = replace(kind, minor=0, unit=None)
    params = (*PARAMS[:5], *PARAMS[7:], *_BOUNDS)
    function, builder = define_copy(module, target, kind, "elements", params)
    if builder is None:
        return function
    none = const(I64, 0)
    values: list[Value] = list(function.args)
    given = [*values[:5], none, none, *values[5:7]]
    group0, group_stop, minor0, minor_stop = values[7:]
    block = Block(builder, target, kind, *given)
    with (
        builder.counted_loop(group_stop, start=group0) as group,
        builder.counted_loop(minor_stop, start=minor0) as minor,
    ):
        for part in range(kind.group):
            _copy_element(block, group.index, minor.index, part)
    builder.ret_void()
    return function


def _copy_element(block: Block, group: Value, minor: Value, part: int) -> None:
    """Copy the element if it is valid, else write a zero."""
    builder = block.builder
    major = builder.add(block.first_major(group), part)
    is_valid = builder.and_(
        builder.icmp_signed("<", major, block.valid_major),
        builder.icmp_signed("<", minor, block.valid_minor),
    )
    before = builder.block
    with builder.if_then(is_valid):
        value = block.load(block.source_at(major, minor), 1, None)
        inside = builder.block
    phi = builder.phi(value.type)
    phi.add_incoming(const(value.type, 0), before)
    phi.add_incoming(value, inside)
    block.store(phi, builder.offset(block.result_at(group, minor), value.type, part))


def emit_copy_rows(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy for a minor stride of 1: it copies vectors."""
    kind = replace(kind, unit=None)
    if not target.has_masks:
        kind = replace(kind, minor=0)
    function, builder = define_copy(module, target, kind, "rows")
    if builder is None:
        return function
    block = Block(builder, target, kind, *function.args).with_unit_stride("minor")
    (_copy_masked if target.has_masks else _copy_whole_vectors)(block)
    builder.ret_void()
    return function


def _copy_masked(block: Block) -> None:
    """Copy rows with masks; store zeros for the rows behind the valid ones.

    These rows are not loaded with an empty mask: from memory that is not mapped, each
    such load takes hundreds of cycles.
    """
    builder, lanes = block.builder, block.lanes
    columns = [const(I64, at) for at in range(0, block.kind.minor, lanes)]
    masks = [block.valid_lanes(column) for column in columns]
    touched = _touched(block)
    with builder.counted_loop(touched, name="row", is_hidden=True) as row:
        for column, mask in zip(columns, masks, strict=True):
            _copy_vector(block, row.index, column, mask)
        if not columns:
            _copy_long_row(block, row.index)
    element = I32 if block.kind.group > 1 else bits_of(block.kind.result)
    zeros = const(vector(element, lanes), 0)
    with (
        builder.counted_loop(block.groups, start=touched, name="row") as row,
        builder.counted_loop(block.minor, step=lanes) as column,
    ):
        inside = builder.lane_mask(builder.sub(block.minor, column.index), lanes)
        block.store(zeros, block.result_at(row.index, column.index), inside)


def _touched(block: Block) -> Value:
    """Return the number of groups with a valid element."""
    builder, group = block.builder, block.kind.group
    touched = groups_of(builder, block.valid_major, group)
    touched = builder.minimum(touched, block.groups)
    is_any = builder.icmp_signed(">", block.valid_minor, 0)
    return builder.select(is_any, builder.maximum(touched, 0), 0)


def _copy_long_row(block: Block, group: Value) -> None:
    """Copy a row of unknown length: whole vectors first, then masked ones."""
    builder, lanes = block.builder, block.lanes
    whole = _whole_vectors(block)
    with builder.counted_loop(whole, step=lanes, is_hidden=True) as column:
        _copy_vector(block, group, column.index, None)
    with builder.counted_loop(block.minor, start=whole, step=lanes) as column:
        mask = block.valid_lanes(column.index)
        left = builder.sub(block.minor, column.index)
        _copy_vector(block, group, column.index, mask, builder.lane_mask(left, lanes))


def _whole_vectors(block: Block) -> Value:
    """Return how many minors are in vectors that are completely valid."""
    builder = block.builder
    both = builder.minimum(block.minor, block.valid_minor)
    whole = builder.and_(both, -block.lanes)
    return builder.select(builder.icmp_signed("<", whole, 0), 0, whole)


def _copy_vector(
    block: Block,
    group: Value,
    minor: Value,
    mask: Value | None,
    inside: Value | None = None,
) -> None:
    """Copy ``lanes`` minors of a group; ``mask``: valid lanes, ``inside``: existing."""
    builder, lanes = block.builder, block.lanes
    major = block.first_major(group)
    woven = block.load(block.source_at(major, minor), lanes, mask)
    if block.kind.group > 1:
        wide, bits = vector(I32, lanes), bits_of(block.kind.result).width
        woven = builder.zext(woven, wide)
        for part in range(1, block.kind.group):
            also = _load_part(block, builder.add(major, part), minor, mask)
            also = builder.shl(builder.zext(also, wide), const(wide, bits * part))
            woven = builder.or_(woven, also)
    block.store(woven, block.result_at(group, minor), inside)


def _load_part(block: Block, major: Value, minor: Value, mask: Value | None) -> Value:
    """Load a later major of a group, or zeros if the major does not exist."""
    builder, lanes = block.builder, block.lanes
    exists = builder.icmp_signed("<", major, block.valid_major)
    if mask is not None:
        also = all_if(builder, exists, mask)
        return block.load(block.source_at(major, minor), lanes, also)
    # The first major of a group always exists here: it is read instead.
    major = builder.select(exists, major, builder.and_(major, -block.kind.group))
    value = block.load(block.source_at(major, minor), lanes, None)
    return builder.select(exists, value, 0)


def _copy_whole_vectors(block: Block) -> None:
    """Copy whole vectors without masks, and the rest of the rows by elements."""
    builder, groups, touched = block.builder, block.groups, _touched(block)
    whole = _whole_vectors(block)
    with (
        builder.counted_loop(touched, name="row", is_hidden=True) as row,
        builder.counted_loop(whole, step=block.lanes, is_hidden=True) as column,
    ):
        _copy_vector(block, row.index, column.index, None)
    zero = const(I64, 0)
    block.copy_elements(zero, touched, whole, block.minor)
    block.copy_elements(touched, groups, zero, block.minor)
