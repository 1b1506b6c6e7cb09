"""Views of memory: other sizes, strides, offsets, types; nothing is copied.

Source: MLIR, `memref` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    MemRefType,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import (
    Index,
    ParsedIndices,
    Value,
    check,
    check_indices,
    memref_type,
    mix_indices,
    parse_attributes,
    parse_indices,
    parse_optional_operands,
    print_attributes,
    print_indices,
    resolve_indices,
    split_indices,
)
from ..kinds_of_types import is_memref
from ..operation import Common, XetlOp

HIDDEN = (
    *("operandSegmentSizes", "static_offsets", "static_sizes", "static_strides"),
    "permutation",
)


def _elements_of(type_: Attribute) -> Attribute | None:
    return getattr(type_, "element_type", None)


@irdl_op_definition
class CastOp(XetlOp):
    """The same memory under a compatible type, also one of unknown rank."""

    name = "memref.cast"

    source = operand_def(MemRefType | UnrankedMemRefType)
    result = result_def(MemRefType | UnrankedMemRefType)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(
        self, source: Value, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[source], result_types=[result_type], **common)

    def verify_(self) -> None:
        """Check that what both types say agrees."""
        source: Attribute = self.source.type
        result: Attribute = self.result.type
        check(
            _elements_of(source) == _elements_of(result),
            f"a cast keeps the element type, found {source} to {result}",
        )
        if not is_memref(source) or not is_memref(result):
            return
        pairs = list(zip(source.get_shape(), result.get_shape()))
        check(
            source.get_num_dims() == result.get_num_dims()
            and all(DYNAMIC_INDEX in pair or pair[0] == pair[1] for pair in pairs),
            f"shapes do not agree: {source} to {result}",
        )


@irdl_op_definition
class MemorySpaceCastOp(XetlOp):
    """The same memory, named in another memory space."""

    name = "memref.memory_space_cast"

    source = operand_def(MemRefType)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(
        self, source: Value, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[source], result_types=[result_type], **common)


@irdl_op_definition
class ExtractAlignedPointerAsIndexOp(XetlOp):
    """The address of the first element of the buffer."""

    name = "memref.extract_aligned_pointer_as_index"

    source = operand_def(MemRefType)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    assembly_format = "$source `:` type($source) `->` type($result) attr-dict"

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[source], result_types=[IndexType()], **common)


@irdl_op_definition
class ExtractStridedMetadataOp(XetlOp):
    """Buffer, offset, sizes and strides of a memref."""

    name = "memref.extract_strided_metadata"

    source = operand_def(MemRefType)
    metadata = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        type_ = memref_type(source)
        buffer = MemRefType(type_.element_type, [], memory_space=type_.memory_space)
        rank = type_.get_num_dims()
        super().__init__(
            operands=[source],
            result_types=[[buffer, *[IndexType()] * (1 + 2 * rank)]],
            **common,
        )

    @property
    def base_buffer(self) -> SSAValue:
        """The buffer as a memref of rank 0."""
        return self.results[0]

    @property
    def offset(self) -> SSAValue:
        """Elements from the start of the buffer."""
        return self.results[1]

    @property
    def sizes(self) -> Sequence[SSAValue]:
        """One extent a dimension."""
        return self.results[2 : 2 + self._rank]

    @property
    def strides(self) -> Sequence[SSAValue]:
        """One stride a dimension, in elements."""
        return self.results[2 + self._rank :]

    @property
    def _rank(self) -> int:
        return (len(self.results) - 2) // 2

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m : memref -> types``."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_type
        )
        _, attributes = parse_attributes(parser, cls)
        return cls.create(operands=[value], result_types=types, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%m : memref -> types``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_list(self.result_types, printer.print_attribute)
        print_attributes(printer, self)

    def verify_(self) -> None:
        """Check the number of results."""
        expected = 2 + 2 * memref_type(self.source).get_num_dims()
        found = len(self.results)
        check(found == expected, f"expected {expected} results, found {found}")


class _StridedView(XetlOp):
    source = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def(MemRefType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        offsets: Sequence[int | Value],
        sizes: Sequence[int | Value],
        strides: Sequence[int | Value],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        lists = [split_indices(part) for part in (offsets, sizes, strides)]
        names = ("static_offsets", "static_sizes", "static_strides")
        super().__init__(
            operands=[source, *(part.values for part in lists)],
            result_types=[result_type],
            properties={n: part.static for n, part in zip(names, lists)},
            **common,
        )

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Offsets, constants as int."""
        return mix_indices(self.static_offsets, self.offsets)

    @property
    def mixed_sizes(self) -> tuple[Index, ...]:
        """Sizes, constants as int."""
        return mix_indices(self.static_sizes, self.sizes)

    @property
    def mixed_strides(self) -> tuple[Index, ...]:
        """Strides, constants as int."""
        return mix_indices(self.static_strides, self.strides)

    @classmethod
    def parse_types(
        cls, parser: Parser, source: UnresolvedOperand, lists: Sequence[ParsedIndices]
    ) -> Self:
        """Parse attributes and types after the three lists."""
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        names = ("static_offsets", "static_sizes", "static_strides")
        return cls.build(
            operands=[value, *(resolve_indices(parser, p.values) for p in lists)],
            result_types=[parser.parse_type()],
            properties=properties | {n: p.static for n, p in zip(names, lists)},
            attributes=attributes,
        )

    def print_view(self, printer: Printer, words: Sequence[str]) -> None:
        """Print three lists, each after its word, and the types."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        lists = (
            (self.static_offsets, self.offsets),
            (self.static_sizes, self.sizes),
            (self.static_strides, self.strides),
        )
        for word, (static, values) in zip(words, lists):
            printer.print_string(word)
            print_indices(printer, static, values)
        print_attributes(printer, self, HIDDEN)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def verify_lists(self) -> None:
        """Check that each list has a value for each of its gaps."""
        check_indices("offsets", self.static_offsets, self.offsets)
        check_indices("sizes", self.static_sizes, self.sizes)
        check_indices("strides", self.static_strides, self.strides)


@irdl_op_definition
class ReinterpretCastOp(_StridedView):
    """A view with a new offset, sizes and strides; the old ones are forgotten."""

    name = "memref.reinterpret_cast"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m to offset: [..], sizes: [..], strides: [..] : a to b``."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        lists: list[ParsedIndices] = []
        for index, word in enumerate(("offset", "sizes", "strides")):
            if index:
                parser.parse_punctuation(",")
            parser.parse_keyword(word)
            parser.parse_punctuation(":")
            lists.append(parse_indices(parser))
        return cls.parse_types(parser, source, lists)

    def print(self, printer: Printer) -> None:
        """Print ``%m to offset: [..], sizes: [..], strides: [..] : a to b``."""
        self.print_view(printer, (" to offset: ", ", sizes: ", ", strides: "))

    def verify_(self) -> None:
        """Check the lengths of the lists and the element type."""
        self.verify_lists()
        rank = self.result.type.get_num_dims()
        check(
            len(self.mixed_offsets) == 1
            and len(self.mixed_sizes) == rank == len(self.mixed_strides),
            f"expected one offset, {rank} sizes and {rank} strides",
        )
        check(
            memref_type(self.source).element_type == self.result.type.element_type,
            "a view keeps the element type",
        )


@irdl_op_definition
class SubviewOp(_StridedView):
    """A part of a memref."""

    name = "memref.subview"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[offsets][sizes][strides] : a to b``."""
        source = parser.parse_unresolved_operand()
        lists = [parse_indices(parser) for _ in range(3)]
        return cls.parse_types(parser, source, lists)

    def print(self, printer: Printer) -> None:
        """Print ``%m[offsets] [sizes] [strides] : a to b``."""
        self.print_view(printer, ("", " ", " "))

    def verify_(self) -> None:
        """Check the lengths of the lists and the element type."""
        self.verify_lists()
        rank = memref_type(self.source).get_num_dims()
        lists = (self.mixed_offsets, self.mixed_sizes, self.mixed_strides)
        check(
            all(len(part) == rank for part in lists),
            f"expected {rank} offsets, sizes and strides",
        )
        check(
            memref_type(self.source).element_type == self.result.type.element_type,
            "a view keeps the element type",
        )


@irdl_op_definition
class ViewOp(XetlOp):
    """Bytes seen as a matrix, from a byte offset on."""

    name = "memref.view"

    source = operand_def(MemRefType)
    byte_shift = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        byte_shift: Value,
        sizes: Sequence[Value],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[source, byte_shift, sizes], result_types=[result_type], **common
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%shift][%sizes] : a to b``."""
        source = parser.parse_unresolved_operand()
        shift = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        sizes = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        return cls.create(
            operands=[value, *resolve_indices(parser, [*shift, *sizes])],
            result_types=[parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m[%shift][%sizes] : a to b``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        with printer.in_square_brackets():
            printer.print_ssa_value(self.byte_shift)
        with printer.in_square_brackets():
            printer.print_list(self.sizes, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TransposeOp(XetlOp):
    """A view with its dimensions in another order."""

    name = "memref.transpose"

    source = operand_def(MemRefType)
    permutation = prop_def(AffineMapAttr)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        permutation: Sequence[int],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        map_ = AffineMap(len(permutation), 0, tuple(map(AffineDimExpr, permutation)))
        super().__init__(
            operands=[source],
            result_types=[result_type],
            properties={"permutation": AffineMapAttr(map_)},
            **common,
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """Result dimension i is dimension ``dims[i]`` of the source."""
        results = self.permutation.data.results
        return tuple(e.position for e in results if isinstance(e, AffineDimExpr))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m (d0, d1) -> (d1, d0) : a to b``."""
        source = parser.parse_unresolved_operand()
        map_ = AffineMapAttr(parser.parse_affine_map())
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        return cls.create(
            operands=[value],
            result_types=[parser.parse_type()],
            properties={"permutation": map_},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m (d0, d1) -> (d1, d0) : a to b``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" {self.permutation.data}")
        print_attributes(printer, self, HIDDEN)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check that the map is a permutation of the dimensions."""
        rank = memref_type(self.source).get_num_dims()
        check(
            sorted(self.dims) == list(range(rank)),
            f"expected a permutation of {rank} dimensions, found {self.permutation}",
        )
