"""Tiles that move along a loop, and where they will be some steps later.

A tile is either described in the body, at a place computed from the counter, or carried
and moved on by constant offsets.  In both cases where it is at a given counter can be
computed from that number alone, anywhere; so it needs no place among what the loop
carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp, TileType, UpdateTileOffsetOp
from xetl.transforms.effects import is_pure

Offsets = tuple[Index, ...]


@dataclass(frozen=True)
class MovingTile:
    """A tile of a loop.

    Attributes:
        loop: in whose body it is loaded.
        start: describes it: outside of the loop, or in its body.
        moved: by how much it is off where ``start`` describes it.
        per_step: rows and columns that the loop moves it on, whole for each number
            that it counts; None: ``start`` is in the body, and computed anew.
    """

    loop: scf.ForOp
    start: InitTileOp
    moved: Offsets
    per_step: tuple[int, int] | None

    def at(self, counter: SSAValue, type_: TileType, point: InsertPoint) -> SSAValue:
        """Describe the tile as it is when the loop counts ``counter``.

        Args:
            counter: a number of the loop's type, defined ahead of ``point``.
            type_: of the new tile: shape and element as they are.
            point: in front of the loop, or in its body.
        """
        emit = _Emitter(point, {self.loop.body.block.args[0]: counter}, self.loop)
        start = emit.copied_operands(self.start)
        *leading, row, column = start.mixed_offsets
        place = [emit.plus(row, self.moved[0]), emit.plus(column, self.moved[1])]
        if self.per_step is not None:
            gone = emit.minus(counter, self.loop.lower_bound)
            steps = (emit.times(gone, each) for each in self.per_step)
            place = [emit.plus(*pair) for pair in zip(place, steps)]
        made = InitTileOp(
            start.source,
            (*leading, *place),
            type_,
            start.mixed_sizes,
            start.mixed_strides,
        )
        return emit.add(made).results[0]


def moving_tile(tile: SSAValue, loop: scf.ForOp) -> MovingTile | None:
    """How a tile that is loaded in the body moves; None: it stays, or nobody knows."""
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
    """A tile that the loop carries, if it moves on by constants."""
    last, step = loop.body.block.last_op, constant_index(loop.step)
    assert last is not None
    following, on = _unmoved(last.operands[tile.index - 1])
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
    """The tile before it was moved, and by how much; None: in a way of its own."""
    total: Offsets | None = (0, 0)
    while isinstance(tile.owner, UpdateTileOffsetOp):
        op = tile.owner
        total = total and _sum(total, op.mixed_offsets)
        tile = op.tile
    return tile, total


def _sum(left: Offsets, right: Sequence[Index]) -> Offsets | None:
    """Offsets one after the other, as far as they are constant."""
    pairs = list(zip(left, right))
    if len(right) != 2 or not all(isinstance(n, int) for pair in pairs for n in pair):
        return None
    return tuple(a + b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _computed_in(body: Block, op: Operation) -> list[Operation] | None:
    """What stands in the body and ``op`` depends on; None: on what only runs there."""
    found: list[Operation] = []
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        if not is_pure(each):
            return None
        found.append(each)
        for operand in each.operands:
            if isinstance(operand, BlockArgument):
                if operand.block is body and operand.index:
                    return None
            elif isinstance(operand.owner, Operation) and operand.owner.parent is body:
                waiting.append(operand.owner)
    return found


class _Emitter:
    """New operations at a point; numbers that are known are not computed.

    Args:
        point: where they are put.
        known: values that take the place of others.
        loop: from whose body operations may have to be copied.
    """

    def __init__(
        self, point: InsertPoint, known: dict[SSAValue, SSAValue], loop: scf.ForOp
    ) -> None:
        self._point = point
        self._known = known
        self._loop = loop

    def add(self, op: Operation) -> Operation:
        """Insert an operation; it is where the loop is for the user."""
        op.location = self._loop.location
        Rewriter.insert_op(op, self._point)
        return op

    def copied_operands(self, op: InitTileOp) -> InitTileOp:
        """The same operation, not inserted, with all that it needs at the point."""
        copy = op.clone()
        for index, operand in enumerate(op.operands):
            copy.operands[index] = self._at_point(operand)
        return copy

    def _at_point(self, value: SSAValue) -> SSAValue:
        if value in self._known:
            return self._known[value]
        op = value.owner
        if isinstance(op, Block) or op.parent is not self._loop.body.block:
            return value
        copy = op.clone()
        for index, operand in enumerate(op.operands):
            copy.operands[index] = self._at_point(operand)
        self.add(copy)
        self._known.update(zip(op.results, copy.results))
        return self._known[value]

    def plus(self, left: Index, right: Index) -> Index:
        """A sum."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if 0 in (left, right):
            return right if left == 0 else left
        return self.add(arith.AddiOp(*self._values(left, right))).results[0]

    def minus(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """A difference."""
        if constant_index(right) == 0:
            return left
        return self.add(arith.SubiOp(left, right)).results[0]

    def times(self, value: SSAValue, factor: int) -> Index:
        """A multiple."""
        if factor in (0, 1):
            return value if factor else 0
        return self.add(arith.MuliOp(*self._values(value, factor))).results[0]

    def _values(self, *given: Index) -> list[SSAValue]:
        return [
            self.add(arith.ConstantOp.index(each)).results[0]
            if isinstance(each, int)
            else each
            for each in given
        ]
