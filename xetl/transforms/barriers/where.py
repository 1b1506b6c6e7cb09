"""Where in its matrix a tile lies, as far as that can be compared with another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import InitTileOp, UpdateTileOffsetOp, tile_type
from xetl.transforms.barriers.offsets import (
    Begin,
    Offset,
    added,
    are_apart,
    before,
    is_outside,
    offset_of,
)


@dataclass(frozen=True)
class Where:
    """A block of a matrix.

    Attributes:
        matrix: what all blocks of it have in common: the base, sizes and strides; or
            a tile that nothing more is known of.
        begins: where it begins along each dimension.
        shape: as many entries; leading dimensions of the base have one element.
    """

    matrix: tuple[Index, ...]
    begins: tuple[Begin, ...]
    shape: tuple[int, ...]

    def is_same_as(self, other: Where) -> bool:
        """Whether the two are known to be one block."""
        known = all(isinstance(begin, Offset) for begin in self.begins)
        return known and self == other

    def is_apart_from(self, other: Where) -> bool:
        """Whether the two are known to have no element in common."""
        if self.matrix != other.matrix:
            return False
        pairs = zip(self.begins, self.shape, other.begins, other.shape)
        return any(are_apart(*each) for each in pairs)

    def before(self, loop: Operation) -> Where | None:
        """The same block in the turns of a loop before this one.

        None: nothing is known of it.
        """
        if all(is_outside(each, loop) for each in self.matrix):
            begins = tuple(before(begin, loop) for begin in self.begins)
            return replace(self, begins=begins)
        steps = _steps_of_tile(self.matrix[0], loop)
        if steps is None:
            return None
        pairs = zip(self.begins, steps)
        begins = tuple(_stepped(begin, step, loop) for begin, step in pairs)
        return replace(self, begins=begins)


def _stepped(begin: Begin, step: int, loop: Operation) -> Begin:
    """Of a tile that moves: its own offset must not move as well."""
    if isinstance(begin, Offset) and is_outside(begin.symbol, loop):
        return replace(begin, step=step)
    return None


def _steps_of_tile(tile: Index, loop: Operation) -> tuple[int, ...] | None:
    """By how much a loop moves a tile that it carries."""
    if not isinstance(tile, BlockArgument) or not isinstance(loop, scf.ForOp):
        return None
    if tile.block is not loop.body.block:
        return None
    end = tile.block.last_op
    assert end is not None
    after = where_of(end.operands[tile.index - 1])
    if after is None or after.matrix != (tile,):
        return None
    steps = [
        begin.constant
        for begin in after.begins
        if isinstance(begin, Offset) and begin.symbol is None
    ]
    return tuple(steps) if len(steps) == len(after.begins) else None


def where_of(tile: SSAValue, count: int = 1) -> Where | None:
    """Where a tile lies; None where its elements lie anywhere.

    Args:
        tile: a tile.
        count: how many of its width a load takes, one beside the other.
    """
    op, type_ = tile.owner, tile_type(tile)
    if type_.scattered:
        return None
    if isinstance(op, UpdateTileOffsetOp):
        return _moved(where_of(op.tile, count), op.mixed_offsets)
    rows, columns = type_.shape
    if not isinstance(op, InitTileOp):
        return Where((tile,), (Offset(None, 0),) * 2, (rows, columns * count))
    begins = tuple(offset_of(each) for each in op.mixed_offsets)
    shape = (1,) * (len(begins) - 2) + (rows, columns * count)
    return Where((op.source, *op.mixed_sizes, *op.mixed_strides), begins, shape)


def _moved(where: Where | None, steps: Sequence[Index]) -> Where | None:
    if where is None:
        return None
    # Tiles of matrices in batches move in the last two dimensions.
    batch, begins = where.begins[: -len(steps)], where.begins[-len(steps) :]
    moved = [added(begin, step) for begin, step in zip(begins, steps)]
    return replace(where, begins=(*batch, *moved))
