"""The XeTile dialect: tiles in memory, and operations on tile values.

Source: the two XeTile RFCs.  `attributes` and `types` say what a tile is;
`memory_ops`, `value_ops` and `debug_ops` hold the operations, `syntax` the directives
of their formats, `verifiers` their rules.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from ..operation import operations_of
from . import debug_ops, memory_ops, value_ops
from .attributes import CacheHintAttr, LayoutAttr, SgMapAttr, WgMapAttr, XeMapAttr
from .attributes import WorkgroupMap as WorkgroupMap
from .attributes import attribute_of as attribute_of
from .attributes import layout_of as layout_of
from .attributes import wg_map_of as wg_map_of
from .debug_ops import AssertOp as AssertOp
from .debug_ops import BreakpointOp as BreakpointOp
from .debug_ops import PrintOp as PrintOp
from .debug_ops import count_fields as count_fields
from .debug_ops import wrong_format as wrong_format
from .memory_ops import AtomicRmwTileOp as AtomicRmwTileOp
from .memory_ops import InitTileOp as InitTileOp
from .memory_ops import LoadGatherOp as LoadGatherOp
from .memory_ops import LoadTileOp as LoadTileOp
from .memory_ops import PrefetchTileOp as PrefetchTileOp
from .memory_ops import StoreScatterOp as StoreScatterOp
from .memory_ops import StoreTileOp as StoreTileOp
from .memory_ops import UpdateTileOffsetOp as UpdateTileOffsetOp
from .memory_ops import tile_type as tile_type
from .types import TileAttr, TileType
from .value_ops import TileBroadcastOp as TileBroadcastOp
from .value_ops import TileConvLayoutOp as TileConvLayoutOp
from .value_ops import TileMmaOp as TileMmaOp
from .value_ops import TilePackOp as TilePackOp
from .value_ops import TileReduceOp as TileReduceOp
from .value_ops import TileScanOp as TileScanOp
from .value_ops import TileSortOp as TileSortOp
from .value_ops import TileTransposeOp as TileTransposeOp
from .value_ops import TileUnpackOp as TileUnpackOp

XeTile = Dialect(
    "xetile",
    operations_of(memory_ops, value_ops, debug_ops),
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
