"""Vectors from memory and to memory.  Source: MLIR, `vector` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, VectorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import (
    Value,
    check,
    memref_type,
    parse_attributes,
    print_attributes,
    resolve_indices,
    shape_of,
    type_of,
    vector_type,
)
from ..kinds_of_types import is_vector
from ..operation import Common, XetlOp
from . import vector_syntax as syntax


def check_base(base: SSAValue, indices: Sequence[SSAValue], vector: Attribute) -> None:
    """Check indices against the memref, and its element type against the vector's."""
    type_ = memref_type(base)
    rank = type_.get_num_dims()
    check(rank == len(indices), f"expected {rank} indices, found {len(indices)}")
    if is_vector(vector):
        check(
            type_.element_type in (vector, vector.element_type),
            f"the memref holds {type_.element_type}, the vector is {vector}",
        )


def check_mask(mask: SSAValue, vector: Attribute) -> None:
    """Check that a mask has one bit for each element."""
    expected = VectorType(i1, shape_of(vector))
    check(mask.type == expected, f"the mask is {mask.type}, expected {expected}")


@irdl_op_definition
class LoadOp(XetlOp):
    """Consecutive elements of the last dimension(s); all must lie inside."""

    name = "vector.load"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    nontemporal = opt_prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        base: Value,
        indices: Sequence[Value],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[base, indices], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i] : memref, vector``."""
        base, (indices,) = syntax.parse_base(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        base_type, result = syntax.parse_types(parser)
        return cls.create(
            operands=[
                parser.resolve_operand(base, base_type),
                *resolve_indices(parser, indices),
            ],
            result_types=[result],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i] : memref, vector``."""
        printer.print_string(" ")
        syntax.print_base(printer, self.base, [self.indices])
        print_attributes(printer, self)
        syntax.print_types(printer, [self.base.type, self.result.type])

    def verify_(self) -> None:
        """Check indices and element type."""
        check_base(self.base, self.indices, self.result.type)


@irdl_op_definition
class StoreOp(XetlOp):
    """Write consecutive elements; all must lie inside."""

    name = "vector.store"

    value = operand_def(VectorType)
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    nontemporal = opt_prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        base: Value,
        indices: Sequence[Value],
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[value, base, indices], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, %m[%i] : memref, vector``."""
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        base, (indices,) = syntax.parse_base(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        base_type, value_type = syntax.parse_types(parser)
        return cls.create(
            operands=[
                parser.resolve_operand(value, value_type),
                parser.resolve_operand(base, base_type),
                *resolve_indices(parser, indices),
            ],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%v, %m[%i] : memref, vector``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        syntax.print_base(printer, self.base, [self.indices])
        print_attributes(printer, self)
        syntax.print_types(printer, [self.base.type, self.value.type])

    def verify_(self) -> None:
        """Check indices and element type."""
        check_base(self.base, self.indices, self.value.type)


class _MaskedOp(XetlOp):
    """A base, ``LISTS`` lists of operands in brackets, then more operands."""

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)

    @classmethod
    def parse_masked(cls, parser: Parser, *, indexed: bool, result: bool) -> Self:
        """Parse ``%m[%i][%idx], %mask, %v : memref, types into vector``."""
        base, lists = syntax.parse_base(parser, 2 if indexed else 1)
        rest = (lists[1] if indexed else []) + syntax.parse_rest(parser)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        position = parser.pos
        types = syntax.parse_types(parser)
        results: list[Attribute] = []
        if result:
            parser.parse_keyword("into")
            results = [parser.parse_type()]
        return cls.create(
            operands=[
                parser.resolve_operand(base, types[0]),
                *resolve_indices(parser, lists[0]),
                *parser.resolve_operands(rest, types[1:], position),
            ],
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print_masked(self, printer: Printer, *, indexed: bool) -> None:
        """Print ``%m[%i][%idx], %mask, %v : memref, types into vector``."""
        rest = self.operands[1 + len(self.indices) :]
        lists = [list(self.indices)]
        if indexed:
            lists.append([rest[0]])
        printer.print_string(" ")
        syntax.print_base(printer, self.base, lists)
        syntax.print_rest(printer, rest[1:] if indexed else rest)
        print_attributes(printer, self)
        types = [self.base.type, *(value.type for value in rest)]
        syntax.print_types(printer, types)
        if self.results:
            printer.print_string(" into ")
            printer.print_attribute(self.results[0].type)


@irdl_op_definition
class MaskedloadOp(_MaskedOp):
    """Elements where the mask is set, else those of ``pass_thru``."""

    name = "vector.maskedload"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        base: Value,
        indices: Sequence[Value],
        mask: Value,
        pass_thru: Value,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[base, indices, mask, pass_thru],
            result_types=[type_of(pass_thru)],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i], %mask, %v : memref, mask, vector into vector``."""
        return cls.parse_masked(parser, indexed=False, result=True)

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i], %mask, %v : memref, mask, vector into vector``."""
        self.print_masked(printer, indexed=False)

    def verify_(self) -> None:
        """Check indices, mask and vectors."""
        check_base(self.base, self.indices, self.result.type)
        check_mask(self.mask, self.result.type)
        check(self.pass_thru.type == self.result.type, "pass_thru and result differ")


@irdl_op_definition
class MaskedstoreOp(_MaskedOp):
    """Write the elements where the mask is set."""

    name = "vector.maskedstore"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    mask = operand_def(VectorType)
    value = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        base: Value,
        indices: Sequence[Value],
        mask: Value,
        value: Value,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[base, indices, mask, value], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i], %mask, %v : memref, mask, vector``."""
        return cls.parse_masked(parser, indexed=False, result=False)

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i], %mask, %v : memref, mask, vector``."""
        self.print_masked(printer, indexed=False)

    def verify_(self) -> None:
        """Check indices, mask and vector."""
        check_base(self.base, self.indices, self.value.type)
        check_mask(self.mask, self.value.type)


@irdl_op_definition
class GatherOp(_MaskedOp):
    """Elements at ``index_vec`` from the base, where the mask is set."""

    name = "vector.gather"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        base: Value,
        indices: Sequence[Value],
        index_vec: Value,
        mask: Value,
        pass_thru: Value,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[base, indices, index_vec, mask, pass_thru],
            result_types=[type_of(pass_thru)],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i][%idx], %mask, %v : types into vector``."""
        return cls.parse_masked(parser, indexed=True, result=True)

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i][%idx], %mask, %v : types into vector``."""
        self.print_masked(printer, indexed=True)

    def verify_(self) -> None:
        """Check indices, mask and vectors."""
        check_base(self.base, self.indices, self.result.type)
        check_mask(self.mask, self.result.type)
        shape = self.result.type.get_shape()
        check(
            vector_type(self.index_vec).get_shape() == shape,
            f"the indices must have shape {shape}, found {self.index_vec.type}",
        )


@irdl_op_definition
class ScatterOp(_MaskedOp):
    """Write elements at ``index_vec`` from the base, where the mask is set."""

    name = "vector.scatter"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    value = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        base: Value,
        indices: Sequence[Value],
        index_vec: Value,
        mask: Value,
        value: Value,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[base, indices, index_vec, mask, value], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i][%idx], %mask, %v : types``."""
        return cls.parse_masked(parser, indexed=True, result=False)

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i][%idx], %mask, %v : types``."""
        self.print_masked(printer, indexed=True)

    def verify_(self) -> None:
        """Check indices, mask and vector."""
        check_base(self.base, self.indices, self.value.type)
        check_mask(self.mask, self.value.type)


MEMORY_OPS = (LoadOp, StoreOp, MaskedloadOp, MaskedstoreOp, GatherOp, ScatterOp)
