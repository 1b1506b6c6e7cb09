"""Elementary functions on floats and a few on integers.

Source: MLIR, `math` dialect.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, opt_prop_def, result_def

from ..base import check, shape_of
from ..operation import operations_of, row
from ..type_rules import like
from .elementwise import (
    ElementwiseOp,
    FloatBinaryOp,
    FloatOp,
    FloatUnaryOp,
    IntegerBinaryOp,
    IntegerUnaryOp,
    boolean_like,
    check_elements,
    is_float,
    is_integer,
)

AbsfOp = row(FloatUnaryOp, "math.absf", "Absolute value.")
AcosOp = row(FloatUnaryOp, "math.acos", "Arc cosine.")
AsinOp = row(FloatUnaryOp, "math.asin", "Arc sine.")
AtanOp = row(FloatUnaryOp, "math.atan", "Arc tangent.")
CbrtOp = row(FloatUnaryOp, "math.cbrt", "Cube root.")
CeilOp = row(FloatUnaryOp, "math.ceil", "Round up.")
CosOp = row(FloatUnaryOp, "math.cos", "Cosine.")
CoshOp = row(FloatUnaryOp, "math.cosh", "Hyperbolic cosine.")
ErfOp = row(FloatUnaryOp, "math.erf", "Error function.")
ErfcOp = row(FloatUnaryOp, "math.erfc", "Complementary error function.")
ExpOp = row(FloatUnaryOp, "math.exp", "e to the power.")
Expm1Op = row(FloatUnaryOp, "math.expm1", "exp(x) - 1.")
FloorOp = row(FloatUnaryOp, "math.floor", "Round down.")
LogOp = row(FloatUnaryOp, "math.log", "Natural logarithm.")
Log10Op = row(FloatUnaryOp, "math.log10", "Decimal logarithm.")
Log1pOp = row(FloatUnaryOp, "math.log1p", "log(1 + x).")
Log2Op = row(FloatUnaryOp, "math.log2", "Binary logarithm.")
RoundOp = row(FloatUnaryOp, "math.round", "Round to nearest, ties away from zero.")
RoundevenOp = row(FloatUnaryOp, "math.roundeven", "Round to nearest, ties to even.")
RsqrtOp = row(FloatUnaryOp, "math.rsqrt", "1 / sqrt(x).")
SinOp = row(FloatUnaryOp, "math.sin", "Sine.")
SinhOp = row(FloatUnaryOp, "math.sinh", "Hyperbolic sine.")
SqrtOp = row(FloatUnaryOp, "math.sqrt", "Square root.")
TanOp = row(FloatUnaryOp, "math.tan", "Tangent.")
TanhOp = row(FloatUnaryOp, "math.tanh", "Hyperbolic tangent.")
TruncOp = row(FloatUnaryOp, "math.trunc", "Round towards zero.")
Atan2Op = row(FloatBinaryOp, "math.atan2", "Angle of the point (rhs, lhs).")
CopysignOp = row(
    FloatBinaryOp, "math.copysign", "Magnitude of the left side, sign of the right."
)
PowfOp = row(FloatBinaryOp, "math.powf", "Left side to the power of the right one.")
AbsiOp = row(
    IntegerUnaryOp, "math.absi", "Absolute value; wraps for the smallest integer."
)
CtlzOp = row(IntegerUnaryOp, "math.ctlz", "Number of leading zero bits.")
CtpopOp = row(IntegerUnaryOp, "math.ctpop", "Number of one bits.")
CttzOp = row(IntegerUnaryOp, "math.cttz", "Number of trailing zero bits.")
IpowiOp = row(IntegerBinaryOp, "math.ipowi", "Integer power.")
AcoshOp = row(FloatUnaryOp, "math.acosh", "Inverse of the hyperbolic cosine.")
AsinhOp = row(FloatUnaryOp, "math.asinh", "Inverse of the hyperbolic sine.")
AtanhOp = row(FloatUnaryOp, "math.atanh", "Inverse of the hyperbolic tangent.")


class Exp2Op(FloatUnaryOp, name="math.exp2"):
    """2 to the power; ``nonpositive`` promises that operands are at most 0, or NaN."""

    nonpositive = opt_prop_def(UnitAttr)


class FmaOp(FloatOp, name="math.fma"):
    """``a * b + c`` with one rounding."""

    a = operand_def()
    b = c = operand_def(like("a"))
    result = result_def(like("a"))

    assembly_format = "$a `,` $b `,` $c custom<Flags>($fastmath) attr-dict `:` type($a)"


class ClampfOp(FloatOp, name="math.clampf"):
    """``value``, limited to the range from ``min`` to ``max``."""

    value = operand_def()
    min = max = operand_def(like("value"))
    result = result_def(like("value"))

    assembly_format = (
        "$value `to` ` ` `[` $min `,` $max `]` custom<Flags>($fastmath) attr-dict `:` "
        "type($value)"
    )


class FloatTestOp(ElementwiseOp):
    """``op %a : type``; the result is i1 in the operand's shape."""

    operand = operand_def()
    result = result_def(like("operand", boolean_like))

    assembly_format = "$operand custom<Ignored>() attr-dict `:` type($operand)"

    def verify_(self) -> None:
        check_elements("float", self.operand.type)


IsnanOp = row(FloatTestOp, "math.isnan", "Whether it is no number.")
IsinfOp = row(FloatTestOp, "math.isinf", "Whether it is infinite.")
IsfiniteOp = row(FloatTestOp, "math.isfinite", "Whether it is a number and finite.")


class FpowiOp(ElementwiseOp, name="math.fpowi"):
    """A float to the power of an integer."""

    lhs = rhs = operand_def()
    result = result_def(like("lhs"))

    assembly_format = (
        "$lhs `,` $rhs custom<Ignored>() attr-dict `:` type($lhs) `,` type($rhs)"
    )

    def verify_(self) -> None:
        left, right = self.lhs.type, self.rhs.type
        is_alike = shape_of(left) == shape_of(right)
        text = "expected floats and integers of one shape, found {} and {}"
        check(is_float(left) and is_integer(right) and is_alike, text, left, right)


class SincosOp(ElementwiseOp, name="math.sincos"):
    """Sine and cosine of one operand."""

    operand = operand_def()
    sin = cos = result_def(like("operand"))

    assembly_format = "$operand custom<Ignored>() attr-dict `:` type($operand)"

    def verify_(self) -> None:
        check_elements("float", self.operand.type)


Math = Dialect("math", operations_of(__name__))
