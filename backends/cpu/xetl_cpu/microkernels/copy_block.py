"""Copies of a strided 2-D block that convert its elements.

The block is ``major x minor`` elements.  ``group`` majors lie together in the result:

    dst[major / group][minor][group]        rows of groups ``ldd * group`` apart

and what is outside ``valid_major x valid_minor`` becomes zero.  There are three copies:

* `emit_copy_rows`     the minor stride is 1: copies vectors (interleaves a group)
* `emit_copy_columns`  the major stride is 1: squares of 32-bit elements or groups are
                       transposed in registers
* `emit_copy_elements` any strides: element by element

Edges are masked on AVX-512; elsewhere they are copied element by element.
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
    parameters,
    vector,
)
from xetl_cpu.targets import Target

Unit = Literal["major", "minor"]

PARAMS = parameters(
    "ptr src, i64 stride_major, i64 stride_minor, i64 valid_major, i64 valid_minor, "
    "i64 major, i64 minor, ptr dst, i64 ldd"
)


@record(frozen=True)
class CopyKind:
    """What is fixed when the copy is compiled.

    Attributes:
        source: element type of the source.
        result: element type of the result.
        group: majors that lie together in the result: 1, or as many as fill 32 bits.
        minor: how many minors, if known (then a multiple of the lanes), else 0.
        unit: which stride is known to be 1.
    """

    source: str
    result: str
    group: int
    minor: int
    unit: Unit | None = None

    @property
    def name(self) -> str:
        """Part of the names of the functions made for it."""
        return f"{self.source}_{self.result}_g{self.group}_n{self.minor}"


def define_copy(
    module: Module,
    target: Target,
    kind: CopyKind,
    road: str,
    params: Sequence[tuple[str, Type]] = PARAMS,
) -> tuple[Function, Builder | None]:
    """Get the function of this name, or create it: then there is a builder too."""
    name = f"xetl_copy_{road}_{target.name}_{kind.name}"
    function, builder = begin(module, name, params)
    # Inlined into each caller it would only be compiled once more.
    function.attributes.add("noinline")
    return function, builder


def groups_of(builder: Builder, majors: Value, group: int) -> Value:
    """How many groups ``majors`` make, the last one perhaps not full."""
    if group == 1:
        return majors
    last = builder.add(majors, group - 1)
    return builder.ashr(last, group.bit_length() - 1)


def all_if(builder: Builder, condition: Value, mask: Value | int) -> Value:
    """``mask`` (or that many true lanes) if ``condition``, else no lane."""
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
        """The same with one stride a constant 1."""
        return replace(self, **{f"stride_{unit}": const(I64, 1)})

    @property
    def lanes(self) -> int:
        """Elements or groups handled at a time: of 32 bits, a register; of 64, too."""
        return self.target.lanes("f64" if self.kind.result == "f64" else "f32")

    @property
    def groups(self) -> Value:
        """Rows of the result."""
        return groups_of(self.builder, self.major, self.kind.group)

    def first_major(self, group: Value) -> Value:
        """The first major of a group."""
        if self.kind.group == 1:
            return group
        return self.builder.mul(group, self.kind.group)

    def first_of(self, major: Value) -> Value:
        """The first major of the group that ``major`` is in."""
        return self.builder.and_(major, -self.kind.group)

    def source_at(self, major: Value, minor: Value) -> Value:
        """Address of an element of the source."""
        builder = self.builder
        at = builder.mul(major, self.stride_major)
        at = builder.add(at, builder.mul(minor, self.stride_minor))
        return builder.offset(self.src, bits_of(self.kind.source), at)

    def result_at(self, group: Value, minor: Value) -> Value:
        """Address of an element (or of the first of a group) of the result."""
        builder = self.builder
        at = builder.add(builder.mul(group, self.ldd), minor)
        at = builder.mul(at, self.kind.group)
        return builder.offset(self.dst, bits_of(self.kind.result), at)

    def valid_lanes(self, minor: Value) -> Value:
        """Which of the lanes from ``minor`` on are valid."""
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
        if mask is None:
            self.builder.store(value, pointer, bits_of(self.kind.result).width // 8)
        else:
            self.builder.masked_store(value, pointer, mask)

    def copy_elements(
        self, group: Value, group_stop: Value, minor: Value, minor_stop: Value
    ) -> None:
        """Leave (group, minor) up to the stops to `emit_copy_elements`."""
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
    """Copy the element, or put a zero where it is not valid."""
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
    groups = block.groups
    touched = groups_of(builder, block.valid_major, kind.group)
    touched = builder.minimum(touched, groups)
    if target.has_masks:
        _copy_masked(block, touched)
        _clear(block, touched, groups)
    else:
        _copy_whole_vectors(block, touched)
        zero = const(I64, 0)
        block.copy_elements(touched, groups, zero, block.minor)
    builder.ret_void()
    return function


def _copy_masked(block: Block, groups: Value) -> None:
    builder, lanes = block.builder, block.lanes
    columns = [const(I64, at) for at in range(0, block.kind.minor, lanes)]
    masks = [block.valid_lanes(column) for column in columns]
    with builder.counted_loop(groups, name="row") as row:
        for column, mask in zip(columns, masks, strict=True):
            _copy_vector(block, row.index, column, mask)
        if not columns:
            _copy_long_row(block, row.index)


def _copy_long_row(block: Block, group: Value) -> None:
    """A row of unknown length: whole vectors first, then masked ones."""
    builder, lanes = block.builder, block.lanes
    whole = _whole_vectors(block)
    with builder.counted_loop(whole, step=lanes) as column:
        _copy_vector(block, group, column.index, None)
    with builder.counted_loop(block.minor, start=whole, step=lanes) as column:
        mask = block.valid_lanes(column.index)
        left = builder.sub(block.minor, column.index)
        _copy_vector(block, group, column.index, mask, builder.lane_mask(left, lanes))


def _whole_vectors(block: Block) -> Value:
    """How many minors are in vectors that are wholly valid."""
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
    """Copy ``lanes`` minors of one group; ``mask``: are valid, ``inside``: exist."""
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
    """A later major of a group: it may not exist, and is zero then."""
    builder, lanes = block.builder, block.lanes
    exists = builder.icmp_signed("<", major, block.valid_major)
    if mask is not None:
        also = all_if(builder, exists, mask)
        return block.load(block.source_at(major, minor), lanes, also)
    # The first of a group exists, wherever this is reached: read it twice.
    major = builder.select(exists, major, block.first_of(major))
    value = block.load(block.source_at(major, minor), lanes, None)
    return builder.select(exists, value, 0)


def _clear(block: Block, start: Value, stop: Value) -> None:
    """Put zeros into the groups start to stop; the target has masks."""
    builder, lanes = block.builder, block.lanes
    element = I32 if block.kind.group > 1 else bits_of(block.kind.result)
    zeros = const(vector(element, lanes), 0)
    with (
        builder.counted_loop(stop, start=start, name="zero") as row,
        builder.counted_loop(block.minor, step=lanes) as column,
    ):
        left = builder.sub(block.minor, column.index)
        inside = builder.lane_mask(left, lanes)
        block.store(zeros, block.result_at(row.index, column.index), inside)


def _copy_whole_vectors(block: Block, groups: Value) -> None:
    """Without masks: whole vectors, and what is left of the rows by elements."""
    builder = block.builder
    whole = _whole_vectors(block)
    with (
        builder.counted_loop(groups, name="row") as row,
        builder.counted_loop(whole, step=block.lanes) as column,
    ):
        _copy_vector(block, row.index, column.index, None)
    zero = const(I64, 0)
    block.copy_elements(zero, groups, whole, block.minor)
