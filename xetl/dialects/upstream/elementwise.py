"""Base classes of elementwise operations: one for each form of the text.

The operations take scalars, and vectors of any shape.
Source: MLIR, `arith`, `math` and `index` dialects.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Data
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..base import Value, check, element_type, shape_of, with_element
from ..literals import integer_attr
from ..operation import Common, XetlOp
from ..traits import Elementwise
from ..type_rules import like

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


class FlagsAttr(Data[frozenset[StrEnum]]):
    """A set of flags: ``<nsw,nuw>``, or ``<none>`` if it is empty.

    Attributes:
        FLAGS: all flags, in the order in which they are printed.
        ALL: the word for all flags, or None.
    """

    FLAGS: ClassVar[type[StrEnum]]
    ALL: ClassVar[str | None] = None

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> frozenset[StrEnum]:
        """Parse the words in angle brackets."""

        def parse_word() -> Iterable[StrEnum]:
            if parser.parse_optional_keyword("none"):
                return ()
            if cls.ALL is not None and parser.parse_optional_keyword(cls.ALL):
                return cls.FLAGS
            return (parser.parse_str_enum(cls.FLAGS),)

        words = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_word)
        return frozenset(chain.from_iterable(words))

    def print_parameter(self, printer: Printer) -> None:
        """Print the words in angle brackets."""
        words = ",".join(flag.value for flag in self.FLAGS if flag in self.data)
        if len(self.data) == len(self.FLAGS):
            words = self.ALL or words
        printer.print_string(f"<{words or 'none'}>")


class FastMathFlag(StrEnum):
    """Permissions and promises of an arithmetic operation.  Source: MLIR, `arith`."""

    REASSOC = "reassoc"
    NNAN = "nnan"
    NINF = "ninf"
    NSZ = "nsz"
    ARCP = "arcp"
    CONTRACT = "contract"
    AFN = "afn"


@irdl.irdl_attr_definition
class FastMathFlagsAttr(FlagsAttr):
    """``fastmath<contract>``."""

    name = "arith.fastmath"
    FLAGS = FastMathFlag
    ALL = "fast"


class IntegerOverflowFlag(StrEnum):
    """``nsw``: no signed wrap; ``nuw``: no unsigned wrap."""

    NSW = "nsw"
    NUW = "nuw"


@irdl.irdl_attr_definition
class IntegerOverflowFlagsAttr(FlagsAttr):
    """``overflow<nsw>``: wraps that do not happen.  Source: MLIR, `arith`."""

    name = "arith.overflow"
    FLAGS = IntegerOverflowFlag


def is_integer(type_: Attribute) -> bool:
    """Whether the elements are integers or `index`."""
    return isinstance(element_type(type_), IntegerType | IndexType)


def is_float(type_: Attribute) -> bool:
    """Whether the elements are floating point."""
    return isinstance(element_type(type_), AnyFloat)


def check_elements(kind: str, *types: Attribute) -> None:
    """Check that elements are of a kind: `integer` or `float`."""
    expected = is_integer if kind == "integer" else is_float
    for found in types:
        check(expected(found), "expected {} elements, found {}", kind, found)


class ElementwiseOp(XetlOp, traits=[Pure(), Elementwise()]):
    """An operation on each element, with optional flags between operands and types."""


class SameTypeOp(ElementwiseOp):
    """``op %a, %b : type``: operands and result have one type, with KIND elements."""

    KIND: ClassVar[str] = "integer"

    def verify_(self) -> None:
        check_elements(self.KIND, self.results[0].type)


class IntegerBinaryOp(SameTypeOp):
    """An operation on two integers or index values, or vectors of them."""

    lhs = irdl.operand_def()
    rhs = irdl.operand_def(like("lhs"))
    result = irdl.result_def(like("lhs"))

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs)"


class ExactBinaryOp(IntegerBinaryOp):
    """An integer operation that may promise to lose no bits; this is not used."""

    assembly_format = "$lhs `,` $rhs custom<Ignored>() attr-dict `:` type($lhs)"


class OverflowBinaryOp(IntegerBinaryOp):
    """An integer operation that may promise not to wrap."""

    overflow_flags = irdl.opt_prop_def(
        IntegerOverflowFlagsAttr, prop_name="overflowFlags"
    )

    assembly_format = (
        "$lhs `,` $rhs custom<Flags>($overflowFlags) attr-dict `:` type($lhs)"
    )


class IntegerUnaryOp(SameTypeOp):
    """An operation on one integer."""

    operand = irdl.operand_def()
    result = irdl.result_def(like("operand"))

    assembly_format = "$operand attr-dict `:` type($operand)"


class FloatOp(SameTypeOp):
    """A float operation: in f32 or wider, rounded once; with fast-math flags."""

    KIND = "float"

    fastmath = irdl.opt_prop_def(FastMathFlagsAttr)


class FloatBinaryOp(FloatOp):
    """An operation on two floats."""

    lhs = irdl.operand_def()
    rhs = irdl.operand_def(like("lhs"))
    result = irdl.result_def(like("lhs"))

    assembly_format = "$lhs `,` $rhs custom<Flags>($fastmath) attr-dict `:` type($lhs)"


class FloatUnaryOp(FloatOp):
    """An operation on one float."""

    operand = irdl.operand_def()
    result = irdl.result_def(like("operand"))

    assembly_format = "$operand custom<Flags>($fastmath) attr-dict `:` type($operand)"


class CastOp(ElementwiseOp):
    """``op %a : type to type``: a cast of elements, which keeps the shape."""

    SOURCE: ClassVar[str] = "integer"
    RESULT: ClassVar[str] = "integer"

    source = irdl.operand_def()
    result = irdl.result_def()

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        if shape_of(source) != shape_of(result):
            raise VerifyException(f"a cast keeps the shape, found {source} to {result}")
        check_elements(self.SOURCE, source)
        check_elements(self.RESULT, result)
        self.verify_widths(element_type(source), element_type(result))

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check the widths of source and result; by default nothing is checked."""


def bit_width(type_: Attribute) -> int:
    """Return the bits of a scalar type; `index` counts as 64.

    Raises:
        VerifyException: the type has no width.
    """
    if isinstance(type_, IntegerType | AnyFloat):
        return type_.bitwidth
    if isinstance(type_, IndexType):
        return 64
    raise VerifyException(f"{type_} has no width")


class WideningOp(CastOp):
    """A cast to a wider type."""

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that the result is wider."""
        text = "the result must be wider than the source, found {} to {}"
        check(bit_width(source) < bit_width(result), text, source, result)


class NarrowingOp(CastOp):
    """A cast to a narrower type."""

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that the result is narrower."""
        text = "the result must be narrower than the source, found {} to {}"
        check(bit_width(source) > bit_width(result), text, source, result)


class IndexConversionOp(CastOp):
    """A cast between `index` and an integer."""

    def verify_widths(self, source: Attribute, result: Attribute) -> None:
        """Check that exactly one side is `index`."""
        fits = isinstance(source, IndexType) != isinstance(result, IndexType)
        text = "one side must be index, the other an integer, found {} to {}"
        check(fits, text, source, result)


def boolean_like(type_: Attribute) -> Attribute:
    """Return the type of a comparison of ``type_``: i1 in the same shape."""
    return with_element(type_, i1)


class CompareOp(ElementwiseOp):
    """``op predicate, %a, %b : type``; the result is i1 in the operands' shape."""

    KIND: ClassVar[str] = "integer"
    WORDS: ClassVar[tuple[str, ...]] = ()

    predicate = irdl.prop_def(IntegerAttr)
    lhs = irdl.operand_def()
    rhs = irdl.operand_def(like("lhs"))
    result = irdl.result_def(like("lhs", boolean_like))

    def __init__(
        self, predicate: str, lhs: Value, rhs: Value, **common: Unpack[Common]
    ) -> None:
        number = integer_attr(self.WORDS.index(predicate), i64)
        super().__init__(lhs, rhs, predicate=number, **common)

    @property
    def predicate_name(self) -> str:
        """The predicate as MLIR spells it."""
        return self.WORDS[self.predicate.value.data]

    def verify_(self) -> None:
        check_elements(self.KIND, self.lhs.type)
