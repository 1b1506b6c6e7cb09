"""Arithmetic on integers and index values; everything wraps.

Source: MLIR, `arith` dialect.
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Commutative

from .elementwise import ExactBinaryOp, IntegerBinaryOp, OverflowBinaryOp


@irdl_op_definition
class AddiOp(OverflowBinaryOp):
    """Sum, wrapping."""

    name = "arith.addi"

    traits = traits_def(Commutative())


@irdl_op_definition
class SubiOp(OverflowBinaryOp):
    """Difference, wrapping."""

    name = "arith.subi"


@irdl_op_definition
class MuliOp(OverflowBinaryOp):
    """Product, wrapping."""

    name = "arith.muli"

    traits = traits_def(Commutative())


@irdl_op_definition
class ShliOp(OverflowBinaryOp):
    """Shift left; undefined from the width of the type on."""

    name = "arith.shli"


@irdl_op_definition
class DivsiOp(ExactBinaryOp):
    """Signed quotient, towards zero; undefined for 0 and for overflow."""

    name = "arith.divsi"


@irdl_op_definition
class DivuiOp(ExactBinaryOp):
    """Unsigned quotient; undefined for 0."""

    name = "arith.divui"


@irdl_op_definition
class RemsiOp(IntegerBinaryOp):
    """Signed remainder with the sign of the left side."""

    name = "arith.remsi"


@irdl_op_definition
class RemuiOp(IntegerBinaryOp):
    """Unsigned remainder."""

    name = "arith.remui"


@irdl_op_definition
class CeildivsiOp(IntegerBinaryOp):
    """Signed quotient, rounded up."""

    name = "arith.ceildivsi"


@irdl_op_definition
class CeildivuiOp(IntegerBinaryOp):
    """Unsigned quotient, rounded up."""

    name = "arith.ceildivui"


@irdl_op_definition
class FloordivsiOp(IntegerBinaryOp):
    """Signed quotient, rounded down."""

    name = "arith.floordivsi"


@irdl_op_definition
class AndiOp(IntegerBinaryOp):
    """Bitwise and."""

    name = "arith.andi"

    traits = traits_def(Commutative())


@irdl_op_definition
class OriOp(IntegerBinaryOp):
    """Bitwise or."""

    name = "arith.ori"

    traits = traits_def(Commutative())


@irdl_op_definition
class XoriOp(IntegerBinaryOp):
    """Bitwise exclusive or."""

    name = "arith.xori"

    traits = traits_def(Commutative())


@irdl_op_definition
class MaxsiOp(IntegerBinaryOp):
    """Signed maximum."""

    name = "arith.maxsi"

    traits = traits_def(Commutative())


@irdl_op_definition
class MaxuiOp(IntegerBinaryOp):
    """Unsigned maximum."""

    name = "arith.maxui"

    traits = traits_def(Commutative())


@irdl_op_definition
class MinsiOp(IntegerBinaryOp):
    """Signed minimum."""

    name = "arith.minsi"

    traits = traits_def(Commutative())


@irdl_op_definition
class MinuiOp(IntegerBinaryOp):
    """Unsigned minimum."""

    name = "arith.minui"

    traits = traits_def(Commutative())


@irdl_op_definition
class ShrsiOp(ExactBinaryOp):
    """Shift right with copies of the sign."""

    name = "arith.shrsi"


@irdl_op_definition
class ShruiOp(ExactBinaryOp):
    """Shift right with zeros."""

    name = "arith.shrui"


INTEGER_OPS = (
    AddiOp,
    SubiOp,
    MuliOp,
    ShliOp,
    DivsiOp,
    DivuiOp,
    RemsiOp,
    RemuiOp,
    CeildivsiOp,
    CeildivuiOp,
    FloordivsiOp,
    AndiOp,
    OriOp,
    XoriOp,
    MaxsiOp,
    MaxuiOp,
    MinsiOp,
    MinuiOp,
    ShrsiOp,
    ShruiOp,
)
