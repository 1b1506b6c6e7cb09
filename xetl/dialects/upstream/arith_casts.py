"""Casts between integers, index values and floats.

Source: MLIR, `arith` dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.parser import Parser

from ..base import check, element_type, shape_of
from .elementwise import (
    CastOp,
    FastMathFlagsAttr,
    IntegerOverflowFlagsAttr,
    NarrowingOp,
    WideningOp,
    bit_width,
)

_ROUNDINGS = (
    *("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away"),
)


@irdl_op_definition
class ExtsiOp(WideningOp):
    """Widen an integer with copies of its sign."""

    name = "arith.extsi"


@irdl_op_definition
class ExtuiOp(WideningOp):
    """Widen an integer with zeros."""

    name = "arith.extui"


@irdl_op_definition
class TrunciOp(NarrowingOp):
    """Keep the low bits of an integer."""

    name = "arith.trunci"

    FLAG_KEYWORD: ClassVar[str] = "overflow"
    FLAG_PROPERTY: ClassVar[str] = "overflowFlags"

    overflow_flags = opt_prop_def(IntegerOverflowFlagsAttr, prop_name="overflowFlags")


@irdl_op_definition
class ExtfOp(WideningOp):
    """Widen a float; exact."""

    name = "arith.extf"

    SOURCE: ClassVar[str] = "float"
    RESULT: ClassVar[str] = "float"
    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    fastmath = opt_prop_def(FastMathFlagsAttr)


@irdl_op_definition
class TruncfOp(NarrowingOp):
    """Narrow a float, to nearest even, the one way of rounding."""

    name = "arith.truncf"

    SOURCE: ClassVar[str] = "float"
    RESULT: ClassVar[str] = "float"
    FLAG_KEYWORD: ClassVar[str] = "fastmath"
    FLAG_PROPERTY: ClassVar[str] = "fastmath"

    fastmath = opt_prop_def(FastMathFlagsAttr)

    @classmethod
    def parse_flags(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse ``to_nearest_even fastmath<...>``."""
        position = parser.pos
        mode = next((m for m in _ROUNDINGS if parser.parse_optional_keyword(m)), None)
        if mode not in (None, _ROUNDINGS[0]):
            parser.raise_error(
                f"floats are rounded {_ROUNDINGS[0]}, not {mode}", position
            )
        return super().parse_flags(parser)


@irdl_op_definition
class SitofpOp(CastOp):
    """Signed integer to float, to nearest even."""

    name = "arith.sitofp"

    RESULT: ClassVar[str] = "float"


@irdl_op_definition
class UitofpOp(CastOp):
    """Unsigned integer to float, to nearest even."""

    name = "arith.uitofp"

    RESULT: ClassVar[str] = "float"


@irdl_op_definition
class FptosiOp(CastOp):
    """Float to signed integer, towards zero; undefined out of range."""

    name = "arith.fptosi"

    SOURCE: ClassVar[str] = "float"


@irdl_op_definition
class FptouiOp(CastOp):
    """Float to unsigned integer, towards zero; undefined out of range."""

    name = "arith.fptoui"

    SOURCE: ClassVar[str] = "float"


class _IndexCastOp(CastOp):
    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that exactly one side is `index`."""
        check(
            isinstance(source, IndexType) != isinstance(result, IndexType),
            f"one side must be index, the other an integer, found {source} to {result}",
        )


@irdl_op_definition
class IndexCastOp(_IndexCastOp):
    """Integer to index or back, signed."""

    name = "arith.index_cast"


@irdl_op_definition
class IndexCastuiOp(_IndexCastOp):
    """Integer to index or back, unsigned."""

    name = "arith.index_castui"


@irdl_op_definition
class BitcastOp(CastOp):
    """The same bits under another type of the same width."""

    name = "arith.bitcast"

    def verify_(self) -> None:
        """Check shapes and widths; any kind of elements will do."""
        source, result = self.source.type, self.result.type
        same = shape_of(source) == shape_of(result) and bit_width(
            element_type(source)
        ) == bit_width(element_type(result))
        check(same, f"a bitcast keeps shape and width, found {source} to {result}")


CAST_OPS = (
    ExtsiOp,
    ExtuiOp,
    TrunciOp,
    ExtfOp,
    TruncfOp,
    SitofpOp,
    UitofpOp,
    FptosiOp,
    FptouiOp,
    IndexCastOp,
    IndexCastuiOp,
    BitcastOp,
)
