"""Scattered accesses: each lane has an offset of its own.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the base.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import check, element_type, is_memref, shape_of
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.operation import XetlOp
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like
from xetl.dialects.upstream.memref import ATOMIC_KINDS

from .attributes import READ_HINTS, WRITE_HINTS, CachedOp, TensorDescType
from .nd_ops import descriptor_type, is_address

# Checks -------------------------------------------------------------------------------


def _verify_base(base: Attribute) -> None:
    """Check that a scattered access has a memref of rank 1 or an address as base."""
    if is_memref(base):
        rank = base.get_num_dims()
        check(rank == 1, f"scattered places are of a memref of rank 1, found {rank}")
        return
    text = "scattered places are of a memref or of an address, found {}"
    check(is_address(base), text, base)


def verify_access(
    base: Attribute,
    offsets: Attribute | None,
    mask: Attribute | None,
    value: Attribute | None,
    chunk: int,
) -> None:
    """Check a gather, scatter, prefetch or atomic.

    Args:
        base: a descriptor (without offsets), or a memref or an address (with offsets).
        offsets: an index, or a vector of indices.
        mask: a bit for each place; None for a prefetch.
        value: what is loaded, stored or combined; None for a prefetch.
        chunk: elements at each place.
    """
    if isinstance(base, TensorDescType):
        check(base.scattered, "a block is accessed by load_nd, store_nd, prefetch_nd")
        check(offsets is None, "a descriptor has its offsets already")
        places, element = base.shape[:1], base.element_type
    else:
        _verify_base(base)
        places = _places_of(offsets)
        element = base.element_type if is_memref(base) else None
    if mask is None or value is None:
        return
    fits = shape_of(mask) == places and element_type(mask) == i1
    check(fits, "the mask has one bit a place, found {}", mask)
    expected = places if chunk == 1 else (*places, chunk)
    at_each = f"{chunk} elements at each of {list(places)} places"
    check(shape_of(value) == expected, "{}, found {}", at_each, value)
    fits = element in (None, element_type(value))
    check(fits, "the memory holds {}, found {}", element, value)


def _places_of(offsets: Attribute | None) -> tuple[int, ...]:
    """Return the shape of offsets, after a check of their type."""
    are_right = offsets is not None and isinstance(element_type(offsets), IndexType)
    check(are_right, "offsets are of type index, found {}", offsets)
    return () if offsets is None else shape_of(offsets)


class CreateTdescOp(XetlOp, name="xegpu.create_tdesc", traits=[Pure()]):
    """Describe scattered elements of a memref of rank 1 or of an address (i64)."""

    source = offsets = operand_def()
    result = result_def(TensorDescType)

    assembly_format = (
        "$source `,` $offsets prop-dict attr-dict `:` type($source) `,` "
        "type($offsets) `->` type($result)"
    )

    def verify_(self) -> None:
        base, offsets = self.source.type, self.offsets.type
        tdesc = descriptor_type(self.result)
        check(tdesc.scattered, "scattered places need #xegpu.scatter_tdesc_attr<...>")
        fits = _places_of(offsets) == tdesc.shape[:1]
        check(fits, "{} has {} places, found {}", tdesc, tdesc.shape[0], offsets)
        _verify_base(base)
        if is_memref(base):
            held, wanted = base.element_type, tdesc.element_type
            check(held == wanted, "the memref holds {}, the places {}", held, wanted)
            space = "slm" if memory_space_of(base) == SHARED else "global"
            fits = space == tdesc.memory_space
            check(fits, "the memref lies in {} memory, found {}", space, tdesc)


# Without offsets the base is a descriptor of scattered places.
_PLACES = "$base (`[` $offsets^ `]`)?"


class _AccessOp(CachedOp):
    """Base class of accesses to ``chunk_size`` elements, or one, at each offset."""

    base = operand_def()
    offsets = opt_operand_def()
    mask = operand_def()
    chunk_size = opt_prop_def(IntegerAttr)

    @property
    def chunk(self) -> int:
        """Elements at each offset."""
        if self.chunk_size is not None:
            return self.chunk_size.value.data
        found = self.base.type
        return found.chunk_size if isinstance(found, TensorDescType) else 1

    def verify_access(self, value: Attribute, hints: Sequence[str]) -> None:
        """Check offsets, mask, value and hints."""
        offsets = None if self.offsets is None else self.offsets.type
        verify_access(self.base.type, offsets, self.mask.type, value, self.chunk)
        self.check_hints(hints)


class LoadOp(_AccessOp, name="xegpu.load", traits=[MemoryReadEffect()]):
    """Load elements at ``base + offsets`` where ``mask`` is set; others are undefined.

    ``chunk_size`` contiguous elements are the last dimension of the result.
    """

    value = result_def()

    assembly_format = (
        f"{_PLACES} `,` $mask prop-dict attr-dict `:` types($base, $offsets, $mask) "
        "`->` type($value)"
    )

    def verify_(self) -> None:
        self.verify_access(self.value.type, READ_HINTS)


class StoreOp(_AccessOp, name="xegpu.store", traits=[MemoryWriteEffect()]):
    """Store elements at ``base + offsets`` where ``mask`` is set."""

    value = operand_def()

    assembly_format = (
        f"$value `,` {_PLACES} `,` $mask prop-dict attr-dict `:` "
        "types($value, $base, $offsets, $mask)"
    )

    def verify_(self) -> None:
        self.verify_access(self.value.type, WRITE_HINTS)


# It writes nothing, but must be neither removed as unused nor moved.
class PrefetchOp(CachedOp, name="xegpu.prefetch", traits=READS_AND_WRITES):
    """Prefetch elements to a cache; this never faults.

    If the base is an address, ``offset_align_byte`` is the unit of offsets in bytes.
    """

    base = operand_def()
    offsets = opt_operand_def()
    offset_align_byte = opt_prop_def(IntegerAttr)

    assembly_format = f"{_PLACES} prop-dict attr-dict `:` types($base, $offsets)"

    def verify_(self) -> None:
        offsets = None if self.offsets is None else self.offsets.type
        verify_access(self.base.type, offsets, None, None, 1)
        self.check_hints(READ_HINTS)


class AtomicRmwOp(XetlOp, name="xegpu.atomic_rmw", traits=READS_AND_WRITES):
    """Combine elements with a value atomically where ``mask`` is set.

    The result has the old elements. With ``expected``, an operand of ours, `assign`
    stores only where memory has the bits of ``expected``.
    """

    kind = prop_def(IntegerAttr)
    tensor_desc = operand_def(TensorDescType)
    mask = value = operand_def()
    expected = opt_operand_def(like("value"))
    result = result_def(like("value"))

    WORDS = ATOMIC_KINDS

    assembly_format = (
        "custom<Enumerated>($kind) $tensor_desc `,` $mask `,` $value (`if` $expected^)?"
        " prop-dict attr-dict `:` type($tensor_desc) `,` type($mask) `,` type($value) "
        "`->` type($result)"
    )

    @property
    def kind_name(self) -> str:
        """One of `memref.ATOMIC_KINDS`: addf, addi, assign, maximumf, ..."""
        return ATOMIC_KINDS[self.kind.value.data]

    def verify_(self) -> None:
        described = descriptor_type(self.tensor_desc)
        mask, value = self.mask.type, self.value.type
        verify_access(described, None, mask, value, described.chunk_size)
        check(self.result.type == value, "an atomic gives what it takes")
