"""Shapes of elementwise operations: one base class for each form of the text.

Every one works on scalars and on vectors of any shape alike.
Source: MLIR, `arith`, `math` and `index` dialects.
"""

from __future__ import annotations

from typing import ClassVar, Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, i1
from xdsl.dialects.utils import BitEnumAttribute, FastMathAttrBase, FastMathFlag
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..base import (
    Common,
    Value,
    XetlOp,
    check,
    element_type,
    parse_attributes,
    parse_operands,
    print_attributes,
    shape_of,
    type_of,
    with_element,
)


@irdl_attr_definition
class FastMathFlagsAttr(FastMathAttrBase):
    """``fastmath<contract>``: what may be assumed of floats.  Source: MLIR, `arith`."""

    name = "arith.fastmath"


class IntegerOverflowFlag(StrEnum):
    """``nsw``: no signed wrap; ``nuw``: no unsigned wrap."""

    NSW = "nsw"
    NUW = "nuw"


@irdl_attr_definition
class IntegerOverflowFlagsAttr(BitEnumAttribute[IntegerOverflowFlag]):
    """``overflow<nsw>``: what is known not to wrap.  Source: MLIR, `arith`."""

    name = "arith.overflow"
    none_value = "none"


FlagsAttr = FastMathFlagsAttr | IntegerOverflowFlagsAttr
__all__ = ["FastMathFlag", "FastMathFlagsAttr", "IntegerOverflowFlagsAttr"]


def is_integer(type_: Attribute) -> bool:
    """Whether the elements are integers or `index`."""
    return isinstance(element_type(type_), IntegerType | IndexType)


def is_float(type_: Attribute) -> bool:
    """Whether the elements are floating point."""
    return isinstance(element_type(type_), AnyFloat)


def _check_elements(kind: str, *types: Attribute) -> None:
    expected = is_integer if kind == "integer" else is_float
    for found in types:
        if not expected(found):
            raise VerifyException(f"expected {kind} elements, found {found}")


class ElementwiseOp(XetlOp):
    """An operation on elements, with optional flags between operands and types."""

    KIND: ClassVar[str] = "integer"
    FLAG_KEYWORD: ClassVar[str] = ""
    FLAG_PROPERTY: ClassVar[str] = ""

    traits = traits_def(Pure())

    @classmethod
    def parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse ``fastmath<...>`` or ``overflow<...>`` where the op has such flags."""
        keyword = cls.FLAG_KEYWORD
        if not keyword or parser.parse_optional_keyword(keyword) is None:
            return {}
        if keyword == "fastmath":
            flags = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
            return {cls.FLAG_PROPERTY: flags}
        wraps = IntegerOverflowFlagsAttr.parse_parameter(parser)
        return {cls.FLAG_PROPERTY: IntegerOverflowFlagsAttr(wraps)}

    def print_flags(self, printer: Printer) -> None:
        """Print the flags, if there are any."""
        flags = self.properties.get(self.FLAG_PROPERTY)
        if isinstance(flags, FlagsAttr) and flags.data:
            printer.print_string(f" {self.FLAG_KEYWORD}")
            flags.print_parameter(printer)

    def print_tail(self, printer: Printer, *elided: str) -> None:
        """Print flags, attributes and the colon."""
        self.print_flags(printer)
        print_attributes(printer, self, (self.FLAG_PROPERTY, *elided))
        printer.print_string(" : ")


class SameTypeOp(ElementwiseOp):
    """``op %a, %b : type``: operands and result of one type."""

    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse operands, flags, attributes and the one type."""
        operands = parse_operands(parser)
        flags = cls.parse_flags(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(o, type_) for o in operands],
            result_types=[type_],
            properties=properties | flags,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print operands, flags, attributes and the one type."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        self.print_tail(printer)
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check that there is one type, of the right kind of elements."""
        type_ = self.result.type
        for operand in self.operands:
            if operand.type != type_:  # no message is made where nothing is wrong
                raise VerifyException(
                    f"operands and result must have one type, found {operand.type} "
                    f"and {type_}"
                )
        _check_elements(self.KIND, type_)


class IntegerBinaryOp(SameTypeOp):
    """Two integers or index values, or vectors of them."""

    lhs = operand_def()
    rhs = operand_def()

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[type_of(lhs)], **common)


class ExactBinaryOp(IntegerBinaryOp):
    """An integer operation that may promise to lose no bits; nothing follows here."""

    @classmethod
    def parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse ``exact``."""
        parser.parse_optional_keyword("exact")
        return {}


class OverflowBinaryOp(IntegerBinaryOp):
    """An integer operation that may promise not to wrap."""

    FLAG_KEYWORD: ClassVar[str] = "overflow"
    FLAG_PROPERTY: ClassVar[str] = "overflowFlags"

    overflow_flags = opt_prop_def(IntegerOverflowFlagsAttr, prop_name="overflowFlags")


class FloatOp(SameTypeOp):
    """Floats, with fast-math flags."""

    KIND: ClassVar[str] = "float"
    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    fastmath = opt_prop_def(FastMathFlagsAttr)


class FloatBinaryOp(FloatOp):
    """Two floats: computed in f32 at least and rounded once to the type."""

    lhs = operand_def()
    rhs = operand_def()

    def __init__(
        self,
        lhs: Value,
        rhs: Value,
        fastmath: FastMathFlagsAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[type_of(lhs)],
            properties={"fastmath": fastmath},
            **common,
        )


class FloatUnaryOp(FloatOp):
    """One float: computed in f32 at least and rounded once to the type."""

    operand = operand_def()

    def __init__(
        self,
        operand: Value,
        fastmath: FastMathFlagsAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[operand],
            result_types=[type_of(operand)],
            properties={"fastmath": fastmath},
            **common,
        )


class IntegerUnaryOp(SameTypeOp):
    """One integer."""

    operand = operand_def()

    def __init__(self, operand: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[operand], result_types=[type_of(operand)], **common)


class CastOp(ElementwiseOp):
    """``op %a : type to type``: the same shape with other elements."""

    SOURCE: ClassVar[str] = "integer"
    RESULT: ClassVar[str] = "integer"

    source = operand_def()
    result = result_def()

    def __init__(
        self, source: Value, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[source], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a : source to result``."""
        source = parser.parse_unresolved_operand()
        flags = cls.parse_flags(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        return cls.create(
            operands=[parser.resolve_operand(source, source_type)],
            result_types=[parser.parse_type()],
            properties=properties | flags,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a : source to result``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        self.print_tail(printer)
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check the shapes, the kinds of elements and the widths."""
        source, result = self.source.type, self.result.type
        check(
            shape_of(source) == shape_of(result),
            f"a cast keeps the shape, found {source} to {result}",
        )
        _check_elements(self.SOURCE, source)
        _check_elements(self.RESULT, result)
        self.verify_widths(element_type(source), element_type(result))

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check what the cast says of widths; by default nothing."""


def bit_width(type_: Attribute) -> int:
    """Bits of a scalar type; `index` counts as 64."""
    if isinstance(type_, IntegerType):
        return type_.bitwidth
    if isinstance(type_, AnyFloat):
        return type_.bitwidth
    if isinstance(type_, IndexType):
        return 64
    raise VerifyException(f"{type_} has no width")


class WideningOp(CastOp):
    """A cast to a wider type."""

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that the result is wider."""
        check(
            bit_width(source) < bit_width(result),
            f"the result must be wider than the source, found {source} to {result}",
        )


class NarrowingOp(CastOp):
    """A cast to a narrower type."""

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that the result is narrower."""
        check(
            bit_width(source) > bit_width(result),
            f"the result must be narrower than the source, found {source} to {result}",
        )


def boolean_like(type_: Attribute) -> Attribute:
    """i1 in the shape of ``type_``: what a comparison gives."""
    return with_element(type_, i1)


class CompareOp(ElementwiseOp):
    """``op predicate, %a, %b : type``; i1 in the operands' shape."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    @property
    def predicate_name(self) -> str:
        """The predicate as MLIR spells it."""
        raise NotImplementedError

    def print(self, printer: Printer) -> None:
        """Print ``predicate, %a, %b : type``."""
        printer.print_string(f" {self.predicate_name}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        self.print_tail(printer, "predicate")
        printer.print_attribute(self.lhs.type)

    def verify_(self) -> None:
        """Check that both sides have one type and the result is i1 in its shape."""
        left, right, result = self.lhs.type, self.rhs.type, self.result.type
        check(left == right, f"compared types differ: {left} and {right}")
        _check_elements(self.KIND, left)
        check(
            result == boolean_like(left),
            f"comparing {left} gives {boolean_like(left)}, found {result}",
        )
