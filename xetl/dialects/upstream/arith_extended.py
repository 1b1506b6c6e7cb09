"""Sums with their carry and products with their upper half.  Source: MLIR, `arith`."""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import (
    Common,
    Value,
    XetlOp,
    check,
    parse_attributes,
    parse_operands,
    print_attributes,
    type_of,
)
from .elementwise import boolean_like, is_integer


@irdl_op_definition
class AdduiExtendedOp(XetlOp):
    """The sum without sign, and whether it wrapped."""

    name = "arith.addui_extended"

    lhs = operand_def()
    rhs = operand_def()
    sum = result_def()
    overflow = result_def()

    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        type_ = type_of(lhs)
        super().__init__(
            operands=[lhs, rhs], result_types=[type_, boolean_like(type_)], **common
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b : type, i1``."""
        operands = parse_operands(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation(",")
        return cls.create(
            operands=[parser.resolve_operand(o, type_) for o in operands],
            result_types=[type_, parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b : type, i1``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_list(self.result_types, printer.print_attribute)

    def verify_(self) -> None:
        """Check that there is one integer type, and its flags."""
        type_ = self.sum.type
        one = self.lhs.type == self.rhs.type == type_
        check(one and is_integer(type_), "operands and sum have one type of integers")
        expected = boolean_like(type_)
        check(
            self.overflow.type == expected,
            f"the carry is {expected}, found {self.overflow.type}",
        )


class _ExtendedProductOp(XetlOp):
    """Two results of the operands' type: the lower and the upper half."""

    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()

    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        types = [type_of(lhs)] * 2
        super().__init__(operands=[lhs, rhs], result_types=types, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b : type``."""
        operands = parse_operands(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(o, type_) for o in operands],
            result_types=[type_, type_],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b : type``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.low.type)

    def verify_(self) -> None:
        """Check that there is one type of integers."""
        types = {*(o.type for o in self.operands), *self.result_types}
        check(
            len(types) == 1 and all(is_integer(each) for each in types),
            "operands and results have one type of integers",
        )


@irdl_op_definition
class MulsiExtendedOp(_ExtendedProductOp):
    """The whole product of two integers with sign."""

    name = "arith.mulsi_extended"

    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()


@irdl_op_definition
class MuluiExtendedOp(_ExtendedProductOp):
    """The whole product of two integers without sign."""

    name = "arith.mului_extended"

    lhs = operand_def()
    rhs = operand_def()
    low = result_def()
    high = result_def()


EXTENDED_OPS = (AdduiExtendedOp, MulsiExtendedOp, MuluiExtendedOp)
