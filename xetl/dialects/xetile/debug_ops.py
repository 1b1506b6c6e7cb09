"""Printing and checking while a kernel runs.

Source: `gpu.printf` and `cf.assert` of MLIR, whose texts cannot hold values of vectors.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
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
    ints_of,
    parse_attributes,
    parse_optional_operands,
    print_attributes,
)
from ..operation import Common, XetlOp
from .syntax import parse_types


def count_fields(template: str) -> int | None:
    """How many values a text takes; None if it is not well formed.

    Fields are those of Python's ``str.format``, in order and without names: ``{}``,
    ``{:.3f}``; ``{{`` and ``}}`` are braces.
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return None
    fields = [(name, spec) for _, name, spec, _ in parts if name is not None]
    if any(name or "{" in (spec or "") for name, spec in fields):
        return None
    return len(fields)


def _check_text(op: PrintOp | AssertOp) -> None:
    wanted, found = count_fields(op.template.data), len(op.arguments)
    check(wanted is not None, f"{op.template} is no text with fields {{}}")
    check(wanted == found, f"{op.template} has {wanted} fields for {found} values")
    positions = ints_of(op.unsigned)
    check(
        all(0 <= position < found for position in positions),
        f"`unsigned` names values that are not there: {list(positions)}",
    )


def _print_text(printer: Printer, op: PrintOp | AssertOp) -> None:
    printer.print_string(" ")
    printer.print_attribute(op.template)
    if op.arguments:
        with printer.in_parens():
            printer.print_list(op.arguments, printer.print_ssa_value)
    print_attributes(printer, op, ("template",))
    if op.arguments:
        printer.print_string(" : ")
        types = [argument.type for argument in op.arguments]
        printer.print_list(types, printer.print_attribute)


def _parse_text(
    parser: Parser, op_type: type[PrintOp | AssertOp]
) -> tuple[list[SSAValue], dict[str, Attribute], dict[str, Attribute]]:
    template = StringAttr(parser.parse_str_literal())
    operands = parse_optional_operands(parser, parser.Delimiter.PAREN)
    properties, attributes = parse_attributes(parser, op_type)
    types: list[Attribute] = []
    position = parser.pos
    if operands:
        parser.parse_punctuation(":")
        types = parse_types(parser)
    values = list(parser.resolve_operands(operands, types, position))
    return values, {"template": template, **properties}, attributes


def _properties(template: str, unsigned: Sequence[int]) -> dict[str, Attribute | None]:
    return {
        "template": StringAttr(template),
        "unsigned": dense_i64(unsigned) if unsigned else None,
    }


class PrintOp(XetlOp, name="xetile.print"):
    """Print a line: ``template``, its fields filled with the values.

    Each program of the grid prints its own lines, in its own order.  Scalars (index,
    i64, f64, i1) are formatted as Python formats an int, float or bool; vectors of
    rank 1 and 2 as NumPy prints arrays of that rank (a field of a vector has no
    format).  ``unsigned`` lists the values whose integers have no sign.
    """

    arguments = var_operand_def()
    template = prop_def(StringAttr)
    unsigned = opt_prop_def(DenseArrayBase)

    # Neither removed nor moved across other effects.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        template: str,
        arguments: Sequence[Value] = (),
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[arguments],
            properties=_properties(template, unsigned),
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``"x = {}"(%x) : index``."""
        values, properties, attributes = _parse_text(parser, cls)
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``"x = {}"(%x) : index``."""
        _print_text(printer, self)

    def verify_(self) -> None:
        """Check that there is a value for each field."""
        _check_text(self)


class AssertOp(XetlOp, name="xetile.assert"):
    """Stop the program unless ``condition`` holds; the text is that of `PrintOp`.

    What the program stored before stays stored; other programs may still run.  The
    launch fails with the text and the location of the operation.
    """

    condition = operand_def(i1)
    arguments = var_operand_def()
    template = prop_def(StringAttr)
    unsigned = opt_prop_def(DenseArrayBase)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        condition: Value,
        template: str,
        arguments: Sequence[Value] = (),
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[condition, arguments],
            properties=_properties(template, unsigned),
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c, "x is {}"(%x) : index``."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        parser.parse_punctuation(",")
        values, properties, attributes = _parse_text(parser, cls)
        return cls.create(
            operands=[condition, *values],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%c, "x is {}"(%x) : index``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(",")
        _print_text(printer, self)

    def verify_(self) -> None:
        """Check that there is a value for each field."""
        _check_text(self)
