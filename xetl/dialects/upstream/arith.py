"""Constants, comparisons and select; the other files of `arith` are gathered here.

Source: MLIR, `arith` dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, TypedAttribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure

from ..base import (
    Common,
    Value,
    XetlOp,
    check,
    parse_attributes,
    parse_operands,
    print_attributes,
    shape_of,
    type_of,
)
from ..kinds_of_types import is_dense
from ..literals import make_splat, print_dense
from .arith_casts import (
    CAST_OPS,
    BitcastOp,
    ExtfOp,
    ExtsiOp,
    ExtuiOp,
    FptosiOp,
    FptouiOp,
    IndexCastOp,
    IndexCastuiOp,
    SitofpOp,
    TruncfOp,
    TrunciOp,
    UitofpOp,
)
from .arith_extended import EXTENDED_OPS
from .arith_float import (
    FLOAT_OPS,
    AddfOp,
    DivfOp,
    MaximumfOp,
    MaxnumfOp,
    MinimumfOp,
    MinnumfOp,
    MulfOp,
    NegfOp,
    RemfOp,
    SubfOp,
)
from .arith_integer import (
    INTEGER_OPS,
    AddiOp,
    AndiOp,
    CeildivsiOp,
    CeildivuiOp,
    DivsiOp,
    DivuiOp,
    FloordivsiOp,
    MaxsiOp,
    MaxuiOp,
    MinsiOp,
    MinuiOp,
    MuliOp,
    OriOp,
    RemsiOp,
    RemuiOp,
    ShliOp,
    ShrsiOp,
    ShruiOp,
    SubiOp,
    XoriOp,
)
from .elementwise import (
    CompareOp,
    FastMathFlagsAttr,
    IntegerOverflowFlagsAttr,
    boolean_like,
)

__all__ = [
    "CMPF_PREDICATES",
    "CMPI_PREDICATES",
    "AddfOp",
    "AddiOp",
    "AndiOp",
    "Arith",
    "BitcastOp",
    "CeildivsiOp",
    "CeildivuiOp",
    "CmpfOp",
    "CmpiOp",
    "ConstantOp",
    "DivfOp",
    "DivsiOp",
    "DivuiOp",
    "ExtfOp",
    "ExtsiOp",
    "ExtuiOp",
    "FastMathFlagsAttr",
    "FloordivsiOp",
    "FptosiOp",
    "FptouiOp",
    "IndexCastOp",
    "IndexCastuiOp",
    "IntegerOverflowFlagsAttr",
    "MaximumfOp",
    "MaxnumfOp",
    "MaxsiOp",
    "MaxuiOp",
    "MinimumfOp",
    "MinnumfOp",
    "MinsiOp",
    "MinuiOp",
    "MulfOp",
    "MuliOp",
    "NegfOp",
    "OriOp",
    "RemfOp",
    "RemsiOp",
    "RemuiOp",
    "SelectOp",
    "ShliOp",
    "ShrsiOp",
    "ShruiOp",
    "SitofpOp",
    "SubfOp",
    "SubiOp",
    "TruncfOp",
    "TrunciOp",
    "UitofpOp",
    "XoriOp",
]

CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)


@irdl_op_definition
class ConstantOp(XetlOp):
    """A number, or a vector of numbers."""

    name = "arith.constant"

    value = prop_def(Attribute)
    result = result_def()

    traits = traits_def(Pure(), ConstantLike())

    def __init__(
        self, value: Attribute, type_: Attribute | None = None, **common: Unpack[Common]
    ) -> None:
        if type_ is None:
            type_ = _type_of_constant(value)
        super().__init__(result_types=[type_], properties={"value": value}, **common)

    @classmethod
    def index(cls, value: int, **common: Unpack[Common]) -> ConstantOp:
        """An `index` constant."""
        return cls(IntegerAttr(value, IndexType()), IndexType(), **common)

    @classmethod
    def integer(
        cls, value: int, type_: IntegerType, **common: Unpack[Common]
    ) -> ConstantOp:
        """An integer constant; taken modulo the width."""
        return cls(make_splat(value, type_), type_, **common)

    @classmethod
    def floating(
        cls, value: float, type_: AnyFloat, **common: Unpack[Common]
    ) -> ConstantOp:
        """A float constant, rounded to its type."""
        return cls(FloatAttr(value, type_), type_, **common)

    @classmethod
    def splat(
        cls,
        value: int | float,
        type_: VectorType[Attribute],
        **common: Unpack[Common],
    ) -> ConstantOp:
        """A vector full of ``value``."""
        return cls(make_splat(value, type_), type_, **common)

    @staticmethod
    def get_constant_value(op: ConstantOp) -> Attribute:
        """What ConstantLike asks for."""
        return op.value

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse attributes and the typed value."""
        properties, attributes = parse_attributes(parser, cls)
        value = parser.parse_attribute()
        return cls.create(
            result_types=[_type_of_constant(value)],
            properties=properties | {"value": value},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print attributes and the typed value."""
        print_attributes(printer, self, ("value",))
        printer.print_string(" ")
        if is_dense(self.value):
            print_dense(printer, self.value)
        else:
            printer.print_attribute(self.value)

    def verify_(self) -> None:
        """Check that the value has the type of the result."""
        found = _type_of_constant(self.value)
        wanted = self.result.type
        text = "the value has type {}, the result {}"
        check(found == wanted, text, found, wanted)


def _type_of_constant(value: Attribute) -> Attribute:
    check(isinstance(value, TypedAttribute), "{} is not a typed constant", value)
    return value.get_type() if isinstance(value, TypedAttribute) else value


def _parse_compare(
    parser: Parser, op: type[CompareOp], predicates: tuple[str, ...]
) -> tuple[int, list[Value], Mapping[str, Attribute], Mapping[str, Attribute]]:
    name = parser.parse_identifier()
    if name not in predicates:
        parser.raise_error(f"unknown predicate {name}, expected one of {predicates}")
    parser.parse_punctuation(",")
    operands = parse_operands(parser)
    flags = op.parse_flags(parser)
    properties, attributes = parse_attributes(parser, op)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    values: list[Value] = [parser.resolve_operand(o, type_) for o in operands]
    return predicates.index(name), values, properties | flags, attributes


@irdl_op_definition
class CmpiOp(CompareOp):
    """Compare integers or index values."""

    name = "arith.cmpi"

    predicate = prop_def(IntegerAttr)

    def __init__(
        self, predicate: str, lhs: Value, rhs: Value, **common: Unpack[Common]
    ) -> None:
        number = CMPI_PREDICATES.index(predicate)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[boolean_like(type_of(lhs))],
            properties={"predicate": IntegerAttr(number, i64)},
            **common,
        )

    @property
    def predicate_name(self) -> str:
        """One of CMPI_PREDICATES."""
        return CMPI_PREDICATES[self.predicate.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``predicate, %a, %b : type``."""
        number, values, properties, attributes = _parse_compare(
            parser, cls, CMPI_PREDICATES
        )
        return cls.build(
            operands=values,
            result_types=[boolean_like(type_of(values[0]))],
            properties={"predicate": IntegerAttr(number, i64), **properties},
            attributes=attributes,
        )


@irdl_op_definition
class CmpfOp(CompareOp):
    """Compare floats; `o...` is false and `u...` true if either is NaN."""

    name = "arith.cmpf"

    KIND: ClassVar[str] = "float"
    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    predicate = prop_def(IntegerAttr)
    fastmath = opt_prop_def(FastMathFlagsAttr)

    def __init__(
        self, predicate: str, lhs: Value, rhs: Value, **common: Unpack[Common]
    ) -> None:
        number = CMPF_PREDICATES.index(predicate)
        super().__init__(
            operands=[lhs, rhs],
            result_types=[boolean_like(type_of(lhs))],
            properties={"predicate": IntegerAttr(number, i64)},
            **common,
        )

    @property
    def predicate_name(self) -> str:
        """One of CMPF_PREDICATES."""
        return CMPF_PREDICATES[self.predicate.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``predicate, %a, %b : type``."""
        number, values, properties, attributes = _parse_compare(
            parser, cls, CMPF_PREDICATES
        )
        return cls.build(
            operands=values,
            result_types=[boolean_like(type_of(values[0]))],
            properties={"predicate": IntegerAttr(number, i64), **properties},
            attributes=attributes,
        )


@irdl_op_definition
class SelectOp(XetlOp):
    """``true_value`` where the condition holds, else ``false_value``."""

    name = "arith.select"

    condition = operand_def()
    true_value = operand_def()
    false_value = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        condition: Value,
        true_value: Value,
        false_value: Value,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[condition, true_value, false_value],
            result_types=[type_of(true_value)],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c, %a, %b : type`` or ``: vector<..xi1>, type``."""
        operands = parse_operands(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        condition, type_ = i1, parser.parse_type()
        if parser.parse_optional_punctuation(","):
            condition, type_ = type_, parser.parse_type()
        types = [condition, type_, type_]
        return cls.create(
            operands=parser.resolve_operands(operands, types, parser.pos),
            result_types=[type_],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print the operands and their types; i1 is left out."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        if self.condition.type != i1:
            printer.print_attribute(self.condition.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check that values agree and the condition is i1 or of their shape."""
        type_, condition = self.result.type, self.condition.type
        check(
            self.true_value.type == type_ == self.false_value.type,
            f"select needs one type, found {self.true_value.type} and "
            f"{self.false_value.type}",
        )
        check(
            condition in (i1, boolean_like(type_)),
            f"the condition must be i1 or i1 of shape {shape_of(type_)}, "
            f"found {condition}",
        )


Arith = Dialect(
    "arith",
    [
        *INTEGER_OPS,
        *EXTENDED_OPS,
        *FLOAT_OPS,
        *CAST_OPS,
        ConstantOp,
        CmpiOp,
        CmpfOp,
        SelectOp,
    ],
    [FastMathFlagsAttr, IntegerOverflowFlagsAttr],
)
