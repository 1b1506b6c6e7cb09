"""Gathers, scatters and atomics.

Source: XeTile RFC, "support for load_gather and store_scatter", "atomic_rmw_tile".
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, VectorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import check, element_type
from ..combining import kind_attribute, kind_fits, normalize_kind
from ..traits import AccessesTile
from ..type_rules import like
from .memory_ops import (
    STORE,
    TileAccess,
    TileOp,
    check_mask,
    check_padding,
    check_vector,
    held_vector,
)
from .types import TileType


class LoadGatherOp(TileAccess, name="xetile.load_gather"):
    """The elements of a scattered tile where the mask is set, else ``padding`` or 0.

    Addresses that are masked off are never touched.  Source: RFC, "load_gather".
    """

    tile = operand_def(TileType)
    mask = operand_def(VectorType)
    padding = opt_prop_def(Attribute)
    result = result_def(like("tile", held_vector, base=VectorType))

    traits = traits_def(MemoryReadEffect(), AccessesTile())
    assembly_format = (
        "custom<Listed>(operands) attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    def verify_(self) -> None:
        """Check tile, mask, padding and result."""
        tile = self.tile_type
        check(tile.scattered, "load_gather needs a scattered tile; use load_tile")
        check_mask(self.mask.type, tile)
        check_vector("the result", self.result.type, tile)
        check_padding(self.padding, tile)


class StoreScatterOp(TileAccess, name="xetile.store_scatter"):
    """Write elements where the mask is set; equal offsets: any one of them wins.

    Source: RFC, "store_scatter".
    """

    value = operand_def(VectorType)
    mask = operand_def(VectorType)
    tile = operand_def(TileType)

    traits = traits_def(MemoryWriteEffect(), AccessesTile())
    assembly_format = STORE

    def verify_(self) -> None:
        """Check tile, mask and value."""
        tile = self.tile_type
        check(tile.scattered, "store_scatter needs a scattered tile; use store_tile")
        check_mask(self.mask.type, tile)
        check_vector("the value", self.value.type, tile)


class AtomicRmwTileOp(
    TileOp, name="xetile.atomic_rmw_tile", makers={"kind": kind_attribute}
):
    """Combine each element in memory with a value, atomically; gives the old ones.

    Elements outside the base matrix or masked off are not touched; their result is
    0.  ``condition`` is a mask, or what elements must be for ``assign`` to happen: a
    compare and swap, which compares bits.  Source: RFC, "atomic_rmw_tile".
    """

    value = operand_def(VectorType)
    tile = operand_def(TileType)
    condition = opt_operand_def(VectorType)
    kind = prop_def(StringAttr)
    result = result_def(like("tile", held_vector, base=VectorType))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), AccessesTile())
    assembly_format = (
        "custom<Kind>($kind) custom<Listed>(operands) attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    @property
    def mask(self) -> SSAValue | None:
        """Which elements are touched; None: all."""
        return None if self._compares else self.condition

    @property
    def expected(self) -> SSAValue | None:
        """What the elements must be; None: anything."""
        return self.condition if self._compares else None

    @property
    def _compares(self) -> bool:
        given = self.condition
        return given is not None and element_type(given.type) != i1

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
        if self.expected is not None:
            is_assign = normalize_kind(kind) == "assign"
            check(is_assign, f"`{kind}` compares nothing; only `assign` does")
            check_vector("what is expected", self.expected.type, tile)
