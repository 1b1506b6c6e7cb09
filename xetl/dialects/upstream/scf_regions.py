"""Regions of `scf` that choose one of several, or only hold code.

Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, IndexType
from xdsl.ir import Attribute, Region
from xdsl.irdl import (
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect

from ..base import Value, check, dense_i64, ints_of, print_attributes
from ..operation import Common, XetlOp
from . import scf_syntax as syntax
from .scf_yield import YieldOp


class ExecuteRegionOp(XetlOp, name="scf.execute_region"):
    """Run the region once and give what it yields."""

    region = region_def()
    res = var_result_def()

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        result_types: Sequence[Attribute],
        region: Region,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(result_types, regions=[region], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``-> (types) no_inline {...}``."""
        types = syntax.parse_result_types(parser)
        parser.parse_optional_keyword("no_inline")
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=types, regions=[region], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``-> (types) {...}``."""
        syntax.print_result_types(printer, self.result_types)
        printer.print_string(" ")
        printer.print_region(self.region, print_empty_block=False)
        print_attributes(printer, self)


class IndexSwitchOp(XetlOp, name="scf.index_switch"):
    """The region of the case that equals the argument, else the default one."""

    arg = operand_def(IndexType)
    cases = prop_def(DenseArrayBase)
    default_region = region_def("single_block")
    case_regions = var_region_def("single_block")
    res = var_result_def()

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        arg: Value,
        cases: Sequence[int],
        result_types: Sequence[Attribute],
        default_region: Region,
        case_regions: Sequence[Region],
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            *(arg, result_types),
            cases=dense_i64(cases),
            regions=[default_region, case_regions],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%i {...} -> types case 2 {...} default {...}``."""
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            types += parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_type
            ) or parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_type
            )
        cases: list[int] = []
        regions: list[Region] = []
        while parser.parse_optional_keyword("case"):
            cases.append(parser.parse_integer(allow_boolean=False))
            regions.append(syntax.parse_yielding_region(parser, YieldOp))
        parser.parse_keyword("default")
        default = syntax.parse_yielding_region(parser, YieldOp)
        return cls.create(
            operands=[parser.resolve_operand(operand, IndexType())],
            result_types=types,
            properties={"cases": dense_i64(cases)},
            attributes=attributes,
            regions=[default, *regions],
        )

    def print(self, printer: Printer) -> None:
        """Print ``%i {...} -> types case 2 {...} default {...}``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.arg)
        print_attributes(printer, self, ("cases",))
        if self.results:
            printer.print_string(" -> ")
            printer.print_list(self.result_types, printer.print_attribute)
        for case, region in zip(ints_of(self.cases), self.case_regions):
            printer.print_string(f"\ncase {case} ")
            printer.print_region(region, print_empty_block=False)
        printer.print_string("\ndefault ")
        printer.print_region(self.default_region, print_empty_block=False)

    def verify_(self) -> None:
        """Check that there is a region for each case, and what they yield."""
        cases = ints_of(self.cases)
        check(len(cases) == len(self.case_regions), "each case needs a region")
        check(len(set(cases)) == len(cases), f"a case is given twice in {list(cases)}")
        for region in (self.default_region, *self.case_regions):
            last = region.block.last_op
            found = None if last is None else [each.type for each in last.operands]
            check(
                last is not None and last.name == "scf.yield",
                "each region must end in scf.yield",
            )
            check(
                found == list(self.result_types),
                f"a region yields {found}, expected {list(self.result_types)}",
            )
