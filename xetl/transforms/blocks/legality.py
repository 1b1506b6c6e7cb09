"""The stage `xetile-blocked`: what is moved in one go can be moved in one go."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from xetl.devices import DEVICES, Device
from xetl.dialects.base import vector_type
from xetl.dialects.xetile import (
    LoadTileOp,
    PrefetchTileOp,
    StoreTileOp,
    TileMmaOp,
    TileType,
    tile_type,
)
from xetl.transforms.blocks.demands import ACCESSES, is_block_access, legal_blocks
from xetl.transforms.stages import XETILE, StageSpec, register_stage

DEVICE = "xetile.device"
"""On the module: for which device the blocks were chosen."""
UNBLOCKED = "xetile.unblocked"
"""On an operation that should work in blocks and does not: the reason."""


def works_in_legal_blocks(op: Operation) -> str | None:
    """Memory is accessed, and matrices are multiplied, in blocks of the device."""
    if UNBLOCKED in op.attributes:
        return None
    if isinstance(op, TileMmaOp):
        rank = vector_type(op.a).get_num_dims()
        return None if rank == 4 else "`xetile.tile_mma` works on plain values"
    if not isinstance(op, LoadTileOp | StoreTileOp | PrefetchTileOp):
        return None
    if not is_block_access(op):
        return None
    return _problem_with(op, tile_type(op.tile))


def _problem_with(op: Operation, type_: TileType) -> str | None:
    blocks, device = type_.inner_blocks, _device_of(op)
    if blocks is None:
        return f"`{op.name}` has a tile without inner_blocks"
    if device is None:
        return f"`{op.name}` has blocks, but the module has no `{DEVICE}`"
    if blocks in legal_blocks(type_, ACCESSES[type(op)], device):
        return None
    return f"`{op.name}` has blocks {list(blocks)}, which {device.name} cannot move"


def _device_of(op: Operation) -> Device | None:
    above: Operation | None = op
    while above is not None:
        name = above.attributes.get(DEVICE)
        if isinstance(name, StringAttr):
            return DEVICES.get(name.data)
        above = above.parent_op()
    return None


BLOCKED = register_stage(
    StageSpec(
        "xetile-blocked",
        XETILE.dialects,
        XETILE.operations,
        (*XETILE.rules, works_in_legal_blocks),
    )
)
