"""Memory and views of it; `memref_views` holds the ops that only change the view.

Source: MLIR, `memref` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    MemoryAllocEffect,
    MemoryFreeEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
)

from ..base import (
    Value,
    check,
    memref_type,
    parse_attributes,
    parse_optional_operands,
    print_attributes,
    resolve_indices,
    type_of,
)
from ..kinds_of_types import is_memref
from ..operation import Common, XetlOp
from .memref_globals import GetGlobalOp, GlobalOp
from .memref_shapes import AssumeAlignmentOp, CollapseShapeOp, ExpandShapeOp
from .memref_views import (
    CastOp,
    ExtractAlignedPointerAsIndexOp,
    ExtractStridedMetadataOp,
    MemorySpaceCastOp,
    ReinterpretCastOp,
    SubviewOp,
    TransposeOp,
    ViewOp,
)


def check_access(memref: SSAValue, indices: Sequence[SSAValue]) -> None:
    """Check that there is an index for each dimension."""
    rank = memref_type(memref).get_num_dims()
    check(rank == len(indices), f"expected {rank} indices, found {len(indices)}")


@irdl_op_definition
class LoadOp(XetlOp):
    """One element of memory."""

    name = "memref.load"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    nontemporal = opt_prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self, memref: Value, indices: Sequence[Value], **common: Unpack[Common]
    ) -> None:
        super().__init__(
            operands=[memref, indices],
            result_types=[memref_type(memref).element_type],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[%i] : memref``."""
        memref = parser.parse_unresolved_operand()
        indices = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not is_memref(type_):
            parser.raise_error("expected a memref type")
        value = parser.resolve_operand(memref, type_)
        return cls.create(
            operands=[value, *resolve_indices(parser, indices)],
            result_types=[memref_type(value).element_type],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m[%i] : memref``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    def verify_(self) -> None:
        """Check indices and the result."""
        check_access(self.memref, self.indices)
        element = memref_type(self.memref).element_type
        check(
            self.result.type == element,
            f"the memref holds {element}, the result is {self.result.type}",
        )


@irdl_op_definition
class StoreOp(XetlOp):
    """Write one element."""

    name = "memref.store"

    value = operand_def()
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    nontemporal = opt_prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        memref: Value,
        indices: Sequence[Value],
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[value, memref, indices], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, %m[%i] : memref``."""
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        memref = parser.parse_unresolved_operand()
        indices = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        base = parser.resolve_operand(memref, parser.parse_type())
        element = base.type.element_type if is_memref(base.type) else i64
        return cls.create(
            operands=[
                parser.resolve_operand(value, element),
                base,
                *resolve_indices(parser, indices),
            ],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%v, %m[%i] : memref``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        print_attributes(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    def verify_(self) -> None:
        """Check indices and the value."""
        check_access(self.memref, self.indices)
        element = memref_type(self.memref).element_type
        check(
            self.value.type == element,
            f"the memref holds {element}, the value is {self.value.type}",
        )


class _AllocLike(XetlOp):
    dynamic_sizes = var_operand_def(IndexType)
    symbol_operands = var_operand_def(IndexType)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(MemRefType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryAllocEffect())

    def __init__(
        self,
        result_type: Attribute,
        dynamic_sizes: Sequence[Value] = (),
        symbol_operands: Sequence[Value] = (),
        alignment: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[dynamic_sizes, symbol_operands],
            result_types=[result_type],
            properties={
                "alignment": None if alignment is None else IntegerAttr(alignment, i64)
            },
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%sizes)[%symbols] {alignment = n : i64} : memref``."""
        sizes = parse_optional_operands(parser, parser.Delimiter.PAREN)
        symbols = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        return cls.build(
            operands=[resolve_indices(parser, sizes), resolve_indices(parser, symbols)],
            result_types=[parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``(%sizes)[%symbols] {alignment = n : i64} : memref``."""
        with printer.in_parens():
            printer.print_list(self.dynamic_sizes, printer.print_ssa_value)
        if self.symbol_operands:
            with printer.in_square_brackets():
                printer.print_list(self.symbol_operands, printer.print_ssa_value)
        print_attributes(printer, self, ("operandSegmentSizes",))
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """Check that each dynamic extent is given, and the alignment."""
        needed = self.result.type.get_shape().count(DYNAMIC_INDEX)
        found = len(self.dynamic_sizes)
        check(needed == found, f"expected {needed} dynamic sizes, found {found}")
        bytes_ = 1 if self.alignment is None else self.alignment.value.data
        check(
            bytes_ > 0 and bytes_ & (bytes_ - 1) == 0,
            f"an alignment is a power of 2, found {bytes_}",
        )


@irdl_op_definition
class AllocOp(_AllocLike):
    """Memory until it is freed."""

    name = "memref.alloc"


@irdl_op_definition
class AllocaOp(_AllocLike):
    """Memory until the function returns."""

    name = "memref.alloca"


@irdl_op_definition
class DeallocOp(XetlOp):
    """Free memory of memref.alloc."""

    name = "memref.dealloc"

    memref = operand_def(MemRefType)

    traits = traits_def(MemoryFreeEffect())

    assembly_format = "$memref attr-dict `:` type($memref)"

    def __init__(self, memref: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[memref], **common)


@irdl_op_definition
class CopyOp(XetlOp):
    """Copy all elements; the two must not overlap."""

    name = "memref.copy"

    source = operand_def(MemRefType)
    target = operand_def(MemRefType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    assembly_format = (
        "$source `,` $target attr-dict `:` type($source) `to` type($target)"
    )

    def __init__(self, source: Value, target: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[source, target], **common)


@irdl_op_definition
class DimOp(XetlOp):
    """The extent of a dimension."""

    name = "memref.dim"

    source = operand_def(MemRefType)
    index = operand_def(IndexType)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict $source `,` $index `:` type($source)"

    def __init__(self, source: Value, index: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[source, index], result_types=[IndexType()], **common)


# The order is that of MLIR 22's enum: the number is what the attribute holds.
ATOMIC_KINDS = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu"),
    *("minimumf", "minnumf", "mins", "minu", "mulf", "muli", "ori", "xori"),
)


@irdl_op_definition
class AtomicRmwOp(XetlOp):
    """Combine one element with a value, atomically; gives the old one."""

    name = "memref.atomic_rmw"

    kind = prop_def(IntegerAttr | StringAttr)
    value = operand_def()
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        kind: str,
        value: Value,
        memref: Value,
        indices: Sequence[Value],
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[value, memref, indices],
            result_types=[type_of(value)],
            properties={"kind": IntegerAttr(ATOMIC_KINDS.index(kind), i64)},
            **common,
        )

    @property
    def kind_name(self) -> str:
        """One of ATOMIC_KINDS."""
        if isinstance(self.kind, StringAttr):
            return self.kind.data
        return ATOMIC_KINDS[self.kind.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``addf %v, %m[%i] : (type, memref) -> type``."""
        position = parser.pos
        kind = parser.parse_identifier()
        if kind not in ATOMIC_KINDS:
            parser.raise_error(f"unknown kind {kind}", position)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        memref = parser.parse_unresolved_operand()
        indices = parse_optional_operands(parser, parser.Delimiter.SQUARE)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        value_type, base_type = parser.parse_function_type().inputs.data
        return cls(
            kind,
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(memref, base_type),
            resolve_indices(parser, indices),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``addf %v, %m[%i] : (type, memref) -> type``."""
        printer.print_string(f" {self.kind_name} ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        print_attributes(printer, self, ("kind",))
        printer.print_string(" : ")
        types = [self.value.type, self.memref.type]
        printer.print_function_type(types, [self.result.type])

    def verify_(self) -> None:
        """Check indices and the value."""
        check_access(self.memref, self.indices)
        element = memref_type(self.memref).element_type
        check(
            self.value.type == element == self.result.type,
            f"the memref holds {element}, the value is {self.value.type}",
        )


MemRef = Dialect(
    "memref",
    [
        LoadOp,
        StoreOp,
        AllocOp,
        AllocaOp,
        DeallocOp,
        CopyOp,
        DimOp,
        AssumeAlignmentOp,
        AtomicRmwOp,
        CastOp,
        CollapseShapeOp,
        ExpandShapeOp,
        ExtractAlignedPointerAsIndexOp,
        ExtractStridedMetadataOp,
        GetGlobalOp,
        GlobalOp,
        MemorySpaceCastOp,
        ReinterpretCastOp,
        SubviewOp,
        TransposeOp,
        ViewOp,
    ],
)

__all__ = [
    "AllocOp",
    "AllocaOp",
    "AssumeAlignmentOp",
    "AtomicRmwOp",
    "CastOp",
    "CollapseShapeOp",
    "CopyOp",
    "DeallocOp",
    "DimOp",
    "ExpandShapeOp",
    "ExtractAlignedPointerAsIndexOp",
    "ExtractStridedMetadataOp",
    "GetGlobalOp",
    "GlobalOp",
    "LoadOp",
    "MemRef",
    "MemorySpaceCastOp",
    "ReinterpretCastOp",
    "StoreOp",
    "SubviewOp",
    "TransposeOp",
    "ViewOp",
]
