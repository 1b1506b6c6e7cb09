"""Walk a kernel and record which values of a subgroup replace a workgroup's value.

The kernel is walked once, in source order. Operations on distributed values (tiles, and
vectors of rank 2) are replaced by new operations on parts. All other values are the
same for all subgroups and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Values, vector_type
from xetl.dialects.xetile import TileType
from xetl.ir.builder import move_to_end
from xetl.ir.conversion import Carried
from xetl.language.distribution import Layout, whole
from xetl.transforms.distribute_to_subgroups.context import (
    Subgroups,
    count_parts,
    is_distributed,
    keep_without_maps,
)
from xetl.transforms.distribute_to_subgroups.exchange import convert_layout
from xetl.transforms.distribute_to_subgroups.slicing import derived_parts
from xetl.transforms.propagate_wg_maps.map_attributes import (
    map_of,
    matrix_shape,
    same_owners,
    tile_map,
)

Rule: TypeAlias = Callable[["Distributor", Any], None]
"""Adds new operations for an operation and calls `Distributor.give` for its results."""


class Distributor:
    """The state of the rewriting of one kernel.

    Args:
        team: the subgroups of the kernel, and the builder of new operations.
        rule_of: returns the rule for an operation, or None if the operation stays.
    """

    def __init__(
        self, team: Subgroups, rule_of: Callable[[Operation], Rule | None]
    ) -> None:
        self.team = self.emit = team
        """The builder of new operations, by the name that `xetl.ir.conversion` uses."""
        self._rule_of = rule_of
        self._parts: dict[SSAValue, list[SSAValue]] = {}
        self._layouts: dict[SSAValue, Layout] = {}
        self._replaced: list[Operation] = []

    # The walk -----------------------------------------------------------------------

    def run(self, operations: Sequence[Operation]) -> None:
        """Replace the operations that have a rule."""
        for op in operations:
            self.team.move_before(op)
            rule = self._rule_of(op)
            if rule is None:
                keep_without_maps(op)
            else:
                self._replaced.append(op)
                rule(self, op)

    def keep(self, op: Operation) -> None:
        """Let the operation that is being replaced stay after all."""
        assert self._replaced[-1] is op
        self._replaced.pop()
        keep_without_maps(op)

    def finish(self) -> None:
        """Erase the operations that have been replaced, users first."""
        for op in reversed(self._replaced):
            Rewriter.erase_op(op, safe_erase=False)
        self._replaced.clear()

    # Control flow, see `xetl.ir.conversion` ------------------------------------------

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """Return how a loop or branch carries a value: a distributed one as parts."""
        if not is_distributed(value):
            return Carried([value.type], lambda new: [new], _replace)
        layout = self.layout(value)
        return Carried(
            [self.part_type(value)] * self.count(value),
            lambda new: self.parts(new, layout),
            self.give,
        )

    def converted(self, value: SSAValue) -> SSAValue:
        """Return a scalar as it is: its uses have been replaced already."""
        return value

    def convert(self, block: Block) -> None:
        """Move the operations of a block to the builder's block; replace them there."""
        target = self.team.point.block
        operations = list(block.ops)[:-1]
        move_to_end(operations, target)
        self.run(operations)
        self.team.point = InsertPoint.at_end(target)

    # Values -------------------------------------------------------------------------

    def layout(self, value: SSAValue) -> Layout:
        """Return the layout of a distributed value; without a map, all own it all."""
        found = self._layouts.get(value)
        if found is None:
            found = self._layouts[value] = self._find_layout(value)
        return found

    def _find_layout(self, value: SSAValue) -> Layout:
        type_ = value.type
        if not isinstance(type_, TileType):
            return map_of(value) or self.everything(matrix_shape(value))
        found = tile_map(value)
        # Blocked tiles and tiles of rank 1 have no map: every subgroup owns all.
        if type_.inner_blocks or found is None or found.rank != len(type_.shape):
            return self.everything(type_.shape)
        return found

    def everything(self, shape: Sequence[int]) -> Layout:
        """Return the layout in which every subgroup owns all elements."""
        counts = [1] * len(shape)
        counts[-1] = self.team.subgroups
        return whole(shape, counts)

    def parts(self, value: SSAValue, layout: Layout | None = None) -> list[SSAValue]:
        """Return the parts of a distributed value that a subgroup owns, in order.

        Args:
            layout: the layout of the parts; None: that of the value. In another
                layout the parts are computed again if that is possible; otherwise
                they move between subgroups.
        """
        own = self.layout(value)
        parts = self._parts[value]
        if layout is None or same_owners(matrix_shape(value), own, layout):
            return parts
        derived = derived_parts(self.team, value, layout)
        return self.moved(parts, value, own, layout) if derived is None else derived

    def parts_for(self, value: SSAValue, layout: Layout, count: int) -> Values:
        """Return ``count`` operands in a layout; repeat an undistributed value."""
        return self.parts(value, layout) if is_distributed(value) else [value] * count

    def whole(self, value: SSAValue) -> SSAValue:
        """Return all of a value, in every subgroup."""
        if not is_distributed(value):
            return value
        return self.parts(value, self.everything(matrix_shape(value)))[0]

    def moved(
        self, parts: Values, value: SSAValue, source: Layout, target: Layout
    ) -> list[SSAValue]:
        """Move parts from one layout to another; ``value`` gives shape and dtype."""
        shape = matrix_shape(value)
        if same_owners(shape, source, target):
            return list(parts)
        element = vector_type(value).element_type
        return convert_layout(self.team, parts, shape, element, source, target)

    def give(
        self, value: SSAValue, parts: Values, layout: Layout | None = None
    ) -> None:
        """Record the parts that replace a distributed value of the workgroup.

        Args:
            layout: the layout of the parts; None: that of ``value``.
        """
        own = self.layout(value)
        if layout is not None:
            parts = self.moved(parts, value, layout, own)
        expected = count_parts(matrix_shape(value), own)
        assert len(parts) == expected, f"{len(parts)} parts, expected {expected}"
        self._parts[value] = list(parts)

    def give_parts(self, value: SSAValue, parts: Values, layout: Layout) -> None:
        """Do the same as `give`; replace an undistributed value by the only part."""
        if is_distributed(value):
            self.give(value, parts, layout)
        else:
            (new,) = parts
            value.replace_all_uses_with(new)

    def give_whole(self, value: SSAValue, new: SSAValue) -> None:
        """Record the whole new value, in every subgroup, for a value of any kind."""
        shape = matrix_shape(value) if is_distributed(value) else (1,)
        self.give_parts(value, [new], self.everything(shape))

    def count(self, value: SSAValue) -> int:
        """Return how many parts of a value a subgroup owns."""
        if not is_distributed(value):
            return 1
        return count_parts(matrix_shape(value), self.layout(value))

    def part_type(self, value: SSAValue) -> Any:
        """Return the type of a part, or of a value that is not distributed."""
        type_ = value.type
        if not is_distributed(value):
            return type_
        shape = self.layout(value).sg_data
        if not isinstance(type_, TileType):
            return VectorType(vector_type(value).element_type, shape)
        return type_.replace(shape, wg_map=None, array_length=1)


def _replace(old: SSAValue, new: Values) -> None:
    """Replace one scalar by another."""
    new[0].name_hint = old.name_hint
    old.replace_all_uses_with(new[0])
