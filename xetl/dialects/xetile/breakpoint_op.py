"""Where an interpreter hands over to a debugger.  Source: Python, `breakpoint()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr
from xdsl.irdl import (
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import (
    Value,
    check,
    dense_i64,
    parse_attributes,
    parse_optional_operands,
    print_attributes,
)
from ..operation import Common, XetlOp
from .syntax import parse_types


class BreakpointOp(XetlOp, name="xetile.breakpoint"):
    """Let a debugger look at the variables of a kernel; compiled code goes on.

    ``names`` are those of the values; a value of any type may be among them.
    ``unsigned`` lists the vectors whose integers have no sign.
    """

    arguments = var_operand_def()
    names = prop_def(ArrayAttr[StringAttr])
    unsigned = opt_prop_def(DenseArrayBase)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        names: Sequence[str],
        arguments: Sequence[Value],
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[arguments],
            properties={
                "names": ArrayAttr([StringAttr(name) for name in names]),
                "unsigned": dense_i64(unsigned) if unsigned else None,
            },
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i) {names = ["i"]} : index``."""
        operands = parse_optional_operands(parser, parser.Delimiter.PAREN)
        properties, attributes = parse_attributes(parser, cls)
        position = parser.pos
        types = parse_types(parser) if parser.parse_optional_punctuation(":") else []
        values = list(parser.resolve_operands(operands, types, position))
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``(%i) {names = ["i"]} : index``."""
        if self.arguments:
            with printer.in_parens():
                printer.print_list(self.arguments, printer.print_ssa_value)
        print_attributes(printer, self)
        if self.arguments:
            printer.print_string(" : ")
            types = [argument.type for argument in self.arguments]
            printer.print_list(types, printer.print_attribute)

    def verify_(self) -> None:
        """Check that each value has a name."""
        names, values = len(self.names), len(self.arguments)
        check(names == values, f"there are {names} names for {values} values")
