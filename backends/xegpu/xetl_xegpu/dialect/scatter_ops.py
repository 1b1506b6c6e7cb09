"""Scattered places: each lane, or row of lanes, has offsets of its own.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the base.
"""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import Value, check, parse_attributes
from xetl.dialects.operation import Common, XetlOp
from xetl.dialects.type_rules import like
from xetl.dialects.upstream.memref import ATOMIC_KINDS

from . import syntax
from .attributes import LayoutAttr, SliceAttr
from .block_ops import descriptor_type
from .scatter_verifiers import verify_access, verify_scattered
from .types import TensorDescType

_LAYOUT = LayoutAttr | SliceAttr


class CreateTdescOp(XetlOp, name="xegpu.create_tdesc"):
    """Describe scattered places of a memref of rank 1 or an address (i64)."""

    source = operand_def()
    offsets = operand_def()
    result = result_def(TensorDescType)

    traits = traits_def(Pure())
    assembly_format = (
        "$source `,` $offsets prop-dict attr-dict `:` type($source) `,` "
        "type($offsets) `->` type($result)"
    )

    def verify_(self) -> None:
        """Check base and offsets."""
        described = descriptor_type(self.result)
        verify_scattered(self.source.type, self.offsets.type, described)


class UpdateOffsetOp(XetlOp, name="xegpu.update_offset"):
    """Each place moved by its own offset."""

    tensor_desc = operand_def(TensorDescType)
    offsets = operand_def()
    result = result_def(like("tensor_desc", base=TensorDescType))

    traits = traits_def(Pure())
    assembly_format = (
        "$tensor_desc `,` $offsets prop-dict attr-dict `:` type($tensor_desc) `,` "
        "type($offsets)"
    )

    def verify_(self) -> None:
        """Check offsets and type."""
        described = descriptor_type(self.tensor_desc)
        verify_scattered(None, self.offsets.type, described)
        check(self.result.type == described, "a moved descriptor keeps its type")


class _AccessOp(XetlOp):
    """``%value, %base[%offsets], %mask <{...}> : types -> types``.

    Without offsets the base is a descriptor of scattered places.
    """

    base = operand_def()
    offsets = opt_operand_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse the operands, of which the base may have offsets in brackets."""
        operands: list[UnresolvedOperand] = []
        while not operands or parser.parse_optional_punctuation(","):
            operands.append(parser.parse_unresolved_operand())
            if parser.parse_optional_punctuation("["):
                operands.append(parser.parse_unresolved_operand())
                parser.parse_punctuation("]")
        properties, attributes = parse_attributes(parser, cls)
        types, results = syntax.parse_types(parser)
        return cls.create(
            operands=syntax.resolve(parser, operands, types),
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print the operands, and the offsets of the base in brackets."""
        for position, operand in enumerate(self.operands):
            if operand is self.offsets and self.operands[position - 1] is self.base:
                printer.print_string("[")
                printer.print_ssa_value(operand)
                printer.print_string("]")
                continue
            printer.print_string(", " if position else " ")
            printer.print_ssa_value(operand)
        syntax.print_dictionaries(printer, self)
        syntax.print_types(printer, self.operands, self.results)


def _chunk(chunk_size: int | None) -> IntegerAttr | None:
    return None if chunk_size is None else IntegerAttr(chunk_size, i64)


def _chunk_size(given: IntegerAttr | None, base: SSAValue) -> int:
    if given is not None:
        return given.value.data
    found = base.type
    return found.chunk_size if isinstance(found, TensorDescType) else 1


class LoadOp(_AccessOp, name="xegpu.load"):
    """Elements at ``base + offsets`` where ``mask`` is set; elsewhere anything.

    ``chunk_size`` elements that follow one another are a last dimension of the result.
    """

    # In the order of the text: those of a base class would come last.
    base = operand_def()
    offsets = opt_operand_def()
    mask = operand_def()
    chunk_size = opt_prop_def(IntegerAttr)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(_LAYOUT)
    value = result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        base: Value,
        offsets: Value | None,
        mask: Value,
        result_type: Attribute,
        *,
        chunk_size: int | None = None,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        super().__init__(
            operands=[base, offsets, mask],
            result_types=[result_type],
            properties={"chunk_size": _chunk(chunk_size), "layout": layout, **hints},
            **common,
        )

    @property
    def chunk(self) -> int:
        """Elements at each place."""
        return _chunk_size(self.chunk_size, self.base)

    def verify_(self) -> None:
        """Check offsets, mask, result and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        base, mask, value = self.base.type, self.mask.type, self.value.type
        verify_access(base, offsets, mask, value, self.chunk)
        syntax.check_hints(self, syntax.READ_HINTS)


class StoreOp(_AccessOp, name="xegpu.store"):
    """Write elements at ``base + offsets`` where ``mask`` is set."""

    value = operand_def()
    base = operand_def()
    offsets = opt_operand_def()
    mask = operand_def()
    chunk_size = opt_prop_def(IntegerAttr)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(_LAYOUT)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        base: Value,
        offsets: Value | None,
        mask: Value,
        *,
        chunk_size: int | None = None,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        super().__init__(
            operands=[value, base, offsets, mask],
            properties={"chunk_size": _chunk(chunk_size), "layout": layout, **hints},
            **common,
        )

    @property
    def chunk(self) -> int:
        """Elements at each place."""
        return _chunk_size(self.chunk_size, self.base)

    def verify_(self) -> None:
        """Check offsets, mask, value and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        base, mask, value = self.base.type, self.mask.type, self.value.type
        verify_access(base, offsets, mask, value, self.chunk)
        syntax.check_hints(self, syntax.WRITE_HINTS)


class PrefetchOp(_AccessOp, name="xegpu.prefetch"):
    """Ask for elements to be brought to a cache; never faults.

    Of an address, ``offset_align_byte`` says how many bytes an offset counts.
    """

    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    offset_align_byte = opt_prop_def(IntegerAttr)
    layout = opt_prop_def(_LAYOUT)

    # It writes nothing, but must be neither removed as unused nor moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        base: Value,
        offsets: Value | None = None,
        *,
        offset_align_byte: int | None = None,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        properties = {"offset_align_byte": _chunk(offset_align_byte), "layout": layout}
        super().__init__(
            operands=[base, offsets], properties={**properties, **hints}, **common
        )

    def verify_(self) -> None:
        """Check base, offsets and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        verify_access(self.base.type, offsets, None, None, 1)
        syntax.check_hints(self, syntax.READ_HINTS)


class AtomicRmwOp(XetlOp, name="xegpu.atomic_rmw"):
    """Combine elements with a value where ``mask`` is set, atomically; the old ones."""

    kind = prop_def(IntegerAttr)
    tensor_desc = operand_def(TensorDescType)
    mask = operand_def()
    value = operand_def()
    result = result_def(like("value"))

    WORDS = ATOMIC_KINDS

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "custom<Enumerated>($kind) $tensor_desc `,` $mask `,` $value prop-dict "
        "attr-dict `:` type($tensor_desc) `,` type($mask) `,` type($value) `->` "
        "type($result)"
    )

    def __init__(
        self,
        kind: str,
        tensor_desc: Value,
        mask: Value,
        value: Value,
        **common: Unpack[Common],
    ) -> None:
        number = IntegerAttr(ATOMIC_KINDS.index(kind), i64)
        super().__init__(tensor_desc, mask, value, kind=number, **common)

    @property
    def kind_name(self) -> str:
        """One of `memref.ATOMIC_KINDS`: addf, addi, assign, maximumf, ..."""
        return ATOMIC_KINDS[self.kind.value.data]

    def verify_(self) -> None:
        """Check mask, value and result."""
        described = descriptor_type(self.tensor_desc)
        mask, value = self.mask.type, self.value.type
        verify_access(described, None, mask, value, described.chunk_size)
        check(self.result.type == value, "an atomic gives what it takes")
