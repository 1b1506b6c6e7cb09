"""Functions, calls and returns.  Source: MLIR, `func` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Dialect, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from ..base import Value, check, parse_attributes, print_attributes
from ..operation import Common, XetlOp
from ..verify import LocatedVerifyException
from . import function_syntax as syntax

HIDDEN = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


def check_returns(body: Region, type_: FunctionType) -> None:
    """Check that each return gives what the type of the function says."""
    expected = list(type_.outputs.data)
    for block in body.blocks:
        last = block.last_op
        if last is None or not last.name.endswith(".return"):
            continue
        found = [operand.type for operand in last.operands]
        if found != expected:
            raise LocatedVerifyException(last, f"expected {_list(expected)}")


def _list(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "no values"


@irdl_op_definition
class FuncOp(XetlOp):
    """A function; without a body a declaration."""

    name = "func.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region | None = None,
        visibility: str | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sym_visibility": None
                if visibility is None
                else StringAttr(visibility),
            },
            regions=[body or Region()],
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
        signature = syntax.parse_signature(parser)
        properties["function_type"] = signature.function_type
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes"):
            attributes = parser.parse_optional_attr_dict()
        body = syntax.parse_body(parser, signature.arguments)
        return cls.create(
            properties=properties | signature.attribute_properties(),
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        """Print ``private @name(%a: type) -> type attributes {...} {...}``."""
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.body.blocks:
            arguments = self.body.blocks[0].args
            syntax.print_arguments(printer, arguments, self.arg_attrs)
        else:
            syntax.print_declared(printer, self.function_type.inputs.data)
        syntax.print_results(printer, self.function_type.outputs.data, self.res_attrs)
        printer.print_op_attributes(
            self.properties | self.attributes,
            reserved_attr_names=HIDDEN,
            print_keyword=True,
        )
        if self.body.blocks:
            printer.print_string(" ")
            printer.print_region(self.body, False, False)

    def verify_(self) -> None:
        """Check that the body takes what the type says."""
        if self.body.blocks:
            found = [argument.type for argument in self.body.blocks[0].args]
            expected = list(self.function_type.inputs.data)
            check(found == expected, f"the body takes {found}, expected {expected}")
            check_returns(self.body, self.function_type)


@irdl_op_definition
class ReturnOp(XetlOp):
    """Leave a function."""

    name = "func.return"

    arguments = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[arguments], **common)


@irdl_op_definition
class CallOp(XetlOp):
    """Call a function of the module."""

    name = "func.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(
        self,
        callee: str,
        arguments: Sequence[Value],
        result_types: Sequence[Attribute],
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[arguments],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@f(%a) : (type) -> type``."""
        callee = SymbolRefAttr(parser.parse_symbol_name())
        operands = parser.parse_op_args_list()
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands, type_.inputs.data, position),
            result_types=type_.outputs.data,
            properties=properties | {"callee": callee},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``@f(%a) : (type) -> type``."""
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        print_attributes(printer, self, ("callee",))
        printer.print_string(" : ")
        printer.print_operation_type(self)


Func = Dialect("func", [FuncOp, ReturnOp, CallOp])
