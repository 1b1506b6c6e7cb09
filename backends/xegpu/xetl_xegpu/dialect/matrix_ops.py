"""Matrices in the memory that a workgroup shares.  Source: MLIR 22, `xegpu` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
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
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import (
    Index,
    Value,
    check,
    check_indices,
    element_type,
    mix_indices,
    parse_attributes,
    parse_indices,
    print_indices,
    shape_of,
    split_indices,
    type_of,
)
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.operation import Common, XetlOp

from . import syntax
from .attributes import LayoutAttr, SliceAttr
from .block_verifiers import bits_of
from .types import MemDescType

_LAYOUT = LayoutAttr | SliceAttr


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
    """``%value, %m[offsets] <{...}> : types, index -> type``."""

    mem_desc = operand_def(MemDescType)
    offsets = var_operand_def(IndexType)
    const_offsets = prop_def(DenseArrayBase)

    @property
    def matrix(self) -> MemDescType:
        """The type of the matrix."""
        return mem_desc_type(self.mem_desc)

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Row and column of the block, constants as int."""
        return mix_indices(self.const_offsets, self.offsets)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%value, %m[offsets] <{...}> : types, index -> type``."""
        operands = [parser.parse_unresolved_operand()]
        if parser.parse_optional_punctuation(","):
            operands.append(parser.parse_unresolved_operand())
        offsets = parse_indices(parser)
        properties, attributes = parse_attributes(parser, cls)
        types, results = syntax.parse_types(parser)
        return cls.create(
            operands=syntax.resolve(parser, [*operands, *offsets.values], types),
            result_types=results,
            properties=properties | {"const_offsets": offsets.static},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%value, %m[offsets] <{...}> : types, index -> type``."""
        shown = self.operands[: len(self.operands) - len(self.offsets)]
        printer.print_string(" ")
        printer.print_list(shown, printer.print_ssa_value)
        print_indices(printer, self.const_offsets, self.offsets)
        syntax.print_dictionaries(printer, self)
        syntax.print_types(printer, self.operands, self.results)

    def verify_block(self, block: Attribute) -> None:
        """Check offsets, and that the block fits the matrix."""
        check_indices("offsets", self.const_offsets, self.offsets)
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


class LoadMatrixOp(_MatrixOp, name="xegpu.load_matrix"):
    """A block of a matrix in shared memory; with ``block_io`` by one block message."""

    subgroup_block_io = opt_prop_def(UnitAttr)
    layout = opt_prop_def(_LAYOUT)
    value = result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        mem_desc: Value,
        offsets: Sequence[int | Value],
        result_type: Attribute,
        *,
        block_io: bool = False,
        layout: LayoutAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(offsets)
        super().__init__(
            operands=[mem_desc, values],
            result_types=[result_type],
            properties={
                "const_offsets": static,
                "subgroup_block_io": UnitAttr() if block_io else None,
                "layout": layout,
            },
            **common,
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
    subgroup_block_io = opt_prop_def(UnitAttr)
    layout = opt_prop_def(_LAYOUT)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        mem_desc: Value,
        offsets: Sequence[int | Value],
        *,
        block_io: bool = False,
        layout: LayoutAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(offsets)
        super().__init__(
            operands=[value, mem_desc, values],
            properties={
                "const_offsets": static,
                "subgroup_block_io": UnitAttr() if block_io else None,
                "layout": layout,
            },
            **common,
        )

    def verify_(self) -> None:
        """Check offsets and block."""
        self.verify_block(self.value.type)
