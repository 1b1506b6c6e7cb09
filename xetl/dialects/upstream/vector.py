"""Vectors in registers: shapes and elements; other files of `vector` are gathered here.

Source: MLIR, `vector` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, IndexType, VectorType
from xdsl.ir import Attribute, Dialect, SSAValue
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
    Index,
    Value,
    check,
    check_indices,
    dense_i64,
    ints_of,
    mix_indices,
    parse_attributes,
    parse_indices,
    print_attributes,
    print_indices,
    resolve_indices,
    shape_of,
    split_indices,
    type_of,
    vector_type,
)
from ..combining import CombiningKindAttr
from ..kinds_of_types import is_vector
from ..operation import Common, XetlOp
from . import vector_syntax as syntax
from .elementwise import bit_width
from .vector_masks import MASK_OPS, ConstantMaskOp, CreateMaskOp
from .vector_memory import (
    MEMORY_OPS,
    GatherOp,
    LoadOp,
    MaskedloadOp,
    MaskedstoreOp,
    ScatterOp,
    StoreOp,
)
from .vector_reduce import (
    REDUCE_OPS,
    ContractOp,
    FmaOp,
    IteratorTypeAttr,
    MultiReductionOp,
    ReductionOp,
)
from .vector_shuffles import (
    SHUFFLE_OPS,
    DeinterleaveOp,
    ExtractelementOp,
    InsertelementOp,
    InterleaveOp,
    OuterproductOp,
    SplatOp,
    ToElementsOp,
)
from .vector_slices import (
    SLICE_OPS,
    ExtractStridedSliceOp,
    FromElementsOp,
    InsertStridedSliceOp,
    ShuffleOp,
)
from .vector_transfer import TRANSFER_OPS, TransferReadOp, TransferWriteOp


class _ConversionOp(XetlOp):
    """``op %a : type to type``."""

    source = operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, source: Value, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[source], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a : type to type``."""
        source = parser.parse_unresolved_operand()
        return syntax.parse_conversion(parser, cls, [source], "to")

    def print(self, printer: Printer) -> None:
        """Print ``%a : type to type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        syntax.print_conversion(printer, self, "to")


def _element_type(type_: Attribute) -> Attribute:
    return type_.element_type if is_vector(type_) else type_


@irdl_op_definition
class BroadcastOp(_ConversionOp):
    """Repeat a scalar or a vector: trailing dimensions match or have size 1."""

    name = "vector.broadcast"

    def verify_(self) -> None:
        """Check element types and trailing dimensions."""
        source, result = self.source.type, self.result.type
        check(
            _element_type(source) == result.element_type,
            f"a broadcast keeps the element type, found {source} to {result}",
        )
        old, new = shape_of(source), result.get_shape()
        fits = len(old) <= len(new) and all(
            a in (1, b) for a, b in zip(reversed(old), reversed(new))
        )
        check(fits, f"{source} cannot be broadcast to {result}")


@irdl_op_definition
class ShapeCastOp(_ConversionOp):
    """The same elements, row by row, in another shape."""

    name = "vector.shape_cast"

    def verify_(self) -> None:
        """Check element types and counts."""
        source, result = vector_type(self.source), self.result.type
        check(
            source.element_type == result.element_type
            and source.element_count() == result.element_count(),
            f"a shape_cast keeps elements and their number, found {source} to {result}",
        )


@irdl_op_definition
class BitcastOp(_ConversionOp):
    """The same bits; only the last dimension changes."""

    name = "vector.bitcast"

    def verify_(self) -> None:
        """Check the number of bits."""
        source, result = vector_type(self.source), self.result.type
        bits = [v.element_count() * bit_width(v.element_type) for v in (source, result)]
        check(
            bits[0] == bits[1] and source.get_shape()[:-1] == result.get_shape()[:-1],
            f"a bitcast keeps the bits of each row, found {source} to {result}",
        )


@irdl_op_definition
class StepOp(XetlOp):
    """0, 1, 2, ..."""

    name = "vector.step"

    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute, **common: Unpack[Common]) -> None:
        super().__init__(result_types=[result_type], **common)

    def verify_(self) -> None:
        """Check that the result is a vector of index, rank 1."""
        found = self.result.type
        check(
            found.get_num_dims() == 1 and isinstance(found.element_type, IndexType),
            f"vector.step gives a vector of index of rank 1, found {found}",
        )


@irdl_op_definition
class TransposeOp(XetlOp):
    """Dimension i of the result is dimension ``permutation[i]`` of the source."""

    name = "vector.transpose"

    source = operand_def(VectorType)
    permutation = prop_def(DenseArrayBase)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, source: Value, permutation: Sequence[int], **common: Unpack[Common]
    ) -> None:
        type_ = vector_type(source)
        shape = [type_.get_shape()[dim] for dim in permutation]
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, shape)],
            properties={"permutation": dense_i64(permutation)},
            **common,
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """The permutation."""
        return ints_of(self.permutation)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, [1, 0] : type to type``."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        dims = {"permutation": parse_indices(parser).static}
        return syntax.parse_conversion(parser, cls, [source], "to", {**dims})

    def print(self, printer: Printer) -> None:
        """Print ``%v, [1, 0] : type to type``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f", {list(self.dims)}")
        syntax.print_conversion(printer, self, "to", elided=("permutation",))

    def verify_(self) -> None:
        """Check the permutation and the result."""
        source, dims = vector_type(self.source), self.dims
        check(
            sorted(dims) == list(range(source.get_num_dims())),
            f"expected a permutation of {source.get_num_dims()} dimensions, "
            f"found {list(dims)}",
        )
        shape = [source.get_shape()[dim] for dim in dims]
        expected = VectorType(source.element_type, shape)
        check(
            self.result.type == expected,
            f"the transposed vector is {expected}, found {self.result.type}",
        )


def _part_type(source: VectorType[Attribute], count: int) -> Attribute:
    """What is at a position of ``count`` indices: an element or a smaller vector."""
    shape = source.get_shape()[count:]
    return VectorType(source.element_type, shape) if shape else source.element_type


@irdl_op_definition
class ExtractOp(XetlOp):
    """An element, or the smaller vector at a position."""

    name = "vector.extract"

    source = operand_def(VectorType)
    dynamic_position = var_operand_def(IndexType)
    static_position = prop_def(DenseArrayBase)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        position: Sequence[int | Value],
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(position)
        super().__init__(
            operands=[source, values],
            result_types=[_part_type(vector_type(source), len(position))],
            properties={"static_position": static},
            **common,
        )

    @property
    def position(self) -> tuple[Index, ...]:
        """The position, constants as int."""
        return mix_indices(self.static_position, self.dynamic_position)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v[1, %i] : type from vector``."""
        source = parser.parse_unresolved_operand()
        position = parse_indices(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        result = parser.parse_type()
        parser.parse_keyword("from")
        value = parser.resolve_operand(source, parser.parse_type())
        return cls.create(
            operands=[value, *resolve_indices(parser, position.values)],
            result_types=[result],
            properties={"static_position": position.static},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%v[1, %i] : type from vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_indices(printer, self.static_position, self.dynamic_position)
        print_attributes(printer, self, ("static_position",))
        syntax.print_types(printer, [self.result.type])
        printer.print_string(" from ")
        printer.print_attribute(self.source.type)

    def verify_(self) -> None:
        """Check the position and the result."""
        check_indices("position", self.static_position, self.dynamic_position)
        _check_position(vector_type(self.source), self.position, self.result.type)


def _check_position(
    source: VectorType[Attribute], position: Sequence[Index], part: Attribute
) -> None:
    shape = source.get_shape()
    check(
        len(position) <= len(shape)
        and all(
            not isinstance(i, int) or 0 <= i < extent
            for i, extent in zip(position, shape)
        ),
        f"position {list(position)} does not lie in {source}",
    )
    expected = _part_type(source, len(position))
    # MLIR also allows a vector of one element where a scalar would do.
    one = VectorType(source.element_type, [1])
    check(
        part in (expected, one),
        f"at {len(position)} indices of {source} is {expected}, found {part}",
    )


@irdl_op_definition
class InsertOp(XetlOp):
    """The vector with the part at a position replaced."""

    name = "vector.insert"

    value = operand_def()
    dest = operand_def(VectorType)
    dynamic_position = var_operand_def(IndexType)
    static_position = prop_def(DenseArrayBase)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        value: Value,
        dest: Value,
        position: Sequence[int | Value],
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(position)
        super().__init__(
            operands=[value, dest, values],
            result_types=[type_of(dest)],
            properties={"static_position": static},
            **common,
        )

    @property
    def position(self) -> tuple[Index, ...]:
        """The position, constants as int."""
        return mix_indices(self.static_position, self.dynamic_position)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%x, %v[1, %i] : type into vector``."""
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        dest = parser.parse_unresolved_operand()
        position = parse_indices(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        part = parser.resolve_operand(value, parser.parse_type())
        parser.parse_keyword("into")
        type_ = parser.parse_type()
        whole: SSAValue = parser.resolve_operand(dest, type_)
        return cls.create(
            operands=[part, whole, *resolve_indices(parser, position.values)],
            result_types=[type_],
            properties={"static_position": position.static},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%x, %v[1, %i] : type into vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.dest)
        print_indices(printer, self.static_position, self.dynamic_position)
        print_attributes(printer, self, ("static_position",))
        syntax.print_types(printer, [self.value.type])
        printer.print_string(" into ")
        printer.print_attribute(self.dest.type)

    def verify_(self) -> None:
        """Check the position and the part."""
        check_indices("position", self.static_position, self.dynamic_position)
        _check_position(vector_type(self.dest), self.position, self.value.type)
        check(self.result.type == self.dest.type, "the result has the type of dest")


Vector = Dialect(
    "vector",
    [
        *MEMORY_OPS,
        *MASK_OPS,
        *REDUCE_OPS,
        *SHUFFLE_OPS,
        *SLICE_OPS,
        *TRANSFER_OPS,
        BroadcastOp,
        ShapeCastOp,
        BitcastOp,
        StepOp,
        TransposeOp,
        ExtractOp,
        InsertOp,
    ],
    [CombiningKindAttr, IteratorTypeAttr],
)

__all__ = [
    "BitcastOp",
    "BroadcastOp",
    "CombiningKindAttr",
    "ConstantMaskOp",
    "ContractOp",
    "CreateMaskOp",
    "DeinterleaveOp",
    "ExtractOp",
    "ExtractStridedSliceOp",
    "ExtractelementOp",
    "FmaOp",
    "FromElementsOp",
    "GatherOp",
    "InsertOp",
    "InsertStridedSliceOp",
    "InsertelementOp",
    "InterleaveOp",
    "IteratorTypeAttr",
    "LoadOp",
    "MaskedloadOp",
    "MaskedstoreOp",
    "MultiReductionOp",
    "OuterproductOp",
    "ReductionOp",
    "ScatterOp",
    "ShapeCastOp",
    "ShuffleOp",
    "SplatOp",
    "StepOp",
    "StoreOp",
    "ToElementsOp",
    "TransferReadOp",
    "TransferWriteOp",
    "TransposeOp",
    "Vector",
]
