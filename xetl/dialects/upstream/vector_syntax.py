"""Pieces of text that vector operations share.  Source: MLIR, `vector` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..base import parse_attributes, parse_optional_operands, print_attributes

OpT = TypeVar("OpT", bound=IRDLOperation)


def parse_base(
    parser: Parser, lists: int = 1
) -> tuple[UnresolvedOperand, list[list[UnresolvedOperand]]]:
    """Parse ``%base[%i][%j]``: a base and some lists of operands."""
    base = parser.parse_unresolved_operand()
    square = parser.Delimiter.SQUARE
    return base, [parse_optional_operands(parser, square) for _ in range(lists)]


def parse_rest(parser: Parser) -> list[UnresolvedOperand]:
    """Parse ``, %a, %b``."""
    rest: list[UnresolvedOperand] = []
    while parser.parse_optional_punctuation(","):
        rest.append(parser.parse_unresolved_operand())
    return rest


def parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``type, type``."""
    return list(
        parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    )


def print_base(
    printer: Printer, base: SSAValue, lists: Sequence[Sequence[SSAValue]]
) -> None:
    """Print ``%base[%i][%j]``."""
    printer.print_ssa_value(base)
    for values in lists:
        with printer.in_square_brackets():
            printer.print_list(values, printer.print_ssa_value)


def print_rest(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Print ``, %a, %b``."""
    for value in values:
        printer.print_string(", ")
        printer.print_ssa_value(value)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ``: type, type``."""
    printer.print_string(" : ")
    printer.print_list(types, printer.print_attribute)


def parse_conversion(
    parser: Parser,
    op_type: type[OpT],
    operands: Sequence[UnresolvedOperand],
    keyword: str,
    given: dict[str, Attribute] | None = None,
) -> OpT:
    """Parse ``{...} : types keyword type`` after the operands."""
    properties, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    position = parser.pos
    types = parse_types(parser)
    parser.parse_keyword(keyword)
    return op_type.create(
        operands=parser.resolve_operands(operands, types, position),
        result_types=[parser.parse_type()],
        properties=properties | (given or {}),
        attributes=attributes,
    )


def print_conversion(
    printer: Printer,
    op: Operation,
    keyword: str,
    operands: Sequence[SSAValue] | None = None,
    elided: Sequence[str] = (),
) -> None:
    """Print ``{...} : types keyword type`` after the operands."""
    print_attributes(printer, op, elided)
    values = op.operands if operands is None else operands
    print_types(printer, [value.type for value in values])
    printer.print_string(f" {keyword} ")
    printer.print_attribute(op.results[0].type)
