"""The blocks of each tile: those of what is loaded and stored, where they are legal.

A tile that is used in two ways may need two sizes of blocks.  It is a description
without data, so each use can have a tile of its own; only one that a loop carries has
one size for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.devices import Block, Device
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreTileOp,
    TileType,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl.transforms.blocks.axes import arguments_of, tile_classes
from xetl.transforms.blocks.demands import (
    ACCESSES,
    is_block_access,
    largest,
    legal_blocks,
    moved_by,
)
from xetl.transforms.blocks.forms import Chosen
from xetl.transforms.blocks.given import given_is_legal

AnyAccess = LoadTileOp | StoreTileOp | PrefetchTileOp | AtomicRmwTileOp


@dataclass
class Family:
    """Tiles of one type: one that is moved, or carried by a loop."""

    members: list[SSAValue] = field(default_factory=list[SSAValue])
    accesses: list[AnyAccess] = field(default_factory=list[AnyAccess])

    @property
    def type(self) -> TileType:
        """The type of all of them."""
        return tile_type(self.members[0])

    @property
    def is_known(self) -> bool:
        """Whether all of them are made in sight, so that the type may change."""
        return all(_is_made_here(member) for member in self.members)

    @property
    def is_carried(self) -> bool:
        """Whether a loop or an if hands them on."""
        owners = [member.owner for member in self.members]
        return not all(isinstance(o, InitTileOp | UpdateTileOffsetOp) for o in owners)


def _is_made_here(tile: SSAValue) -> bool:
    owner = tile.block.parent_op() if isinstance(tile, BlockArgument) else tile.owner
    return isinstance(
        owner, InitTileOp | UpdateTileOffsetOp | scf.ForOp | scf.IfOp | scf.WhileOp
    )


@dataclass
class TilePlan:
    """What was decided.

    Attributes:
        of_access: the blocks in which each operation accesses memory.
        of_tile: the blocks in the type of each tile; the first access's where they
            differ and each access gets a tile of its own.
        unblocked: accesses that no block fits, with the reason.
    """

    of_access: dict[Operation, Block | None] = field(
        default_factory=dict[Operation, "Block | None"]
    )
    of_tile: dict[SSAValue, Block | None] = field(
        default_factory=dict[SSAValue, "Block | None"]
    )
    unblocked: dict[Operation, str] = field(default_factory=dict[Operation, str])


def families(ops: Sequence[Operation]) -> list[Family]:
    """The tiles of a function that may be cut, with what accesses them."""
    classes = tile_classes(ops)
    found: dict[SSAValue, Family] = {}
    for op in ops:
        for tile in _tiles_of(op):
            root = classes.find((tile, 0))[0]
            family = found.setdefault(root, Family())
            if tile not in family.members:
                family.members.append(tile)
        if isinstance(op, AnyAccess) and _may_be_cut(tile_type(op.tile)):
            found[classes.find((op.tile, 0))[0]].accesses.append(op)
    return list(found.values())


def _tiles_of(op: Operation) -> Iterator[SSAValue]:
    for value in (*op.operands, *op.results, *arguments_of(op)):
        if isinstance(value.type, TileType) and _may_be_cut(value.type):
            yield value


def _may_be_cut(type_: TileType) -> bool:
    return len(type_.shape) == 2 and not type_.scattered


def plan_tiles(ops: Sequence[Operation], chosen: Chosen, device: Device) -> TilePlan:
    """Decide for all tiles of a function."""
    plan = TilePlan()
    for family in families(ops):
        blocks = _blocks_of_accesses(family, chosen, device)
        plan.of_access |= blocks
        first = next((b for b in blocks.values() if b is not None), None)
        plan.of_tile |= dict.fromkeys(family.members, first)
        for access in family.accesses:
            if not is_block_access(access):
                continue
            if blocks[access] is None or not given_is_legal(
                family.type, access, device
            ):
                plan.unblocked[access] = _reason(family, device)
    return plan


def _blocks_of_accesses(
    family: Family, chosen: Chosen, device: Device
) -> dict[Operation, Block | None]:
    given = family.type.inner_blocks
    if given is not None:
        rows, columns = given
        return dict.fromkeys(family.accesses, (rows, columns))
    if not family.is_known:
        return dict.fromkeys(family.accesses)
    legal = {op: _legal(op, family.type, device) for op in family.accesses}
    wishes = [chosen(value) for op in family.accesses for value in moved_by(op)]
    if family.is_carried:
        shared = [each for each in legal.values() if each is not None]
        common = [b for b in shared[0] if all(b in o for o in shared)] if shared else []
        return dict.fromkeys(family.accesses, _pick(common, wishes))
    found: dict[Operation, Block | None] = {}
    for op in family.accesses:
        own = [chosen(value) for value in moved_by(op)]
        blocks = legal[op]
        found[op] = own[0] if blocks is None else _pick(blocks, own or wishes)
    return found


def _legal(op: AnyAccess, type_: TileType, device: Device) -> list[Block] | None:
    """None: in any blocks, as an atomic goes element by element."""
    access = ACCESSES.get(type(op))
    return None if access is None else legal_blocks(type_, access, device)


def _pick(legal: Sequence[Block], wishes: Sequence[Block | None]) -> Block | None:
    granted = [wish for wish in wishes if wish in legal]
    return granted[0] if granted else largest(legal) if legal else None


def _reason(family: Family, device: Device) -> str:
    if not family.is_known:
        return "the tile comes from outside of the function"
    rows, columns = family.type.shape
    what = f"{rows}x{columns} of {family.type.element_type}"
    return f"no block that {device.name} can move divides {what}"
