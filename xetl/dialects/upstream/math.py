"""Elementary functions on floats and a few on integers.

Source: MLIR, `math` dialect.
"""

from __future__ import annotations

from typing_extensions import Unpack
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def

from ..base import Common, Value, type_of
from .elementwise import (
    FastMathFlagsAttr,
    FloatBinaryOp,
    FloatOp,
    FloatUnaryOp,
    IntegerBinaryOp,
    IntegerUnaryOp,
)
from .math_more import MORE_OPS


@irdl_op_definition
class AbsfOp(FloatUnaryOp):
    """Absolute value."""

    name = "math.absf"


@irdl_op_definition
class AcosOp(FloatUnaryOp):
    """Arc cosine."""

    name = "math.acos"


@irdl_op_definition
class AsinOp(FloatUnaryOp):
    """Arc sine."""

    name = "math.asin"


@irdl_op_definition
class AtanOp(FloatUnaryOp):
    """Arc tangent."""

    name = "math.atan"


@irdl_op_definition
class CbrtOp(FloatUnaryOp):
    """Cube root."""

    name = "math.cbrt"


@irdl_op_definition
class CeilOp(FloatUnaryOp):
    """Round up."""

    name = "math.ceil"


@irdl_op_definition
class CosOp(FloatUnaryOp):
    """Cosine."""

    name = "math.cos"


@irdl_op_definition
class CoshOp(FloatUnaryOp):
    """Hyperbolic cosine."""

    name = "math.cosh"


@irdl_op_definition
class ErfOp(FloatUnaryOp):
    """Error function."""

    name = "math.erf"


@irdl_op_definition
class ErfcOp(FloatUnaryOp):
    """Complementary error function."""

    name = "math.erfc"


@irdl_op_definition
class ExpOp(FloatUnaryOp):
    """e to the power."""

    name = "math.exp"


@irdl_op_definition
class Exp2Op(FloatUnaryOp):
    """2 to the power."""

    name = "math.exp2"


@irdl_op_definition
class Expm1Op(FloatUnaryOp):
    """exp(x) - 1."""

    name = "math.expm1"


@irdl_op_definition
class FloorOp(FloatUnaryOp):
    """Round down."""

    name = "math.floor"


@irdl_op_definition
class LogOp(FloatUnaryOp):
    """Natural logarithm."""

    name = "math.log"


@irdl_op_definition
class Log10Op(FloatUnaryOp):
    """Decimal logarithm."""

    name = "math.log10"


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """log(1 + x)."""

    name = "math.log1p"


@irdl_op_definition
class Log2Op(FloatUnaryOp):
    """Binary logarithm."""

    name = "math.log2"


@irdl_op_definition
class RoundOp(FloatUnaryOp):
    """Round to nearest, ties away from zero."""

    name = "math.round"


@irdl_op_definition
class RoundevenOp(FloatUnaryOp):
    """Round to nearest, ties to even."""

    name = "math.roundeven"


@irdl_op_definition
class RsqrtOp(FloatUnaryOp):
    """1 / sqrt(x)."""

    name = "math.rsqrt"


@irdl_op_definition
class SinOp(FloatUnaryOp):
    """Sine."""

    name = "math.sin"


@irdl_op_definition
class SinhOp(FloatUnaryOp):
    """Hyperbolic sine."""

    name = "math.sinh"


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    """Square root."""

    name = "math.sqrt"


@irdl_op_definition
class TanOp(FloatUnaryOp):
    """Tangent."""

    name = "math.tan"


@irdl_op_definition
class TanhOp(FloatUnaryOp):
    """Hyperbolic tangent."""

    name = "math.tanh"


@irdl_op_definition
class TruncOp(FloatUnaryOp):
    """Round towards zero."""

    name = "math.trunc"


@irdl_op_definition
class Atan2Op(FloatBinaryOp):
    """Angle of the point (rhs, lhs)."""

    name = "math.atan2"


@irdl_op_definition
class CopysignOp(FloatBinaryOp):
    """Magnitude of the left side with the sign of the right one."""

    name = "math.copysign"


@irdl_op_definition
class PowfOp(FloatBinaryOp):
    """Left side to the power of the right one."""

    name = "math.powf"


@irdl_op_definition
class AbsiOp(IntegerUnaryOp):
    """Absolute value; wraps for the smallest integer."""

    name = "math.absi"


@irdl_op_definition
class CtlzOp(IntegerUnaryOp):
    """Number of leading zero bits."""

    name = "math.ctlz"


@irdl_op_definition
class CtpopOp(IntegerUnaryOp):
    """Number of one bits."""

    name = "math.ctpop"


@irdl_op_definition
class CttzOp(IntegerUnaryOp):
    """Number of trailing zero bits."""

    name = "math.cttz"


@irdl_op_definition
class IpowiOp(IntegerBinaryOp):
    """Integer power."""

    name = "math.ipowi"


SIMPLE_OPS = (
    AbsfOp,
    AcosOp,
    AsinOp,
    AtanOp,
    CbrtOp,
    CeilOp,
    CosOp,
    CoshOp,
    ErfOp,
    ErfcOp,
    ExpOp,
    Exp2Op,
    Expm1Op,
    FloorOp,
    LogOp,
    Log10Op,
    Log1pOp,
    Log2Op,
    RoundOp,
    RoundevenOp,
    RsqrtOp,
    SinOp,
    SinhOp,
    SqrtOp,
    TanOp,
    TanhOp,
    TruncOp,
    Atan2Op,
    CopysignOp,
    PowfOp,
    AbsiOp,
    CtlzOp,
    CtpopOp,
    CttzOp,
    IpowiOp,
)


@irdl_op_definition
class FmaOp(FloatOp):
    """``a * b + c`` with one rounding."""

    name = "math.fma"

    a = operand_def()
    b = operand_def()
    c = operand_def()

    def __init__(
        self,
        a: Value,
        b: Value,
        c: Value,
        fastmath: FastMathFlagsAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[a, b, c],
            result_types=[type_of(a)],
            properties={"fastmath": fastmath},
            **common,
        )


Math = Dialect("math", [*SIMPLE_OPS, *MORE_OPS, FmaOp])
