"""Which part of a tile each subgroup asks for: all together the tile, each byte once.

The maps of loads do not say it: subgroups that need the same rows of A all load them.
A share is what fewest messages bring; of such what lies in fewest lines of a cache.
Source: XeTile RFC, appendix 2.1, whose maps for prefetches are [32, 1] of [8, 32].
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.devices import ROW_BYTES, Device
from xetl.dialects.xetile import TileAttr, TileType, attribute_of, tile_type
from xetl.language.distribution import Layout
from xetl.transforms.maps.choose import Shape, cheapest_map, owned_shape
from xetl.transforms.maps.graph import bits_of
from xetl.transforms.maps.mapped import tile_map


def share_of(tile: SSAValue, device: Device) -> TileType:
    """The type of a tile of which each subgroup asks for its share."""
    type_, layout = tile_type(tile), tile_map(tile)
    new = None
    if layout is not None:
        shape = type_.shape[0], type_.shape[1]
        new = attribute_of(choose_share(shape, bits_of(tile), layout.subgroups, device))
    encoding = TileAttr(order=type_.order, wg_map=new)
    return TileType(type_.shape, type_.element_type, encoding)


def choose_share(shape: Shape, bits: int, subgroups: int, device: Device) -> Layout:
    """The map of a tile that is asked for."""
    most_rows = max(device.blocks_of("prefetch", max(8, bits)).rows, default=1)

    def cost(layout: Layout) -> tuple[int, int]:
        rows, columns = owned_shape(shape, layout)
        lines = -(-columns * bits // (8 * ROW_BYTES))
        return lines * -(-rows // most_rows), lines * rows

    return cheapest_map(shape, subgroups, cost)
