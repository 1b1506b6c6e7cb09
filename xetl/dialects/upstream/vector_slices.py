"""Parts of vectors at constant offsets.  Source: MLIR, `vector` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import (
    Value,
    check,
    dense_i64,
    element_type,
    ints_of,
    parse_attributes,
    parse_indices,
    parse_operands,
    print_attributes,
    type_of,
    vector_type,
)
from ..operation import Common, XetlOp
from . import vector_syntax as syntax


def _ints(values: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


def _tuple(attribute: ArrayAttr[Attribute]) -> tuple[int, ...]:
    return tuple(v.value.data for v in attribute if isinstance(v, IntegerAttr))


def _check_inside(
    whole: VectorType[Attribute], offsets: Sequence[int], sizes: Sequence[int]
) -> None:
    fits = all(
        offset >= 0 and offset + size <= extent
        for offset, size, extent in zip(offsets, sizes, whole.get_shape())
    )
    check(
        fits and len(offsets) <= whole.get_num_dims(),
        f"offsets {list(offsets)} with sizes {list(sizes)} leave {whole}",
    )


@irdl_op_definition
class ExtractStridedSliceOp(XetlOp):
    """``sizes`` elements from ``offsets`` on; all strides are 1."""

    name = "vector.extract_strided_slice"

    source = operand_def(VectorType)
    offset_list = prop_def(ArrayAttr, prop_name="offsets")
    size_list = prop_def(ArrayAttr, prop_name="sizes")
    stride_list = prop_def(ArrayAttr, prop_name="strides")
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        offsets: Sequence[int],
        sizes: Sequence[int],
        **common: Unpack[Common],
    ) -> None:
        type_ = vector_type(source)
        shape = [*sizes, *type_.get_shape()[len(sizes) :]]
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, shape)],
            properties={
                "offsets": _ints(offsets),
                "sizes": _ints(sizes),
                "strides": _ints([1] * len(sizes)),
            },
            **common,
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the slice starts, in the leading dimensions."""
        return _tuple(self.offset_list)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents of the slice, in the leading dimensions."""
        return _tuple(self.size_list)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v {offsets = .., sizes = .., strides = ..} : type to type``."""
        source = parser.parse_unresolved_operand()
        return syntax.parse_conversion(parser, cls, [source], "to")

    def print(self, printer: Printer) -> None:
        """Print ``%v {offsets = .., sizes = .., strides = ..} : type to type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        syntax.print_conversion(printer, self, "to")

    def verify_(self) -> None:
        """Check that the slice lies inside and gives the result."""
        type_ = vector_type(self.source)
        _check_inside(type_, self.offsets, self.sizes)
        check(set(_tuple(self.stride_list)) <= {1}, "strides must be 1")
        shape = [*self.sizes, *type_.get_shape()[len(self.sizes) :]]
        expected = VectorType(type_.element_type, shape)
        check(
            self.result.type == expected,
            f"the slice is {expected}, found {self.result.type}",
        )


@irdl_op_definition
class InsertStridedSliceOp(XetlOp):
    """``dest`` with the elements from ``offsets`` on replaced; all strides are 1."""

    name = "vector.insert_strided_slice"

    value = operand_def(VectorType)
    dest = operand_def(VectorType)
    offset_list = prop_def(ArrayAttr, prop_name="offsets")
    stride_list = prop_def(ArrayAttr, prop_name="strides")
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        value: Value,
        dest: Value,
        offsets: Sequence[int],
        **common: Unpack[Common],
    ) -> None:
        rank = vector_type(value).get_num_dims()
        super().__init__(
            operands=[value, dest],
            result_types=[type_of(dest)],
            properties={"offsets": _ints(offsets), "strides": _ints([1] * rank)},
            **common,
        )

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the value goes, one offset a dimension of ``dest``."""
        return _tuple(self.offset_list)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b {offsets = .., strides = ..} : type into type``."""
        operands = parse_operands(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        types: list[Attribute] = [parser.parse_type()]
        parser.parse_keyword("into")
        types.append(parser.parse_type())
        return cls.create(
            operands=parser.resolve_operands(operands, types, parser.pos),
            result_types=[types[1]],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b {offsets = .., strides = ..} : type into type``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        syntax.print_conversion(printer, self, "into", [self.value])

    def verify_(self) -> None:
        """Check that the value lies inside the result."""
        part, whole = vector_type(self.value), vector_type(self.dest)
        lead = whole.get_num_dims() - part.get_num_dims()
        check(
            len(self.offsets) == whole.get_num_dims() and lead >= 0,
            f"expected {whole.get_num_dims()} offsets, found {len(self.offsets)}",
        )
        _check_inside(whole, self.offsets, [*[1] * lead, *part.get_shape()])
        check(set(_tuple(self.stride_list)) <= {1}, "strides must be 1")
        check(self.result.type == whole, "the result has the type of dest")


@irdl_op_definition
class ShuffleOp(XetlOp):
    """Rows of two vectors in the order of ``mask``; -1 is any value."""

    name = "vector.shuffle"

    v1 = operand_def(VectorType)
    v2 = operand_def(VectorType)
    mask = prop_def(DenseArrayBase)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, v1: Value, v2: Value, mask: Sequence[int], **common: Unpack[Common]
    ) -> None:
        type_ = vector_type(v1)
        shape = [len(mask), *type_.get_shape()[1:]]
        super().__init__(
            operands=[v1, v2],
            result_types=[VectorType(type_.element_type, shape)],
            properties={"mask": dense_i64(mask)},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b [0, 2, 1] : type, type``."""
        operands = parse_operands(parser)
        mask = ints_of(parse_indices(parser).static)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        types = syntax.parse_types(parser)
        values = parser.resolve_operands(operands, types, parser.pos)
        return cls(values[0], values[1], mask, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b [0, 2, 1] : type, type``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" {list(ints_of(self.mask))}")
        print_attributes(printer, self, ("mask",))
        syntax.print_types(printer, self.operand_types)

    def verify_(self) -> None:
        """Check that the mask names rows that exist."""
        rows = sum(vector_type(v).get_shape()[0] for v in (self.v1, self.v2))
        check(
            all(-1 <= row < rows for row in ints_of(self.mask)),
            f"the mask names rows outside 0..{rows - 1}",
        )


@irdl_op_definition
class FromElementsOp(XetlOp):
    """A vector of scalars, row by row."""

    name = "vector.from_elements"

    elements = var_operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        elements: Sequence[Value],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[elements], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b : vector``."""
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        element = element_type(type_)
        return cls.create(
            operands=[parser.resolve_operand(o, element) for o in operands],
            result_types=[type_],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b : vector``."""
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.result.type])

    def verify_(self) -> None:
        """Check the number of elements."""
        expected = self.result.type.element_count()
        found = len(self.elements)
        check(expected == found, f"expected {expected} elements, found {found}")


SLICE_OPS = (ExtractStridedSliceOp, InsertStridedSliceOp, ShuffleOp, FromElementsOp)
