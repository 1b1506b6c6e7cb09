"""Directives for the text of MLIR's own dialects; formats load them at first use."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..reduction_kinds import CombiningKindAttr, parse_kind
from .elementwise import FastMathFlagsAttr, FlagsAttr, IntegerOverflowFlagsAttr
from .memref_views import groups_attribute, groups_of


@irdl_custom_directive
class Flags(CustomDirective):
    """``fastmath<contract>`` or ``overflow<nsw>``; no flags are not printed."""

    flags: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the flags if there are any."""
        if self.flags.name == "fastmath":
            if parser.parse_optional_keyword("fastmath"):
                fast = FastMathFlagsAttr.parse_parameter(parser)
                self.flags.set(state, FastMathFlagsAttr(fast))
        elif parser.parse_optional_keyword("overflow"):
            wraps = IntegerOverflowFlagsAttr.parse_parameter(parser)
            self.flags.set(state, IntegerOverflowFlagsAttr(wraps))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the flags."""
        flags = self.flags.get(op)
        if isinstance(flags, FlagsAttr) and flags.data:
            is_fast = isinstance(flags, FastMathFlagsAttr)
            printer.print_string(" fastmath" if is_fast else " overflow")
            flags.print_parameter(printer)


@irdl_custom_directive
class Ignored(CustomDirective):
    """Promises that nothing follows from here: read, but not kept."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse ``exact`` or ``fastmath<...>``."""
        parser.parse_optional_keyword("exact")
        if parser.parse_optional_keyword("fastmath"):
            FastMathFlagsAttr.parse_parameter(parser)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print nothing."""


_ROUNDINGS = (
    *("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"),
)


@irdl_custom_directive
class Rounding(CustomDirective):
    """The one way of rounding; it is not printed."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse ``to_nearest_even``."""
        position = parser.pos
        mode = next((m for m in _ROUNDINGS if parser.parse_optional_keyword(m)), None)
        if mode not in (None, _ROUNDINGS[0]):
            parser.raise_error(
                f"floats are rounded {_ROUNDINGS[0]}, not {mode}", position
            )

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print nothing."""


@irdl_custom_directive
class Map(CustomDirective):
    """``(d0, d1) -> (d1, d0)``."""

    map_: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the map."""
        self.map_.set(state, AffineMapAttr(parser.parse_affine_map()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the map."""
        found = self.map_.get(op)
        assert isinstance(found, AffineMapAttr)
        printer.print_string(f" {found.data}")


@irdl_custom_directive
class Groups(CustomDirective):
    """``[[0, 1], [2]]``: which dimensions become one."""

    groups: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the lists."""
        square, one = parser.Delimiter.SQUARE, parser.parse_integer
        found = parser.parse_comma_separated_list(
            square, lambda: parser.parse_comma_separated_list(square, one)
        )
        self.groups.set(state, groups_attribute(found))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the lists."""
        groups = self.groups.get(op)
        assert groups is not None
        printer.print_string(f" {groups_of(groups)}")


@irdl_custom_directive
class OneType(CustomDirective):
    """``type``: that of each of two results."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type."""
        self.types.set(state, [parser.parse_type()] * 2)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        state.print_whitespace(printer)
        printer.print_attribute(self.types.get(op)[0])


@irdl_custom_directive
class Combined(CustomDirective):
    """``<add>``, in any spelling."""

    kind: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the kind."""
        self.kind.set(state, CombiningKindAttr(parse_kind(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the kind."""
        kind = self.kind.get(op)
        assert isinstance(kind, CombiningKindAttr)
        printer.print_string(f" <{kind.kind}>")


DIRECTIVES = (Flags, Ignored, Rounding, Map, Groups, OneType, Combined)
