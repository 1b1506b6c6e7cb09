"""Decide the blocks of one function, before any change.

A tile gets the blocks of the values that are loaded and stored through it, if they are
legal. Two uses of a tile may need two block sizes. A tile is a description without
data, so each use can have its own copy; only a tile that a loop carries has one size
for all uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis import axes
from xetl.devices import Block, Device
from xetl.dialects import xetile
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import AtomicRmwTileOp, LoadTileOp, StoreTileOp, TileMmaOp
from xetl.records import record
from xetl.transforms.choose_inner_blocks.block_constraints import (
    ACCESSES,
    CARRYING,
    Chosen,
    Demand,
    Form,
    Product,
    demands_of,
    form_of,
    is_block_access,
    largest,
    legal_blocks,
    limits_of,
    moved_by,
    plain,
    product_of,
    relations,
    tile_of,
)
from xetl.transforms.diagnostics import remark

AnyAccess = (
    xetile.LoadTileOp
    | xetile.StoreTileOp
    | xetile.PrefetchTileOp
    | xetile.AtomicRmwTileOp
)


@record()
class Family:
    """Tiles that must have one type: a tile after each move, or carried by a loop."""

    members: list[SSAValue] = field(default_factory=list[SSAValue])
    accesses: list[AnyAccess] = field(default_factory=list[AnyAccess])

    @property
    def type(self) -> xetile.TileType:
        """The type of all members."""
        return xetile.tile_type(self.members[0])

    @property
    def is_known(self) -> bool:
        """Whether the function defines all members, so that their type may change."""
        return all(_is_made_here(member) for member in self.members)

    @property
    def is_carried(self) -> bool:
        """Whether a loop or an if carries a member."""
        owners = [member.owner for member in self.members]
        return not all(
            isinstance(o, xetile.InitTileOp | xetile.UpdateTileOffsetOp) for o in owners
        )


def _is_made_here(tile: SSAValue) -> bool:
    owner = tile.block.parent_op() if isinstance(tile, BlockArgument) else tile.owner
    return isinstance(
        owner,
        xetile.InitTileOp
        | xetile.UpdateTileOffsetOp
        | scf.ForOp
        | scf.IfOp
        | scf.WhileOp,
    )


@record()
class TilePlan:
    """The decisions about tiles.

    Attributes:
        of_access: the blocks in which each operation accesses memory.
        of_tile: the blocks in the type of each tile: those of the first access, if
            the accesses differ and get tiles of their own.
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
    """Return the families of tiles that may be cut, with their accesses."""
    classes = axes.tile_classes(ops)
    found: dict[SSAValue, Family] = {}
    for op in ops:
        for tile in _tiles_of(op):
            root = classes.find((tile, 0))[0]
            family = found.setdefault(root, Family())
            if tile not in family.members:
                family.members.append(tile)
        if isinstance(op, AnyAccess) and _may_be_cut(xetile.tile_type(op.tile)):
            found[classes.find((op.tile, 0))[0]].accesses.append(op)
    return list(found.values())


def _tiles_of(op: Operation) -> Iterator[SSAValue]:
    for value in (*op.operands, *op.results, *axes.arguments_of(op)):
        if isinstance(value.type, xetile.TileType) and _may_be_cut(value.type):
            yield value


def _may_be_cut(type_: xetile.TileType) -> bool:
    return len(type_.shape) == 2 and not type_.scattered


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


def _legal(op: AnyAccess, type_: xetile.TileType, device: Device) -> list[Block] | None:
    """Return the legal blocks. Return None for an atomic, which allows any blocks."""
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


def types_to_unblock(ops: Iterable[Operation], device: Device) -> set[xetile.TileType]:
    """Return the tile types whose given blocks the device cannot move; report them."""
    found: set[xetile.TileType] = set()
    for op in ops:
        if not is_block_access(op):
            continue
        type_ = xetile.tile_type(tile_of(op))
        if not given_is_legal(type_, op, device):
            remark(op, "blocks", _told(type_, op, device))
            found.add(type_)
    return found


def given_is_legal(type_: xetile.TileType, op: Operation, device: Device) -> bool:
    """Whether no blocks are given, or this access can use the given ones."""
    given = type_.inner_blocks
    return given is None or given in legal_blocks(type_, ACCESSES[type(op)], device)


def _told(type_: xetile.TileType, op: Operation, device: Device) -> str:
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
        forms: the blocks in which each operation works.
        tiles: the blocks in which memory is accessed.
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
            carried = isinstance(op, CARRYING)
            for value in axes.arguments_of(op):
                matrix = carried and axes.is_matrix(value.type)
                found.append(Definition(value, self.chosen(value) if matrix else None))
        return [each for each in found if axes.is_matrix(each.value.type)]


def make_plan(function: Operation, device: Device) -> Plan:
    """Choose the blocks of all values and tiles of a function."""
    ops = [op for region in function.regions for op in region.walk()]
    classes = axes.Classes()
    for op in ops:
        for first, second in relations(op):
            classes.join(first, second)
    demands = [demand for op in ops for demand in demands_of(op, device)]
    limits = [limit for op in ops for limit in limits_of(op)]
    chosen = Choice(classes, demands, limits).block_of
    tiles = TilePlan()
    for family in families(ops):
        blocks = _blocks_of_accesses(family, chosen, device)
        tiles.of_access |= blocks
        first = next((b for b in blocks.values() if b is not None), None)
        tiles.of_tile |= dict.fromkeys(family.members, first)
        for access in family.accesses:
            if not is_block_access(access):
                continue
            if blocks[access] is None or not given_is_legal(
                family.type, access, device
            ):
                tiles.unblocked[access] = _reason(family, device)
    products = {
        op: product_of(op, device)
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
    products: dict[TileMmaOp, Product | str],
) -> Form:
    if isinstance(op, TileMmaOp):
        product = products.get(op)
        if not isinstance(product, Product):
            return plain(op)
        operands = (product.a, product.b, product.c)[: len(op.operands)]
        return Form(operands, (product.c,))
    block = tiles.of_access.get(op)
    if isinstance(op, LoadTileOp):
        return Form((None,), (block,) * len(op.results))
    if isinstance(op, StoreTileOp):
        return Form((block, None), ())
    if isinstance(op, AtomicRmwTileOp):
        return Form((block, None, block)[: len(op.operands)], (block,))
    return form_of(op, chosen)


class Choice:
    """The block size of each class of axes.

    A class takes the size with the greatest weight of demands, the largest of several.
    If a demand is not met, its operation packs the value.

    Args:
        classes: classes of axes that have the same block size.
        limits: pairs of an axis and a number that its block size must divide.
    """

    def __init__(
        self,
        classes: axes.Classes,
        demands: Iterable[Demand],
        limits: Iterable[tuple[axes.Axis, int]] = (),
    ) -> None:
        self._classes = classes
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
        self._extents = {
            axis: max(votes[axis], key=lambda n: (votes[axis][n], n))
            for axis in votes
            if votes[axis]
        }

    def block_of(self, value: SSAValue) -> Block | None:
        """Return the blocks of a matrix. Return None if no operation demands any."""
        rows, columns = (self._extent(value, dim) for dim in (0, 1))
        if rows is None or columns is None or max(axes.shape_of(value)) == 1:
            return None
        return rows, columns

    def _extent(self, value: SSAValue, dim: int) -> int | None:
        if axes.shape_of(value)[dim] == 1:
            return 1
        return self._extents.get(self._classes.find((value, dim)))
