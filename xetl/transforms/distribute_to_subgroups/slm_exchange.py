"""Exchange the parts of a tile through shared memory, one chunk after the other.

`cuts_for` plans the chunks of a tile that is larger than the memory. It works on
numbers only, and cuts each dimension by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod

from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import memref, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, TileAttr, TileType
from xetl.dialects.xetile.types import SHARED
from xetl.language.distribution import Layout, rounds
from xetl.records import record
from xetl.transforms.distribute_to_subgroups.context import Subgroups, guarded


@record(frozen=True)
class Chunks:
    """How a dimension is cut: a chunk has ``width`` neighbours of every ``period``.

    The period divides the size of the sub-tiles that are stored and of those that are
    loaded. So a strip has the same place in the sub-tiles of all subgroups, and all
    subgroups are busy. None: chunks are contiguous, whichever subgroups own them.
    """

    width: int
    period: int | None = None

    def count(self, extent: int) -> int:
        """Return how many chunks there are."""
        return (self.period or extent) // self.width

    def room(self, extent: int) -> int:
        """Return how much of a dimension is in memory at a time."""
        return self.kept(extent) if self.period else self.width

    def kept(self, size: int) -> int:
        """Return how much of ``size`` neighbours may be in a chunk.

        Of contiguous chunks all of it: which of it is depends on the subgroup.
        """
        return size // self.period * self.width if self.period else size

    def pieces(self, size: int, chunk: int) -> range:
        """Return where the pieces of a sub-tile begin; no chunk boundary cuts one."""
        if self.period:
            return range(chunk * self.width, size, self.period)
        return range(0, size, self.piece(size))

    def piece(self, size: int) -> int:
        """Return the width of one of `pieces`."""
        return self.width if self.period else gcd(self.width, size)


def cuts_for(
    shape: Sequence[int], left: Sequence[int], right: Sequence[int], most: int
) -> tuple[Chunks, ...]:
    """Return cuts of a tile into chunks, as large as the memory allows.

    ``left`` sub-tiles are stored and ``right`` ones loaded; the memory has room for
    ``most`` elements.
    """
    for cuts in _candidates(shape, left, right):
        if prod(cut.room(extent) for cut, extent in zip(cuts, shape)) <= most:
            return cuts
    return Chunks(1), Chunks(1)


def _candidates(
    shape: Sequence[int], left: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[Chunks, Chunks]]:
    """Yield cuts, large chunks first, strips of whole rows before narrower ones."""
    rows, columns = shape
    down, along = (gcd(a, b) for a, b in zip(left, right))
    yield Chunks(rows), Chunks(columns)
    for width in _divisors(down):
        yield Chunks(width, down), Chunks(columns)
    for width in _divisors(along):
        yield Chunks(1, down), Chunks(width, along)
    for width in _divisors(rows):
        yield Chunks(width), Chunks(columns)
    for width in _divisors(columns):
        yield Chunks(1), Chunks(width)


def _divisors(number: int) -> list[int]:
    """Return the divisors of ``number``, from the largest to 1."""
    return [each for each in range(number, 0, -1) if number % each == 0]


Chunk = tuple[int, ...]
"""The number of a chunk along each dimension."""


@record(frozen=True)
class _Range:
    """A piece of a part along one dimension.

    Attributes:
        at: where it begins in the part.
        place: where it begins in the memory.
        tests: the piece is in the chunk if all these conditions hold.
    """

    at: int
    size: int
    place: Index
    tests: tuple[SSAValue, ...] = ()


class ChunkedExchange:
    """See the module docstring; ``cuts`` has the plan of each dimension."""

    def __init__(
        self,
        team: Subgroups,
        shape: Sequence[int],
        cuts: Sequence[Chunks],
        element: Attribute,
    ) -> None:
        self._team = team
        self._shape = shape
        self._cuts = cuts
        self._element = element
        room = [cut.room(extent) for cut, extent in zip(cuts, shape)]
        scratch = team.scratch(prod(room) * stored_bytes(element))
        space = IntegerAttr(SHARED, i64)
        type_ = MemRefType(element, room, memory_space=space)
        view = memref.ViewOp(scratch, team.head_constant(0), (), type_)
        self._memory = team.insert(view)

    def chunks(self) -> list[Chunk]:
        """Return the chunks in order."""
        counts = [cut.count(n) for cut, n in zip(self._cuts, self._shape)]
        return list(product(*map(range, counts)))

    def store(self, parts: Sequence[SSAValue], layout: Layout, chunk: Chunk) -> None:
        """Store the pieces in a chunk; only the first owner stores a shared part."""
        owner = self._team.first_owner(self._shape, layout)

        def store_all() -> Sequence[SSAValue]:
            for number, part in enumerate(parts):
                for piece in self._pieces(layout, number, chunk):
                    self._store(part, piece)
            return ()

        guarded(self._team, owner, (), store_all)

    def load(
        self, before: Sequence[SSAValue], layout: Layout, chunk: Chunk
    ) -> list[SSAValue]:
        """Return the parts, those of ``before`` if any, with the pieces of a chunk."""
        found: list[SSAValue] = []
        for number in range(prod(rounds(self._shape, layout))):
            part = before[number] if before else None
            pieces = self._pieces(layout, number, chunk)
            found.append(self._load(part, layout.sg_data, pieces))
        return found

    # Pieces -------------------------------------------------------------------------

    def _pieces(
        self, layout: Layout, number: int, chunk: Chunk
    ) -> list[tuple[_Range, ...]]:
        """Return the pieces of a part that lie, or may lie, in a chunk."""
        kept = [cut.kept(n) for cut, n in zip(self._cuts, self._shape)]
        data = [cut.kept(n) for cut, n in zip(self._cuts, layout.sg_data)]
        packed = Layout(layout.sg_layout, tuple(data), order=layout.order)
        origin = self._team.origin(kept, packed, number)
        ranges = [
            self._ranges(dim, start, layout.sg_data[dim], chunk[dim])
            for dim, start in enumerate(origin)
        ]
        return list(product(*ranges))

    def _ranges(self, dim: int, origin: Index, size: int, chunk: int) -> list[_Range]:
        cut, team = self._cuts[dim], self._team
        width = cut.piece(size)
        starts = cut.pieces(size, chunk)
        if cut.period:
            return [
                _Range(at, width, team.plus(origin, turn * width))
                for turn, at in enumerate(starts)
            ]
        if cut.count(self._shape[dim]) == 1:
            return [_Range(at, width, team.plus(origin, at)) for at in starts]
        found = [self._maybe(cut, origin, at, width, chunk) for at in starts]
        return [each for each in found if each is not None]

    def _maybe(
        self, cut: Chunks, origin: Index, at: int, width: int, chunk: int
    ) -> _Range | None:
        """Return a piece that may be in this chunk. Return None if it cannot be."""
        team = self._team
        begin = team.plus(origin, at)
        owner = team.divided(begin, cut.width)
        if isinstance(owner, int):
            inside, tests = owner == chunk, ()
        else:
            number = team.head_constant(chunk)
            inside, tests = True, (team.compare("eq", owner, number),)
        if not inside:
            return None
        return _Range(at, width, team.minus(begin, chunk * cut.width), tests)

    def _condition(self, piece: Sequence[_Range]) -> SSAValue | None:
        """Return whether a piece is in the chunk. Return None if it always is."""
        return self._team.conjunction(*[test for each in piece for test in each.tests])

    # Memory -------------------------------------------------------------------------

    def _tile(self, piece: Sequence[_Range]) -> SSAValue:
        encoding = TileAttr(memory_space=SHARED)
        type_ = TileType([each.size for each in piece], self._element, encoding)
        places = [each.place for each in piece]
        return self._team.insert(InitTileOp(self._memory, places, type_))

    def _store(self, part: SSAValue, piece: Sequence[_Range]) -> None:
        def store() -> Sequence[SSAValue]:
            value, sizes = part, [each.size for each in piece]
            if list(vector_type(part).get_shape()) != sizes:
                starts = [each.at for each in piece]
                taken = vector.ExtractStridedSliceOp(part, starts, sizes)
                value = self._team.insert(taken)
            self._team.add(StoreTileOp(value, self._tile(piece)))
            return ()

        guarded(self._team, self._condition(piece), (), store)

    def _load(
        self,
        before: SSAValue | None,
        shape: Sequence[int],
        pieces: Sequence[Sequence[_Range]],
    ) -> SSAValue:
        """Return a part with the pieces of the chunk filled in."""
        if len(pieces) == 1 and _is_all(pieces[0], shape):
            return self._team.insert(LoadTileOp(self._tile(pieces[0])))
        whole = before
        if whole is None:
            whole = self._team.constant(0, VectorType(self._element, shape))
        for piece in pieces:
            whole = self._filled(whole, piece)
        return whole

    def _filled(self, whole: SSAValue, piece: Sequence[_Range]) -> SSAValue:
        def fill() -> Sequence[SSAValue]:
            value = self._team.insert(LoadTileOp(self._tile(piece)))
            starts = [each.at for each in piece]
            filled = vector.InsertStridedSliceOp(value, whole, starts)
            return [self._team.insert(filled)]

        condition = self._condition(piece)
        (found,) = guarded(self._team, condition, [whole.type], fill, [whole])
        return found


def _is_all(piece: Sequence[_Range], shape: Sequence[int]) -> bool:
    """Whether a piece is a whole part that is in the chunk for all subgroups."""
    complete = all(each.size == size for each, size in zip(piece, shape))
    return complete and not any(each.tests for each in piece)


def stored_bytes(element: Attribute) -> int:
    """Return how many bytes one element takes in memory."""
    return -(-bit_width(element) // 8)
