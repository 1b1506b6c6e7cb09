"""Operations on tiles in memory: describe, load, store, prefetch, move.

Source: XeTile RFC; semantics in docs/xetile.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, OpResult
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from ..base import (
    Index,
    Value,
    check,
    check_indices,
    ints_of,
    mix_indices,
    split_indices,
    type_of,
)
from ..kinds_of_types import is_integer_attr
from ..operation import Common, XetlOp
from ..upstream.elementwise import is_float
from . import syntax
from .attributes import CacheHintAttr
from .init_verifier import verify_block, verify_scattered
from .types import TileType


def tile_type(value: Value) -> TileType:
    """The tile type of ``value``; a TypeError if it is none."""
    found = type_of(value)
    if not isinstance(found, TileType):
        raise TypeError(f"expected a tile, found {found}")
    return found


class InitTileOp(XetlOp, name="xetile.init_tile"):
    """Describe a tile of a matrix: no memory is touched.

    Without ``indices`` the tile is the block at ``offsets``; a memref of static shape
    says its sizes and strides itself, a dynamic one or an address needs them here.
    With ``indices`` each element has its own offset, in elements, from a base of rank
    0 or 1.  Source: XeTile RFC, "init_tile".
    """

    source = operand_def()
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    indices = opt_operand_def()
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def(TileType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        source: Value,
        offsets: Sequence[int | Value],
        result_type: TileType,
        sizes: Sequence[int | Value] = (),
        strides: Sequence[int | Value] = (),
        indices: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        lists = [split_indices(part) for part in (offsets, sizes, strides)]
        names = ("static_offsets", "static_sizes", "static_strides")
        super().__init__(
            operands=[source, *(part.values for part in lists), indices],
            result_types=[result_type],
            properties={n: part.static for n, part in zip(names, lists)},
            **common,
        )

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Offsets in elements, constants as int; () if scattered."""
        return mix_indices(self.static_offsets, self.offsets)

    @property
    def mixed_sizes(self) -> tuple[Index, ...]:
        """Sizes of the base matrix, () if the memref is static."""
        return mix_indices(self.static_sizes, self.sizes)

    @property
    def mixed_strides(self) -> tuple[Index, ...]:
        """Strides of the base matrix in elements, () if the memref is static."""
        return mix_indices(self.static_strides, self.strides)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse both the block and the scattered form."""
        return syntax.parse_init_tile(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print both the block and the scattered form."""
        syntax.print_init_tile(printer, self)

    def verify_(self) -> None:
        """Check base, offsets, sizes, strides, order and memory space."""
        check_indices("offsets", self.static_offsets, self.offsets)
        check_indices("sizes", self.static_sizes, self.sizes)
        check_indices("strides", self.static_strides, self.strides)
        tile, base = self.result.type, self.source.type
        if self.indices is not None:
            check(
                not self.mixed_offsets,
                "a scattered tile takes an index vector, not offsets as well",
            )
            verify_scattered(base, self.indices.type, tile)
            return
        verify_block(
            base, tile, self.mixed_offsets, self.mixed_sizes, self.mixed_strides
        )


def check_vector(what: str, found: Attribute, tile: TileType) -> None:
    """Check that a vector is what the tile holds."""
    expected = tile.vector_type()
    check(found == expected, "{} is {}, but the tile holds {}", what, found, expected)


def _check_transposing(
    permutation: DenseArrayBase, tile: TileType, found: Attribute
) -> None:
    """Check a load that transposes: of one plain vector."""
    dims, vector = list(ints_of(permutation)), tile.vector_type()
    check(dims == [1, 0], f"`transpose` must be [1, 0], found {dims}")
    check(
        tile.array_length == 1 and vector.get_num_dims() == 2,
        "a load transposes one vector of rank 2, not several or a blocked one",
    )
    expected = VectorType(tile.element_type, vector.get_shape()[::-1])
    check(found == expected, f"the transposed tile is {expected}, found {found}")


def check_mask(mask: Attribute, tile: TileType) -> None:
    """Check that a mask has one bit for each element."""
    expected = syntax.mask_type(tile)
    check(mask == expected, "the mask is {}, expected {}", mask, expected)


def check_padding(padding: Attribute | None, tile: TileType) -> None:
    """Check that a padding is a number of the right kind."""
    if padding is None:
        return
    # An integer also pads floats: the RFC writes `{padding = 0}` on bf16.
    element = tile.element_type
    if is_integer_attr(padding) and isinstance(element, IntegerType):
        bits = element.bitwidth  # with or without sign: the elements do not say
        fits = -(1 << bits - 1) <= padding.value.data < 1 << bits
    elif is_float(element):
        fits = isinstance(padding, IntegerAttr | FloatAttr)
    else:
        fits = isinstance(padding, IntegerAttr)
    check(fits, f"padding {padding} does not fit elements of type {element}")


def _check_hints(*hints: Attribute | None) -> None:
    for hint in hints:
        check(
            hint is None or isinstance(hint, CacheHintAttr),
            "a cache hint is #xetile.cache_hint<...>, found {}",
            hint,
        )


class LoadTileOp(XetlOp, name="xetile.load_tile"):
    """The elements of a tile; outside the base matrix ``padding``, or zero.

    With ``array_length`` n there are n results, each one tile further right.  With
    ``transpose = [1, 0]`` rows become columns, as by a tile_transpose behind the load,
    which `legalize-text` makes of it.  Source: XeTile RFC, "load_tile" (``transpose``:
    the first RFC).
    """

    tile = operand_def(TileType)
    padding = opt_prop_def(Attribute)
    permutation = opt_prop_def(DenseArrayBase, prop_name="transpose")
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    values = var_result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        tile: Value,
        padding: Attribute | None = None,
        result_type: Attribute | None = None,
        *,
        l1_hint: CacheHintAttr | None = None,
        l2_hint: CacheHintAttr | None = None,
        l3_hint: CacheHintAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        described = tile_type(tile)
        type_ = result_type or described.vector_type()
        super().__init__(
            operands=[tile],
            result_types=[[type_] * described.array_length],
            properties={
                "padding": padding,
                "l1_hint": l1_hint,
                "l2_hint": l2_hint,
                "l3_hint": l3_hint,
            },
            **common,
        )

    @property
    def result(self) -> OpResult:
        """The only result, or the first one."""
        return self.results[0]

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%t {padding = p} : tile -> vector, ...``."""
        return syntax.parse_load_tile(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%t {padding = p} : tile -> vector, ...``."""
        syntax.print_operands_to_results(printer, self)

    def verify_(self) -> None:
        """Check results, padding and hints."""
        tile = self.tile_type
        check(not tile.scattered, "a scattered tile is loaded by load_gather")
        check(
            len(self.values) == tile.array_length,
            f"array_length {tile.array_length} gives as many vectors, "
            f"found {len(self.values)}",
        )
        if self.permutation is not None:
            _check_transposing(self.permutation, tile, self.result.type)
        else:
            for value in self.values:
                check_vector("the result", value.type, tile)
        check_padding(self.padding, tile)
        _check_hints(self.l1_hint, self.l2_hint, self.l3_hint)


class StoreTileOp(XetlOp, name="xetile.store_tile"):
    """Write a vector to a tile; what lies outside the base matrix is dropped.

    Source: XeTile RFC, "store_tile".
    """

    value = operand_def(VectorType)
    tile = operand_def(TileType)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)

    traits = traits_def(MemoryWriteEffect())

    def __init__(
        self,
        value: Value,
        tile: Value,
        *,
        l1_hint: CacheHintAttr | None = None,
        l2_hint: CacheHintAttr | None = None,
        l3_hint: CacheHintAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        hints = {"l1_hint": l1_hint, "l2_hint": l2_hint, "l3_hint": l3_hint}
        super().__init__(operands=[value, tile], properties=hints, **common)

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, %t : vector, tile``."""
        return syntax.parse_store_tile(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%v, %t : vector, tile``."""
        syntax.print_operands_to_results(printer, self)

    def verify_(self) -> None:
        """Check the vector and the hints."""
        tile = self.tile_type
        check(not tile.scattered, "a scattered tile is stored by store_scatter")
        check_vector("the value", self.value.type, tile)
        _check_hints(self.l1_hint, self.l2_hint, self.l3_hint)


class PrefetchTileOp(XetlOp, name="xetile.prefetch_tile"):
    """Ask for a tile to be brought to a cache; never faults.

    Source: XeTile RFC, "prefetch_tile".
    """

    tile = operand_def(TileType)
    locality = opt_prop_def(IntegerAttr)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)

    # It writes nothing, but must be neither removed as unused nor moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        tile: Value,
        locality: int | None = None,
        *,
        l1_hint: CacheHintAttr | None = None,
        l2_hint: CacheHintAttr | None = None,
        l3_hint: CacheHintAttr | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[tile],
            properties={
                "locality": None if locality is None else IntegerAttr(locality, i32),
                "l1_hint": l1_hint,
                "l2_hint": l2_hint,
                "l3_hint": l3_hint,
            },
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%t locality<3> : tile``."""
        return syntax.parse_prefetch(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%t locality<3> : tile``."""
        syntax.print_prefetch(printer, self, self.locality)

    def verify_(self) -> None:
        """Check the locality and the hints."""
        if self.locality is not None:
            found = self.locality.value.data
            check(0 <= found <= 3, f"locality is 0, 1, 2 or 3, found {found}")
        _check_hints(self.l1_hint, self.l2_hint, self.l3_hint)


class UpdateTileOffsetOp(XetlOp, name="xetile.update_tile_offset"):
    """The tile moved by ``offsets`` rows and columns, or each element by its index.

    Source: XeTile RFC, "update_tile_offset".
    """

    tile = operand_def(TileType)
    offsets = var_operand_def(IndexType)
    indices = opt_operand_def()
    static_offsets = prop_def(DenseArrayBase)
    result = result_def(TileType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        tile: Value,
        offsets: Sequence[int | Value] = (),
        *,
        indices: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        values, static = split_indices(offsets)
        super().__init__(
            operands=[tile, values, indices],
            result_types=[type_of(tile)],
            properties={"static_offsets": static},
            **common,
        )

    @property
    def mixed_offsets(self) -> tuple[Index, ...]:
        """Rows and columns to move by, constants as int; () if scattered."""
        return mix_indices(self.static_offsets, self.offsets)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%t, [%dx, 32] : tile`` or ``%t, %step : tile, vector``."""
        return syntax.parse_update(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%t, [%dx, 32] : tile`` or ``%t, %step : tile, vector``."""
        syntax.print_update(printer, self)

    def verify_(self) -> None:
        """Check that offsets or indices fit the tile."""
        check_indices("offsets", self.static_offsets, self.offsets)
        tile = tile_type(self.tile)
        check(
            self.result.type == tile,
            "the moved tile has the type of the tile {}, found {}",
            tile,
            self.result.type,
        )
        if not tile.scattered:
            found = len(self.mixed_offsets)
            check(
                found == 2 and self.indices is None,
                f"a tile moves by two offsets, found {found}",
            )
            return
        expected = VectorType(IndexType(), tile.shape)
        found = None if self.indices is None else self.indices.type
        check(
            found == expected and not self.mixed_offsets,
            f"a scattered tile moves by one {expected}, found {found}",
        )


__all__ = [
    "InitTileOp",
    "LoadTileOp",
    "PrefetchTileOp",
    "StoreTileOp",
    "UpdateTileOffsetOp",
    "check_mask",
    "check_padding",
    "check_vector",
    "tile_type",
]
