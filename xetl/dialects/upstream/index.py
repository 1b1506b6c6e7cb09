"""Arithmetic on `index` only.  Source: MLIR, `index` dialect."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Dialect, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition, operand_def, prop_def, result_def
from xdsl.traits import ConstantLike, Pure

from ..attributes import WordAttr
from ..operation import PureOp, XetlOp, operations_of, row
from .arith import CMPI_PREDICATES
from .elementwise import CastOp


class BinaryOp(PureOp):
    """``op %a, %b``: an operation on two index values."""

    lhs = rhs = operand_def(IndexType)
    result = result_def(IndexType)

    assembly_format = "$lhs `,` $rhs attr-dict"


AddOp = row(BinaryOp, "index.add", "Sum.")
SubOp = row(BinaryOp, "index.sub", "Difference.")
MulOp = row(BinaryOp, "index.mul", "Product.")
DivsOp = row(BinaryOp, "index.divs", "Signed quotient, towards zero.")
DivuOp = row(BinaryOp, "index.divu", "Unsigned quotient.")
CeildivsOp = row(BinaryOp, "index.ceildivs", "Signed quotient, rounded up.")
CeildivuOp = row(BinaryOp, "index.ceildivu", "Unsigned quotient, rounded up.")
FloordivsOp = row(BinaryOp, "index.floordivs", "Signed quotient, rounded down.")
RemsOp = row(BinaryOp, "index.rems", "Signed remainder.")
RemuOp = row(BinaryOp, "index.remu", "Unsigned remainder.")
MaxsOp = row(BinaryOp, "index.maxs", "Signed maximum.")
MaxuOp = row(BinaryOp, "index.maxu", "Unsigned maximum.")
MinsOp = row(BinaryOp, "index.mins", "Signed minimum.")
MinuOp = row(BinaryOp, "index.minu", "Unsigned minimum.")
ShlOp = row(BinaryOp, "index.shl", "Shift left.")
ShrsOp = row(BinaryOp, "index.shrs", "Shift right with copies of the sign.")
ShruOp = row(BinaryOp, "index.shru", "Shift right with zeros.")
AndOp = row(BinaryOp, "index.and", "Bitwise and.")
OrOp = row(BinaryOp, "index.or", "Bitwise or.")
XorOp = row(BinaryOp, "index.xor", "Bitwise exclusive or.")


class ConstantOp(XetlOp, name="index.constant", traits=[Pure(), ConstantLike()]):
    """An `index` constant."""

    value = prop_def(IntegerAttr[IndexType])
    result = result_def(IndexType)

    assembly_format = "attr-dict $value"


class BoolConstantOp(
    XetlOp, name="index.bool.constant", traits=[Pure(), ConstantLike()]
):
    """A constant true or false."""

    value = prop_def(IntegerAttr)
    result = result_def(i1)

    assembly_format = "attr-dict $value"


CastsOp = row(CastOp, "index.casts", "Integer to index or back, signed.")
CastuOp = row(CastOp, "index.castu", "Integer to index or back, unsigned.")


@irdl_attr_definition(init=False)
class CmpPredicateAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    """``#index<cmp_predicate slt>``."""

    name = "index.cmp_predicate"
    WORDS: ClassVar[tuple[str, ...]] = CMPI_PREDICATES
    PROBLEM: ClassVar[str] = "unknown predicate {word}"


class CmpOp(PureOp, name="index.cmp"):
    """Compare index values."""

    pred = prop_def(CmpPredicateAttr)
    lhs = rhs = operand_def(IndexType)
    result = result_def(i1)

    assembly_format = "$pred `(` $lhs `,` $rhs `)` attr-dict"

    @property
    def predicate_name(self) -> str:
        """The predicate, one of CMPI_PREDICATES."""
        return self.pred.word


class SizeofOp(PureOp, name="index.sizeof"):
    """The bits of the index type."""

    result = result_def(IndexType)

    assembly_format = "attr-dict"


Index = Dialect("index", operations_of(__name__), [CmpPredicateAttr])
