"""Named memory of a module.  Source: MLIR, `memref` dialect."""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolOpInterface

from ..base import check, parse_attributes, print_attributes
from ..kinds_of_types import MemRef, is_dense, is_memref
from ..memref_layout import has_static_layout
from ..operation import Common, XetlOp

HIDDEN = ("sym_name", "sym_visibility", "constant", "type", "initial_value")


@irdl_op_definition
class GlobalOp(XetlOp):
    """Memory with a name; without an initial value it lies elsewhere."""

    name = "memref.global"

    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(TypeAttribute)
    initial_value = opt_prop_def(Attribute)
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        type_: Attribute,
        initial_value: Attribute | None = None,
        *,
        constant: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "type": type_,
                "initial_value": initial_value,
                "constant": UnitAttr() if constant else None,
            },
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``"private" constant @name : memref = dense<...> {alignment = 8}``."""
        properties: dict[str, Attribute] = {}
        visibility = parser.parse_optional_str_literal()
        if visibility is not None:
            properties["sym_visibility"] = StringAttr(visibility)
        if parser.parse_optional_keyword("constant"):
            properties["constant"] = UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = properties["type"] = parser.parse_type()
        if parser.parse_optional_punctuation("="):
            if parser.parse_optional_keyword("uninitialized"):
                properties["initial_value"] = UnitAttr()
            else:
                properties["initial_value"] = _parse_value(parser, type_)
        found, attributes = parse_attributes(parser, cls)
        return cls.create(properties=properties | found, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``"private" constant @name : memref = dense<...> {alignment = 8}``."""
        printer.print_string(" ")
        if self.sym_visibility is not None:
            printer.print_string(f'"{self.sym_visibility.data}" ')
        if self.constant is not None:
            printer.print_string("constant ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        value = self.initial_value
        if isinstance(value, UnitAttr):
            printer.print_string(" = uninitialized")
        elif value is not None:
            printer.print_string(" = ")
            printer.print_string(str(value).rpartition(" : ")[0])
        print_attributes(printer, self, HIDDEN)

    def verify_(self) -> None:
        """Check that the type is a memref of static shape, filled by the value."""
        type_, value = self.type, self.initial_value
        fits = is_memref(type_) and has_static_layout(type_)
        check(fits, f"a global has a memref type of static shape, found {type_}")
        if is_memref(type_) and is_dense(value):
            expected = _filled(type_)
            check(
                value.type == expected,
                f"the value is {value.type}, expected {expected}",
            )


def _parse_value(parser: Parser, type_: Attribute) -> Attribute:
    """Parse ``dense<...>``, whose type is the tensor of the memref's shape."""
    if not is_memref(type_):
        parser.raise_error(f"expected a memref type, found {type_}")
    parser.parse_keyword("dense")
    return parser.parse_dense_int_or_fp_elements_attr(_filled(type_))  # pyright: ignore[reportArgumentType] (the elements are checked by it)


def _filled(type_: MemRef) -> TensorType[Attribute]:
    """The type of a value for the whole memref."""
    return TensorType(type_.element_type, type_.get_shape())


@irdl_op_definition
class GetGlobalOp(XetlOp):
    """The memory called ``name``."""

    name = "memref.get_global"

    symbol = prop_def(FlatSymbolRefAttrConstr, prop_name="name")
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    assembly_format = "$name `:` type($result) attr-dict"

    def __init__(
        self, name: str, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            result_types=[result_type],
            properties={"name": SymbolRefAttr(name)},
            **common,
        )
