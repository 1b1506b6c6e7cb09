"""Plans the chunks in which a tile goes through a memory that is smaller than it.

Each dimension is cut by itself.  Numbers only, no IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import TypeAlias

from xetl.records import record


@record(frozen=True)
class StridedChunks:
    """Of every ``period`` neighbours ``width``; so of all sub-tiles the same ones.

    ``period`` divides the sub-tiles of who brings and of who fetches, so a strip has
    a place in a sub-tile that does not depend on the subgroup, and all are busy.
    """

    period: int
    width: int

    def chunks(self, extent: int) -> int:
        """How many chunks there are."""
        return self.period // self.width

    def room(self, extent: int) -> int:
        """How much of a dimension is in memory at a time."""
        return self.kept(extent)

    def kept(self, size: int) -> int:
        """How much of ``size`` neighbours, a multiple of the period, is in a chunk."""
        return size // self.period * self.width

    def pieces(self, size: int, chunk: int) -> range:
        """Where the strips begin in a sub-tile; each is `piece` wide."""
        return range(chunk * self.width, size, self.period)

    def piece(self, size: int) -> int:
        """The width of one of `pieces`."""
        return self.width


@record(frozen=True)
class ContiguousChunks:
    """``width`` neighbours at a time, whoever has them."""

    width: int

    def chunks(self, extent: int) -> int:
        """How many chunks there are."""
        return extent // self.width

    def room(self, extent: int) -> int:
        """How much of a dimension is in memory at a time."""
        return self.width

    def kept(self, size: int) -> int:
        """All: which of it is in a chunk depends on the subgroup."""
        return size

    def pieces(self, size: int, chunk: int) -> range:
        """Where parts of a sub-tile begin that are in one chunk, whichever it is."""
        return range(0, size, self.piece(size))

    def piece(self, size: int) -> int:
        """The width of one of `pieces`."""
        return gcd(self.width, size)


ChunkPlan: TypeAlias = StridedChunks | ContiguousChunks


def cuts_for(
    shape: Sequence[int], left: Sequence[int], right: Sequence[int], most: int
) -> tuple[ChunkPlan, ...]:
    """How to cut a tile so that a chunk has few elements, but no fewer than needed.

    Args:
        shape: of the tile, two dimensions.
        left: the sub-tiles of those who bring.
        right: the sub-tiles of those who fetch.
        most: elements that there is room for.
    """
    for cuts in _candidates(shape, left, right):
        if prod(cut.room(extent) for cut, extent in zip(cuts, shape)) <= most:
            return cuts
    return ContiguousChunks(1), ContiguousChunks(1)


def _candidates(
    shape: Sequence[int], left: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[ChunkPlan, ChunkPlan]]:
    """Large chunks first; strips of whole rows where these are small enough."""
    rows, columns = shape
    down, along = (gcd(a, b) for a, b in zip(left, right))
    yield ContiguousChunks(rows), ContiguousChunks(columns)
    for width in _divisors(down):
        yield StridedChunks(down, width), ContiguousChunks(columns)
    for width in _divisors(along):
        yield StridedChunks(down, 1), StridedChunks(along, width)
    for width in _divisors(rows):
        yield ContiguousChunks(width), ContiguousChunks(columns)
    for width in _divisors(columns):
        yield ContiguousChunks(1), ContiguousChunks(width)


def _divisors(number: int) -> list[int]:
    """Those of ``number``, from the largest to 1."""
    return [each for each in range(number, 0, -1) if number % each == 0]
