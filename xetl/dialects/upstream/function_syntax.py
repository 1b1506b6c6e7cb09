"""Text that `func.func` and `gpu.func` share: arguments, results, attributes, body.

Source: MLIR, FunctionOpInterface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..kinds_of_types import is_array


@dataclass
class ParsedSignature:
    """``(%a: type {...}, ...) -> (type {...}, ...)``; no names in a declaration."""

    arguments: list[Parser.Argument] = field(default_factory=list[Parser.Argument])
    inputs: list[Attribute] = field(default_factory=list[Attribute])
    input_attributes: list[DictionaryAttr] = field(default_factory=list[DictionaryAttr])
    results: list[Attribute] = field(default_factory=list[Attribute])
    result_attributes: list[DictionaryAttr] = field(
        default_factory=list[DictionaryAttr]
    )

    @property
    def function_type(self) -> FunctionType:
        """The type of the function."""
        return FunctionType.from_lists(self.inputs, self.results)

    def attribute_properties(self) -> dict[str, Attribute]:
        """`arg_attrs` and `res_attrs`, where there are any."""
        found: dict[str, Attribute] = {}
        if any(attributes.data for attributes in self.input_attributes):
            found["arg_attrs"] = ArrayAttr(self.input_attributes)
        if any(attributes.data for attributes in self.result_attributes):
            found["res_attrs"] = ArrayAttr(self.result_attributes)
        return found


def parse_signature(parser: Parser) -> ParsedSignature:
    """Parse arguments and results."""
    signature = ParsedSignature()

    def parse_input() -> None:
        argument = parser.parse_optional_argument()
        if argument is None:
            type_ = parser.parse_type()
        else:
            signature.arguments.append(argument)
            type_ = argument.type
        attributes = parser.parse_optional_attr_dict()
        signature.input_attributes.append(DictionaryAttr(attributes))
        signature.inputs.append(type_)
        location = parser.parse_optional_location()
        if argument is not None and location is not None:
            argument.location = location

    def parse_result() -> None:
        signature.results.append(parser.parse_type())
        attributes = parser.parse_optional_attr_dict()
        signature.result_attributes.append(DictionaryAttr(attributes))

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
    if parser.parse_optional_punctuation("->"):
        several = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parse_result
        )
        if several is None:
            signature.results.append(parser.parse_type())
            signature.result_attributes.append(DictionaryAttr({}))
    return signature


def parse_attribution(parser: Parser) -> Parser.Argument:
    """Parse ``%memory : type {...}``; the attributes are for other compilers."""
    argument = parser.parse_argument()
    parser.parse_optional_attr_dict()
    return argument


def parse_body(parser: Parser, arguments: Sequence[Parser.Argument]) -> Region:
    """Parse the body, empty if absent."""
    return parser.parse_optional_region(arguments) or Region()


def _attributes_at(attributes: Attribute | None, index: int) -> dict[str, Attribute]:
    if not is_array(attributes):
        return {}
    found: Attribute = attributes.data[index]
    return dict(found.data) if isinstance(found, DictionaryAttr) else {}


def print_arguments(
    printer: Printer, arguments: Sequence[SSAValue], attributes: Attribute | None
) -> None:
    """Print ``(%a: type {...}, ...)``."""

    def print_one(index: int) -> None:
        argument = arguments[index]
        printer.print_ssa_value(argument)
        printer.print_string(": ")
        printer.print_attribute(argument.type)
        printer.print_op_attributes(_attributes_at(attributes, index))

    with printer.in_parens():
        printer.print_list(range(len(arguments)), print_one)


def print_declared(printer: Printer, inputs: Sequence[Attribute]) -> None:
    """Print the arguments of a declaration."""
    with printer.in_parens():
        printer.print_list(inputs, printer.print_attribute)


def print_results(
    printer: Printer, results: Sequence[Attribute], attributes: Attribute | None
) -> None:
    """Print ``-> type`` or ``-> (type {...}, ...)``."""

    def print_one(index: int) -> None:
        printer.print_attribute(results[index])
        printer.print_op_attributes(_attributes_at(attributes, index))

    if not results:
        return
    printer.print_string(" -> ")
    if len(results) == 1 and attributes is None:
        printer.print_attribute(results[0])
        return
    with printer.in_parens():
        printer.print_list(range(len(results)), print_one)
