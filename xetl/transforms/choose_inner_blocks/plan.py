"""Decide the blocks of one function, before any change.

A tile gets the blocks of the values that are loaded and stored through it, if they are
legal. Two uses of a tile may need two block sizes. A tile is a description without
data, so each use can have its own copy; only a tile that a loop carries has one size
for all uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis import axes
from xetl.devices import Block, Device
from xetl.dialects import xetile
from xetl.dialects.xetile import AtomicRmwTileOp, LoadTileOp, StoreTileOp, TileMmaOp
from xetl.records import record
from xetl.transforms.choose_inner_blocks import block_constraints
from xetl.transforms.choose_inner_blocks.block_constraints import (
    Chosen,
    Demand,
    Form,
    may_be_cut,
)
from xetl.transforms.diagnostics import remark

AnyAccess = (
    xetile.LoadTileOp
    | xetile.StoreTileOp
    | xetile.PrefetchTileOp
    | xetile.AtomicRmwTileOp
)
_MAKING = xetile.InitTileOp | xetile.UpdateTileOffsetOp


@record()
class Family:
    """Tiles that must have one type: a tile after each move, or carried by a loop."""

    members: list[SSAValue]
    accesses: list[AnyAccess]

    @property
    def type(self) -> xetile.TileType:
        """The type of all members."""
        return xetile.tile_type(self.members[0])

    @property
    def is_known(self) -> bool:
        """Whether the function defines all members, so that their type may change."""
        owners = [
            each.block.parent_op() if isinstance(each, BlockArgument) else each.owner
            for each in self.members
        ]
        return all(isinstance(o, _MAKING | block_constraints.CARRYING) for o in owners)

    @property
    def is_carried(self) -> bool:
        """Whether a loop or an if carries a member."""
        return not all(isinstance(member.owner, _MAKING) for member in self.members)


@record()
class TilePlan:
    """The decisions about tiles.

    Attributes:
        of_access: the blocks in which each operation accesses memory.
        of_tile: the blocks in the type of each tile: those of the first access, if
            the accesses differ and get tiles of their own.
        unblocked: accesses that no block fits, with the reason.
    """

    of_access: dict[Operation, Block | None]
    of_tile: dict[SSAValue, Block | None]
    unblocked: dict[Operation, str]


def families(ops: Sequence[Operation]) -> list[Family]:
    """Return the families of tiles that may be cut, with their accesses."""
    classes = axes.tile_classes(ops)
    found: dict[SSAValue, Family] = {}
    for op in ops:
        for tile in (*op.operands, *op.results, *axes.arguments_of(op)):
            type_ = tile.type
            if not isinstance(type_, xetile.TileType) or not may_be_cut(type_):
                continue
            root = classes.find((tile, 0))[0]
            family = found.setdefault(root, Family([], []))
            if tile not in family.members:
                family.members.append(tile)
        if isinstance(op, AnyAccess) and may_be_cut(xetile.tile_type(op.tile)):
            found[classes.find((op.tile, 0))[0]].accesses.append(op)
    return list(found.values())


def _blocks_of_accesses(
    family: Family, chosen: Chosen, device: Device
) -> dict[Operation, Block | None]:
    given = family.type.inner_blocks
    if given is not None:
        rows, columns = given
        return dict.fromkeys(family.accesses, (rows, columns))
    if not family.is_known:
        return dict.fromkeys(family.accesses)
    # An atomic allows any blocks.
    legal = {
        op: block_constraints.legal_blocks(op, device)
        for op in family.accesses
        if block_constraints.is_block_access(op)
    }
    own = {
        op: [chosen(value) for value in block_constraints.moved_by(op)]
        for op in family.accesses
    }
    wishes = [wish for each in own.values() for wish in each]
    if family.is_carried:
        shared = [*legal.values()]
        common = [b for b in shared[0] if all(b in o for o in shared)] if shared else []
        return dict.fromkeys(family.accesses, _pick(common, wishes))
    return {
        op: _pick(legal[op], wish or wishes) if op in legal else wish[0]
        for op, wish in own.items()
    }


def _pick(legal: Sequence[Block], wishes: Sequence[Block | None]) -> Block | None:
    """Return the first legal wish, else the largest block, the widest to read rows."""
    granted = [wish for wish in wishes if wish in legal]
    if granted or not legal:
        return granted[0] if granted else None
    return max(legal, key=lambda block: (block[0] * block[1], block[1]))


def _reason(family: Family, device: Device) -> str:
    if not family.is_known:
        return "the tile comes from outside of the function"
    rows, columns = family.type.shape
    what = f"{rows}x{columns} of {family.type.element_type}"
    return f"no block that {device.name} can move divides {what}"


def types_to_unblock(ops: Iterable[Operation], device: Device) -> set[xetile.TileType]:
    """Return the tile types whose given blocks the device cannot move; report them."""
    found: set[xetile.TileType] = set()
    for op in ops:
        if block_constraints.is_block_access(op) and not given_is_legal(op, device):
            remark(op, "blocks", _told(op, device))
            found.add(xetile.tile_type(block_constraints.tile_of(op)))
    return found


def given_is_legal(op: Operation, device: Device) -> bool:
    """Whether no blocks are given, or this access can use the given ones."""
    given = xetile.tile_type(block_constraints.tile_of(op)).inner_blocks
    return given is None or given in block_constraints.legal_blocks(op, device)


def _told(op: Operation, device: Device) -> str:
    name = op.name.removeprefix("xetile.")
    type_ = xetile.tile_type(block_constraints.tile_of(op))
    rows, columns = type_.inner_blocks or (0, 0)
    blocks = f"({rows}, {columns}) of {type_.element_type}"
    legal = block_constraints.legal_blocks(op, device)
    return f"`{name}`: {device.name} has no blocks {blocks}; {_advice(legal)}"


def _advice(legal: Sequence[Block]) -> str:
    if not legal:
        return "none fits this tile"
    rows, columns = (sorted(set(extents)) for extents in zip(*legal))
    return f"others were chosen from {_any_of(rows)} rows, {_any_of(columns)} columns"


def _any_of(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last


@record(frozen=True)
class Definition:
    """A matrix, and the blocks in which its operation produces it."""

    value: SSAValue
    block: Block | None


@record()
class Plan:
    """All decisions about a function.

    Attributes:
        chosen: returns the blocks that a value has for its readers.
        unblocked: operations that should work in blocks and cannot, with the reason.
    """

    function: Operation
    ops: list[Operation]
    chosen: Chosen
    forms: dict[Operation, Form]
    tiles: TilePlan
    unblocked: dict[Operation, str]

    def definitions(self) -> list[Definition]:
        """Return all matrices of the function, each with its blocks."""
        found = [
            Definition(value, block)
            for op in self.ops
            for value, block in zip(op.results, self.forms[op].results)
        ]
        for op in (self.function, *self.ops):
            carried = isinstance(op, block_constraints.CARRYING)
            for value in axes.arguments_of(op):
                matrix = carried and axes.is_matrix(value.type)
                found.append(Definition(value, self.chosen(value) if matrix else None))
        return [each for each in found if axes.is_matrix(each.value.type)]


def make_plan(function: Operation, device: Device) -> Plan:
    """Choose the blocks of all values and tiles of a function."""
    ops = [op for region in function.regions for op in region.walk()]
    classes = axes.Classes()
    for op in ops:
        for first, second in block_constraints.relations(op):
            classes.join(first, second)
    demands = [
        demand for op in ops for demand in block_constraints.demands_of(op, device)
    ]
    limits = [limit for op in ops for limit in block_constraints.limits_of(op)]
    chosen = choose_blocks(classes, demands, limits)
    tiles = TilePlan({}, {}, {})
    for family in families(ops):
        blocks = _blocks_of_accesses(family, chosen, device)
        tiles.of_access |= blocks
        first = next((b for b in blocks.values() if b is not None), None)
        tiles.of_tile |= dict.fromkeys(family.members, first)
        for access in family.accesses:
            if block_constraints.is_block_access(access) and not (
                blocks[access] is not None and given_is_legal(access, device)
            ):
                tiles.unblocked[access] = _reason(family, device)
    products = {
        op: block_constraints.product_of(op, device)
        for op in ops
        if isinstance(op, TileMmaOp) and axes.is_matrix(op.a.type)
    }
    forms = {op: _form(op, chosen, tiles, products) for op in ops}
    reasons = {op: why for op, why in products.items() if isinstance(why, str)}
    return Plan(function, ops, chosen, forms, tiles, {**tiles.unblocked, **reasons})


def _form(
    op: Operation,
    chosen: Chosen,
    tiles: TilePlan,
    products: dict[TileMmaOp, block_constraints.Product | str],
) -> Form:
    if isinstance(op, TileMmaOp):
        product = products.get(op)
        if not isinstance(product, block_constraints.Product):
            return block_constraints.plain(op)
        operands = (product.a, product.b, product.c)[: len(op.operands)]
        return Form(operands, (product.c,))
    block = tiles.of_access.get(op)
    if isinstance(op, LoadTileOp):
        return Form((None,), (block,) * len(op.results))
    if isinstance(op, StoreTileOp):
        return Form((block, None), ())
    if isinstance(op, AtomicRmwTileOp):
        return Form((block, None, block)[: len(op.operands)], (block,))
    return block_constraints.form_of(op, chosen)


def choose_blocks(
    classes: axes.Classes,
    demands: Iterable[Demand],
    limits: Iterable[tuple[axes.Axis, int]],
) -> Chosen:
    """Choose the block size of each class of axes; return the blocks by matrix.

    A class takes the size with the greatest weight of demands, the largest of several.
    If a demand is not met, its operation packs the value.

    Args:
        limits: pairs of an axis and a number that its block size must divide.
    """
    votes: dict[axes.Axis, Counter[int]] = {}
    for demand in demands:
        for dim, extents in enumerate((demand.rows, demand.columns)):
            counter = votes.setdefault(classes.find((demand.value, dim)), Counter())
            for extent in extents:
                counter[extent] += demand.weight
    for axis, number in limits:
        counter = votes.get(classes.find(axis), Counter[int]())
        for extent in [each for each in counter if number % each]:
            del counter[extent]
    extents_of = {
        axis: max(votes[axis], key=lambda n: (votes[axis][n], n))
        for axis in votes
        if votes[axis]
    }

    def extent_of(value: SSAValue, dim: int) -> int | None:
        if axes.shape_of(value)[dim] == 1:
            return 1
        return extents_of.get(classes.find((value, dim)))

    def block_of(value: SSAValue) -> Block | None:
        rows, columns = extent_of(value, 0), extent_of(value, 1)
        if rows is None or columns is None or max(axes.shape_of(value)) == 1:
            return None
        return rows, columns

    return block_of
