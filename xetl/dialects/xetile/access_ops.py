"""Gathers, scatters and atomics.

Source: XeTile RFC, "support for load_gather and store_scatter", "atomic_rmw_tile".
"""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import Value, check
from ..combining import kind_fits, normalize_kind, parse_kind
from ..operation import Common, XetlOp
from . import syntax
from .memory_ops import check_mask, check_padding, check_vector, tile_type
from .types import TileType


class LoadGatherOp(XetlOp, name="xetile.load_gather"):
    """The elements of a scattered tile where the mask is set, else ``padding`` or 0.

    Addresses that are masked off are never touched.  Source: RFC, "load_gather".
    """

    tile = operand_def(TileType)
    mask = operand_def(VectorType)
    padding = opt_prop_def(Attribute)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        tile: Value,
        mask: Value,
        padding: Attribute | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[tile, mask],
            result_types=[tile_type(tile).vector_type()],
            properties={"padding": padding},
            **common,
        )

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%t, %mask {padding = p} : tile, vector -> vector``."""
        return syntax.parse_operands_with_types(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%t, %mask {padding = p} : tile, vector -> vector``."""
        syntax.print_operands_to_results(printer, self)

    def verify_(self) -> None:
        """Check tile, mask, padding and result."""
        tile = self.tile_type
        check(tile.scattered, "load_gather needs a scattered tile; use load_tile")
        check_mask(self.mask.type, tile)
        check_vector("the result", self.result.type, tile)
        check_padding(self.padding, tile)


class StoreScatterOp(XetlOp, name="xetile.store_scatter"):
    """Write elements where the mask is set; equal offsets: any one of them wins.

    Source: RFC, "store_scatter".
    """

    value = operand_def(VectorType)
    mask = operand_def(VectorType)
    tile = operand_def(TileType)
    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)

    traits = traits_def(MemoryWriteEffect())

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%v, %mask, %t : types``, the last two in either order."""
        return syntax.parse_store_scatter(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``%v, %mask, %t : types``."""
        syntax.print_operands_to_results(printer, self)

    def verify_(self) -> None:
        """Check tile, mask and value."""
        tile = self.tile_type
        check(tile.scattered, "store_scatter needs a scattered tile; use store_tile")
        check_mask(self.mask.type, tile)
        check_vector("the value", self.value.type, tile)


class AtomicRmwTileOp(XetlOp, name="xetile.atomic_rmw_tile"):
    """Combine each element in memory with a value, atomically; gives the old ones.

    Elements outside the base matrix or masked off are not touched; their result is
    0.  Source: RFC, "atomic_rmw_tile".
    """

    value = operand_def(VectorType)
    tile = operand_def(TileType)
    mask = opt_operand_def(VectorType)
    kind = prop_def(StringAttr)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        kind: str,
        value: Value,
        tile: Value,
        mask: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[value, tile, mask],
            result_types=[tile_type(tile).vector_type()],
            properties={"kind": StringAttr(normalize_kind(kind))},
            **common,
        )

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``<add> %v, %t : vector, tile -> vector``."""
        kind = StringAttr(parse_kind(parser))
        parser.parse_optional_punctuation(",")
        return syntax.parse_operands_with_types(parser, cls, {"kind": kind})

    def print(self, printer: Printer) -> None:
        """Print ``<add> %v, %t : vector, tile -> vector``."""
        printer.print_string(f" <{self.kind.data}>")
        syntax.print_operands_to_results(printer, self, ("kind",))

    def verify_(self) -> None:
        """Check kind, value, mask and result."""
        tile, kind = self.tile_type, self.kind.data
        check(
            kind_fits(normalize_kind(kind), tile.element_type),
            f"`{kind}` does not combine elements of type {tile.element_type}",
        )
        check_vector("the value", self.value.type, tile)
        check_vector("the result", self.result.type, tile)
        if self.mask is not None:
            check_mask(self.mask.type, tile)
