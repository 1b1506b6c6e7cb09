"""Elementary functions on floats and a few on integers.

Source: MLIR, `math` dialect.
"""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from ..base import check, shape_of
from ..operation import XetlOp, operations_of
from ..traits import Elementwise
from ..type_rules import like
from .elementwise import (
    ElementwiseOp,
    FloatBinaryOp,
    FloatOp,
    FloatUnaryOp,
    Ignored,
    IntegerBinaryOp,
    IntegerUnaryOp,
    boolean_like,
    is_float,
    is_integer,
)


class AbsfOp(FloatUnaryOp, name="math.absf"):
    """Absolute value."""


class AcosOp(FloatUnaryOp, name="math.acos"):
    """Arc cosine."""


class AsinOp(FloatUnaryOp, name="math.asin"):
    """Arc sine."""


class AtanOp(FloatUnaryOp, name="math.atan"):
    """Arc tangent."""


class CbrtOp(FloatUnaryOp, name="math.cbrt"):
    """Cube root."""


class CeilOp(FloatUnaryOp, name="math.ceil"):
    """Round up."""


class CosOp(FloatUnaryOp, name="math.cos"):
    """Cosine."""


class CoshOp(FloatUnaryOp, name="math.cosh"):
    """Hyperbolic cosine."""


class ErfOp(FloatUnaryOp, name="math.erf"):
    """Error function."""


class ErfcOp(FloatUnaryOp, name="math.erfc"):
    """Complementary error function."""


class ExpOp(FloatUnaryOp, name="math.exp"):
    """e to the power."""


class Exp2Op(FloatUnaryOp, name="math.exp2"):
    """2 to the power."""


class Expm1Op(FloatUnaryOp, name="math.expm1"):
    """exp(x) - 1."""


class FloorOp(FloatUnaryOp, name="math.floor"):
    """Round down."""


class LogOp(FloatUnaryOp, name="math.log"):
    """Natural logarithm."""


class Log10Op(FloatUnaryOp, name="math.log10"):
    """Decimal logarithm."""


class Log1pOp(FloatUnaryOp, name="math.log1p"):
    """log(1 + x)."""


class Log2Op(FloatUnaryOp, name="math.log2"):
    """Binary logarithm."""


class RoundOp(FloatUnaryOp, name="math.round"):
    """Round to nearest, ties away from zero."""


class RoundevenOp(FloatUnaryOp, name="math.roundeven"):
    """Round to nearest, ties to even."""


class RsqrtOp(FloatUnaryOp, name="math.rsqrt"):
    """1 / sqrt(x)."""


class SinOp(FloatUnaryOp, name="math.sin"):
    """Sine."""


class SinhOp(FloatUnaryOp, name="math.sinh"):
    """Hyperbolic sine."""


class SqrtOp(FloatUnaryOp, name="math.sqrt"):
    """Square root."""


class TanOp(FloatUnaryOp, name="math.tan"):
    """Tangent."""


class TanhOp(FloatUnaryOp, name="math.tanh"):
    """Hyperbolic tangent."""


class TruncOp(FloatUnaryOp, name="math.trunc"):
    """Round towards zero."""


class Atan2Op(FloatBinaryOp, name="math.atan2"):
    """Angle of the point (rhs, lhs)."""


class CopysignOp(FloatBinaryOp, name="math.copysign"):
    """Magnitude of the left side with the sign of the right one."""


class PowfOp(FloatBinaryOp, name="math.powf"):
    """Left side to the power of the right one."""


class AbsiOp(IntegerUnaryOp, name="math.absi"):
    """Absolute value; wraps for the smallest integer."""


class CtlzOp(IntegerUnaryOp, name="math.ctlz"):
    """Number of leading zero bits."""


class CtpopOp(IntegerUnaryOp, name="math.ctpop"):
    """Number of one bits."""


class CttzOp(IntegerUnaryOp, name="math.cttz"):
    """Number of trailing zero bits."""


class IpowiOp(IntegerBinaryOp, name="math.ipowi"):
    """Integer power."""


class AcoshOp(FloatUnaryOp, name="math.acosh"):
    """Inverse of the hyperbolic cosine."""


class AsinhOp(FloatUnaryOp, name="math.asinh"):
    """Inverse of the hyperbolic sine."""


class AtanhOp(FloatUnaryOp, name="math.atanh"):
    """Inverse of the hyperbolic tangent."""


class FmaOp(FloatOp, name="math.fma"):
    """``a * b + c`` with one rounding."""

    a = operand_def()
    b = operand_def(like("a"))
    c = operand_def(like("a"))
    result = result_def(like("a"))

    assembly_format = "$a `,` $b `,` $c custom<Flags>($fastmath) attr-dict `:` type($a)"


class ClampfOp(FloatOp, name="math.clampf"):
    """``value`` between ``min`` and ``max``."""

    value = operand_def()
    min = operand_def(like("value"))
    max = operand_def(like("value"))
    result = result_def(like("value"))

    assembly_format = (
        "$value `to` ` ` `[` $min `,` $max `]` custom<Flags>($fastmath) attr-dict `:` "
        "type($value)"
    )


class FloatTestOp(ElementwiseOp):
    """``op %a : type``; i1 in the operand's shape."""

    operand = operand_def()
    result = result_def(like("operand", boolean_like))

    assembly_format = "$operand custom<Ignored>() attr-dict `:` type($operand)"

    def verify_(self) -> None:
        """Check that the operand is of floats."""
        type_ = self.operand.type
        check(is_float(type_), f"expected float elements, found {type_}")
        check(self.result.type == boolean_like(type_), "the result is of i1")


class IsnanOp(FloatTestOp, name="math.isnan"):
    """Whether it is no number."""


class IsinfOp(FloatTestOp, name="math.isinf"):
    """Whether it is infinite."""


class IsfiniteOp(FloatTestOp, name="math.isfinite"):
    """Whether it is a number and finite."""


class FpowiOp(ElementwiseOp, name="math.fpowi"):
    """A float to the power of an integer."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def(like("lhs"))

    assembly_format = (
        "$lhs `,` $rhs custom<Ignored>() attr-dict `:` type($lhs) `,` type($rhs)"
    )

    def verify_(self) -> None:
        """Check kinds and shapes."""
        left, right = self.lhs.type, self.rhs.type
        check(
            is_float(left) and is_integer(right) and shape_of(left) == shape_of(right),
            f"expected floats and integers of one shape, found {left} and {right}",
        )
        check(self.result.type == left, "the result has the type of the left side")


class SincosOp(XetlOp, name="math.sincos"):
    """Sine and cosine at once."""

    operand = operand_def()
    sin = result_def(like("operand"))
    cos = result_def(like("operand"))

    traits = traits_def(Pure(), Elementwise())
    custom_directives = (Ignored,)
    assembly_format = "$operand custom<Ignored>() attr-dict `:` type($operand)"

    def verify_(self) -> None:
        """Check that the operand is of floats."""
        check(is_float(self.operand.type), "expected float elements")


Math = Dialect("math", operations_of(__name__))
