"""Vectors made of others' elements in a fixed order, and outer products.

Source: MLIR, `vector` dialect; `splat`, `extractelement` and `insertelement` are of
earlier versions, which texts still have.
"""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import (
    Value,
    check,
    element_type,
    parse_attributes,
    parse_operands,
    print_attributes,
    type_of,
    vector_type,
)
from ..combining import CombiningKindAttr
from ..kinds_of_types import is_vector
from ..operation import Common, XetlOp
from . import vector_syntax as syntax


@irdl_op_definition
class InterleaveOp(XetlOp):
    """Elements of two vectors in turns, along the last dimension."""

    name = "vector.interleave"

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, lhs: Value, rhs: Value, **common: Unpack[Common]) -> None:
        type_ = _with_last(vector_type(lhs), 2, 1)
        super().__init__(operands=[lhs, rhs], result_types=[type_], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b : vector -> vector``."""
        operands = parse_operands(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        return cls.create(
            operands=[parser.resolve_operand(o, type_) for o in operands],
            result_types=[parser.parse_type()],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b : vector -> vector``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.lhs.type])
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check that the result has twice the elements."""
        expected = _with_last(vector_type(self.lhs), 2, 1)
        check(self.rhs.type == self.lhs.type, "both sides must have one type")
        check(
            self.result.type == expected,
            f"the result is {expected}, found {self.result.type}",
        )


@irdl_op_definition
class DeinterleaveOp(XetlOp):
    """Elements at even and at odd places of the last dimension."""

    name = "vector.deinterleave"

    source = operand_def(VectorType)
    res = var_result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        type_ = _with_last(vector_type(source), 1, 2)
        super().__init__(operands=[source], result_types=[[type_, type_]], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v : vector -> vector``."""
        source = parser.parse_unresolved_operand()
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(source, type_)],
            result_types=[result, result],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%v : vector -> vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.source.type])
        printer.print_string(" -> ")
        printer.print_attribute(self.results[0].type)

    def verify_(self) -> None:
        """Check that the results have half of the elements."""
        type_ = vector_type(self.source)
        check(type_.get_shape()[-1] % 2 == 0, f"{type_} has an odd number of elements")
        expected = _with_last(type_, 1, 2)
        check(
            list(self.result_types) == [expected, expected],
            f"the results are {expected}, found {list(self.result_types)}",
        )


def _with_last(
    type_: VectorType[Attribute], times: int, by: int
) -> VectorType[Attribute]:
    shape = type_.get_shape()
    check(bool(shape), f"{type_} has no dimension")
    return VectorType(type_.element_type, [*shape[:-1], shape[-1] * times // by])


@irdl_op_definition
class OuterproductOp(XetlOp):
    """``lhs[i] * rhs[j] + acc[i, j]``; a scalar on the right scales the left side."""

    name = "vector.outerproduct"

    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = opt_prop_def(CombiningKindAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: Value,
        rhs: Value,
        acc: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[lhs, rhs, acc],
            result_types=[_product_type(vector_type(lhs), type_of(rhs))],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b, %acc {kind = #vector.kind<add>} : vector, vector``."""
        operands = parse_operands(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        position = parser.pos
        types = syntax.parse_types(parser)
        if not is_vector(types[0]) or len(types) != 2:
            parser.raise_error("expected the types of both sides", position)
        result = _product_type(types[0], types[1])
        types += [result] * (len(operands) - 2)
        return cls.create(
            operands=parser.resolve_operands(operands, types, position),
            result_types=[result],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b, %acc {kind = #vector.kind<add>} : vector, vector``."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.lhs.type, self.rhs.type])

    def verify_(self) -> None:
        """Check ranks and types."""
        left, right = vector_type(self.lhs), self.rhs.type
        ranks = [left.get_num_dims()]
        if is_vector(right):
            ranks.append(right.get_num_dims())
        check(set(ranks) == {1}, f"both sides have rank 1, found {left} and {right}")
        check(element_type(right) == left.element_type, "element types differ")
        expected = _product_type(left, right)
        found = self.result.type if self.acc is None else self.acc.type
        check(found == expected, f"the product is {expected}, found {found}")


def _product_type(
    left: VectorType[Attribute], right: Attribute
) -> VectorType[Attribute]:
    columns = right.get_shape() if is_vector(right) else ()
    return VectorType(left.element_type, [*left.get_shape(), *columns])


@irdl_op_definition
class SplatOp(XetlOp):
    """One number everywhere; now `vector.broadcast`."""

    name = "vector.splat"

    input = operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, input: Value, result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[input], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%x : vector``."""
        operand = parser.parse_unresolved_operand()
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        value = parser.resolve_operand(operand, element_type(type_))
        return cls(value, type_, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%x : vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.result.type])


def _parse_position(
    parser: Parser,
) -> tuple[UnresolvedOperand, Attribute] | None:
    """Parse ``[%i : i32]``, or nothing in the brackets."""
    with parser.in_square_brackets():
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            return None
        parser.parse_punctuation(":")
        return operand, parser.parse_type()


def _print_position(printer: Printer, position: SSAValue | None) -> None:
    with printer.in_square_brackets():
        if position is not None:
            printer.print_ssa_value(position)
            syntax.print_types(printer, [position.type])


@irdl_op_definition
class ExtractelementOp(XetlOp):
    """One element of a vector of rank 1 or 0; now `vector.extract`."""

    name = "vector.extractelement"

    vector = operand_def(VectorType)
    position = opt_operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(
        self, vector: Value, position: Value | None = None, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            operands=[vector, position],
            result_types=[vector_type(vector).element_type],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v[%i : i32] : vector``."""
        operand = parser.parse_unresolved_operand()
        place = _parse_position(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        vector = parser.resolve_operand(operand, parser.parse_type())
        position = None if place is None else parser.resolve_operand(*place)
        if not is_vector(vector.type):
            parser.raise_error(f"expected a vector, found {vector.type}")
        return cls(vector, position, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%v[%i : i32] : vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.vector)
        _print_position(printer, self.position)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.vector.type])


@irdl_op_definition
class InsertelementOp(XetlOp):
    """A vector of rank 1 or 0 with one element replaced; now `vector.insert`."""

    name = "vector.insertelement"

    source = operand_def()
    dest = operand_def(VectorType)
    position = opt_operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        dest: Value,
        position: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[source, dest, position], result_types=[type_of(dest)], **common
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%x, %v[%i : i32] : vector``."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        dest = parser.parse_unresolved_operand()
        place = _parse_position(parser)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        position = None if place is None else parser.resolve_operand(*place)
        return cls(
            parser.resolve_operand(source, element_type(type_)),
            parser.resolve_operand(dest, type_),
            position,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%x, %v[%i : i32] : vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(", ")
        printer.print_ssa_value(self.dest)
        _print_position(printer, self.position)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.dest.type])


@irdl_op_definition
class ToElementsOp(XetlOp):
    """All elements of a vector as scalars, row by row."""

    name = "vector.to_elements"

    source = operand_def(VectorType)
    elements = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        type_ = vector_type(source)
        super().__init__(
            operands=[source],
            result_types=[[type_.element_type] * type_.element_count()],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v : vector``."""
        operand = parser.parse_unresolved_operand()
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not is_vector(type_):
            parser.raise_error(f"expected a vector, found {type_}")
        return cls(parser.resolve_operand(operand, type_), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%v : vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.source.type])


SHUFFLE_OPS = (
    *(InterleaveOp, DeinterleaveOp, OuterproductOp, SplatOp),
    *(ExtractelementOp, InsertelementOp, ToElementsOp),
)
