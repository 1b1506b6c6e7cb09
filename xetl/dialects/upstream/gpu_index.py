"""Positions and sizes in the grid.  Source: MLIR, `gpu` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import check, parse_attributes, print_attributes
from ..operation import Common, XetlOp


@irdl_attr_definition
class DimensionAttr(ParametrizedAttribute, SpacedOpaqueSyntaxAttribute):
    """``#gpu<dim x>``."""

    name = "gpu.dim"

    letter: StringAttr = param_def()

    def __init__(self, letter: str) -> None:
        super().__init__(StringAttr(letter))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``x``."""
        return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        """Print ``x``."""
        printer.print_string(self.letter.data)

    def verify(self) -> None:
        """Check that the dimension is x, y or z."""
        found = self.letter.data
        check(found in ("x", "y", "z"), f"a dimension is x, y or z, found {found}")


class DimensionOp(XetlOp):
    """``op x``: one number of the grid, along a dimension."""

    dimension = prop_def(DimensionAttr)
    upper_bound = opt_prop_def(IntegerAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(
        self, dimension: str | DimensionAttr, **common: Unpack[Common]
    ) -> None:
        if isinstance(dimension, str):
            dimension = DimensionAttr(dimension)
        super().__init__(
            result_types=[IndexType()], properties={"dimension": dimension}, **common
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``x upper_bound 8``."""
        position = parser.pos
        letter = parser.parse_identifier()
        if letter not in ("x", "y", "z"):
            parser.raise_error(f"a dimension is x, y or z, found {letter}", position)
        given: dict[str, Attribute] = {"dimension": DimensionAttr(letter)}
        if parser.parse_optional_keyword("upper_bound"):
            given["upper_bound"] = IntegerAttr(parser.parse_integer(), IndexType())
        properties, attributes = parse_attributes(parser, cls)
        return cls.create(
            result_types=[IndexType()],
            properties=properties | given,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``x upper_bound 8``."""
        printer.print_string(f" {self.dimension.letter.data}")
        if self.upper_bound is not None:
            printer.print_string(f" upper_bound {self.upper_bound.value.data}")
        print_attributes(printer, self, ("dimension", "upper_bound"))


@irdl_op_definition
class BlockIdOp(DimensionOp):
    """Which program of the grid this is."""

    name = "gpu.block_id"


@irdl_op_definition
class GridDimOp(DimensionOp):
    """How many programs the grid has."""

    name = "gpu.grid_dim"


@irdl_op_definition
class ThreadIdOp(DimensionOp):
    """Which work item of the workgroup this is (XeTile text: which subgroup)."""

    name = "gpu.thread_id"


@irdl_op_definition
class BlockDimOp(DimensionOp):
    """How many work items a workgroup has (XeTile text: how many subgroups)."""

    name = "gpu.block_dim"


@irdl_op_definition
class GlobalIdOp(DimensionOp):
    """Which work item of the whole grid this is."""

    name = "gpu.global_id"


class SubgroupNumberOp(XetlOp):
    """``op : index``: one number of the subgroup."""

    upper_bound = opt_prop_def(IntegerAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(result_types=[IndexType()], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``upper_bound 8 : index``."""
        given: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("upper_bound"):
            given["upper_bound"] = parser.parse_attribute()
        properties, attributes = parse_attributes(parser, cls)
        if parser.parse_optional_punctuation(":"):
            parser.parse_type()
        return cls.create(
            result_types=[IndexType()],
            properties=properties | given,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``upper_bound 8 : index``."""
        if self.upper_bound is not None:
            printer.print_string(" upper_bound ")
            printer.print_attribute(self.upper_bound)
        print_attributes(printer, self, ("upper_bound",))
        printer.print_string(" : index")


@irdl_op_definition
class SubgroupIdOp(SubgroupNumberOp):
    """Which subgroup of the workgroup this is."""

    name = "gpu.subgroup_id"


@irdl_op_definition
class NumSubgroupsOp(SubgroupNumberOp):
    """How many subgroups the workgroup has."""

    name = "gpu.num_subgroups"


@irdl_op_definition
class SubgroupSizeOp(SubgroupNumberOp):
    """How many work items a subgroup has."""

    name = "gpu.subgroup_size"


@irdl_op_definition
class LaneIdOp(SubgroupNumberOp):
    """Which work item of the subgroup this is."""

    name = "gpu.lane_id"

    def print(self, printer: Printer) -> None:
        """Print ``upper_bound 8``."""
        if self.upper_bound is not None:
            printer.print_string(" upper_bound ")
            printer.print_attribute(self.upper_bound)
        print_attributes(printer, self, ("upper_bound",))
