"""Functions, calls and returns.  Source: MLIR, `func` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

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


Attributed: TypeAlias = tuple[Attribute, builtin.DictionaryAttr]
"""The type of an argument or a result, and its attributes."""


def parse_signature(
    parser: Parser,
) -> tuple[list[Parser.Argument], dict[str, Attribute]]:
    """Parse ``(%a: type {...}, ...) -> (type {...}, ...)``; a declaration has no names.

    Return the arguments, and what the signature says as properties of a function.
    """
    arguments: list[Parser.Argument] = []

    def parse_one() -> Attributed:
        type_ = parser.parse_type()
        return type_, builtin.DictionaryAttr(parser.parse_optional_attr_dict())

    def parse_input() -> Attributed:
        argument = parser.parse_optional_argument()
        if argument is None:
            found = parse_one()
            parser.parse_optional_location()
            return found
        arguments.append(argument)
        attributes = parser.parse_optional_attr_dict()
        argument.location = parser.parse_optional_location() or argument.location
        return argument.type, builtin.DictionaryAttr(attributes)

    paren = parser.Delimiter.PAREN
    inputs = parser.parse_comma_separated_list(paren, parse_input)
    results: list[Attributed] = []
    if parser.parse_optional_punctuation("->"):
        several = parser.parse_optional_comma_separated_list(paren, parse_one)
        one = several is None
        results = (
            [(parser.parse_type(), builtin.DictionaryAttr({}))] if one else several
        )
    types = [[type_ for type_, _ in each] for each in (inputs, results)]
    properties: dict[str, Attribute] = {
        "function_type": builtin.FunctionType.from_lists(*types)
    }
    for name, each in (("arg_attrs", inputs), ("res_attrs", results)):
        if any(attributes.data for _, attributes in each):
            properties[name] = builtin.ArrayAttr([given for _, given in each])
    return arguments, properties


def parse_keyword_attributes(parser: Parser) -> dict[str, Attribute]:
    """Parse ``attributes {...}`` if it is there."""
    is_there = parser.parse_optional_keyword("attributes") is not None
    return parser.parse_optional_attr_dict() if is_there else {}


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


def print_attributes_and_body(
    printer: Printer, op: Operation, hidden: Sequence[str], body: Region
) -> None:
    """Print ``attributes {...} {...}``: what is not hidden, and the body if any."""
    shown = op.properties | op.attributes
    printer.print_op_attributes(shown, reserved_attr_names=hidden, print_keyword=True)
    if body.blocks:
        write(printer, " ")
        printer.print_region(body, False, False)


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
        arguments, of_signature = parse_signature(parser)
        attributes = parse_keyword_attributes(parser)
        return cls.create(
            properties=properties | of_signature,
            attributes=attributes,
            regions=[parser.parse_optional_region(arguments) or Region()],
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
        print_attributes_and_body(printer, self, HIDDEN, self.body)

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
