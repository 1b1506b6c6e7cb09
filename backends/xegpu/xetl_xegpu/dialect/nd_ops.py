"""Blocks of a matrix: described once, loaded, stored and prefetched by messages.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the start of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, result_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import MixedList, Value, check, ints_of, is_memref, type_of
from xetl.dialects.operation import XetlOp
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.upstream.elementwise import bit_width

from .attributes import READ_HINTS, WRITE_HINTS, CachedOp, TensorDescType

# Checks -------------------------------------------------------------------------------


def is_address(type_: Attribute) -> bool:
    """Whether ``type_`` is the type of an address."""
    return isinstance(type_, builtin.IntegerType) and type_.bitwidth in (32, 64)


def elements_per_word(element: Attribute) -> int:
    """Return how many elements fit 32 bits; 1 for wider elements."""
    return max(1, 32 // bit_width(element))


def loaded_type(
    described: TensorDescType, *, packed: bool = False, transpose: bool = False
) -> builtin.VectorType[Attribute]:
    """Return the type of the result of `xegpu.load_nd`.

    Raises:
        VerifyException: such a block cannot be packed or transposed.
    """
    check(not described.scattered, "load_nd takes a block")
    shape = list(described.shape)
    is_matrix = len(shape) == 2 or not (packed or transpose)
    check(is_matrix, "only a block of rank 2 can be packed or transposed")
    check(not (packed and transpose), "a load is packed or transposed, not both")
    if transpose:
        shape.reverse()
    if packed:
        factor = elements_per_word(described.element_type)
        has_groups = factor > 1 and shape[0] % factor == 0
        text = "a packed block has rows in groups of {} of less than 32 bits each"
        check(has_groups, f"{text}, found {{}}", factor, described)
        shape = [shape[0] // factor, shape[1], factor]
    if described.array_length > 1:
        shape.insert(0, described.array_length)
    return builtin.VectorType(described.element_type, shape)


def descriptor_type(value: Value) -> TensorDescType:
    """Return the type of a descriptor; raise TypeError if ``value`` is none."""
    found = type_of(value)
    if not isinstance(found, TensorDescType):
        raise TypeError(f"expected a descriptor, found {found}")
    return found


class CreateNdTdescOp(XetlOp, name="xegpu.create_nd_tdesc", traits=[Pure()]):
    """Describe a block of a matrix, which is a memref or an address (i64).

    A static memref has shape and strides (in elements) in its type. They are operands
    here for an address, or for a memref whose last dimensions are dynamic. Pass offsets
    to loads and stores instead: `mlir-opt` 22 only lowers those.
    """

    source = operand_def()
    offsets = shape = strides = var_operand_def(builtin.IndexType)
    const_offsets = const_shape = const_strides = opt_prop_def(builtin.DenseArrayBase)
    result = result_def(TensorDescType)

    assembly_format = (
        "$source (`` custom<DynamicIndexList>($offsets, $const_offsets)^)? "
        "(`,` `shape` `:` custom<DynamicIndexList>($shape, $const_shape)^)? "
        "(`,` `strides` `:` custom<DynamicIndexList>($strides, $const_strides)^)? "
        "prop-dict attr-dict `:` type($source) `->` type($result)"
    )

    mixed_offsets = MixedList("offsets", "const_offsets")
    """In elements."""
    mixed_shape = MixedList("shape", "const_shape")
    """Sizes of the matrix in elements; () if the type of the memref has them."""
    mixed_strides = MixedList("strides", "const_strides")
    """Strides of the matrix in elements; () if the type of the memref has them."""

    def verify_(self) -> None:
        base, block = self.source.type, descriptor_type(self.result)
        check(not block.scattered, "create_nd_tdesc describes a block")
        sizes, steps = len(self.mixed_shape), len(self.mixed_strides)
        if is_memref(base):
            held, wanted = base.element_type, block.element_type
            check(held == wanted, "the memref holds {}, the block {}", held, wanted)
            rank, least = base.get_num_dims(), len(block.shape)
            fits = rank >= least
            check(fits, "a block of rank {} of a memref of rank {}", least, rank)
        else:
            text = "a block is one of a memref or of an address, found {}"
            check(is_address(base), text, base)
            is_known = sizes > 0 and steps > 0
            check(is_known, "of an address the shape and the strides must be given")
        is_even = sizes == steps or 0 in (sizes, steps)
        check(is_even, "{} sizes, but {} strides", sizes, steps)


class _BlockOp(XetlOp):
    """An operation on the block at ``offsets``."""

    tensor_desc = operand_def(TensorDescType)
    offsets = var_operand_def(builtin.IndexType)
    const_offsets = opt_prop_def(builtin.DenseArrayBase)

    mixed_offsets = MixedList("offsets", "const_offsets")
    """Offsets in elements; () if the descriptor has them."""

    @property
    def descriptor(self) -> TensorDescType:
        """The type of the descriptor."""
        return descriptor_type(self.tensor_desc)

    def verify_offsets(self) -> None:
        """Check the number of offsets against the rank of the block."""
        count, rank = len(self.mixed_offsets), len(self.descriptor.shape)
        fits = count in (0, *range(rank, count + 1))
        check(fits, "{} offsets for a block of rank {}", count, rank)


_BLOCK = "$tensor_desc (`` custom<DynamicIndexList>($offsets, $const_offsets)^)? "


class LoadNdOp(_BlockOp, CachedOp, name="xegpu.load_nd", traits=[MemoryReadEffect()]):
    """Load a block; elements outside of the matrix are zero.

    ``packed`` groups rows for the right operand of `xegpu.dpas` (VNNI):
    ``R[i, n, j] = B[i * f + j, n]``, f elements in 32 bits. ``transpose`` swaps rows
    and columns. With ``array_length`` > 1 the first dimension is that of the blocks.
    """

    packed = opt_prop_def(builtin.UnitAttr)
    transpose = opt_prop_def(builtin.DenseArrayBase)
    value = result_def(builtin.VectorType)

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
        """Whether rows are packed in pairs or fours."""
        return self.packed is not None

    @property
    def is_transposed(self) -> bool:
        """Whether rows and columns are swapped."""
        return ints_of(self.transpose) == (1, 0)

    def verify_(self) -> None:
        self.verify_offsets()
        axes = ints_of(self.transpose)
        is_right = axes in ((), (0, 1), (1, 0))
        check(is_right, "`transpose` is [1, 0], found {}", list(axes))
        how = {"packed": self.is_packed, "transpose": self.is_transposed}
        expected, found = loaded_type(self.descriptor, **how), self.value.type
        check(found == expected, "the load brings {}, found {}", expected, found)
        self.check_hints(READ_HINTS)


class StoreNdOp(
    _BlockOp, CachedOp, name="xegpu.store_nd", traits=[MemoryWriteEffect()]
):
    """Store a block; elements outside of the matrix are dropped."""

    value = operand_def(builtin.VectorType)

    assembly_format = (
        f"$value `,` {_BLOCK} prop-dict attr-dict `:` type($value) `,` "
        "type($tensor_desc)"
    )

    def verify_(self) -> None:
        self.verify_offsets()
        block, found = self.descriptor, self.value.type
        check(not block.scattered, "store_nd takes a block")
        check(block.array_length == 1, "a store takes one block, not several")
        expected = block.vector_type()
        check(found == expected, "the block holds {}, found {}", expected, found)
        self.check_hints(WRITE_HINTS)


# It writes nothing, but must be neither removed as unused nor moved.
class PrefetchNdOp(
    _BlockOp, CachedOp, name="xegpu.prefetch_nd", traits=READS_AND_WRITES
):
    """Prefetch a block to a cache; this never faults."""

    assembly_format = _BLOCK + "prop-dict attr-dict `:` type($tensor_desc)"

    def verify_(self) -> None:
        self.verify_offsets()
        check(not self.descriptor.scattered, "prefetch_nd takes a block")
        self.check_hints(READ_HINTS)
