"""Blocks that the user wrote for a tile are kept, if the device can move them.

Blocks say how memory is read, not what is read.  So where a device has no message of
that size they are ours to choose, and the user is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from xetl.devices import Block, Device
from xetl.dialects.xetile import TileType, tile_type
from xetl.transforms.blocks.demands import (
    ACCESSES,
    is_block_access,
    legal_blocks,
    tile_of,
)
from xetl.transforms.remarks import remark


def types_to_unblock(ops: Iterable[Operation], device: Device) -> set[TileType]:
    """The types of tiles that are accessed in blocks which the device cannot move."""
    found: set[TileType] = set()
    for op in ops:
        if not is_block_access(op):
            continue
        type_ = tile_type(tile_of(op))
        if not given_is_legal(type_, op, device):
            remark(op, "blocks", _told(type_, op, device))
            found.add(type_)
    return found


def given_is_legal(type_: TileType, op: Operation, device: Device) -> bool:
    """Whether no blocks are given, or such as this access can be done in."""
    given = type_.inner_blocks
    return given is None or given in legal_blocks(type_, ACCESSES[type(op)], device)


def _told(type_: TileType, op: Operation, device: Device) -> str:
    name = op.name.removeprefix("xetile.")
    rows, columns = type_.inner_blocks or (0, 0)
    blocks = f"({rows}, {columns}) of {type_.element_type}"
    legal = legal_blocks(type_, ACCESSES[type(op)], device)
    return f"`{name}`: {device.name} has no blocks {blocks}; {_advice(legal)}"


def _advice(legal: Sequence[Block]) -> str:
    if not legal:
        return "none fits this tile"
    rows, columns = (sorted(set(extents)) for extents in zip(*legal))
    return f"others were chosen from {_any_of(rows)} rows, {_any_of(columns)} columns"


def _any_of(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last
