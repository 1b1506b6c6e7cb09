"""Functions, calls and returns.  Source: MLIR, `func` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from xetl.records import record

from ..base import Value, check, is_array, write
from ..operation import Common, XetlOp, operations_of
from ..verify import LocatedVerifyException

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

HIDDEN = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


def check_returns(body: Region, type_: builtin.FunctionType) -> None:
    """Check that each return gives the result types of the function."""
    expected = list(type_.outputs.data)
    for block in body.blocks:
        last = block.last_op
        if last is None or not last.name.endswith(".return"):
            continue
        found = [operand.type for operand in last.operands]
        if found != expected:
            wanted = ", ".join(map(str, expected)) or "no values"
            raise LocatedVerifyException(last, f"expected {wanted}")


# Text that kernels of other dialects use, too. Source: MLIR, FunctionOpInterface.


@record()
class ParsedSignature:
    """``(%a: type {...}, ...) -> (type {...}, ...)``; a declaration has no names."""

    arguments: list[Parser.Argument] = field(default_factory=list[Any])
    inputs: list[Attribute] = field(default_factory=list[Attribute])
    input_attributes: list[builtin.DictionaryAttr] = field(
        default_factory=list[builtin.DictionaryAttr]
    )
    results: list[Attribute] = field(default_factory=list[Attribute])
    result_attributes: list[builtin.DictionaryAttr] = field(
        default_factory=list[builtin.DictionaryAttr]
    )

    @property
    def function_type(self) -> builtin.FunctionType:
        """The type of the function."""
        return builtin.FunctionType.from_lists(self.inputs, self.results)

    def attribute_properties(self) -> dict[str, Attribute]:
        """Return the properties `arg_attrs` and `res_attrs`, each only if not empty."""
        found: dict[str, Attribute] = {}
        if any(attributes.data for attributes in self.input_attributes):
            found["arg_attrs"] = builtin.ArrayAttr(self.input_attributes)
        if any(attributes.data for attributes in self.result_attributes):
            found["res_attrs"] = builtin.ArrayAttr(self.result_attributes)
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
        signature.input_attributes.append(builtin.DictionaryAttr(attributes))
        signature.inputs.append(type_)
        location = parser.parse_optional_location()
        if argument is not None and location is not None:
            argument.location = location

    def parse_result() -> None:
        signature.results.append(parser.parse_type())
        attributes = parser.parse_optional_attr_dict()
        signature.result_attributes.append(builtin.DictionaryAttr(attributes))

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
    if parser.parse_optional_punctuation("->"):
        several = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parse_result
        )
        if several is None:
            signature.results.append(parser.parse_type())
            signature.result_attributes.append(builtin.DictionaryAttr({}))
    return signature


def parse_attribution(parser: Parser) -> Parser.Argument:
    """Parse ``%memory : type {...}``; the attributes are dropped."""
    argument = parser.parse_argument()
    parser.parse_optional_attr_dict()
    return argument


def parse_keyword_attributes(parser: Parser) -> dict[str, Attribute]:
    """Parse ``attributes {...}`` if it is there."""
    is_there = parser.parse_optional_keyword("attributes") is not None
    return parser.parse_optional_attr_dict() if is_there else {}


def parse_body(parser: Parser, arguments: Sequence[Parser.Argument]) -> Region:
    """Parse the body; return an empty region if there is none."""
    return parser.parse_optional_region(arguments) or Region()


def _attributes_at(attributes: Attribute | None, index: int) -> dict[str, Attribute]:
    if not is_array(attributes):
        return {}
    found: Attribute = attributes.data[index]
    return dict(found.data) if isinstance(found, builtin.DictionaryAttr) else {}


def print_arguments(
    printer: Printer, arguments: Sequence[SSAValue], attributes: Attribute | None
) -> None:
    """Print ``(%a: type {...}, ...)``."""

    def print_one(index: int) -> None:
        argument = arguments[index]
        write(printer, argument, ": ", argument.type)
        printer.print_op_attributes(_attributes_at(attributes, index))

    with printer.in_parens():
        printer.print_list(range(len(arguments)), print_one)


def print_results(
    printer: Printer, results: Sequence[Attribute], attributes: Attribute | None
) -> None:
    """Print ``-> type`` or ``-> (type {...}, ...)``."""

    def print_one(index: int) -> None:
        printer.print_attribute(results[index])
        printer.print_op_attributes(_attributes_at(attributes, index))

    if not results:
        return
    write(printer, " -> ")
    if len(results) == 1 and attributes is None:
        write(printer, results[0])
        return
    with printer.in_parens():
        printer.print_list(range(len(results)), print_one)


# Operations


class FuncOp(
    XetlOp, name="func.func", traits=[IsolatedFromAbove(), SymbolOpInterface()]
):
    """A function, or a declaration if it has no body."""

    sym_name = irdl.prop_def(builtin.SymbolNameConstraint())
    function_type = irdl.prop_def(builtin.FunctionType)
    sym_visibility = irdl.opt_prop_def(builtin.StringAttr)
    arg_attrs = res_attrs = irdl.opt_prop_def(builtin.ArrayAttr)
    body = irdl.region_def()

    def __init__(
        self,
        name: str,
        function_type: builtin.FunctionType,
        body: Region | None = None,
        visibility: str | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            body or Region(),
            sym_name=name,
            function_type=function_type,
            sym_visibility=visibility,
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``private @name(%a: type) -> type attributes {...} {...}``."""
        properties: dict[str, Attribute] = {}
        visibility = parser.parse_optional_visibility_keyword()
        if visibility is not None:
            properties["sym_visibility"] = visibility
        properties["sym_name"] = parser.parse_symbol_name()
        signature = parse_signature(parser)
        properties["function_type"] = signature.function_type
        attributes = parse_keyword_attributes(parser)
        body = parse_body(parser, signature.arguments)
        return cls.create(
            properties=properties | signature.attribute_properties(),
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            write(printer, f" {self.sym_visibility.data}")
        write(printer, " ")
        printer.print_symbol_name(self.sym_name.data)
        if self.body.blocks:
            print_arguments(printer, self.body.blocks[0].args, self.arg_attrs)
        else:
            write(printer, [*self.function_type.inputs.data])
        print_results(printer, self.function_type.outputs.data, self.res_attrs)
        printer.print_op_attributes(
            self.properties | self.attributes,
            reserved_attr_names=HIDDEN,
            print_keyword=True,
        )
        if self.body.blocks:
            write(printer, " ")
            printer.print_region(self.body, False, False)

    def verify_(self) -> None:
        if self.body.blocks:
            found = [argument.type for argument in self.body.blocks[0].args]
            expected = list(self.function_type.inputs.data)
            check(found == expected, "the body takes {}, expected {}", found, expected)
            check_returns(self.body, self.function_type)


class GivingOp(XetlOp, traits=[IsTerminator(), Pure()]):
    """``op %a, %b : types``: ends a region and passes values to its operation."""

    arguments = irdl.var_operand_def()

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: Value, **common: Unpack[Common]) -> None:
        super().__init__(arguments, **common)


class ReturnOp(GivingOp, name="func.return"):
    """Return from a function."""


class CallOp(XetlOp, name="func.call"):
    """Call a function of the module."""

    callee = irdl.prop_def(builtin.FlatSymbolRefAttrConstr)
    arguments = irdl.var_operand_def()
    res = irdl.var_result_def()

    assembly_format = (
        "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"
    )


Func = Dialect("func", operations_of(__name__))
