"""Blocks of a matrix: described once, loaded, stored and prefetched by messages.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the start of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import Index, MixedList, Value, check, ints_of, type_of
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.operation import XetlOp

from .attributes import READ_HINTS, WRITE_HINTS, CachedOp
from .types import TensorDescType

# Checks -------------------------------------------------------------------------------


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
        if base.element_type != tdesc.element_type:
            raise VerifyException(
                f"the memref holds {base.element_type}, the block {tdesc.element_type}"
            )
        rank = base.get_num_dims()
        if rank < len(tdesc.shape):
            raise VerifyException(
                f"a block of rank {len(tdesc.shape)} of a memref of rank {rank}"
            )
    else:
        if not (isinstance(base, IntegerType) and base.bitwidth in (32, 64)):
            raise VerifyException(
                f"a block is one of a memref or of an address, found {base}"
            )
        if not (shape and strides):
            raise VerifyException(
                "of an address the shape and the strides must be given"
            )
    if len(shape) != len(strides) and shape and strides:
        raise VerifyException(f"{len(shape)} sizes, but {len(strides)} strides")


def verify_offsets(tdesc: TensorDescType, offsets: Sequence[Index]) -> None:
    """Check that there are no offsets, or one a dimension of the block at least."""
    if offsets and len(offsets) < len(tdesc.shape):
        raise VerifyException(
            f"{len(offsets)} offsets for a block of rank {len(tdesc.shape)}"
        )


def verify_loaded(
    tdesc: TensorDescType, found: Attribute | None, packed: bool, transposed: bool
) -> VectorType[Attribute]:
    """What is loaded; checks that it is ``found``, unless that is None."""
    check(not tdesc.scattered, "load_nd takes a block")
    shape = list(tdesc.shape)
    if len(shape) != 2 and (packed or transposed):
        raise VerifyException("only a block of rank 2 can be packed or transposed")
    check(not (packed and transposed), "a load is packed or transposed, not both")
    if transposed:
        shape.reverse()
    if packed:
        factor = elements_per_word(tdesc.element_type)
        if not (factor > 1 and shape[0] % factor == 0):
            raise VerifyException(
                f"a packed block has rows in groups of {factor} of less than 32 bits"
                f" each, found {tdesc}"
            )
        shape = [shape[0] // factor, shape[1], factor]
    if tdesc.array_length > 1:
        shape.insert(0, tdesc.array_length)
    expected = VectorType(tdesc.element_type, shape)
    if found is not None and found != expected:
        raise VerifyException(f"the load brings {expected}, found {found}")
    return expected


def verify_stored(tdesc: TensorDescType, found: Attribute) -> None:
    """Check what is stored to a block."""
    check(not tdesc.scattered, "store_nd takes a block")
    check(tdesc.array_length == 1, "a store takes one block, not several")
    expected = tdesc.vector_type()
    check(found == expected, "the block holds {}, found {}", expected, found)


def descriptor_type(value: Value) -> TensorDescType:
    """The type of a descriptor; a TypeError if ``value`` is none."""
    found = type_of(value)
    if not isinstance(found, TensorDescType):
        raise TypeError(f"expected a descriptor, found {found}")
    return found


class CreateNdTdescOp(XetlOp, name="xegpu.create_nd_tdesc"):
    """Describe a block of a matrix, a memref or an address (i64): nothing is touched.

    A static memref knows its shape and strides (elements); an address, or a dynamic
    memref whose last dimensions are not known, gets them here.  Offsets are rather
    given where the block is used: `mlir-opt` 22 lowers only those.
    """

    source = operand_def()
    offsets = var_operand_def(IndexType)
    shape = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    const_offsets = opt_prop_def(DenseArrayBase)
    const_shape = opt_prop_def(DenseArrayBase)
    const_strides = opt_prop_def(DenseArrayBase)
    result = result_def(TensorDescType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$source (`` custom<DynamicIndexList>($offsets, $const_offsets)^)? "
        "(`,` `shape` `:` custom<DynamicIndexList>($shape, $const_shape)^)? "
        "(`,` `strides` `:` custom<DynamicIndexList>($strides, $const_strides)^)? "
        "prop-dict attr-dict `:` type($source) `->` type($result)"
    )

    mixed_offsets = MixedList("offsets", "const_offsets")
    """In elements."""
    mixed_shape = MixedList("shape", "const_shape")
    """Sizes of the matrix in elements; () if the memref knows them."""
    mixed_strides = MixedList("strides", "const_strides")
    """Of the matrix in elements; () if the memref knows them."""

    def verify_(self) -> None:
        """Check the base, and that its shape and strides are known."""
        self.verify_lists()
        verify_descriptor(
            self.source.type,
            descriptor_type(self.result),
            self.mixed_shape,
            self.mixed_strides,
        )


class _BlockOp(XetlOp):
    """An operation on the block at ``offsets``."""

    tensor_desc = operand_def(TensorDescType)
    offsets = var_operand_def(IndexType)
    const_offsets = opt_prop_def(DenseArrayBase)

    mixed_offsets = MixedList("offsets", "const_offsets")
    """In elements; () where the descriptor has them."""

    @property
    def descriptor(self) -> TensorDescType:
        """The type of the descriptor."""
        return descriptor_type(self.tensor_desc)

    def verify_offsets(self) -> None:
        """Check that offsets are as many as the block has dimensions."""
        self.verify_lists()
        verify_offsets(self.descriptor, self.mixed_offsets)


_BLOCK = "$tensor_desc (`` custom<DynamicIndexList>($offsets, $const_offsets)^)? "


class LoadNdOp(_BlockOp, CachedOp, name="xegpu.load_nd"):
    """The elements of a block; zero outside of the matrix.

    ``packed`` pairs rows as the right side of `xegpu.dpas` wants them (VNNI):
    ``R[i, n, j] = B[i * f + j, n]``, f elements in 32 bits.  ``transpose`` swaps rows
    and columns.  With ``array_length`` > 1 the blocks are a dimension in front.
    """

    packed = opt_prop_def(UnitAttr)
    transpose = opt_prop_def(DenseArrayBase)
    value = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        _BLOCK + "prop-dict attr-dict `:` type($tensor_desc) `->` type($value)"
    )

    def __init__(
        self,
        tensor_desc: Value,
        offsets: Sequence[int | Value] = (),
        *,
        packed: bool = False,
        transpose: bool = False,
        **others: Any,
    ) -> None:
        described = descriptor_type(tensor_desc)
        type_ = loaded_type(described, packed=packed, transpose=transpose)
        axes = (1, 0) if transpose else ()
        super().__init__(
            *(tensor_desc, offsets, type_), packed=packed, transpose=axes, **others
        )

    @property
    def is_packed(self) -> bool:
        """Whether rows come in pairs (or fours)."""
        return self.packed is not None

    @property
    def is_transposed(self) -> bool:
        """Whether rows become columns."""
        return ints_of(self.transpose) == (1, 0)

    def verify_(self) -> None:
        """Check offsets, result and hints."""
        self.verify_offsets()
        if ints_of(self.transpose) not in ((), (0, 1), (1, 0)):
            raise VerifyException(
                f"`transpose` is [1, 0], found {list(ints_of(self.transpose))}"
            )
        verify_loaded(
            self.descriptor, self.value.type, self.is_packed, self.is_transposed
        )
        self.check_hints(READ_HINTS)


def loaded_type(
    described: TensorDescType, *, packed: bool = False, transpose: bool = False
) -> VectorType[Attribute]:
    """The type of what `xegpu.load_nd` brings of a block.

    Raises:
        VerifyException: such a block cannot be packed or transposed.
    """
    return verify_loaded(described, None, packed, transpose)


class StoreNdOp(_BlockOp, CachedOp, name="xegpu.store_nd"):
    """Write a block; what lies outside of the matrix is dropped."""

    # In the order of the text: those of a base class would come last.
    value = operand_def(VectorType)
    tensor_desc = operand_def(TensorDescType)
    offsets = var_operand_def(IndexType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        f"$value `,` {_BLOCK} prop-dict attr-dict `:` type($value) `,` "
        "type($tensor_desc)"
    )

    def verify_(self) -> None:
        """Check offsets, value and hints."""
        self.verify_offsets()
        verify_stored(self.descriptor, self.value.type)
        self.check_hints(WRITE_HINTS)


class PrefetchNdOp(_BlockOp, CachedOp, name="xegpu.prefetch_nd"):
    """Ask for a block to be brought to a cache; never faults."""

    # It writes nothing, but must be neither removed as unused nor moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = _BLOCK + "prop-dict attr-dict `:` type($tensor_desc)"

    def verify_(self) -> None:
        """Check offsets and hints."""
        self.verify_offsets()
        check(not self.descriptor.scattered, "prefetch_nd takes a block")
        self.check_hints(READ_HINTS)
