"""Tiles in memory: a subgroup describes, loads and stores those that it owns.

Bounds and padding are those of the base matrix, so a ragged edge needs no thought here.
Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/xetile.md, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from xdsl.ir import SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from xetl.dialects.base import Index
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl.language.distribution import Layout
from xetl.transforms.distribute_to_subgroups.context import guarded
from xetl.transforms.distribute_to_subgroups.distributor import Distributor
from xetl.transforms.distribute_to_subgroups.elementwise import from_leader
from xetl.transforms.distribute_to_subgroups.exchange import share
from xetl.transforms.distribute_to_subgroups.parts import (
    rebuilt,
    refuse_private_tile,
    without_maps,
)


def init_tile(d: Distributor, op: InitTileOp) -> None:
    """A tile for each part: where the part begins is added to the offsets."""
    refuse_private_tile(op)
    layout = d.layout(op.result)
    if op.indices is None:
        offsets = [_moved_to(d, op, layout, i) for i in range(d.count(op.result))]
        parts = [_init_part(d, op, each, None) for each in offsets]
    else:
        indices = d.parts_for(op.indices, layout, 1)
        parts = [_init_part(d, op, (), each) for each in indices]
    d.give(op.result, parts)


def _moved_to(
    d: Distributor, op: InitTileOp, layout: Layout, part: int
) -> Sequence[Index]:
    """The offsets of a part; those ahead of the last two select the matrix."""
    *leading, row, column = op.mixed_offsets
    down, right = d.team.origin(op.result.type.shape, layout, part)
    return (*leading, d.team.plus(row, down), d.team.plus(column, right))


def _init_part(
    d: Distributor,
    op: InitTileOp,
    offsets: Sequence[Index],
    indices: SSAValue | None,
) -> SSAValue:
    new = InitTileOp(
        op.source,
        offsets,
        d.part_type(op.result),
        op.mixed_sizes,
        op.mixed_strides,
        indices,
        attributes=without_maps(op.attributes),
    )
    return d.team.insert(new)


def update_tile_offset(d: Distributor, op: UpdateTileOffsetOp) -> None:
    """All parts move alike; scattered ones by their own indices."""
    tiles = d.parts(op.tile)
    steps: Sequence[SSAValue | None] = [None] * len(tiles)
    if op.indices is not None:
        steps = d.parts_for(op.indices, d.layout(op.tile), len(tiles))
    moved = [
        d.team.insert(UpdateTileOffsetOp(tile, op.mixed_offsets, indices=step))
        for tile, step in zip(tiles, steps)
    ]
    d.give(op.result, moved)


def load_tile(d: Distributor, op: LoadTileOp) -> None:
    """A load for each part; of several vectors, one after the other to the right."""
    layout = d.layout(op.tile)
    for number, value in enumerate(op.results):
        tiles = d.parts(op.tile)
        if number:
            right = [0, number * op.tile_type.shape[1]]
            tiles = [d.team.insert(UpdateTileOffsetOp(t, right)) for t in tiles]
        types = [[tile_type(tile).vector_type()] for tile in tiles]
        loads = [rebuilt(op, [tile], type_) for tile, type_ in zip(tiles, types)]
        d.give_parts(value, [d.team.insert(each) for each in loads], layout)


def prefetch_tile(d: Distributor, op: PrefetchTileOp) -> None:
    """A prefetch for each part: where parts are shared, all ask, which does no harm."""
    for tile in d.parts(op.tile):
        d.team.add(rebuilt(op, [tile], []))


def access_tile(d: Distributor, op: Any) -> None:
    """Each part of a tile is accessed with the parts of all vectors.

    What writes is done once, by the first owner of a part; who shares it is told what
    was there before if need be.
    """
    layout, tiles = d.layout(op.tile), d.parts(op.tile)
    operands = [
        tiles if operand is op.tile else d.parts_for(operand, layout, len(tiles))
        for operand in op.operands
    ]
    types = [tile_type(tile).vector_type() for tile in tiles if op.results]
    effects = get_effects(op) or ()
    writes = any(effect.kind is MemoryEffectKind.WRITE for effect in effects)
    used = bool(op.results) and (not writes or bool(op.result.uses))

    def build() -> list[SSAValue]:
        pairs = zip_longest(zip(*operands), types)
        new = [d.team.add(rebuilt(op, o, [t] if t else [])) for o, t in pairs]
        return [each.results[0] for each in new] if used else []

    shape = op.tile_type.shape
    owner = d.team.first_owner(shape, layout) if writes else None
    found = guarded(d.team, owner, types if used else [], build)
    if not used:
        return
    if owner is not None and len(shape) == 1:
        found = [from_leader(d, found[0])]
    elif owner is not None:
        found = share(d.team, found, shape, layout)
    d.give_parts(op.result, found, layout)
