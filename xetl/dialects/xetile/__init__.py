"""The XeTile dialect: tiles in memory, and operations on tile values.

Source: the two XeTile RFCs. `attributes` and `types` define tiles. `memory_ops`,
`value_ops` and `debug_ops` hold the operations, `syntax` the directives of their
formats, `verifiers` their rules.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from ..operation import operations_of
from . import debug_ops, memory_ops, value_ops
from .attributes import *
from .attributes import CacheHintAttr, LayoutAttr, SgMapAttr, WgMapAttr, XeMapAttr
from .debug_ops import *
from .memory_ops import *
from .types import TileAttr, TileType
from .value_ops import *

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
