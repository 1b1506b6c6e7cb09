"""Shadow tables of a memory: whether each element is written, and who touched it.

Programs run one after the other, and so do the subgroups of a program between two
barriers. The part of a run by one subgroup between two barriers is a *turn*; turns have
increasing numbers. For each element and kind of access the tables have the first turn
(of turns that atomics between fences order, the last one), and the first turn since the
last barrier. Two turns are a race if they belong to two programs, or to the same
stretch between two barriers of one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from xetl_reference.memory import ATOMIC, READ, WRITE, View
from xetl_reference.values import Array

_CONFLICTS = {
    READ: (WRITE, ATOMIC),
    WRITE: (WRITE, READ, ATOMIC),
    ATOMIC: (WRITE, READ),
}
_NEVER = np.iinfo(np.int64).max

Key = TypeVar("Key")


class Places(NamedTuple):
    """Elements of a memory: those that ``chosen`` selects of a strided window.

    ``start`` is the first element of the window, and counts from the first of the
    tables.
    """

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    chosen: Array | EllipsisType


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
        element: the number of the element in the tables.
        code: turn and site of the earlier access.
    """

    element: int
    kind: str
    code: int


Report: TypeAlias = Callable[["Shadow", str, Places], None]
"""Checks and records an access of some kind."""


class Shadow:
    """The tables of one memory.

    Attributes:
        name: the name of the memory in findings.
        view: the array argument, or the allocation.
        tracked: whether races are checked.

    Args:
        report: called before each access to the memory.
        fresh: whether the memory is uninitialised, and reads of that are checked.
        shared: whether several subgroups of a program access it.
    """

    def __init__(
        self,
        name: str,
        view: View,
        report: Report,
        *,
        fresh: bool,
        shared: bool,
        tracked: bool,
    ) -> None:
        self.name = name
        self.view = view
        self.tracked = tracked
        self._report = report
        self._size = view.dtype.itemsize
        self._count = len(view.memory.data) // self._size
        self._written = np.zeros(self._count, np.bool_) if fresh else None
        self._shared = shared
        self._first: dict[str, Array] = {}
        self._recent: dict[str, Array] = {}
        self._latest: dict[tuple[str, int], Array] = {}

    def access(
        self, kind: str, start: int, window: Array, chosen: Array | EllipsisType
    ) -> None:
        """Report an access to the elements ``chosen`` of a window at a byte ``start``.

        The window may have another dtype than the tables. One that does not consist of
        whole elements of the tables is not checked.
        """
        size = self._size
        if (self._written is None and not self.tracked) or not window.size:
            return
        first, rest = divmod(start - self.view.memory.origin % size, size)
        if rest or window.itemsize % size:
            return
        shape = *window.shape, window.itemsize // size
        strides = *(step // size for step in window.strides), 1
        self._report(self, kind, Places(first, shape, strides, chosen))

    # Is it written? -----------------------------------------------------------------

    def unwritten(self, places: Places) -> int | None:
        """Return an element that was never written, or None."""
        if self._written is None:
            return None
        written = _part(self._written, places)
        return None if written.all() else self._where(~written, places)

    def write(self, places: Places) -> None:
        """Mark elements as written."""
        if self._written is not None:
            _put(self._written, places, True)

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
            codes = _part(table, places)
            if codes.size and codes.min() < clock.program:
                yield clock.unordered(codes), codes
        if clock.known is not None:
            yield from self._unordered(kind, places, clock, clock.known)
            return
        table = self._recent.get(kind)
        if table is not None:
            codes = _part(table, places)
            yield (codes >= clock.stretch) & (codes < clock.turn), codes

    def _unordered(
        self, kind: str, places: Places, clock: Clock, known: Mapping[int, int]
    ) -> Iterator[tuple[Array, Array]]:
        """Yield clashes as `_clashes` does, for each other subgroup separately."""
        for (other_kind, other), table in self._latest.items():
            if other_kind == kind and other != clock.subgroup:
                codes = _part(table, places)
                yield codes >= max(clock.stretch, known.get(other, 0)), codes

    def touch(self, kind: str, places: Places, clock: Clock, code: int) -> None:
        """Record an access."""
        table = self._table(self._first, kind, _NEVER)
        old = _part(table, places)
        _put(table, places, np.where(clock.unordered(old), old, code))
        if clock.known is not None:
            table = self._table(self._latest, (kind, clock.subgroup), -1)
            _put(table, places, code)
        elif self._shared:
            table = self._table(self._recent, kind, -1)
            old = _part(table, places)
            _put(table, places, np.where(old < clock.stretch, code, old))

    # Elements -----------------------------------------------------------------------

    @cached_property
    def _numbers(self) -> Array:
        return np.arange(self._count)

    def elements(self, places: Places) -> Array:
        """Return the numbers of elements in the tables."""
        return _part(self._numbers, places)

    def index(self, element: int) -> tuple[int, ...]:
        """Return the index of an element."""
        view = self.view
        start = view.memory.origin // self._size + view.offset
        every = self.elements(Places(start, view.sizes, view.strides, ...))
        found = np.argwhere(every == element)
        return tuple(int(i) for i in found[0]) if len(found) else (element,)

    def _table(self, tables: dict[Key, Array], kind: Key, empty: int) -> Array:
        found = tables.get(kind)
        if found is None:
            found = tables[kind] = np.full(self._count, empty, np.int64)
        return found

    def _where(self, bad: Any, places: Places) -> int:
        """Return the first bad element."""
        return int(self.elements(places)[bad][0])


def _window(table: Array, places: Places) -> Array:
    size = table.itemsize
    steps = [stride * size for stride in places.strides]
    return np.ndarray(places.shape, table.dtype, table, places.start * size, steps)


def _part(table: Array, places: Places) -> Array:
    """Return elements of a table, as a view if all of the window are chosen."""
    return _window(table, places)[places.chosen]


def _put(table: Array, places: Places, values: Any) -> None:
    _window(table, places)[places.chosen] = values
