"""Operations on tile values, which are vectors of rank 2 (4 when blocked).

A map of the result rides in the attribute `map`, one of the source in `source_map`.
Source: XeTile RFC; semantics in docs/xetile.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float64Type,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    BaseAttr,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import Value, dense_i64, ints_of, type_of, vector_type
from ..combining import normalize_kind
from ..operation import Common, XetlOp
from . import value_syntax as syntax
from . import value_verifiers as verify
from .attributes import WgMapAttr
from .layout import LayoutAttr, WorkgroupMap, wg_map_of

_MAP = BaseAttr(WgMapAttr) | BaseAttr(LayoutAttr)


class ValueOp(XetlOp):
    """An operation from one vector to another, with maps."""

    source = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    @property
    def wg_map(self) -> WorkgroupMap | None:
        """How the result is split among subgroups."""
        return wg_map_of(self)

    @property
    def source_map(self) -> WorkgroupMap | None:
        """How the source is split among subgroups, where it is stated."""
        return wg_map_of(self, "source_map")

    @property
    def source_type(self) -> VectorType[Attribute]:
        """The type of the source."""
        return vector_type(self.source)

    def verify_maps(self) -> None:
        """Check both maps against the vectors they distribute."""
        verify.map_fits("map", self.wg_map, self.result.type)
        verify.map_fits("source_map", self.source_map, self.source_type)


def accumulator_type(element: Attribute) -> Attribute:
    """What sums of products of this type run in (docs/xetile.md, section 3)."""
    if isinstance(element, IntegerType):
        return i32 if element.bitwidth <= 32 else i64
    return element if isinstance(element, Float64Type) else f32


class TileMmaOp(XetlOp, name="xetile.tile_mma"):
    """``a @ b + c``: sums run in f32 (i32, f64), one rounding to the type of c.

    Integer operands are signed unless said otherwise.  Source: RFC, "tile_mma".
    """

    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = opt_operand_def(VectorType)
    wg_map_a = opt_prop_def(_MAP)
    wg_map_b = opt_prop_def(_MAP)
    wg_map_c = opt_prop_def(_MAP)
    precision = opt_prop_def(StringAttr)
    a_unsigned = opt_prop_def(UnitAttr)
    b_unsigned = opt_prop_def(UnitAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        a: Value,
        b: Value,
        c: Value | None = None,
        *,
        acc_type: Attribute | None = None,
        wg_map_a: WorkgroupMap | None = None,
        wg_map_b: WorkgroupMap | None = None,
        wg_map_c: WorkgroupMap | None = None,
        precision: str | None = None,
        a_unsigned: bool = False,
        b_unsigned: bool = False,
        **common: Unpack[Common],
    ) -> None:
        result = verify.mma_result(vector_type(a), vector_type(b))
        element = acc_type or accumulator_type(result.element_type)
        super().__init__(
            operands=[a, b, c],
            result_types=[
                VectorType(element, result.shape) if c is None else type_of(c)
            ],
            properties={
                "wg_map_a": wg_map_a,
                "wg_map_b": wg_map_b,
                "wg_map_c": wg_map_c,
                "precision": None if precision is None else StringAttr(precision),
                "a_unsigned": UnitAttr() if a_unsigned else None,
                "b_unsigned": UnitAttr() if b_unsigned else None,
            },
            **common,
        )

    @property
    def wg_map(self) -> WorkgroupMap | None:
        """How the result is split among subgroups."""
        return self.wg_map_c or wg_map_of(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b, %c {...} : types -> type``."""
        return syntax.parse_mma(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b, %c {...} : types -> type``."""
        syntax.print_mma(printer, self)

    def verify_(self) -> None:
        """Check shapes, element types and maps."""
        verify.mma(
            vector_type(self.a),
            vector_type(self.b),
            None if self.c is None else vector_type(self.c),
            self.result.type,
        )
        verify.map_fits("wg_map_a", self.wg_map_a, self.a.type)
        verify.map_fits("wg_map_b", self.wg_map_b, self.b.type)
        verify.map_fits("wg_map_c", self.wg_map, self.result.type)


class TileTransposeOp(ValueOp, name="xetile.tile_transpose"):
    """Rows become columns; in blocks, so do the rows and columns of blocks.

    Source: RFC, "tile_transpose"; the form of rank 4, permuted by ``[1, 0, 3, 2]``, is
    ours: with it a transposed operand needs no packing between load and product.
    """

    permutation = prop_def(DenseArrayBase)

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        type_ = vector_type(source)
        shape = type_.get_shape()
        axes = verify.transposed_axes(len(shape))
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, [shape[i] for i in axes])],
            properties={"permutation": dense_i64(axes)},
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, [1, 0] : vector -> vector``."""
        return syntax.parse_with_dims(parser, cls, "permutation")

    def print(self, printer: Printer) -> None:
        """Print ``%v, [1, 0] : vector -> vector``."""
        syntax.print_with_dims(printer, self, "permutation", ", ")

    def verify_(self) -> None:
        """Check ranks, the permutation, shapes and maps."""
        verify.transpose(self.source_type, self.result.type, ints_of(self.permutation))
        self.verify_maps()


class TileReduceOp(ValueOp, name="xetile.tile_reduce"):
    """Combine all elements along ``dims``; these keep size 1 (or the group count).

    With ``reduction_size`` s, groups of s neighbours along the dimension are
    combined, and n / s remain.  Source: RFC, "tile_reduce".
    """

    kind = prop_def(StringAttr)
    reduction_dims = prop_def(DenseArrayBase)
    reduction_size = opt_prop_def(IntegerAttr)

    def __init__(
        self,
        kind: str,
        source: Value,
        dims: Sequence[int],
        reduction_size: int | None = None,
        **common: Unpack[Common],
    ) -> None:
        type_ = vector_type(source)
        shape = verify.reduced_shape(type_.get_shape(), dims, reduction_size)
        size = None if reduction_size is None else IntegerAttr(reduction_size, i64)
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, shape)],
            properties={
                "kind": StringAttr(normalize_kind(kind)),
                "reduction_dims": dense_i64(dims),
                "reduction_size": size,
            },
            **common,
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that are combined."""
        return ints_of(self.reduction_dims)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``<add>, %v [0] : vector -> vector``."""
        kind = syntax.parse_reduction_kind(parser)
        return syntax.parse_with_dims(parser, cls, "reduction_dims", kind)

    def print(self, printer: Printer) -> None:
        """Print ``<add>, %v [0] : vector -> vector``."""
        printer.print_string(f" <{self.kind.data}>,")
        syntax.print_with_dims(printer, self, "reduction_dims", " ")

    def verify_(self) -> None:
        """Check kind, dimensions, the result and maps."""
        size = self.reduction_size
        verify.reduce(
            self.kind.data,
            self.source_type,
            self.result.type,
            self.dims,
            None if size is None else size.value.data,
        )
        self.verify_maps()


class TileBroadcastOp(ValueOp, name="xetile.tile_broadcast"):
    """Repeat the one element along each of ``dims``.  Source: RFC, "tile_broadcast"."""

    broadcast_dims = prop_def(DenseArrayBase)

    def __init__(
        self,
        source: Value,
        dims: Sequence[int],
        result_type: Attribute,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[source],
            result_types=[result_type],
            properties={"broadcast_dims": dense_i64(dims)},
            **common,
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that grow."""
        return ints_of(self.broadcast_dims)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v [0] : vector -> vector``."""
        return syntax.parse_with_dims(parser, cls, "broadcast_dims")

    def print(self, printer: Printer) -> None:
        """Print ``%v [0] : vector -> vector``."""
        syntax.print_with_dims(printer, self, "broadcast_dims", " ")

    def verify_(self) -> None:
        """Check dimensions, the result and maps."""
        verify.broadcast(self.source_type, self.result.type, self.dims)
        self.verify_maps()


class TileConvLayoutOp(ValueOp, name="xetile.tile_conv_layout"):
    """The same values in other subgroups.  Source: RFC, "tile_conv_layout"."""

    def __init__(
        self,
        source: Value,
        wg_map: WorkgroupMap | None,
        src_map: WorkgroupMap | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(operands=[source], result_types=[type_of(source)], **common)
        for name, value in (("map", wg_map), ("source_map", src_map)):
            if value is not None:
                self.attributes[name] = value

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v {map = #new, source_map = #old} : vector``."""
        return syntax.parse_conv_layout(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%v {map = #new, source_map = #old} : vector``."""
        syntax.print_conv_layout(printer, self)

    def verify_(self) -> None:
        """Check that there is a map and that the type is kept."""
        verify.conv_layout(self.wg_map, self.source_type, self.result.type)
        self.verify_maps()


class TilePackOp(ValueOp, name="xetile.tile_pack"):
    """(h, w) to (h/b0, w/b1, b0, b1): P[a,b,c,d] = V[a*b0 + c, b*b1 + d].

    Source: RFC, "Internal Operations to support gradual lowering".
    """

    blocks = prop_def(DenseArrayBase, prop_name="inner_blocks")

    def __init__(
        self, source: Value, inner_blocks: Sequence[int], **common: Unpack[Common]
    ) -> None:
        type_ = vector_type(source)
        shape = verify.packed_shape(type_.get_shape(), inner_blocks)
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, shape)],
            properties={"inner_blocks": dense_i64(inner_blocks)},
            **common,
        )

    @property
    def inner_blocks(self) -> tuple[int, ...]:
        """Rows and columns of a block."""
        return ints_of(self.blocks)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
        return syntax.parse_pack(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
        syntax.print_pack(printer, self)

    def verify_(self) -> None:
        """Check that the blocks divide the source and give the result."""
        verify.pack(self.source_type, self.result.type, self.inner_blocks)


class TileUnpackOp(ValueOp, name="xetile.tile_unpack"):
    """(h/b0, w/b1, b0, b1) to (h, w).  Source: RFC, as tile_pack."""

    blocks = prop_def(DenseArrayBase, prop_name="inner_blocks")

    def __init__(
        self, source: Value, inner_blocks: Sequence[int], **common: Unpack[Common]
    ) -> None:
        type_ = vector_type(source)
        rows, columns, *_ = type_.get_shape()
        shape = [rows * inner_blocks[0], columns * inner_blocks[1]]
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, shape)],
            properties={"inner_blocks": dense_i64(inner_blocks)},
            **common,
        )

    @property
    def inner_blocks(self) -> tuple[int, ...]:
        """Rows and columns of a block."""
        return ints_of(self.blocks)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
        return syntax.parse_pack(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
        syntax.print_pack(printer, self)

    def verify_(self) -> None:
        """Check that the blocks divide the result and give the source."""
        verify.pack(self.result.type, self.source_type, self.inner_blocks)
