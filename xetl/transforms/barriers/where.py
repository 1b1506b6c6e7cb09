"""Where in its matrix a tile lies, as far as that can be compared with another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp, UpdateTileOffsetOp, tile_type
from xetl.transforms.folding import integer_of


@dataclass(frozen=True)
class Offset:
    """``symbol + constant``, in elements; in earlier turns of a loop some steps less.

    Attributes:
        symbol: None: there is only a constant.
        constant: is added to it.
        step: not 0: any number of these, at least one, are subtracted.
    """

    symbol: SSAValue | None
    constant: int
    step: int = 0

    def plus(self, more: Index) -> Offset | None:
        """Further on; None if that is no such sum."""
        other = offset_of(more)
        if None not in (self.symbol, other.symbol):
            return None
        return Offset(self.symbol or other.symbol, self.constant + other.constant)

    def is_apart(self, size: int, other: Offset, other_size: int) -> bool:
        """Whether ``size`` elements from here and those from ``other`` have no common.

        ``other`` is of this turn.
        """
        if self.symbol is not other.symbol or other.step:
            return False
        # With more steps than one they are even further apart.
        distance = other.constant - self.constant + self.step
        if self.step > 0:
            return distance >= size
        if self.step < 0:
            return -distance >= other_size
        return distance >= size or -distance >= other_size


@dataclass(frozen=True)
class Where:
    """A block of a matrix.

    Attributes:
        matrix: what all blocks of it have in common: the base, sizes and strides; or
            a tile that nothing more is known of.
        offsets: where it begins.
        shape: as many entries; leading dimensions of the base have one element.
    """

    matrix: tuple[Index, ...]
    offsets: tuple[Offset, ...]
    shape: tuple[int, ...]

    def is_apart_from(self, other: Where) -> bool:
        """Whether the two are known to have no element in common."""
        if self.matrix != other.matrix:
            return False
        pairs = zip(self.offsets, self.shape, other.offsets, other.shape)
        return any(a.is_apart(m, b, n) or b.is_apart(n, a, m) for a, m, b, n in pairs)

    def turns_before(self, loop: Operation) -> Where | None:
        """The same block in earlier turns of a loop, seen from this turn.

        None: nothing is known of it.
        """
        moved = self._with_its_tile(loop)
        if moved is None:
            return None
        offsets: list[Offset] = []
        for offset in moved.offsets:
            if _is_outside(offset.symbol, loop):
                offsets.append(offset)
                continue
            step = _step_of(offset.symbol, loop)
            if step is None:
                return None
            offsets.append(replace(offset, step=step))
        return replace(moved, offsets=tuple(offsets))

    def _with_its_tile(self, loop: Operation) -> Where | None:
        """If the matrix is a tile that the loop moves by the same in each turn."""
        if all(isinstance(v, int) or _is_outside(v, loop) for v in self.matrix):
            return self
        (tile, *_) = self.matrix
        steps = _steps_of_tile(tile, loop)
        if steps is None:
            return None
        offsets = [replace(o, step=step) for o, step in zip(self.offsets, steps)]
        return replace(self, offsets=tuple(offsets))


def _is_outside(value: SSAValue | None, loop: Operation) -> bool:
    """Whether a value is the same in all turns."""
    return value is None or not loop.is_ancestor(value.owner)


def _step_of(value: SSAValue | None, loop: Operation) -> int | None:
    """By how much the counter of a loop grows; None if ``value`` is not that."""
    if isinstance(loop, scf.ForOp) and value is loop.body.block.args[0]:
        step = integer_of(loop.step)
        return step if step is not None and step > 0 else None
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
    if any(offset.symbol is not None for offset in after.offsets):
        return None
    return tuple(offset.constant for offset in after.offsets)


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
    offsets = tuple(offset_of(each) for each in op.mixed_offsets)
    shape = (1,) * (len(offsets) - 2) + (rows, columns * count)
    return Where((op.source, *op.mixed_sizes, *op.mixed_strides), offsets, shape)


def _moved(where: Where | None, steps: Sequence[Index]) -> Where | None:
    if where is None or len(steps) != len(where.offsets):
        return None
    offsets = [offset.plus(step) for offset, step in zip(where.offsets, steps)]
    known = tuple(offset for offset in offsets if offset is not None)
    return replace(where, offsets=known) if len(known) == len(offsets) else None


def offset_of(index: Index) -> Offset:
    """An index as a sum; constants that were added are seen."""
    if isinstance(index, int):
        return Offset(None, index)
    number = integer_of(index)
    if number is not None:
        return Offset(None, number)
    op = index.owner
    if isinstance(op, arith.AddiOp):
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = integer_of(other)
            if number is not None:
                inner = offset_of(value)
                return Offset(inner.symbol, inner.constant + number)
    return Offset(index, 0)
