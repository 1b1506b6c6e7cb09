"""Scattered places: each lane, or row of lanes, has offsets of its own.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the base.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import check
from xetl.dialects.operation import XetlOp
from xetl.dialects.type_rules import like
from xetl.dialects.upstream.memref import ATOMIC_KINDS

from .block_ops import descriptor_type
from .cache_hints import READ_HINTS, WRITE_HINTS, CachedOp
from .scatter_verifiers import verify_access, verify_scattered
from .types import TensorDescType


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


# Without offsets the base is a descriptor of scattered places.
_PLACES = "$base (`[` $offsets^ `]`)?"


class _AccessOp(CachedOp):
    """``chunk_size`` elements, or one, at each of the places."""

    base = operand_def()
    offsets = opt_operand_def()
    mask = operand_def()
    chunk_size = opt_prop_def(IntegerAttr)

    @property
    def chunk(self) -> int:
        """Elements at each place."""
        if self.chunk_size is not None:
            return self.chunk_size.value.data
        found = self.base.type
        return found.chunk_size if isinstance(found, TensorDescType) else 1

    def verify_access(self, value: Attribute, hints: Sequence[str]) -> None:
        """Check offsets, mask, value and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        verify_access(self.base.type, offsets, self.mask.type, value, self.chunk)
        self.check_hints(hints)


class LoadOp(_AccessOp, name="xegpu.load"):
    """Elements at ``base + offsets`` where ``mask`` is set; elsewhere anything.

    ``chunk_size`` elements that follow one another are a last dimension of the result.
    """

    value = result_def()

    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        f"{_PLACES} `,` $mask prop-dict attr-dict `:` types($base, $offsets, $mask) "
        "`->` type($value)"
    )

    def verify_(self) -> None:
        """Check offsets, mask, result and hints."""
        self.verify_access(self.value.type, READ_HINTS)


class StoreOp(_AccessOp, name="xegpu.store"):
    """Write elements at ``base + offsets`` where ``mask`` is set."""

    # In the order of the text: those of a base class would come last.
    value = operand_def()
    base = operand_def()
    offsets = opt_operand_def()
    mask = operand_def()

    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        f"$value `,` {_PLACES} `,` $mask prop-dict attr-dict `:` "
        "types($value, $base, $offsets, $mask)"
    )

    def verify_(self) -> None:
        """Check offsets, mask, value and hints."""
        self.verify_access(self.value.type, WRITE_HINTS)


class PrefetchOp(CachedOp, name="xegpu.prefetch"):
    """Ask for elements to be brought to a cache; never faults.

    Of an address, ``offset_align_byte`` says how many bytes an offset counts.
    """

    base = operand_def()
    offsets = opt_operand_def()
    offset_align_byte = opt_prop_def(IntegerAttr)

    # It writes nothing, but must be neither removed as unused nor moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = f"{_PLACES} prop-dict attr-dict `:` types($base, $offsets)"

    def verify_(self) -> None:
        """Check base, offsets and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        verify_access(self.base.type, offsets, None, None, 1)
        self.check_hints(READ_HINTS)


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
