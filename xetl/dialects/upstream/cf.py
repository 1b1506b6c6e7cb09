"""Branches between blocks, met in modules from text.  Source: MLIR, `cf` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Block, Dialect, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    successor_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from ..base import Value, check, parse_attributes, print_attributes
from ..operation import Common, XetlOp


def _parse_successor(parser: Parser) -> tuple[Block, list[SSAValue]]:
    block = parser.parse_successor()
    if parser.parse_optional_punctuation("(") is None:
        return block, []
    position = parser.pos
    operands = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return block, list(parser.resolve_operands(operands, types, position))


def _print_successor(
    printer: Printer, block: Block, operands: Sequence[SSAValue]
) -> None:
    printer.print_block_name(block)
    if operands:
        with printer.in_parens():
            printer.print_list(operands, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([o.type for o in operands], printer.print_attribute)


def _check_successor(block: Block, operands: Sequence[SSAValue]) -> None:
    expected = [argument.type for argument in block.args]
    found = [operand.type for operand in operands]
    check(expected == found, f"the block takes {expected}, but is given {found}")


@irdl_op_definition
class BrOp(XetlOp):
    """Go to a block."""

    name = "cf.br"

    dest_operands = var_operand_def()
    dest = successor_def()

    traits = traits_def(IsTerminator())

    def __init__(
        self, dest: Block, operands: Sequence[Value] = (), **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[operands], successors=[dest], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``^bb(%a : type)``."""
        block, operands = _parse_successor(parser)
        properties, attributes = parse_attributes(parser, cls)
        return cls.create(
            operands=operands,
            successors=[block],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``^bb(%a : type)``."""
        printer.print_string(" ")
        _print_successor(printer, self.dest, self.dest_operands)
        print_attributes(printer, self)

    def verify_(self) -> None:
        """Check the arguments of the block."""
        _check_successor(self.dest, self.dest_operands)


@irdl_op_definition
class CondBrOp(XetlOp):
    """Go to one of two blocks."""

    name = "cf.cond_br"

    condition = operand_def(i1)
    true_operands = var_operand_def()
    false_operands = var_operand_def()
    true_dest = successor_def()
    false_dest = successor_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator())

    def __init__(
        self,
        condition: Value,
        true_dest: Block,
        false_dest: Block,
        true_operands: Sequence[Value] = (),
        false_operands: Sequence[Value] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[condition, true_operands, false_operands],
            successors=[true_dest, false_dest],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c, ^a(...), ^b(...)``."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        parser.parse_punctuation(",")
        true_dest, true_operands = _parse_successor(parser)
        parser.parse_punctuation(",")
        false_dest, false_operands = _parse_successor(parser)
        _, attributes = parse_attributes(parser, cls)
        return cls.build(
            operands=[condition, true_operands, false_operands],
            successors=[true_dest, false_dest],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%c, ^a(...), ^b(...)``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(", ")
        _print_successor(printer, self.true_dest, self.true_operands)
        printer.print_string(", ")
        _print_successor(printer, self.false_dest, self.false_operands)
        print_attributes(printer, self, ("operandSegmentSizes",))

    def verify_(self) -> None:
        """Check the arguments of both blocks."""
        _check_successor(self.true_dest, self.true_operands)
        _check_successor(self.false_dest, self.false_operands)


@irdl_op_definition
class AssertOp(XetlOp):
    """Stop the program with a message unless the argument holds."""

    name = "cf.assert"

    arg = operand_def(i1)
    msg = prop_def(StringAttr)

    assembly_format = "$arg `,` $msg attr-dict"

    def __init__(self, arg: Value, message: str, **common: Unpack[Common]) -> None:
        super().__init__(
            operands=[arg], properties={"msg": StringAttr(message)}, **common
        )


Cf = Dialect("cf", [BrOp, CondBrOp, AssertOp])
