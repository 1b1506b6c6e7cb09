"""The XeTile dialect: tiles in memory, and operations on tile values.

Source: the two XeTile RFCs.  `attributes` and `types` say what a tile is;
`memory_ops`, `access_ops`, `value_ops` and `debug_ops` hold the operations, `syntax`
the directives of their formats, `*verifier*` their rules.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from ..operation import operations_of
from . import access_ops, debug_ops, memory_ops, value_ops
from .access_ops import AtomicRmwTileOp, LoadGatherOp, StoreScatterOp
from .attributes import CacheHintAttr, SgMapAttr, WgMapAttr, XeMapAttr
from .debug_ops import AssertOp, BreakpointOp, PrintOp, count_fields
from .layout import LayoutAttr, WorkgroupMap, attribute_of, layout_of, wg_map_of
from .memory_ops import (
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreTileOp,
    UpdateTileOffsetOp,
    tile_type,
)
from .types import TileAttr, TileType
from .value_ops import (
    TileBroadcastOp,
    TileConvLayoutOp,
    TileMmaOp,
    TilePackOp,
    TileReduceOp,
    TileScanOp,
    TileTransposeOp,
    TileUnpackOp,
)

XeTile = Dialect(
    "xetile",
    operations_of(memory_ops, access_ops, value_ops, debug_ops),
    [TileType, TileAttr, WgMapAttr, SgMapAttr, XeMapAttr, LayoutAttr, CacheHintAttr],
)

# The released dialect's names; the parser reads them, the printer never writes them.
OTHER_SPELLINGS = {
    "xetile.transpose": "xetile.tile_transpose",
    "xetile.reduction": "xetile.tile_reduce",
    "xetile.broadcast": "xetile.tile_broadcast",
    "xetile.convert_layout": "xetile.tile_conv_layout",
    "xetile.conv_layout": "xetile.tile_conv_layout",
    "xetile.atomic_rmw": "xetile.atomic_rmw_tile",
    "xetile.load": "xetile.load_gather",
    "xetile.store": "xetile.store_scatter",
}

__all__ = [
    "OTHER_SPELLINGS",
    "AssertOp",
    "AtomicRmwTileOp",
    "BreakpointOp",
    "CacheHintAttr",
    "InitTileOp",
    "LayoutAttr",
    "LoadGatherOp",
    "LoadTileOp",
    "PrefetchTileOp",
    "PrintOp",
    "SgMapAttr",
    "StoreScatterOp",
    "StoreTileOp",
    "TileAttr",
    "TileBroadcastOp",
    "TileConvLayoutOp",
    "TileMmaOp",
    "TilePackOp",
    "TileReduceOp",
    "TileScanOp",
    "TileTransposeOp",
    "TileType",
    "TileUnpackOp",
    "UpdateTileOffsetOp",
    "WgMapAttr",
    "WorkgroupMap",
    "XeMapAttr",
    "XeTile",
    "attribute_of",
    "count_fields",
    "layout_of",
    "tile_type",
    "wg_map_of",
]
