"""What init_tile requires of its base.  Source: XeTile RFC, "init_tile"."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType
from xdsl.ir import Attribute

from ..base import Index, check
from ..kinds_of_types import is_memref
from ..memref_layout import (
    constant_index,
    has_static_layout,
    memory_space_of,
    strides_of,
)
from .types import TileType


def verify_scattered(base: Attribute, indices: Attribute, tile: TileType) -> None:
    """Check the form with an index vector."""
    check(
        tile.scattered,
        "an index vector describes a scattered tile: "
        "its type needs #xetile.tile_attr<scattered = true>",
    )
    expected = VectorType(IndexType(), tile.shape)
    check(indices == expected, "the indices are {}, expected {}", indices, expected)
    if is_memref(base):
        _verify_memref(base, tile)
        rank = base.get_num_dims()
        check(
            rank <= 1,
            f"the base of a scattered tile has rank 0 or 1, found rank {rank}",
        )
    else:
        _verify_address(base)


def verify_block(
    base: Attribute,
    tile: TileType,
    offsets: Sequence[Index],
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> None:
    """Check the form with offsets."""
    check(not tile.scattered, "a scattered tile needs an index vector")
    check(len(tile.shape) == 2, "a tile at an offset has rank 2")
    if is_memref(base):
        _verify_memref(base, tile)
        rank = base.get_num_dims()
        check(rank >= 2, f"the base of a tile has rank 2 or more, found rank {rank}")
        static = has_static_layout(base)
        check(
            not static or not (sizes or strides),
            "sizes and strides are given, but {} states them itself",
            base,
        )
        needed = static is False and -1 in _sign(base.get_shape())
    else:
        _verify_address(base)
        rank, needed = 2, True
    check(len(offsets) == rank, f"expected {rank} offsets, found {len(offsets)}")
    for name, found in (("sizes", sizes), ("strides", strides)):
        check(
            len(found) == rank or not (found or needed),
            f"a base of unknown shape needs {rank} {name}, found {len(found)}",
        )
    _verify_order(base, tile, sizes, strides)


def _sign(shape: Sequence[int]) -> list[int]:
    return [-1 if extent < 0 else 1 for extent in shape]


def _verify_memref(base: MemRefType[Attribute], tile: TileType) -> None:
    check(
        base.element_type == tile.element_type,
        "the base holds {}, the tile {}",
        base.element_type,
        tile.element_type,
    )
    space = memory_space_of(base)
    check(
        space == tile.memory_space,
        f"the base is in memory space {space}, the tile in {tile.memory_space}",
    )


def _verify_address(base: Attribute) -> None:
    wide = isinstance(base, IntegerType) and base.bitwidth == 64
    check(
        wide or isinstance(base, IndexType),
        f"the base of a tile is a memref or a 64-bit address, found {base}",
    )


def _verify_order(
    base: Attribute, tile: TileType, sizes: Sequence[Index], strides: Sequence[Index]
) -> None:
    """Check that the dimension the order calls fastest has stride 1, where known."""
    fastest = tile.order[0] - 2
    stride, extent = None, None
    if is_memref(base):
        known = strides_of(base)
        stride = known[fastest] if known else None
        extent = base.get_shape()[fastest]
    if strides and (given := constant_index(strides[fastest])) is not None:
        stride = given
    if sizes and (given := constant_index(sizes[fastest])) is not None:
        extent = given
    # The stride of a dimension of one element is never used.
    check(
        stride in (None, 1) or extent == 1,
        f"order {list(tile.order)} needs stride 1 in dimension {tile.order[0]}, "
        f"but the base has stride {stride} there",
    )
