"""What the subgroups of a workgroup do to memory, and when two of them must not meet.

Who touches an element is said by the map of the tile: loads are done by all who own a
part, stores and atomics by its first owner (docs/design/0003).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from xetl.analysis.memory import Root, may_alias, roots_of
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.upstream import func, memref
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    LoadGatherOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreScatterOp,
    StoreTileOp,
    tile_type,
)
from xetl.language.distribution import Layout
from xetl.transforms.distribute_to_subgroups.parts import is_private
from xetl.transforms.distribute_to_subgroups.register_slices import slices_for
from xetl.transforms.place_barriers.access_region import AccessRegion, region_of
from xetl.transforms.propagate_wg_maps.map_attributes import tile_map

READ, WRITE, ATOMIC = "reads", "writes", "updates"


@dataclass(frozen=True)
class Owners:
    """Who touches which element of a tile.

    Attributes:
        shape: of the tile.
        layout: how it is spread.
        first_only: whether only the first owner of what is shared does it.
    """

    shape: tuple[int, ...]
    layout: Layout
    first_only: bool

    def are_those_of(self, other: Owners) -> bool:
        """Whether each element is touched by one subgroup, the same in both."""
        if self.shape != other.shape:
            return False
        if self.layout == other.layout and self.first_only and other.first_only:
            return True
        if self._is_shared() or other._is_shared():
            return False
        return slices_for(self.shape, self.layout, other.layout) is not None

    def _is_shared(self) -> bool:
        units = zip(self.layout.sg_layout, self.layout.sg_data)
        return any(n * size > extent for (n, size), extent in zip(units, self.shape))


@dataclass(frozen=True)
class Access:
    """One operation on one memory.

    Attributes:
        op: the operation.
        kind: READ, WRITE or ATOMIC.
        roots: the memories it may touch.
        where: the block it touches; None: any part.
        owners: who does; None: not known, all or one of them.
    """

    op: Operation
    kind: str
    roots: frozenset[Root]
    where: AccessRegion | None = None
    owners: Owners | None = None

    def needs_order_with(self, other: Access) -> bool:
        """Whether different subgroups may touch one element, and the order counts."""
        if self.kind == other.kind == READ or _commute(self, other):
            return False
        pairs = product(self.roots, other.roots)
        if not any(may_alias(left, right) for left, right in pairs):
            return False
        if self.where is None or other.where is None:
            return True
        if self.where.is_apart_from(other.where):
            return False
        known = self.owners is not None and other.owners is not None
        same_place = known and self.where.is_same_as(other.where)
        return not (same_place and _same(self.owners, other.owners))

    def before(self, loop: Operation) -> Access:
        """The same in the turns of a loop before this one."""
        where = None if self.where is None else self.where.before(loop)
        return replace(self, where=where)


def _same(left: Owners | None, right: Owners | None) -> bool:
    return left is not None and right is not None and left.are_those_of(right)


def _commute(left: Access, right: Access) -> bool:
    """Whether both update, in one way, and nobody looks at what was there."""
    ops = left.op, right.op
    return (
        all(isinstance(op, AtomicRmwTileOp | memref.AtomicRmwOp) for op in ops)
        and not any(op.results[0].uses for op in ops)
        and _kind_of(left.op) == _kind_of(right.op) != "assign"
    )


def _kind_of(op: Operation) -> str:
    if isinstance(op, memref.AtomicRmwOp):
        return op.kind_name
    assert isinstance(op, AtomicRmwTileOp)
    return op.kind.data


# What operations do -----------------------------------------------------------------

_TILES: dict[type[Operation], str] = {
    LoadTileOp: READ,
    LoadGatherOp: READ,
    StoreTileOp: WRITE,
    StoreScatterOp: WRITE,
    AtomicRmwTileOp: ATOMIC,
}


def accesses_of(op: Operation) -> Iterator[Access]:
    """What an operation without regions does to memory that subgroups share."""
    kind = _TILES.get(type(op))
    if kind is not None:
        assert isinstance(
            op,
            LoadTileOp | LoadGatherOp | StoreTileOp | StoreScatterOp | AtomicRmwTileOp,
        )
        yield _tile_access(op, op.tile, kind)
    elif isinstance(op, func.CallOp):
        yield Access(op, WRITE, frozenset({None}))
    elif not isinstance(op, PrefetchTileOp | memref.DeallocOp):
        yield from _plain_accesses(op)


def _tile_access(op: Operation, tile: SSAValue, kind: str) -> Access:
    type_, layout = tile_type(tile), tile_map(tile)
    owners = None
    if layout is not None and not type_.scattered:
        owners = Owners(type_.shape, layout, kind != READ)
    return Access(op, kind, roots_of(tile), region_of(tile, type_.array_length), owners)


def _plain_accesses(op: Operation) -> Iterator[Access]:
    """Of elements and vectors in memory: stored by one subgroup, loaded by all."""
    effects = {effect.kind for effect in get_effects(op) or ()}
    effects &= {MemoryEffectKind.READ, MemoryEffectKind.WRITE}
    bases = [v for v in op.operands if is_memref(v.type) and not is_private(v)]
    if not effects or not bases:
        return
    kind = WRITE if MemoryEffectKind.WRITE in effects else READ
    if isinstance(op, memref.AtomicRmwOp):
        kind = ATOMIC
    for base in bases:
        yield Access(op, kind, roots_of(base))
