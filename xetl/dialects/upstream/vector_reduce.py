"""Reductions and products of vectors.  Source: MLIR, `vector` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue

from .. import base
from ..attributes import WordAttr
from ..operation import Common, PureOp
from ..reduction_kinds import CombiningKindAttr, kind_fits
from ..type_rules import like
from .elementwise import ElementwiseOp, FastMathFlagsAttr

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


def _check_kind(kind: CombiningKindAttr, element: Attribute) -> None:
    text = "`{}` does not combine elements of type {}"
    base.check(kind_fits(kind.kind, element), text, kind.kind, element)


class ReductionOp(PureOp, name="vector.reduction"):
    """Reduce a vector of rank 1 and combine the result with ``acc``."""

    kind = irdl.prop_def(CombiningKindAttr)
    source = irdl.operand_def(VectorType)
    acc = irdl.opt_operand_def(like("result"))
    fastmath = irdl.opt_prop_def(FastMathFlagsAttr)
    result = irdl.result_def(like("source", base.element_type))

    assembly_format = (
        "custom<Combined>($kind) `,` $source (`,` $acc^)? custom<Flags>($fastmath) "
        "attr-dict `:` type($source) `into` type($result)"
    )

    def verify_(self) -> None:
        type_ = base.vector_type(self.source)
        base.check(type_.get_num_dims() <= 1, "expected rank 1, found {}", type_)
        _check_kind(self.kind, type_.element_type)


class MultiReductionOp(PureOp, name="vector.multi_reduction"):
    """Reduce a vector along some dimensions, and combine the result with ``acc``."""

    kind = irdl.prop_def(CombiningKindAttr)
    source = irdl.operand_def(VectorType)
    acc = irdl.operand_def()
    reduction_dims = irdl.prop_def(DenseArrayBase)
    result = irdl.result_def(like("acc"))

    assembly_format = (
        "custom<Combined>($kind) `,` $source `,` $acc attr-dict "
        "custom<Integers>($reduction_dims) `:` type($source) `to` type($acc)"
    )

    dims = base.Ints("reduction_dims")
    """The dimensions that are reduced; the result does not have them."""

    def verify_(self) -> None:
        type_, dims = base.vector_type(self.source), self.dims
        _check_kind(self.kind, type_.element_type)
        rank = type_.get_num_dims()
        fits = len(set(dims)) == len(dims) and all(0 <= dim < rank for dim in dims)
        text = "dimensions must be different and below {}, found {}"
        base.check(fits, text, rank, list(dims))
        shape = [n for dim, n in enumerate(type_.get_shape()) if dim not in dims]
        element = type_.element_type
        expected = VectorType(element, shape) if shape else element
        found, text = self.acc.type, "reducing {} of {} gives {}, found {}"
        base.check(found == expected, text, list(dims), type_, expected, found)


class FmaOp(ElementwiseOp, name="vector.fma"):
    """``lhs * rhs + acc`` with one rounding."""

    lhs = irdl.operand_def(VectorType)
    rhs = acc = irdl.operand_def(like("lhs", base=VectorType))
    result = irdl.result_def(like("lhs", base=VectorType))

    assembly_format = "$lhs `,` $rhs `,` $acc attr-dict `:` type($lhs)"


@irdl.irdl_attr_definition(init=False)
class IteratorTypeAttr(WordAttr):
    """``#vector.iterator_type<parallel>``; ``"parallel"`` in the custom format."""

    name = "vector.iterator_type"
    WORDS: ClassVar[tuple[str, ...]] = ("parallel", "reduction")
    PROBLEM: ClassVar[str] = "an iterator is parallel or reduction, found {word}"
    IS_IN_BRACKETS: ClassVar[bool] = True


def _iterator(found: Attribute) -> Attribute:
    return IteratorTypeAttr(found.data) if isinstance(found, StringAttr) else found


class ContractOp(PureOp, name="vector.contract"):
    """Add to ``acc`` the sum of products over the reduction iterators.

    ``indexing_maps`` gives the iterators that index lhs, rhs and acc.
    """

    lhs = rhs = irdl.operand_def(VectorType)
    acc = irdl.operand_def()
    indexing_maps = iterator_types = irdl.prop_def(ArrayAttr)
    kind = irdl.prop_def(CombiningKindAttr, default_value=CombiningKindAttr("add"))
    result = irdl.result_def(like("acc"))

    def __init__(
        self,
        lhs: base.Value,
        rhs: base.Value,
        acc: base.Value,
        indexing_maps: Sequence[Sequence[int]],
        iterator_types: Sequence[str],
        **common: Unpack[Common],
    ) -> None:
        rank = len(iterator_types)
        super().__init__(
            *(lhs, rhs, acc),
            indexing_maps=ArrayAttr([base.map_of_dims(m, rank) for m in indexing_maps]),
            iterator_types=ArrayAttr([IteratorTypeAttr(t) for t in iterator_types]),
            kind=CombiningKindAttr("add"),
            **common,
        )

    @property
    def maps(self) -> tuple[tuple[int, ...], ...]:
        """The iterator of each dimension, for lhs, rhs and acc."""
        maps = (each for each in self.indexing_maps if isinstance(each, AffineMapAttr))
        return tuple(map(base.dims_of_map, maps))

    @property
    def iterators(self) -> tuple[str, ...]:
        """`parallel` or `reduction` for each iterator."""
        found = (t for t in self.iterator_types if isinstance(t, IteratorTypeAttr))
        return tuple(each.word for each in found)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``{maps, iterators, kind} %a, %b, %c : types into type``."""
        properties, attributes = base.parse_attributes(parser, cls)
        iterators = properties.get("iterator_types")
        if base.is_array(iterators):
            properties["iterator_types"] = ArrayAttr(map(_iterator, iterators))
        operands = base.parse_operands(parser)
        attributes |= parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        none = parser.Delimiter.NONE
        types = parser.parse_comma_separated_list(none, parser.parse_type)
        parser.parse_keyword("into")
        result = parser.parse_type()
        values: list[SSAValue] = [
            *parser.resolve_operands(operands[:2], types[:2], parser.pos),
            parser.resolve_operand(operands[2], result),
        ]
        return cls.create(
            operands=values,
            result_types=[result],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        words = ArrayAttr([StringAttr(word) for word in self.iterators])
        shown = self.properties | {"iterator_types": words} | self.attributes
        printer.print_op_attributes(shown)
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([self.lhs.type, self.rhs.type], printer.print_attribute)
        base.write(printer, " into ", self.result.type)

    def verify_(self) -> None:
        types = [base.vector_type(self.lhs), base.vector_type(self.rhs), self.acc.type]
        base.check(len(self.maps) == 3, "expected three indexing maps")
        extents: dict[int, int] = {}
        for dims, type_ in zip(self.maps, types):
            shape = type_.get_shape() if base.is_vector(type_) else ()
            base.check(len(dims) == len(shape), "map {} does not index {}", dims, type_)
            for dim, extent in zip(dims, shape):
                known = extents.setdefault(dim, extent)
                text = "iterator d{} has extent {} and {}"
                base.check(known == extent, text, dim, known, extent)
