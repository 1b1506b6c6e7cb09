"""Which values of a subgroup stand for which value of the workgroup.

The kernel is walked once, in source order.  What is distributed (tiles, and vectors of
rank 2) is replaced by new operations on parts; the rest is the same for all subgroups
and stays as it is.
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
"""Replaces an operation, by what it adds and what it gives to `Distributor.give`."""


class Distributor:
    """The state of one kernel's rewriting.

    Args:
        team: its subgroups, and where new operations go.
        rule_of: what replaces an operation that has distributed operands or results,
            has regions or ends a block; None: it stays.
    """

    def __init__(
        self, team: Subgroups, rule_of: Callable[[Operation], Rule | None]
    ) -> None:
        self.team = self.emit = team
        """What adds operations; `xetl.ir.conversion` calls it so."""
        self._rule_of = rule_of
        self._parts: dict[SSAValue, list[SSAValue]] = {}
        self._layouts: dict[SSAValue, Layout] = {}
        self._replaced: list[Operation] = []

    # The walk -----------------------------------------------------------------------

    def run(self, operations: Sequence[Operation]) -> None:
        """Replace those of some operations that need it."""
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
        """Remove what has been replaced, users first."""
        for op in reversed(self._replaced):
            Rewriter.erase_op(op, safe_erase=False)
        self._replaced.clear()

    # Control flow, see `xetl.ir.conversion` ------------------------------------------

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """What is distributed is carried as its parts."""
        if not is_distributed(value):
            return Carried([value.type], lambda new: [new], _replace)
        layout = self.layout(value)
        return Carried(
            [self.part_type(value)] * self.count(value),
            lambda new: self.parts(new, layout),
            self.give,
        )

    def converted(self, value: SSAValue) -> SSAValue:
        """A scalar as it is: it has been replaced where it is used."""
        return value

    def convert(self, block: Block) -> None:
        """Move the operations of a block to the open one, and replace them there."""
        target = self.team.point.block
        operations = list(block.ops)[:-1]
        move_to_end(operations, target)
        self.run(operations)
        self.team.point = InsertPoint.at_end(target)

    # Values -------------------------------------------------------------------------

    def layout(self, value: SSAValue) -> Layout:
        """How a distributed value is spread; one without a map is everybody's."""
        found = self._layouts.get(value)
        if found is None:
            found = self._layouts[value] = self._find_layout(value)
        return found

    def _find_layout(self, value: SSAValue) -> Layout:
        type_ = value.type
        if not isinstance(type_, TileType):
            return map_of(value) or self.everything(matrix_shape(value))
        found = tile_map(value)
        # Blocked vectors and those of rank 1 have no map: all is everybody's.
        if type_.inner_blocks or found is None or found.rank != len(type_.shape):
            return self.everything(type_.shape)
        return found

    def everything(self, shape: Sequence[int]) -> Layout:
        """The layout in which every subgroup owns all."""
        counts = [1] * len(shape)
        counts[-1] = self.team.subgroups
        return whole(shape, counts)

    def parts(self, value: SSAValue, layout: Layout | None = None) -> list[SSAValue]:
        """The parts of a distributed value that a subgroup owns, in order.

        Args:
            layout: another one than it has: then it is computed there if that is
                possible, or moves between subgroups.
        """
        own = self.layout(value)
        parts = self._parts[value]
        if layout is None or same_owners(matrix_shape(value), own, layout):
            return parts
        derived = derived_parts(self.team, value, layout)
        return self.moved(parts, value, own, layout) if derived is None else derived

    def parts_for(self, value: SSAValue, layout: Layout, count: int) -> Values:
        """``count`` operands in a layout; what all subgroups share serves each time."""
        return self.parts(value, layout) if is_distributed(value) else [value] * count

    def whole(self, value: SSAValue) -> SSAValue:
        """All of a value, in every subgroup."""
        if not is_distributed(value):
            return value
        return self.parts(value, self.everything(matrix_shape(value)))[0]

    def moved(
        self, parts: Values, value: SSAValue, source: Layout, target: Layout
    ) -> list[SSAValue]:
        """Parts of what is like ``value`` in one layout, from those in another."""
        shape = matrix_shape(value)
        if same_owners(shape, source, target):
            return list(parts)
        element = vector_type(value).element_type
        return convert_layout(self.team, parts, shape, element, source, target)

    def give(
        self, value: SSAValue, parts: Values, layout: Layout | None = None
    ) -> None:
        """Say what stands for a distributed value of the workgroup.

        Args:
            parts: what this subgroup owns, in order.
            layout: how the parts are spread, if not as the map of ``value`` says.
        """
        own = self.layout(value)
        if layout is not None:
            parts = self.moved(parts, value, layout, own)
        expected = count_parts(matrix_shape(value), own)
        assert len(parts) == expected, f"{len(parts)} parts, expected {expected}"
        self._parts[value] = list(parts)

    def give_parts(self, value: SSAValue, parts: Values, layout: Layout) -> None:
        """As `give`; for a value that is not distributed there is one part."""
        if is_distributed(value):
            self.give(value, parts, layout)
        else:
            (new,) = parts
            value.replace_all_uses_with(new)

    def give_whole(self, value: SSAValue, new: SSAValue) -> None:
        """Say what stands for a value of any kind; every subgroup has all of it."""
        shape = matrix_shape(value) if is_distributed(value) else (1,)
        self.give_parts(value, [new], self.everything(shape))

    def count(self, value: SSAValue) -> int:
        """How many parts of a value a subgroup has."""
        if not is_distributed(value):
            return 1
        return count_parts(matrix_shape(value), self.layout(value))

    def part_type(self, value: SSAValue) -> Any:
        """The type of a part; of a value that is not distributed its own."""
        type_ = value.type
        if not is_distributed(value):
            return type_
        shape = self.layout(value).sg_data
        if not isinstance(type_, TileType):
            return VectorType(vector_type(value).element_type, shape)
        return type_.replace(shape, wg_map=None, array_length=1)


def _replace(old: SSAValue, new: Values) -> None:
    """Say which scalar stands for another one."""
    new[0].name_hint = old.name_hint
    old.replace_all_uses_with(new[0])
