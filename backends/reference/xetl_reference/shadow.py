"""Shadow tables of a memory: whether each element is written, and who touched it.

Programs run one after the other, and so do the subgroups of a program between two
barriers. The part of a run by one subgroup between two barriers is a *turn*; turns have
increasing numbers. For each element and kind of access the tables have the first turn
(of turns that atomics between fences order, the last one), and the first turn since the
last barrier. Two turns are a race if they belong to two programs, or to the same
stretch between two barriers of one program.

`accesses_of` returns the elements that an operation touches. Other operations are not
checked: those of lower levels, and transfers, gathers and scatters of `vector`, which
the front end never makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from xetl.dialects.base import shape_of
from xetl_reference.memory import Memory, View
from xetl_reference.tiles import ScatteredTile, Tile, unpack
from xetl_reference.values import Array, DType

READ, WRITE, ATOMIC = "read", "written", "updated"
"""The kinds of access, as findings name them."""
_CONFLICTS = {
    READ: (WRITE, ATOMIC),
    WRITE: (WRITE, READ, ATOMIC),
    ATOMIC: (WRITE, READ),
}
_NEVER = np.iinfo(np.int64).max


class Window(NamedTuple):
    """Strided elements of a memory; ``offset`` counts from its origin."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def element(self, index: Sequence[int]) -> int:
        """Return the offset of one element."""
        return self.offset + sum(i * s for i, s in zip(index, self.strides))


Key = TypeVar("Key")
Places: TypeAlias = Window | Array
"""The elements of an access: a window, or an array of offsets."""


class Access(NamedTuple):
    """An access of an operation to memory."""

    kind: str
    memory: Memory
    dtype: DType
    places: Places


class Clock(NamedTuple):
    """The present time, in codes (turn and site in one number).

    Attributes:
        program: the first code of this program.
        stretch: the first code since the last barrier.
        turn: the first code of this turn.
        subgroup: the subgroup of this turn.
        known: for each other subgroup its first code that is not ordered before now, if
            there are named barriers (`checks.Order`); None: `stretch` decides alone.
        before: the same for earlier programs whose messages this one has read, by their
            first codes.
    """

    program: int
    stretch: int
    turn: int
    subgroup: int
    known: Mapping[int, int] | None
    before: Mapping[int, int]

    def unordered(self, codes: Array) -> Array:
        """Which codes are of other programs that may still be under way."""
        found = codes < self.program
        for program, end in self.before.items():
            found &= (codes < program) | (codes >= end)
        return found


class Clash(NamedTuple):
    """The earlier of two accesses to one element that are a race.

    Attributes:
        offset: the offset of the element from the origin.
        code: turn and site of the earlier access.
    """

    offset: int
    kind: str
    code: int


class Shadow:
    """The tables of one memory.

    Attributes:
        name: the name of the memory in findings.
        view: the array argument, or the allocation.
        tracked: whether races are checked.

    Args:
        fresh: whether the memory is uninitialised, and reads of that are checked.
        shared: whether several subgroups of a program access it.
    """

    def __init__(
        self, name: str, view: View, *, fresh: bool, shared: bool, tracked: bool
    ) -> None:
        self.name = name
        self.view = view
        self.tracked = tracked
        size = view.dtype.itemsize
        self._size = size
        self._origin = view.memory.origin // size
        self._count = len(view.memory.data) // size
        self._written = np.zeros(self._count, np.bool_) if fresh else None
        self._shared = shared
        self._first: dict[str, Array] = {}
        self._recent: dict[str, Array] = {}
        self._latest: dict[tuple[str, int], Array] = {}

    def places(self, access: Access) -> Places | None:
        """Return the elements of an access, in elements of the tables.

        An access may have another dtype than the tables. Return None if it has no
        elements, or does not consist of whole elements of the tables.
        """
        places, size = access.places, access.dtype.itemsize
        shift = access.memory.origin - self.view.memory.origin
        if 0 in places.shape or size % self._size or shift % self._size:
            return None
        width, shift = size // self._size, shift // self._size
        return places if (width, shift) == (1, 0) else _refined(places, width, shift)

    # Is it written? -----------------------------------------------------------------

    def unwritten(self, places: Places) -> int | None:
        """Return the offset of an element that was never written, or None."""
        if self._written is None:
            return None
        written = self._part(self._written, places)
        return None if written.all() else self._where(~written, places)

    def write(self, places: Places) -> None:
        """Mark elements as written."""
        if self._written is not None:
            self._put(self._written, places, True)

    # Who touched it? ----------------------------------------------------------------

    def clash(self, kind: str, places: Places, clock: Clock) -> Clash | None:
        """Return an earlier access that races with this one, or None."""
        for other in _CONFLICTS[kind]:
            for bad, codes in self._clashes(other, places, clock):
                if bad.any():
                    code = int(codes[bad].flat[0])
                    return Clash(self._where(bad, places), other, code)
        return None

    def _clashes(
        self, kind: str, places: Places, clock: Clock
    ) -> Iterator[tuple[Array, Array]]:
        table = self._first.get(kind)
        if table is not None:
            codes = self._part(table, places)
            if codes.size and codes.min() < clock.program:
                yield clock.unordered(codes), codes
        if clock.known is not None:
            yield from self._unordered(kind, places, clock, clock.known)
            return
        table = self._recent.get(kind)
        if table is not None:
            codes = self._part(table, places)
            yield (codes >= clock.stretch) & (codes < clock.turn), codes

    def _unordered(
        self, kind: str, places: Places, clock: Clock, known: Mapping[int, int]
    ) -> Iterator[tuple[Array, Array]]:
        """Yield clashes as `_clashes` does, for each other subgroup separately."""
        for (other_kind, other), table in self._latest.items():
            if other_kind == kind and other != clock.subgroup:
                codes = self._part(table, places)
                yield codes >= max(clock.stretch, known.get(other, 0)), codes

    def touch(self, kind: str, places: Places, clock: Clock, code: int) -> None:
        """Record an access."""
        table = self._table(self._first, kind, _NEVER)
        old = self._part(table, places)
        self._put(table, places, np.where(clock.unordered(old), old, code))
        if clock.known is not None:
            table = self._table(self._latest, (kind, clock.subgroup), -1)
            self._put(table, places, code)
        elif self._shared:
            table = self._table(self._recent, kind, -1)
            old = self._part(table, places)
            self._put(table, places, np.where(old < clock.stretch, code, old))

    # Elements -----------------------------------------------------------------------

    def index(self, offset: int) -> tuple[int, ...]:
        """Return the index of an element. This is slow: for findings only."""
        offsets = np.full(self.view.sizes, self.view.offset, np.int64)
        along = np.indices(self.view.sizes, sparse=True)
        for steps, stride in zip(along, self.view.strides):
            offsets += steps * stride
        found = np.argwhere(offsets == offset)
        return tuple(int(i) for i in found[0]) if len(found) else (offset,)

    def _table(self, tables: dict[Key, Array], kind: Key, empty: int) -> Array:
        found = tables.get(kind)
        if found is None:
            found = tables[kind] = np.full(self._count, empty, np.int64)
        return found

    def _part(self, table: Array, places: Places) -> Array:
        """Return elements of a table: a view for a window, a copy for offsets."""
        if not isinstance(places, Window):
            return table[places + self._origin]
        size = table.itemsize
        start = (self._origin + places.offset) * size
        steps = [stride * size for stride in places.strides]
        return np.ndarray(places.shape, table.dtype, table, start, steps)

    def _put(self, table: Array, places: Places, values: Any) -> None:
        if isinstance(places, Window):
            self._part(table, places)[...] = values
        else:
            table[places + self._origin] = values

    def _where(self, bad: Any, places: Places) -> int:
        """Return the offset of the first bad element."""
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return places.element(at) if isinstance(places, Window) else int(places[at])


def offsets_of(places: Places) -> list[int]:
    """The offset of each element."""
    if isinstance(places, Window):
        return [places.element(index) for index in np.ndindex(*places.shape)]
    return places.ravel().tolist()


def _refined(places: Places, width: int, shift: int) -> Places:
    """Convert to elements that are ``width`` times smaller, moved by ``shift``."""
    if isinstance(places, Window):
        offset = places.offset * width + shift
        strides = tuple(stride * width for stride in places.strides)
        return Window(offset, (*places.shape, width), (*strides, 1))
    return places[..., np.newaxis] * width + np.arange(width) + shift


Accesses: TypeAlias = Callable[..., Iterable[Access]]
"""Returns the accesses of an operation for the values of its operands."""


def accesses_of(op: Any) -> Accesses | None:
    """Return the accesses of an operation. Return None if it is not checked."""
    builder = _BUILDERS.get(op.name)
    return None if builder is None else builder(op)


Lanes: TypeAlias = tuple[ScatteredTile, Array]
"""A scattered tile, and which of its elements are active."""


def lanes_of(op: Any) -> Callable[..., Lanes] | None:
    """Return how to find the active elements of a scattered access, or None."""
    if op.name not in _SCATTERING or not op.tile.type.scattered:
        return None
    operands = list(op.operands)
    of_tile = operands.index(op.tile)
    of_mask = None if op.mask is None else operands.index(op.mask)

    def find(*values: Any) -> Lanes:
        tile = values[of_tile]
        if of_mask is None:
            return tile, np.ones(tile.indices.shape, np.bool_)
        return tile, values[of_mask]

    return find


def _scattered(kind: str, op: Any) -> Accesses:
    lanes = lanes_of(op)
    assert lanes is not None

    def find(*operands: Any) -> Iterable[Access]:
        tile, mask = lanes(*operands)
        view = tile.view
        return (Access(kind, view.memory, view.dtype, tile.offsets(mask)),)

    return find


# Tiles ------------------------------------------------------------------------------


def _window(kind: str, tile: Tile, rows: int, columns: int) -> Access:
    offset, shape, _ = tile.clipped(rows, columns)
    return Access(kind, tile.memory, tile.dtype, Window(offset, shape, tile.strides))


def _load_tile(op: Any) -> Accesses:
    type_ = op.tile.type
    (rows, columns), count = type_.shape, type_.array_length

    def one(tile: Tile) -> Iterable[Access]:
        return (_window(READ, tile, rows, columns),)

    def several(tile: Tile) -> Iterable[Access]:
        for i in range(count):
            yield _window(READ, tile.moved(0, i * columns), rows, columns)

    return one if count == 1 else several


def _store_tile(op: Any) -> Accesses:
    rows, columns = op.tile.type.shape

    def find(value: Array, tile: Tile) -> Iterable[Access]:
        return (_window(WRITE, tile, rows, columns),)

    return find


def _atomic(op: Any) -> Accesses:
    type_ = op.tile.type
    if type_.scattered:
        return _scattered(ATOMIC, op)
    rows, columns = type_.shape

    def block(value: Array, tile: Tile, mask: Array | None = None) -> Iterable[Access]:
        access = _window(ATOMIC, tile, rows, columns)
        if mask is None or op.expected is not None:
            return (access,)
        chosen = mask if mask.ndim == 2 else unpack(mask)
        offset, shape, where = tile.clipped(rows, columns)
        down, along = tile.strides
        offsets = offset + np.add.outer(
            np.arange(shape[0]) * down, np.arange(shape[1]) * along
        )
        return (access._replace(places=offsets[chosen[where]]),)

    return block


# Elements and vectors in memory -----------------------------------------------------


def _part(kind: str, shape: tuple[int, ...] = ()) -> Accesses:
    """Return the access to elements of the last dimensions; without a shape, to one.

    What is stored comes before the view and the indices.
    """

    def find(*operands: Any) -> Iterable[Access]:
        view, *indices = operands if kind == READ else operands[1:]
        strides = view.strides[len(view.strides) - len(shape) :]
        place = Window(view.at(indices), shape, strides)
        return (Access(kind, view.memory, view.dtype, place),)

    return find


def _masked(kind: str) -> Accesses:
    def find(base: View, *rest: Any) -> Iterable[Access]:
        *indices, mask, _ = rest
        stride = base.strides[-1] if base.strides else 1
        places = base.at(indices) + np.flatnonzero(mask) * stride
        return (Access(kind, base.memory, base.dtype, places),)

    return find


def _copy(source: View, target: View) -> Iterable[Access]:
    for kind, view in ((READ, source), (WRITE, target)):
        place = Window(view.offset, view.sizes, view.strides)
        yield Access(kind, view.memory, view.dtype, place)


_SCATTERING = ("xetile.load_gather", "xetile.store_scatter", "xetile.atomic_rmw_tile")
_BUILDERS: dict[str, Callable[[Any], Accesses]] = {
    "xetile.load_tile": _load_tile,
    "xetile.store_tile": _store_tile,
    "xetile.atomic_rmw_tile": _atomic,
    "xetile.load_gather": lambda op: _scattered(READ, op),
    "xetile.store_scatter": lambda op: _scattered(WRITE, op),
    "memref.load": lambda op: _part(READ),
    "memref.store": lambda op: _part(WRITE),
    "memref.atomic_rmw": lambda op: _part(ATOMIC),
    "memref.copy": lambda op: _copy,
    "vector.load": lambda op: _part(READ, shape_of(op.result.type)),
    "vector.store": lambda op: _part(WRITE, shape_of(op.value.type)),
    "vector.maskedload": lambda op: _masked(READ),
    "vector.maskedstore": lambda op: _masked(WRITE),
}
