"""Views that merge or split dimensions, and what is known of an address.

Source: MLIR, `memref` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_result_def,
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
    memref_type,
    mix_indices,
    parse_attributes,
    parse_indices,
    print_attributes,
    print_indices,
    resolve_indices,
    split_indices,
)
from ..kinds_of_types import is_array, is_integer_attr
from ..operation import Common, XetlOp

Groups = Sequence[Sequence[int]]


def _groups_attribute(groups: Groups) -> ArrayAttr[Attribute]:
    return ArrayAttr(
        [ArrayAttr([IntegerAttr(dim, i64) for dim in group]) for group in groups]
    )


def _parse_groups(parser: Parser) -> Groups:
    square = parser.Delimiter.SQUARE
    return parser.parse_comma_separated_list(
        square, lambda: parser.parse_comma_separated_list(square, parser.parse_integer)
    )


def groups_of(attribute: Attribute) -> list[list[int]]:
    """The dimensions of the longer shape, by those of the shorter one."""
    parts = attribute.data if is_array(attribute) else ()
    return [
        [each.value.data for each in part if is_integer_attr(each)]
        for part in parts
        if is_array(part)
    ]


def _check_groups(
    groups: Groups, long: MemRefType[Attribute], short: MemRefType[Attribute]
) -> None:
    flat = [dim for group in groups for dim in group]
    check(
        flat == list(range(long.get_num_dims()))
        and len(groups) == short.get_num_dims(),
        f"{[list(group) for group in groups]} does not group the dimensions of {long} "
        f"to those of {short}",
    )
    for group, extent in zip(groups, short.get_shape()):
        parts = [long.get_shape()[dim] for dim in group]
        known = DYNAMIC_INDEX not in (*parts, extent)
        check(
            not known or prod(parts) == extent,
            f"extents {parts} do not make {extent}",
        )
    check(long.element_type == short.element_type, "the element type is kept")


class _ReshapeOp(XetlOp):
    src = operand_def(MemRefType)
    reassociation = prop_def(ArrayAttr)

    @property
    def groups(self) -> list[list[int]]:
        """The dimensions of the longer shape, by those of the shorter one."""
        return groups_of(self.reassociation)


@irdl_op_definition
class CollapseShapeOp(_ReshapeOp):
    """Dimensions that lie one behind the other as one."""

    name = "memref.collapse_shape"

    src = operand_def(MemRefType)
    reassociation = prop_def(ArrayAttr)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(
        self,
        src: Value,
        groups: Groups,
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[src],
            result_types=[result_type],
            properties={"reassociation": _groups_attribute(groups)},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m [[0, 1], [2]] : memref into memref``."""
        source = parser.parse_unresolved_operand()
        groups = _parse_groups(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("into")
        return cls(value, groups, parser.parse_type(), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%m [[0, 1], [2]] : memref into memref``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        printer.print_string(f" {self.groups}")
        print_attributes(printer, self, ("reassociation",))
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" into ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check the groups."""
        _check_groups(self.groups, memref_type(self.src), memref_type(self.result))


@irdl_op_definition
class ExpandShapeOp(_ReshapeOp):
    """One dimension as several, the last of them the fastest."""

    name = "memref.expand_shape"

    src = operand_def(MemRefType)
    output_shape = var_operand_def(IndexType)
    reassociation = prop_def(ArrayAttr)
    static_output_shape = prop_def(DenseArrayBase)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(
        self,
        src: Value,
        groups: Groups,
        output_shape: Sequence[int | SSAValue],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(output_shape)
        super().__init__(
            operands=[src, values],
            result_types=[result_type],
            properties={
                "reassociation": _groups_attribute(groups),
                "static_output_shape": static,
            },
            **common,
        )

    @property
    def sizes(self) -> tuple[Index, ...]:
        """The extents of the result."""
        return mix_indices(self.static_output_shape, self.output_shape)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m [[0, 1]] output_shape [4, %n] : memref into memref``."""
        source = parser.parse_unresolved_operand()
        groups = _parse_groups(parser)
        parser.parse_keyword("output_shape")
        shape = parse_indices(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("into")
        return cls.create(
            operands=[value, *resolve_indices(parser, shape.values)],
            result_types=[parser.parse_type()],
            properties={
                "reassociation": _groups_attribute(groups),
                "static_output_shape": shape.static,
            },
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m [[0, 1]] output_shape [4, %n] : memref into memref``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.src)
        printer.print_string(f" {self.groups} output_shape ")
        print_indices(printer, self.static_output_shape, self.output_shape)
        print_attributes(printer, self, ("reassociation", "static_output_shape"))
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" into ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check the groups and the shape."""
        check_indices("output_shape", self.static_output_shape, self.output_shape)
        _check_groups(self.groups, memref_type(self.result), memref_type(self.src))
        check(
            len(self.sizes) == memref_type(self.result).get_num_dims(),
            f"expected an extent for each dimension of {self.result.type}",
        )


@irdl_op_definition
class AssumeAlignmentOp(XetlOp):
    """The same memory, whose address is known to be a multiple of ``alignment``."""

    name = "memref.assume_alignment"

    memref = operand_def(MemRefType)
    alignment = prop_def(IntegerAttr)
    result = opt_result_def(MemRefType)

    traits = traits_def(Pure())

    def __init__(self, memref: Value, alignment: int, **common: Unpack[Common]) -> None:
        super().__init__(
            operands=[memref],
            result_types=[SSAValue.get(memref).type],
            properties={"alignment": IntegerAttr(alignment, 32)},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m, 64 : memref``."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        alignment = parser.parse_integer()
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        return cls(value, alignment, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%m, 64 : memref``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        printer.print_string(f", {self.alignment.value.data}")
        print_attributes(printer, self, ("alignment",))
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)
