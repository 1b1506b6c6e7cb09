"""Arithmetic, casts, comparisons and constants.  Source: MLIR, `arith` dialect.

Integers wrap.  Floats are computed in f32 or wider and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Attribute, Dialect, TypedAttribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def
from xdsl.traits import ConstantLike, Pure

from ..base import (
    check,
    element_type,
    is_dense,
    parse_attributes,
    print_attributes,
    shape_of,
)
from ..literals import integer_attr, make_splat, print_dense
from ..operation import Common, XetlOp, operations_of, row
from ..type_rules import like
from .elementwise import (
    CastOp,
    CompareOp,
    ElementwiseOp,
    ExactBinaryOp,
    FastMathFlagsAttr,
    FloatBinaryOp,
    FloatUnaryOp,
    IndexConversionOp,
    IntegerBinaryOp,
    IntegerOverflowFlagsAttr,
    NarrowingOp,
    OverflowBinaryOp,
    WideningOp,
    bit_width,
    boolean_like,
    check_elements,
)

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

AddiOp = row(OverflowBinaryOp, "arith.addi", "Sum, wrapping.", commutes=True)
SubiOp = row(OverflowBinaryOp, "arith.subi", "Difference, wrapping.")
MuliOp = row(OverflowBinaryOp, "arith.muli", "Product, wrapping.", commutes=True)
ShliOp = row(
    OverflowBinaryOp, "arith.shli", "Shift left; undefined from the type's width on."
)
DivsiOp = row(
    ExactBinaryOp,
    "arith.divsi",
    "Signed quotient, towards zero; undefined for 0 and for overflow.",
)
DivuiOp = row(ExactBinaryOp, "arith.divui", "Unsigned quotient; undefined for 0.")
RemsiOp = row(
    IntegerBinaryOp, "arith.remsi", "Signed remainder with the sign of the left side."
)
RemuiOp = row(IntegerBinaryOp, "arith.remui", "Unsigned remainder.")
CeildivsiOp = row(IntegerBinaryOp, "arith.ceildivsi", "Signed quotient, rounded up.")
CeildivuiOp = row(IntegerBinaryOp, "arith.ceildivui", "Unsigned quotient, rounded up.")
FloordivsiOp = row(
    IntegerBinaryOp, "arith.floordivsi", "Signed quotient, rounded down."
)
AndiOp = row(IntegerBinaryOp, "arith.andi", "Bitwise and.", commutes=True)
OriOp = row(IntegerBinaryOp, "arith.ori", "Bitwise or.", commutes=True)
XoriOp = row(IntegerBinaryOp, "arith.xori", "Bitwise exclusive or.", commutes=True)
MaxsiOp = row(IntegerBinaryOp, "arith.maxsi", "Signed maximum.", commutes=True)
MaxuiOp = row(IntegerBinaryOp, "arith.maxui", "Unsigned maximum.", commutes=True)
MinsiOp = row(IntegerBinaryOp, "arith.minsi", "Signed minimum.", commutes=True)
MinuiOp = row(IntegerBinaryOp, "arith.minui", "Unsigned minimum.", commutes=True)
ShrsiOp = row(ExactBinaryOp, "arith.shrsi", "Shift right with copies of the sign.")
ShruiOp = row(ExactBinaryOp, "arith.shrui", "Shift right with zeros.")
AddfOp = row(FloatBinaryOp, "arith.addf", "Sum.", commutes=True)
SubfOp = row(FloatBinaryOp, "arith.subf", "Difference.")
MulfOp = row(FloatBinaryOp, "arith.mulf", "Product.", commutes=True)
DivfOp = row(FloatBinaryOp, "arith.divf", "Quotient.")
RemfOp = row(
    FloatBinaryOp, "arith.remf", "Remainder with the sign of the left side (C's fmod)."
)
MaximumfOp = row(
    FloatBinaryOp, "arith.maximumf", "Maximum; NaN wins, and -0 < 0.", commutes=True
)
MinimumfOp = row(
    FloatBinaryOp, "arith.minimumf", "Minimum; NaN wins, and -0 < 0.", commutes=True
)
MaxnumfOp = row(
    FloatBinaryOp, "arith.maxnumf", "Maximum; numbers win over NaN.", commutes=True
)
MinnumfOp = row(
    FloatBinaryOp, "arith.minnumf", "Minimum; numbers win over NaN.", commutes=True
)
NegfOp = row(FloatUnaryOp, "arith.negf", "Negation: flips the sign bit, of NaN too.")
ExtsiOp = row(WideningOp, "arith.extsi", "Widen an integer with copies of its sign.")
ExtuiOp = row(WideningOp, "arith.extui", "Widen an integer with zeros.")


class TrunciOp(NarrowingOp, name="arith.trunci"):
    """Keep the low bits of an integer."""

    overflow_flags = opt_prop_def(IntegerOverflowFlagsAttr, prop_name="overflowFlags")

    assembly_format = (
        "$source custom<Flags>($overflowFlags) attr-dict `:` "
        "type($source) `to` type($result)"
    )


class ExtfOp(WideningOp, name="arith.extf"):
    """Widen a float without rounding."""

    SOURCE = RESULT = "float"

    fastmath = opt_prop_def(FastMathFlagsAttr)

    assembly_format = (
        "$source custom<Flags>($fastmath) attr-dict `:` "
        "type($source) `to` type($result)"
    )


class TruncfOp(NarrowingOp, name="arith.truncf"):
    """Narrow a float; it is rounded to nearest even, the only mode supported."""

    SOURCE = RESULT = "float"

    fastmath = opt_prop_def(FastMathFlagsAttr)

    assembly_format = (
        "$source custom<Rounding>() custom<Flags>($fastmath) attr-dict `:` "
        "type($source) `to` type($result)"
    )


class _ToFloatOp(CastOp):
    RESULT = "float"


class _FromFloatOp(CastOp):
    SOURCE = "float"


SitofpOp = row(_ToFloatOp, "arith.sitofp", "Signed integer, rounded to nearest even.")
UitofpOp = row(_ToFloatOp, "arith.uitofp", "Unsigned integer, rounded to nearest even.")
FptosiOp = row(
    _FromFloatOp, "arith.fptosi", "Signed, towards zero; undefined out of range."
)
FptouiOp = row(
    _FromFloatOp, "arith.fptoui", "Unsigned, towards zero; undefined out of range."
)
IndexCastOp = row(
    IndexConversionOp, "arith.index_cast", "Integer to index or back, signed."
)
IndexCastuiOp = row(
    IndexConversionOp, "arith.index_castui", "Integer to index or back, unsigned."
)


class BitcastOp(CastOp, name="arith.bitcast"):
    """Read the same bits as another type of the same width."""

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        same = shape_of(source) == shape_of(result) and bit_width(
            element_type(source)
        ) == bit_width(element_type(result))
        check(same, "a bitcast keeps shape and width, found {} to {}", source, result)


class AdduiExtendedOp(ElementwiseOp, name="arith.addui_extended"):
    """Add unsigned integers; the second result says whether the sum wrapped."""

    lhs = operand_def()
    rhs = operand_def(like("lhs"))
    sum = result_def(like("lhs"))
    overflow = result_def(like("lhs", boolean_like))

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($overflow)"

    def verify_(self) -> None:
        check_elements("integer", self.sum.type)


class ExtendedProductOp(ElementwiseOp):
    """The whole product of two integers: its lower half, then its upper half."""

    lhs = operand_def()
    rhs = operand_def(like("lhs"))
    low = high = result_def(like("lhs"))

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs)"

    def verify_(self) -> None:
        check_elements("integer", self.low.type)


MulsiExtendedOp = row(
    ExtendedProductOp, "arith.mulsi_extended", "The whole product, with sign."
)
MuluiExtendedOp = row(
    ExtendedProductOp, "arith.mului_extended", "The whole product, without sign."
)


CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_INDEX = IndexType()


class ConstantOp(XetlOp, name="arith.constant", traits=[Pure(), ConstantLike()]):
    """A number, or a vector of numbers."""

    value = prop_def(Attribute)
    result = result_def()

    def __init__(
        self, value: Attribute, type_: Attribute | None = None, **common: Unpack[Common]
    ) -> None:
        if type_ is None:
            type_ = _type_of_constant(value)
        super().__init__(type_, value=value, **common)

    @classmethod
    def index(cls, value: int, **common: Unpack[Common]) -> ConstantOp:
        """Return an `index` constant."""
        number = integer_attr(value, _INDEX)
        return cls(number, number.type, **common)

    @classmethod
    def of(
        cls, value: int | float, type_: Attribute, **common: Unpack[Common]
    ) -> ConstantOp:
        """Return a number, or a vector of it; integers are modulo ``2**width``."""
        return cls(make_splat(value, type_), type_, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attributes(parser, cls)
        value = parser.parse_attribute()
        return cls.create(
            result_types=[_type_of_constant(value)],
            properties=properties | {"value": value},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self, ("value",))
        printer.print_string(" ")
        if is_dense(self.value):
            print_dense(printer, self.value)
        else:
            printer.print_attribute(self.value)

    def verify_(self) -> None:
        found = _type_of_constant(self.value)
        wanted = self.result.type
        text = "the value has type {}, the result {}"
        check(found == wanted, text, found, wanted)


def _type_of_constant(value: Attribute) -> Attribute:
    check(isinstance(value, TypedAttribute), "{} is not a typed constant", value)
    return value.get_type() if isinstance(value, TypedAttribute) else value


class CmpiOp(CompareOp, name="arith.cmpi"):
    """Compare integers or index values."""

    WORDS = CMPI_PREDICATES

    assembly_format = (
        "custom<Enumerated>($predicate) `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
    )


class CmpfOp(CompareOp, name="arith.cmpf"):
    """Compare floats; `o...` is false and `u...` true if either is NaN."""

    KIND = "float"
    WORDS = CMPF_PREDICATES

    fastmath = opt_prop_def(FastMathFlagsAttr)

    assembly_format = (
        "custom<Enumerated>($predicate) `,` $lhs `,` $rhs custom<Flags>($fastmath) "
        "attr-dict `:` type($lhs)"
    )


class SelectOp(ElementwiseOp, name="arith.select"):
    """``true_value`` where the condition holds, else ``false_value``."""

    condition = true_value = operand_def()
    false_value = operand_def(like("true_value"))
    result = result_def(like("true_value"))

    assembly_format = (
        "$condition `,` $true_value `,` $false_value attr-dict `:` "
        "custom<SelectTypes>(type($condition), type($true_value))"
    )

    def verify_(self) -> None:
        type_, condition = self.result.type, self.condition.type
        text = "the condition must be i1 or i1 of shape {}, found {}"
        check(condition in (i1, boolean_like(type_)), text, shape_of(type_), condition)


Arith = Dialect(
    "arith", operations_of(__name__), [FastMathFlagsAttr, IntegerOverflowFlagsAttr]
)
