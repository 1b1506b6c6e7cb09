"""Tiles that move along a loop, and their position some steps later.

A tile is either made in the body, at offsets computed from the loop counter, or carried
by the loop and moved by constant offsets. In both cases its position at any counter can
be computed from this number alone, at any place. So a prefetched tile needs no
loop-carried value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.analysis.control_flow import yielded
from xetl.analysis.memory import is_pure
from xetl.dialects.base import Index, constant_index
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import InitTileOp, TileType, unmoved
from xetl.ir.builder import Builder, OpT
from xetl.records import record
from xetl.worklist import Worklist

Offsets = tuple[Index, ...]


@record(frozen=True)
class MovingTile:
    """A tile of a loop.

    Attributes:
        loop: the loop whose body loads the tile.
        start: the operation that makes the tile, outside of the loop or in its body.
        moved: the constant offsets of the tile from ``start``.
        per_step: rows and columns that the tile moves for each 1 that the counter
            grows; None: ``start`` is in the body and depends on the counter.
    """

    loop: scf.ForOp
    start: InitTileOp
    moved: Offsets
    per_step: tuple[int, int] | None

    def at(self, counter: SSAValue, type_: TileType, point: InsertPoint) -> SSAValue:
        """Make a tile at the position for the counter ``counter``.

        Args:
            counter: a value of the counter's type, defined ahead of ``point``.
            type_: the type of the new tile, with the same shape and element type.
            point: a point in front of the loop, or in its body.
        """
        build = _CopyBuilder(point, counter, self.loop)
        start = build.copied(self.start)
        *leading, row, column = start.mixed_offsets
        place = [build.plus(row, self.moved[0]), build.plus(column, self.moved[1])]
        if self.per_step is not None:
            lower = constant_index(self.loop.lower_bound)
            gone = build.minus(counter, 0 if lower == 0 else self.loop.lower_bound)
            steps = (build.times(gone, each) for each in self.per_step)
            place = [build.plus(*pair) for pair in zip(place, steps)]
        made = InitTileOp(
            start.source,
            (*leading, *place),
            type_,
            start.mixed_sizes,
            start.mixed_strides,
        )
        return build.insert(made)


def moving_tile(tile: SSAValue, loop: scf.ForOp) -> MovingTile | None:
    """Return how a tile that is loaded in the body moves; None if that is not known."""
    body = loop.body.block
    tile, moved = _unmoved(tile)
    if moved is None:
        return None
    if isinstance(tile, BlockArgument) and tile.block is body and tile.index:
        return _carried(tile, moved, loop)
    start = tile.owner
    if isinstance(start, InitTileOp) and start.parent is body and start.indices is None:
        slice_ = _computed_in(body, start)
        if slice_ is not None and any(body.args[0] in op.operands for op in slice_):
            return MovingTile(loop, start, moved, None)
    return None


def _carried(tile: BlockArgument, moved: Offsets, loop: scf.ForOp) -> MovingTile | None:
    """Return how a loop-carried tile moves. Return None if not by constants."""
    step = constant_index(loop.step)
    following, on = _unmoved(yielded(tile.block)[tile.index - 1])
    start, before = _unmoved(loop.init_args[tile.index - 1])
    if following is not tile or on is None or before is None or not step:
        return None
    if not isinstance(start.owner, InitTileOp) or start.owner.indices is not None:
        return None
    rows, columns = on
    if not isinstance(rows, int) or not isinstance(columns, int):
        return None
    if rows % step or columns % step or not (rows or columns):
        return None
    both = _sum(moved, before)
    per_step = rows // step, columns // step
    return None if both is None else MovingTile(loop, start.owner, both, per_step)


def _unmoved(tile: SSAValue) -> tuple[SSAValue, Offsets | None]:
    """Return the tile before all its moves, and their sum; None: it is not constant."""
    total: Offsets | None = (0, 0)
    start, moves = unmoved(tile)
    for op in moves:
        total = total and _sum(total, op.mixed_offsets)
    return start, total


def _sum(left: Offsets, right: Sequence[Index]) -> Offsets | None:
    """Add offsets. Return None if they are not constant."""
    pairs = list(zip(left, right))
    if len(right) != 2 or not all(isinstance(n, int) for pair in pairs for n in pair):
        return None
    return tuple(a + b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _computed_in(body: Block, op: Operation) -> set[Operation] | None:
    """Return ``op`` and what it depends on in the body; None if that must stay."""
    waiting = Worklist([op])
    for each in waiting:
        if not is_pure(each):
            return None
        for operand in each.operands:
            if isinstance(operand, BlockArgument):
                if operand.block is body and operand.index:
                    return None
            elif isinstance(operand.owner, Operation) and operand.owner.parent is body:
                waiting += [operand.owner]
    return waiting.seen


class _CopyBuilder(Builder):
    """Copies operations out of the body of a loop, for another counter."""

    def __init__(self, point: InsertPoint, counter: SSAValue, loop: scf.ForOp) -> None:
        super().__init__(point, loop.location)
        self._body = loop.body.block
        self._known: dict[SSAValue, SSAValue] = {self._body.args[0]: counter}

    def copied(self, op: OpT) -> OpT:
        """Copy ``op`` without inserting it; insert copies of all its operands."""
        copy = op.clone()
        # A message names the line of the loop, not a line elsewhere.
        copy.location = self.location or copy.location
        for index, operand in enumerate(op.operands):
            copy.operands[index] = self._at_point(operand)
        return copy

    def _at_point(self, value: SSAValue) -> SSAValue:
        if value in self._known:
            return self._known[value]
        op = value.owner
        if isinstance(op, Block) or op.parent is not self._body:
            return value
        copy = self.add(self.copied(op))
        self._known.update(zip(op.results, copy.results))
        return self._known[value]
