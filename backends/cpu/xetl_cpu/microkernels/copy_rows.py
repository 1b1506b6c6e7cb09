"""The row road: the minor stride is 1, so vectors are copied as they are."""

from __future__ import annotations

from dataclasses import replace

from xetl_cpu.llvm import (
    I32,
    I64,
    Builder,
    Function,
    Module,
    Value,
    const,
    counted_loop,
    lane_mask,
    minimum,
    vector,
)
from xetl_cpu.microkernels.copy_block import (
    Block,
    CopyKind,
    all_if,
    define_copy,
    emit_copy_elements,
    groups_of,
)
from xetl_cpu.microkernels.elements import bits_of
from xetl_cpu.targets import Target


def emit_copy_rows(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy for a minor stride of 1."""
    kind = replace(kind, unit=None)
    if not target.has_masks:
        kind = replace(kind, minor=0)
    function, builder = define_copy(module, target, kind, "rows")
    if builder is None:
        return function
    block = Block(builder, target, kind, *function.args).with_unit_stride("minor")
    groups = block.groups
    touched = groups_of(builder, block.valid_major, kind.group)
    touched = minimum(builder, touched, groups)
    if target.has_masks:
        _copy_masked(block, touched)
        _clear(block, touched, groups)
    else:
        _copy_whole_vectors(block, touched)
        zero = const(I64, 0)
        block.copy_elements(emit_copy_elements, touched, groups, zero, block.minor)
    builder.ret_void()
    return function


def _copy_masked(block: Block, groups: Value) -> None:
    builder, lanes = block.builder, block.lanes
    columns = [const(I64, at) for at in range(0, block.kind.minor, lanes)]
    masks = [block.valid_lanes(column) for column in columns]
    with counted_loop(builder, groups, name="row") as row:
        for column, mask in zip(columns, masks, strict=True):
            _copy_vector(block, row.index, column, mask)
        if not columns:
            _copy_long_row(block, row.index)


def _copy_long_row(block: Block, group: Value) -> None:
    """A row of unknown length: whole vectors first, then masked ones."""
    builder, lanes = block.builder, block.lanes
    whole = _whole_vectors(block)
    with counted_loop(builder, whole, step=lanes) as column:
        _copy_vector(block, group, column.index, None)
    with counted_loop(builder, block.minor, start=whole, step=lanes) as column:
        mask = block.valid_lanes(column.index)
        left = builder.sub(block.minor, column.index)
        _copy_vector(block, group, column.index, mask, lane_mask(builder, left, lanes))


def _whole_vectors(block: Block) -> Value:
    """How many minors are in vectors that are wholly valid."""
    builder = block.builder
    both = minimum(builder, block.minor, block.valid_minor)
    return _not_below_0(builder, builder.and_(both, const(I64, -block.lanes)))


def _not_below_0(builder: Builder, value: Value) -> Value:
    is_negative = builder.icmp_signed("<", value, const(I64, 0))
    return builder.select(is_negative, const(I64, 0), value)


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
            also = _load_part(block, builder.add(major, const(I64, part)), minor, mask)
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
    return builder.select(exists, value, const(value.type, 0))


def _clear(block: Block, start: Value, stop: Value) -> None:
    """Put zeros into the groups start to stop; the target has masks."""
    builder, lanes = block.builder, block.lanes
    element = I32 if block.kind.group > 1 else bits_of(block.kind.result)
    zeros = const(vector(element, lanes), 0)
    with (
        counted_loop(builder, stop, start=start, name="zero") as row,
        counted_loop(builder, block.minor, step=lanes) as column,
    ):
        left = builder.sub(block.minor, column.index)
        inside = lane_mask(builder, left, lanes)
        block.store(zeros, block.result_at(row.index, column.index), inside)


def _copy_whole_vectors(block: Block, groups: Value) -> None:
    """Without masks: whole vectors, and what is left of the rows by elements."""
    builder = block.builder
    whole = _whole_vectors(block)
    with (
        counted_loop(builder, groups, name="row") as row,
        counted_loop(builder, whole, step=block.lanes) as column,
    ):
        _copy_vector(block, row.index, column.index, None)
    zero = const(I64, 0)
    block.copy_elements(emit_copy_elements, zero, groups, whole, block.minor)
