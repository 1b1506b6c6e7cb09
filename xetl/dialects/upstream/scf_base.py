"""What regions of `scf` end in, and text that its operations share.

Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import Unpack
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

from ..base import Value
from ..operation import Common, XetlOp


class YieldOp(XetlOp, name="scf.yield"):
    """The values a region gives to its loop or conditional."""

    arguments = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: Value, **common: Unpack[Common]) -> None:
        super().__init__(arguments, **common)


def parse_assignments(
    parser: Parser,
) -> tuple[list[Parser.UnresolvedArgument], list[UnresolvedOperand]]:
    """Parse ``(%a = %b, ...)``."""
    arguments: list[Parser.UnresolvedArgument] = []
    operands: list[UnresolvedOperand] = []

    def parse_one() -> None:
        arguments.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        operands.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_one)
    return arguments, operands


def print_assignments(
    printer: Printer, arguments: Sequence[SSAValue], values: Sequence[SSAValue]
) -> None:
    """Print ``(%a = %b, ...)``."""

    def print_one(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    with printer.in_parens():
        printer.print_list(list(zip(arguments, values)), print_one)


def parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``(types)`` or one type without parentheses."""
    types = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_type
    )
    return [parser.parse_type()] if types is None else list(types)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ``(types)``."""
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def terminate(region: Region, terminator: type[Operation]) -> None:
    """Add the terminator that the text may leave out."""
    block = region.block
    if not isinstance(block.last_op, terminator) and not _has_terminator(block):
        block.add_op(terminator.create())


def _has_terminator(block: Block) -> bool:
    last = block.last_op
    return last is not None and last.name in ("scf.yield", "scf.reduce")


def print_body(printer: Printer, region: Region, *, terminator: bool) -> None:
    """Print a region without the arguments of its block."""
    printer.print_string(" ")
    last = region.block.last_op
    keep = terminator or (last is not None and bool(last.attributes))
    printer.print_region(
        region,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=keep,
    )


def parse_result_types(parser: Parser) -> list[Attribute]:
    """Parse ``-> (types)``, ``-> type`` or nothing."""
    return parse_types(parser) if parser.parse_optional_punctuation("->") else []


def print_result_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ``-> (types)``, or nothing if there are none."""
    if types:
        printer.print_string(" -> ")
        print_types(printer, types)


def parse_yielding_region(parser: Parser, terminator: type[Operation]) -> Region:
    """Parse a region of one block whose terminator may be left out."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    terminate(region, terminator)
    return region
