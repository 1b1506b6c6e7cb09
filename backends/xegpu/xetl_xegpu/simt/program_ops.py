"""Kernels, and where a lane is: in the grid, in its workgroup, in its subgroup."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import (
    I32,
    I64,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from xetl.dialects.base import check, ints_of
from xetl.dialects.operation import XetlOp
from xetl.dialects.upstream import func as syntax

SUBGROUP_SIZE = 16
"""Lanes that run together: all there are on the devices of `xetl.devices`."""

DIMENSIONS = ("x", "y", "z")


class FuncOp(XetlOp, name="simt.func"):
    """A kernel as one lane runs it; its body is one block.

    Attributes:
        work_group: lanes of a workgroup along x, y and z; subgroups lie along x.
        subgroup_size: 16.
        slm_bytes: shared local memory of a workgroup, in bytes.
    """

    sym_name = prop_def(SymbolNameConstraint())
    work_group = prop_def(DenseArrayBase)
    subgroup_size = prop_def(IntegerAttr[I64])
    slm_bytes = prop_def(IntegerAttr[I64])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @property
    def lanes(self) -> tuple[int, ...]:
        """Lanes of a workgroup along x, y and z."""
        return ints_of(self.work_group)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name(%a: i64) attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        signature = syntax.parse_signature(parser)
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes"):
            attributes = parser.parse_optional_attr_dict()
        known = cls.get_irdl_definition().properties
        for name in [name for name in attributes if name in known]:
            properties[name] = attributes.pop(name)
        body = syntax.parse_body(parser, signature.arguments)
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Print ``@name(%a: i64) attributes {...} {...}``."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        syntax.print_arguments(printer, self.body.block.args, None)
        shown = {k: v for k, v in self.properties.items() if k != "sym_name"}
        printer.print_op_attributes(shown | self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        """Check that whole subgroups lie along x."""
        lanes, size = self.lanes, self.subgroup_size.value.data
        check(size == SUBGROUP_SIZE, "a subgroup has 16 lanes, found {}", size)
        check(
            len(lanes) == len(DIMENSIONS) and all(n > 0 for n in lanes),
            "`work_group` has three sizes, found {}",
            lanes,
        )
        check(
            lanes[0] % size == 0 and lanes[1:] == (1, 1),
            "a workgroup is whole subgroups along x, found {}",
            lanes,
        )
        check(self.slm_bytes.value.data >= 0, "`slm_bytes` is negative")
        last = self.body.block.last_op
        check(isinstance(last, ReturnOp), "a kernel ends with `simt.return`")


class ReturnOp(XetlOp, name="simt.return"):
    """The end of a kernel."""

    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict"


class _DimensionOp(XetlOp):
    """``op x``: a number of the grid along a dimension, i64."""

    dimension = prop_def(StringAttr)
    result = result_def(I64)
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($dimension) attr-dict"

    @property
    def axis(self) -> int:
        """0 for x, 1 for y, 2 for z."""
        return DIMENSIONS.index(self.dimension.data)

    def verify_(self) -> None:
        """Check that it is x, y or z."""
        found = self.dimension.data
        check(found in DIMENSIONS, "a dimension is x, y or z, found {}", found)


class GroupIdOp(_DimensionOp, name="simt.group_id"):
    """Which workgroup of the grid this is."""


class NumGroupsOp(_DimensionOp, name="simt.num_groups"):
    """How many workgroups the grid has."""


class _IdOp(XetlOp):
    """A number of this lane, i32."""

    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"


class SubgroupIdOp(_IdOp, name="simt.subgroup_id"):
    """Which subgroup of the workgroup this is; the same in all its lanes."""


class LaneIdOp(_IdOp, name="simt.lane_id"):
    """Which lane of the subgroup this is."""
