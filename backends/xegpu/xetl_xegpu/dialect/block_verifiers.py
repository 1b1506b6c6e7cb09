"""What must agree between a descriptor, its base and what is loaded or stored."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from xetl.dialects.base import Index, check
from xetl.dialects.kinds_of_types import is_memref

from .types import TensorDescType


def bits_of(element: Attribute) -> int:
    """Bits of an element."""
    assert isinstance(element, FixedBitwidthType)
    return element.bitwidth


def elements_per_word(element: Attribute) -> int:
    """How many elements are 32 bits; 1 of wider ones."""
    return max(1, 32 // bits_of(element))


def verify_descriptor(
    base: Attribute,
    tdesc: TensorDescType,
    shape: Sequence[Index],
    strides: Sequence[Index],
) -> None:
    """Check the base of a block, and that shape and strides of it are known."""
    check(not tdesc.scattered, "create_nd_tdesc describes a block")
    if is_memref(base):
        check(
            base.element_type == tdesc.element_type,
            f"the memref holds {base.element_type}, the block {tdesc.element_type}",
        )
        rank = base.get_num_dims()
        check(
            rank >= len(tdesc.shape),
            f"a block of rank {len(tdesc.shape)} of a memref of rank {rank}",
        )
    else:
        check(
            isinstance(base, IntegerType) and base.bitwidth in (32, 64),
            f"a block is one of a memref or of an address, found {base}",
        )
        check(
            bool(shape) and bool(strides),
            "of an address the shape and the strides must be given",
        )
    check(
        len(shape) == len(strides) or not shape or not strides,
        f"{len(shape)} sizes, but {len(strides)} strides",
    )


def verify_offsets(tdesc: TensorDescType, offsets: Sequence[Index]) -> None:
    """Check that there are no offsets, or one a dimension of the block at least."""
    check(
        not offsets or len(offsets) >= len(tdesc.shape),
        f"{len(offsets)} offsets for a block of rank {len(tdesc.shape)}",
    )


def verify_loaded(
    tdesc: TensorDescType, found: Attribute | None, packed: bool, transposed: bool
) -> VectorType[Attribute]:
    """What is loaded; checks that it is ``found``, unless that is None."""
    check(not tdesc.scattered, "load_nd takes a block")
    shape = list(tdesc.shape)
    check(
        len(shape) == 2 or not (packed or transposed),
        "only a block of rank 2 can be packed or transposed",
    )
    check(not (packed and transposed), "a load is packed or transposed, not both")
    if transposed:
        shape.reverse()
    if packed:
        factor = elements_per_word(tdesc.element_type)
        check(
            factor > 1 and shape[0] % factor == 0,
            f"a packed block has rows in groups of {factor} of less than 32 bits each,"
            f" found {tdesc}",
        )
        shape = [shape[0] // factor, shape[1], factor]
    if tdesc.array_length > 1:
        shape.insert(0, tdesc.array_length)
    expected = VectorType(tdesc.element_type, shape)
    check(
        found is None or found == expected,
        "the load brings {}, found {}",
        expected,
        found,
    )
    return expected


def verify_stored(tdesc: TensorDescType, found: Attribute) -> None:
    """Check what is stored to a block."""
    check(not tdesc.scattered, "store_nd takes a block")
    check(tdesc.array_length == 1, "a store takes one block, not several")
    expected = tdesc.vector_type()
    check(found == expected, "the block holds {}, found {}", expected, found)


def verify_moved(tdesc: TensorDescType, result: Attribute, has_offsets: bool) -> None:
    """Check that a block that is moved stays what it is."""
    check(has_offsets, "by how much the block moves must be given")
    check(result == tdesc, "the moved block is {}, found {}", tdesc, result)
