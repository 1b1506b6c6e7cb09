"""Blocks of a matrix: described once, loaded, stored and prefetched by messages.

Source: MLIR 22, `xegpu` dialect.  Offsets count elements from the start of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, IndexType, UnitAttr, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import (
    Index,
    ParsedIndices,
    Value,
    check,
    dense_i64,
    ints_of,
    parse_attributes,
    resolve_indices,
    type_of,
)
from xetl.dialects.operation import Common, XetlOp
from xetl.dialects.type_rules import like

from . import syntax
from .attributes import LayoutAttr, SliceAttr
from .block_verifiers import (
    verify_descriptor,
    verify_loaded,
    verify_moved,
    verify_offsets,
    verify_stored,
)
from .types import TensorDescType

_LAYOUT = LayoutAttr | SliceAttr
_NO_INDICES = ParsedIndices([], dense_i64(()))


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

    def __init__(
        self,
        source: Value,
        result_type: TensorDescType,
        *,
        shape: Sequence[int | Value] = (),
        strides: Sequence[int | Value] = (),
        offsets: Sequence[int | Value] = (),
        **common: Unpack[Common],
    ) -> None:
        given = [syntax.split_optional(part) for part in (offsets, shape, strides)]
        names = ("const_offsets", "const_shape", "const_strides")
        super().__init__(
            operands=[source, *([] if p is None else p.values for p in given)],
            result_types=[result_type],
            properties={n: p and p.static for n, p in zip(names, given)},
            **common,
        )

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Offsets in elements, constants as int; () if none are given."""
        return syntax.mixed(self.const_offsets, self.offsets)

    @property
    def mixed_shape(self) -> tuple[Index, ...]:
        """Sizes of the matrix in elements; () if the memref knows them."""
        return syntax.mixed(self.const_shape, self.shape)

    @property
    def mixed_strides(self) -> tuple[Index, ...]:
        """Strides of the matrix in elements; () if the memref knows them."""
        return syntax.mixed(self.const_strides, self.strides)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%m[offsets], shape : [...], strides : [...] : base -> tdesc``."""
        source = parser.parse_unresolved_operand()
        lists = [syntax.parse_optional_indices(parser), None, None]
        for number, word in ((1, "shape"), (2, "strides")):
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword(word)
                parser.parse_punctuation(":")
                lists[number] = syntax.parse_optional_indices(parser)
        properties, attributes = parse_attributes(parser, cls)
        types, results = syntax.parse_types(parser)
        names = ("const_offsets", "const_shape", "const_strides")
        properties |= {n: p.static for n, p in zip(names, lists) if p is not None}
        return cls.build(
            operands=[
                syntax.resolve(parser, [source], types)[0],
                *(resolve_indices(parser, (p or _NO_INDICES).values) for p in lists),
            ],
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%m[offsets], shape : [...], strides : [...] : base -> tdesc``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        syntax.print_optional_indices(printer, self.const_offsets, self.offsets)
        for word, static, values in (
            ("shape", self.const_shape, self.shape),
            ("strides", self.const_strides, self.strides),
        ):
            if static is not None:
                printer.print_string(f", {word} : ")
                syntax.print_optional_indices(printer, static, values)
        syntax.print_dictionaries(printer, self)
        syntax.print_types(printer, [self.source], self.results)

    def verify_(self) -> None:
        """Check the base, and that its shape and strides are known."""
        for name, static, values in (
            ("offsets", self.const_offsets, self.offsets),
            ("shape", self.const_shape, self.shape),
            ("strides", self.const_strides, self.strides),
        ):
            syntax.check_mixed(name, static, values)
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

    @property
    def descriptor(self) -> TensorDescType:
        """The type of the descriptor."""
        return descriptor_type(self.tensor_desc)

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Offsets in elements, constants as int; () where the descriptor has them."""
        return syntax.mixed(self.const_offsets, self.offsets)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%value, %t[offsets] <{...}> : types -> types``."""
        operands = [parser.parse_unresolved_operand()]
        while parser.parse_optional_punctuation(","):
            operands.append(parser.parse_unresolved_operand())
        offsets = syntax.parse_optional_indices(parser)
        properties, attributes = parse_attributes(parser, cls)
        types, results = syntax.parse_types(parser)
        values = syntax.resolve(parser, operands, types)
        if offsets is not None:
            values += resolve_indices(parser, offsets.values)
            properties["const_offsets"] = offsets.static
        return cls.create(
            operands=values,
            result_types=results,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%value, %t[offsets] <{...}> : types -> types``."""
        shown = self.operands[: len(self.operands) - len(self.offsets)]
        printer.print_string(" ")
        printer.print_list(shown, printer.print_ssa_value)
        syntax.print_optional_indices(printer, self.const_offsets, self.offsets)
        syntax.print_dictionaries(printer, self)
        syntax.print_types(printer, shown, self.results)

    def verify_offsets(self) -> None:
        """Check that offsets are as many as the block has dimensions."""
        syntax.check_mixed("offsets", self.const_offsets, self.offsets)
        verify_offsets(self.descriptor, self.mixed_offsets)


def _offset_properties(
    offsets: Sequence[int | Value],
) -> tuple[Sequence[SSAValue], dict[str, Attribute | None]]:
    given = syntax.split_optional(offsets)
    if given is None:
        return [], {}
    return given.values, {"const_offsets": given.static}


class LoadNdOp(_BlockOp, name="xegpu.load_nd"):
    """The elements of a block; zero outside of the matrix.

    ``packed`` pairs rows as the right side of `xegpu.dpas` wants them (VNNI):
    ``R[i, n, j] = B[i * f + j, n]``, f elements in 32 bits.  ``transpose`` swaps rows
    and columns.  With ``array_length`` > 1 the blocks are a dimension in front.
    """

    packed = opt_prop_def(UnitAttr)
    transpose = opt_prop_def(DenseArrayBase)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(_LAYOUT)
    value = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        tensor_desc: Value,
        offsets: Sequence[int | Value] = (),
        *,
        packed: bool = False,
        transpose: bool = False,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        values, properties = _offset_properties(offsets)
        described = descriptor_type(tensor_desc)
        super().__init__(
            operands=[tensor_desc, values],
            result_types=[loaded_type(described, packed=packed, transpose=transpose)],
            properties={
                **properties,
                "packed": UnitAttr() if packed else None,
                "transpose": dense_i64((1, 0)) if transpose else None,
                "layout": layout,
                **hints,
            },
            **common,
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
        check(
            ints_of(self.transpose) in ((), (0, 1), (1, 0)),
            f"`transpose` is [1, 0], found {list(ints_of(self.transpose))}",
        )
        verify_loaded(
            self.descriptor, self.value.type, self.is_packed, self.is_transposed
        )
        syntax.check_hints(self, syntax.READ_HINTS)


def loaded_type(
    described: TensorDescType, *, packed: bool = False, transpose: bool = False
) -> VectorType[Attribute]:
    """The type of what `xegpu.load_nd` brings of a block.

    Raises:
        VerifyException: such a block cannot be packed or transposed.
    """
    return verify_loaded(described, None, packed, transpose)


class StoreNdOp(_BlockOp, name="xegpu.store_nd"):
    """Write a block; what lies outside of the matrix is dropped."""

    # In the order of the text: those of a base class would come last.
    value = operand_def(VectorType)
    tensor_desc = operand_def(TensorDescType)
    offsets = var_operand_def(IndexType)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(_LAYOUT)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        tensor_desc: Value,
        offsets: Sequence[int | Value] = (),
        *,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        values, properties = _offset_properties(offsets)
        super().__init__(
            operands=[value, tensor_desc, values],
            properties={**properties, "layout": layout, **hints},
            **common,
        )

    def verify_(self) -> None:
        """Check offsets, value and hints."""
        self.verify_offsets()
        verify_stored(self.descriptor, self.value.type)
        syntax.check_hints(self, syntax.WRITE_HINTS)


class PrefetchNdOp(_BlockOp, name="xegpu.prefetch_nd"):
    """Ask for a block to be brought to a cache; never faults."""

    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(_LAYOUT)

    # It writes nothing, but must be neither removed as unused nor moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        tensor_desc: Value,
        offsets: Sequence[int | Value] = (),
        *,
        layout: LayoutAttr | SliceAttr | None = None,
        **others: Unpack[syntax.Hints],
    ) -> None:
        hints, common = syntax.split_hints(**others)
        values, properties = _offset_properties(offsets)
        super().__init__(
            operands=[tensor_desc, values],
            properties={**properties, "layout": layout, **hints},
            **common,
        )

    def verify_(self) -> None:
        """Check offsets and hints."""
        self.verify_offsets()
        check(not self.descriptor.scattered, "prefetch_nd takes a block")
        syntax.check_hints(self, syntax.READ_HINTS)


class UpdateNdOffsetOp(_BlockOp, name="xegpu.update_nd_offset"):
    """The block moved by ``offsets``.  `mlir-opt` 22 has it, but does not lower it."""

    const_offsets = opt_prop_def(DenseArrayBase)
    result = result_def(like("tensor_desc", base=TensorDescType))

    traits = traits_def(Pure())

    def __init__(
        self,
        tensor_desc: Value,
        offsets: Sequence[int | Value],
        **common: Unpack[Common],
    ) -> None:
        values, properties = _offset_properties(offsets)
        super().__init__(tensor_desc, values, properties=properties, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%t, [0, %dx] : tdesc``."""
        tdesc = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offsets = syntax.parse_optional_indices(parser) or _NO_INDICES
        properties, attributes = parse_attributes(parser, cls)
        types, _ = syntax.parse_types(parser)
        return cls.create(
            operands=[
                *syntax.resolve(parser, [tdesc], types),
                *resolve_indices(parser, offsets.values),
            ],
            result_types=types,
            properties=properties | {"const_offsets": cast(Attribute, offsets.static)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Print ``%t, [0, %dx] : tdesc``."""
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor_desc)
        printer.print_string(", ")
        syntax.print_optional_indices(printer, self.const_offsets, self.offsets)
        syntax.print_dictionaries(printer, self)
        syntax.print_types(printer, [self.tensor_desc])

    def verify_(self) -> None:
        """Check offsets and type."""
        self.verify_offsets()
        verify_moved(self.descriptor, self.result.type, bool(self.mixed_offsets))
