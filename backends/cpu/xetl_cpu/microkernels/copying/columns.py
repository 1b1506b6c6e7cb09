"""The column road: the major stride is 1, so squares are transposed in registers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xetl_cpu.llvm import (
    I32,
    I64,
    Function,
    Module,
    Value,
    const,
    counted_loop,
    lane_mask,
    minimum,
    offset,
    vector,
)
from xetl_cpu.microkernels.copying.block import Block, CopyKind, all_if, define_copy
from xetl_cpu.microkernels.copying.elements import emit_copy_elements
from xetl_cpu.microkernels.elements import bits_of
from xetl_cpu.microkernels.transpose import transpose_square
from xetl_cpu.targets import Target

__all__ = ["emit_copy_columns", "transposes"]


def transposes(target: Target, kind: CopyKind) -> bool:
    """Whether this road is there: 32 bits or less each, and masks for groups."""
    return kind.result != "f64" and (target.has_masks or kind.group == 1)


def emit_copy_columns(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy for a major stride of 1.

    A square is ``lanes`` minors by ``lanes`` groups.  It does not depend on
    ``kind.minor``, so both packers share it.
    """
    kind = replace(kind, minor=0, unit=None)
    function, builder = define_copy(module, target, kind, "columns")
    if builder is None:
        return function
    block = Block(builder, target, kind, *function.args).with_unit_stride("major")
    lanes = block.lanes
    with (
        counted_loop(builder, block.minor, step=lanes, name="square") as minor,
        counted_loop(builder, block.groups, step=lanes, name="square") as group,
    ):
        square = _Square(block, group.index, minor.index)
        if target.has_masks:
            square.copy_masked()
        else:
            square.copy_or_leave()
    builder.ret_void()
    return function


@dataclass(frozen=True)
class _Square:
    """One square, from (group, minor) on."""

    block: Block
    group: Value
    minor: Value

    def copy_masked(self) -> None:
        """Any square: what is not valid reads as zero, what is not there stays."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        left = builder.sub(block.valid_major, block.first_major(self.group))
        in_column = lane_mask(builder, left, lanes * block.kind.group)
        left = builder.sub(block.valid_minor, self.minor)
        rows = self._transpose(self._load_columns(self._repeat(in_column, left)))
        in_row = lane_mask(builder, builder.sub(block.minor, self.minor), lanes)
        left = builder.sub(block.groups, self.group)
        self._store_rows(rows, self._repeat(in_row, left))

    def copy_or_leave(self) -> None:
        """Without masks: a square wholly valid; any other goes element by element."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        assert block.kind.group == 1, "groups need a target with masks"
        group_stop = builder.add(self.group, const(I64, lanes))
        minor_stop = builder.add(self.minor, const(I64, lanes))
        group_stop = minimum(builder, group_stop, block.groups)
        minor_stop = minimum(builder, minor_stop, block.minor)
        with builder.if_else(self._is_valid()) as (yes, no):
            with yes:
                columns = self._load_columns([None] * lanes)
                self._store_rows(self._transpose(columns), [None] * lanes)
            with no:
                bounds = (self.group, group_stop, self.minor, minor_stop)
                block.copy_elements(emit_copy_elements, *bounds)

    def _is_valid(self) -> Value:
        """Whether the square is inside of all four bounds; a group is one major."""
        block, builder = self.block, self.block.builder
        majors = minimum(builder, block.major, block.valid_major)
        minors = minimum(builder, block.minor, block.valid_minor)
        size = const(I64, block.lanes)
        return builder.and_(
            builder.icmp_signed("<=", builder.add(self.group, size), majors),
            builder.icmp_signed("<=", builder.add(self.minor, size), minors),
        )

    def _repeat(self, mask: Value, count: Value) -> list[Value]:
        """``mask`` for each of the first ``count`` of the square, for others none."""
        builder = self.block.builder
        masks: list[Value] = []
        for number in range(self.block.lanes):
            exists = builder.icmp_signed("<", const(I64, number), count)
            masks.append(all_if(builder, exists, mask))
        return masks

    def _load_columns(self, masks: Sequence[Value | None]) -> list[Value]:
        """The majors of each minor as 32-bit lanes: pairs, or one element each."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        element, wide = bits_of(block.kind.source), vector(I32, lanes)
        pointer = block.source_at(block.first_major(self.group), self.minor)
        columns: list[Value] = []
        for mask in masks:
            value = block.load(pointer, lanes * block.kind.group, mask)
            if block.kind.group > 1:
                value = builder.bitcast(value, wide)
            elif value.type.element is not I32:
                value = builder.zext(value, wide)
            columns.append(value)
            pointer = offset(builder, pointer, element, block.stride_minor)
        return columns

    def _transpose(self, columns: list[Value]) -> list[Value]:
        block, builder = self.block, self.block.builder
        rows = transpose_square(builder, columns)
        if block.kind.group > 1 or block.kind.result == "f32":
            return rows
        narrow = vector(bits_of(block.kind.result), block.lanes)
        return [builder.trunc(row, narrow) for row in rows]

    def _store_rows(self, rows: list[Value], masks: Sequence[Value | None]) -> None:
        block, builder = self.block, self.block.builder
        element = rows[0].type.element
        pointer = block.result_at(self.group, self.minor)
        for row, mask in zip(rows, masks, strict=True):
            block.store(row, pointer, mask)
            pointer = offset(builder, pointer, element, block.ldd)
