"""Directives of the text formats of MLIR's own dialects, loaded at first use."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, i1
from xdsl.ir import Attribute
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

from ..assembly import Silent, spelt
from ..reduction_kinds import CombiningKindAttr, parse_kind
from .elementwise import FastMathFlagsAttr, FlagsAttr, IntegerOverflowFlagsAttr
from .memref_views import groups_attribute, groups_of


@irdl_custom_directive
class Flags(CustomDirective):
    """``fastmath<contract>`` or ``overflow<nsw>``; nothing is printed without flags."""

    flags: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if self.flags.name == "fastmath":
            if parser.parse_optional_keyword("fastmath"):
                fast = FastMathFlagsAttr.parse_parameter(parser)
                self.flags.set(state, FastMathFlagsAttr(fast))
        elif parser.parse_optional_keyword("overflow"):
            wraps = IntegerOverflowFlagsAttr.parse_parameter(parser)
            self.flags.set(state, IntegerOverflowFlagsAttr(wraps))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        flags = self.flags.get(op)
        if isinstance(flags, FlagsAttr) and flags.data:
            is_fast = isinstance(flags, FastMathFlagsAttr)
            printer.print_string(" fastmath" if is_fast else " overflow")
            flags.print_parameter(printer)


@irdl_custom_directive
class Ignored(Silent):
    """Promises that the compiler does not use: they are parsed and dropped."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse ``exact`` or ``fastmath<...>``."""
        parser.parse_optional_keyword("exact")
        if parser.parse_optional_keyword("fastmath"):
            FastMathFlagsAttr.parse_parameter(parser)


_ROUNDINGS = (
    *("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"),
)


@irdl_custom_directive
class Rounding(Silent):
    """The only rounding mode supported; it is not printed."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse ``to_nearest_even``."""
        position = parser.pos
        mode = next((m for m in _ROUNDINGS if parser.parse_optional_keyword(m)), None)
        if mode not in (None, _ROUNDINGS[0]):
            parser.raise_error(
                f"floats are rounded {_ROUNDINGS[0]}, not {mode}", position
            )


@irdl_custom_directive
class SelectTypes(CustomDirective):
    """The type of the two values; the condition's type precedes it if it is not i1."""

    condition: TypeDirective
    value: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        condition, type_ = i1, parser.parse_type()
        if parser.parse_optional_punctuation(","):
            condition, type_ = type_, parser.parse_type()
        self.condition.set(state, [condition])
        self.value.set(state, [type_])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if self.condition.get(op)[0] != i1:
            self.condition.print(printer, state, op)
            printer.print_string(",")
        self.value.print(printer, state, op)


def _read_groups(parser: Parser) -> Attribute:
    square, one = parser.Delimiter.SQUARE, parser.parse_integer
    found = parser.parse_comma_separated_list(
        square, lambda: parser.parse_comma_separated_list(square, one)
    )
    return groups_attribute(found)


@irdl_custom_directive
class OneType(CustomDirective):
    """``type``, the type of both results."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.types.set(state, [parser.parse_type()] * 2)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(self.types.get(op)[0])


def _one_of(name: str, *words: str) -> type[CustomDirective]:
    """Return a directive for a flag: the first word if it is 0, else the second."""

    def read(parser: Parser) -> Attribute:
        is_first = parser.parse_optional_keyword(words[0]) is not None
        if not is_first:
            parser.parse_keyword(words[1])
        return IntegerAttr(int(not is_first), i1)

    return spelt(name, read, lambda flag: words[int(flag.value.data != 0)])


DIRECTIVES = (
    *(Flags, Ignored, Rounding, OneType, SelectTypes),
    _one_of("Access", "read", "write"),
    _one_of("Cache", "instr", "data"),
    # ``(d0, d1) -> (d1, d0)``; and ``[[0, 1], [2]]``, groups of dimensions to collapse.
    spelt(
        "Map",
        lambda p: AffineMapAttr(p.parse_affine_map()),
        lambda found: str(found.data),
    ),
    spelt("Groups", _read_groups, lambda found: str(groups_of(found))),
    spelt(
        "Combined",
        lambda p: CombiningKindAttr(parse_kind(p)),
        lambda found: f"<{found.kind}>",
    ),
)
