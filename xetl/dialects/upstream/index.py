"""Arithmetic on `index` alone.  Source: MLIR, `index` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i1
from xdsl.ir import (
    Attribute,
    Dialect,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
)
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure

from ..base import (
    Value,
    check,
    parse_attributes,
    parse_operands,
    print_attributes,
    resolve_indices,
)
from ..operation import Common, XetlOp
from .elementwise import CastOp

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class BinaryOp(XetlOp):
    """``op %a, %b``: two index values."""

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[IndexType()], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b``."""
        operands = resolve_indices(parser, parse_operands(parser))
        properties, attributes = parse_attributes(parser, cls)
        return cls.create(
            operands=operands,
            result_types=[IndexType()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)


@irdl_op_definition
class AddOp(BinaryOp):
    """Sum."""

    name = "index.add"


@irdl_op_definition
class SubOp(BinaryOp):
    """Difference."""

    name = "index.sub"


@irdl_op_definition
class MulOp(BinaryOp):
    """Product."""

    name = "index.mul"


@irdl_op_definition
class DivsOp(BinaryOp):
    """Signed quotient, towards zero."""

    name = "index.divs"


@irdl_op_definition
class DivuOp(BinaryOp):
    """Unsigned quotient."""

    name = "index.divu"


@irdl_op_definition
class CeildivsOp(BinaryOp):
    """Signed quotient, rounded up."""

    name = "index.ceildivs"


@irdl_op_definition
class CeildivuOp(BinaryOp):
    """Unsigned quotient, rounded up."""

    name = "index.ceildivu"


@irdl_op_definition
class FloordivsOp(BinaryOp):
    """Signed quotient, rounded down."""

    name = "index.floordivs"


@irdl_op_definition
class RemsOp(BinaryOp):
    """Signed remainder."""

    name = "index.rems"


@irdl_op_definition
class RemuOp(BinaryOp):
    """Unsigned remainder."""

    name = "index.remu"


@irdl_op_definition
class MaxsOp(BinaryOp):
    """Signed maximum."""

    name = "index.maxs"


@irdl_op_definition
class MaxuOp(BinaryOp):
    """Unsigned maximum."""

    name = "index.maxu"


@irdl_op_definition
class MinsOp(BinaryOp):
    """Signed minimum."""

    name = "index.mins"


@irdl_op_definition
class MinuOp(BinaryOp):
    """Unsigned minimum."""

    name = "index.minu"


@irdl_op_definition
class ShlOp(BinaryOp):
    """Shift left."""

    name = "index.shl"


@irdl_op_definition
class ShrsOp(BinaryOp):
    """Shift right with copies of the sign."""

    name = "index.shrs"


@irdl_op_definition
class ShruOp(BinaryOp):
    """Shift right with zeros."""

    name = "index.shru"


@irdl_op_definition
class AndOp(BinaryOp):
    """Bitwise and."""

    name = "index.and"


@irdl_op_definition
class OrOp(BinaryOp):
    """Bitwise or."""

    name = "index.or"


@irdl_op_definition
class XorOp(BinaryOp):
    """Bitwise exclusive or."""

    name = "index.xor"


BINARY_OPS = (
    AddOp,
    SubOp,
    MulOp,
    DivsOp,
    DivuOp,
    CeildivsOp,
    CeildivuOp,
    FloordivsOp,
    RemsOp,
    RemuOp,
    MaxsOp,
    MaxuOp,
    MinsOp,
    MinuOp,
    ShlOp,
    ShrsOp,
    ShruOp,
    AndOp,
    OrOp,
    XorOp,
)


@irdl_op_definition
class ConstantOp(XetlOp):
    """A number."""

    name = "index.constant"

    value = prop_def(IntegerAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: int, **common: Unpack[Common]) -> None:
        super().__init__(
            result_types=[IndexType()],
            properties={"value": IntegerAttr(value, IndexType())},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``5``."""
        _, attributes = parse_attributes(parser, cls)
        return cls(parser.parse_integer(), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``5``."""
        print_attributes(printer, self, ("value",))
        printer.print_string(f" {self.value.value.data}")


@irdl_op_definition
class BoolConstantOp(XetlOp):
    """True or false."""

    name = "index.bool.constant"

    value = prop_def(IntegerAttr)
    result = result_def(i1)

    traits = traits_def(Pure(), ConstantLike())

    assembly_format = "attr-dict $value"

    def __init__(self, value: bool, **common: Unpack[Common]) -> None:
        super().__init__(
            result_types=[i1],
            properties={"value": IntegerAttr(int(value), i1)},
            **common,
        )


@irdl_op_definition
class CastsOp(CastOp):
    """Integer to index or back, signed."""

    name = "index.casts"


@irdl_op_definition
class CastuOp(CastOp):
    """Integer to index or back, unsigned."""

    name = "index.castu"


@irdl_attr_definition
class CmpPredicateAttr(ParametrizedAttribute, SpacedOpaqueSyntaxAttribute):
    """``#index<cmp_predicate slt>``."""

    name = "index.cmp_predicate"

    word: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(StringAttr(word))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``slt``."""
        return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        """Print ``slt``."""
        printer.print_string(self.word.data)

    def verify(self) -> None:
        """Check that there is such a predicate."""
        check(self.word.data in PREDICATES, f"unknown predicate {self.word.data}")


@irdl_op_definition
class CmpOp(XetlOp):
    """Compare index values."""

    name = "index.cmp"

    pred = prop_def(CmpPredicateAttr)
    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(i1)

    traits = traits_def(Pure())

    def __init__(
        self, predicate: str, lhs: Value, rhs: Value, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            operands=[lhs, rhs],
            result_types=[i1],
            properties={"pred": CmpPredicateAttr(predicate)},
            **common,
        )

    @property
    def predicate_name(self) -> str:
        """One of PREDICATES."""
        return self.pred.word.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``slt(%a, %b)``."""
        position = parser.pos
        name = parser.parse_identifier()
        if name not in PREDICATES:
            parser.raise_error(f"unknown predicate {name}", position)
        operands = resolve_indices(parser, parser.parse_op_args_list())
        _, attributes = parse_attributes(parser, cls)
        return cls(name, operands[0], operands[1], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``slt(%a, %b)``."""
        printer.print_string(f" {self.pred.word.data}")
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self, ("pred",))


@irdl_op_definition
class SizeofOp(XetlOp):
    """Bits of the index type."""

    name = "index.sizeof"

    result = result_def(IndexType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict"

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(result_types=[IndexType()], **common)


Index = Dialect(
    "index",
    [*BINARY_OPS, ConstantOp, BoolConstantOp, CastsOp, CastuOp, CmpOp, SizeofOp],
    [CmpPredicateAttr],
)
