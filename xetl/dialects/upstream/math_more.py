"""Functions of `math` that others express.  Source: MLIR, `math` dialect."""

from __future__ import annotations

from typing import ClassVar, Self

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
    shape_of,
    type_of,
)
from .elementwise import (
    ElementwiseOp,
    FastMathFlagsAttr,
    FloatOp,
    FloatUnaryOp,
    boolean_like,
    is_float,
    is_integer,
)

__all__ = ["MORE_OPS", "FastMathFlagsAttr"]


@irdl_op_definition
class AcoshOp(FloatUnaryOp):
    """Inverse of the hyperbolic cosine."""

    name = "math.acosh"


@irdl_op_definition
class AsinhOp(FloatUnaryOp):
    """Inverse of the hyperbolic sine."""

    name = "math.asinh"


@irdl_op_definition
class AtanhOp(FloatUnaryOp):
    """Inverse of the hyperbolic tangent."""

    name = "math.atanh"


class FloatTestOp(ElementwiseOp):
    """``op %a : type``; i1 in the operand's shape."""

    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    operand = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, operand: Value, **common: Unpack[Common]) -> None:
        type_ = boolean_like(type_of(operand))
        super().__init__(operands=[operand], result_types=[type_], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a : type``."""
        operand = parser.parse_unresolved_operand()
        cls.parse_flags(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        return cls(value, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%a : type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        self.print_tail(printer)
        printer.print_attribute(self.operand.type)

    def verify_(self) -> None:
        """Check that the operand is of floats."""
        type_ = self.operand.type
        check(is_float(type_), f"expected float elements, found {type_}")
        check(self.result.type == boolean_like(type_), "the result is of i1")


@irdl_op_definition
class IsnanOp(FloatTestOp):
    """Whether it is no number."""

    name = "math.isnan"

    operand = operand_def()
    result = result_def()


@irdl_op_definition
class IsinfOp(FloatTestOp):
    """Whether it is infinite."""

    name = "math.isinf"

    operand = operand_def()
    result = result_def()


@irdl_op_definition
class IsfiniteOp(FloatTestOp):
    """Whether it is a number and finite."""

    name = "math.isfinite"

    operand = operand_def()
    result = result_def()


@irdl_op_definition
class ClampfOp(FloatOp):
    """``value`` between ``min`` and ``max``."""

    name = "math.clampf"

    value = operand_def()
    min = operand_def()
    max = operand_def()

    def __init__(
        self, value: Value, min: Value, max: Value, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            operands=[value, min, max], result_types=[type_of(value)], **common
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%x to [%low, %high] : type``."""
        operands = [parser.parse_unresolved_operand()]
        parser.parse_keyword("to")
        operands += parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
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
        """Print ``%x to [%low, %high] : type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" to ")
        with printer.in_square_brackets():
            printer.print_list([self.min, self.max], printer.print_ssa_value)
        self.print_tail(printer)
        printer.print_attribute(self.result.type)


@irdl_op_definition
class FpowiOp(ElementwiseOp):
    """A float to the power of an integer."""

    name = "math.fpowi"

    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[type_of(lhs)], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %n : float, integer``."""
        operands = parse_operands(parser)
        cls.parse_flags(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_type
        )
        left, right = parser.resolve_operands(operands, types, position)
        return cls(left, right, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%a, %n : float, integer``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        self.print_tail(printer)
        printer.print_list(self.operand_types, printer.print_attribute)

    def verify_(self) -> None:
        """Check kinds and shapes."""
        left, right = self.lhs.type, self.rhs.type
        check(
            is_float(left) and is_integer(right) and shape_of(left) == shape_of(right),
            f"expected floats and integers of one shape, found {left} and {right}",
        )
        check(self.result.type == left, "the result has the type of the left side")


@irdl_op_definition
class SincosOp(XetlOp):
    """Sine and cosine at once."""

    name = "math.sincos"

    operand = operand_def()
    sin = result_def()
    cos = result_def()

    traits = traits_def(Pure())

    def __init__(self, operand: Value, **common: Unpack[Common]) -> None:
        types = [type_of(operand)] * 2
        super().__init__(operands=[operand], result_types=types, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a fastmath<...> : type``."""
        operand = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath"):
            FastMathFlagsAttr.parse_parameter(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        return cls(value, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%a : type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)

    def verify_(self) -> None:
        """Check that the operand is of floats."""
        check(is_float(self.operand.type), "expected float elements")


MORE_OPS = (
    *(AcoshOp, AsinhOp, AtanhOp, IsnanOp, IsinfOp, IsfiniteOp),
    *(ClampfOp, FpowiOp, SincosOp),
)
