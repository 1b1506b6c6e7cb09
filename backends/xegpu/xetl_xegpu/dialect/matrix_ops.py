"""Matrices in the memory that a workgroup shares.  Source: MLIR 22, `xegpu` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import (
    MixedList,
    Value,
    check,
    element_type,
    shape_of,
    type_of,
)
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.operation import XetlOp

from .attributes import LayoutAttr, SliceAttr
from .block_ops import bits_of
from .types import MemDescType


def mem_desc_type(value: Value) -> MemDescType:
    """The type of a matrix in shared memory; a TypeError if ``value`` is none."""
    found = type_of(value)
    if not isinstance(found, MemDescType):
        raise TypeError(f"expected a matrix in shared memory, found {found}")
    return found


class CreateMemDescOp(XetlOp, name="xegpu.create_mem_desc"):
    """A static memref of shared memory (space 3), seen as a matrix of any elements."""

    source = operand_def()
    mem_desc = result_def(MemDescType)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `->` type($mem_desc)"

    def verify_(self) -> None:
        """Check the memref, and that the matrix is as large."""
        source, matrix = self.source.type, mem_desc_type(self.mem_desc)
        check(
            is_memref(source) and source.has_static_shape(),
            f"a matrix in shared memory is a static memref, found {source}",
        )
        assert is_memref(source)
        have = _count(source.get_shape()) * bits_of(source.element_type)
        wanted = _count(matrix.shape) * bits_of(matrix.element_type)
        check(have == wanted, f"{source} has {have} bits, the matrix {wanted}")


def _count(shape: Sequence[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


class _MatrixOp(XetlOp):
    """A block of a matrix; with ``subgroup_block_io`` it goes by one block message."""

    mem_desc = operand_def(MemDescType)
    offsets = var_operand_def(IndexType)
    const_offsets = prop_def(DenseArrayBase)
    subgroup_block_io = opt_prop_def(UnitAttr)
    layout = opt_prop_def(LayoutAttr | SliceAttr)

    @property
    def matrix(self) -> MemDescType:
        """The type of the matrix."""
        return mem_desc_type(self.mem_desc)

    mixed_offsets = MixedList("offsets", "const_offsets")
    """Row and column of the block."""

    def verify_block(self, block: Attribute) -> None:
        """Check offsets, and that the block fits the matrix."""
        self.verify_lists()
        matrix = self.matrix
        check(
            len(self.mixed_offsets) == len(matrix.shape),
            f"{len(self.mixed_offsets)} offsets for a matrix {matrix}",
        )
        check(
            element_type(block) == matrix.element_type,
            f"the matrix holds {matrix.element_type}, found {block}",
        )
        shape = shape_of(block)
        room = matrix.shape[-len(shape) :] if shape else ()
        check(
            len(shape) <= len(matrix.shape)
            and all(h <= r for h, r in zip(shape, room)),
            f"{block} is no block of {matrix}",
        )


_MATRIX = "$mem_desc `` custom<DynamicIndexList>($offsets, $const_offsets)"


class LoadMatrixOp(_MatrixOp, name="xegpu.load_matrix"):
    """A block of a matrix in shared memory."""

    value = result_def()

    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        f"{_MATRIX} prop-dict attr-dict `:` types($mem_desc, $offsets) `->` "
        "type($value)"
    )

    def verify_(self) -> None:
        """Check offsets and block."""
        self.verify_block(self.value.type)


class StoreMatrixOp(_MatrixOp, name="xegpu.store_matrix"):
    """Write a block of a matrix in shared memory."""

    # In the order of the text: those of a base class would come last.
    value = operand_def()
    mem_desc = operand_def(MemDescType)
    offsets = var_operand_def(IndexType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        f"$value `,` {_MATRIX} prop-dict attr-dict `:` "
        "types($value, $mem_desc, $offsets)"
    )

    def verify_(self) -> None:
        """Check offsets and block."""
        self.verify_block(self.value.type)
