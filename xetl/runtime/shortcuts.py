"""Shortcuts: earlier calls of a kernel or function, for the fast path of later ones."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple, TypeAlias

from xetl.runtime import native_calls as layout
from xetl.runtime.arrays import plain_values
from xetl.runtime.grid import Grid
from xetl.runtime.parameters import Args, Keywords
from xetl.runtime.placement import FINISHED
from xetl.runtime.tensors import note_written
from xetl.settings import launch_state

OPTIONS = ("backend", "queue", "wait")
"""The keywords of a launch besides the parameters of the kernel."""

_MOST_SHORTCUTS = 64
"""[measured] Sets of compile-time values in turns: each one costs the calls of others
35 ns, but a call that finds none takes 130 us."""

REFUSED = object()
"""The result of `Shortcuts.run` if no shortcut has run the call."""


class Shortcut(NamedTuple):
    """A call that succeeded: later calls of the same form try its native entry first.

    The entry itself checks all arguments, compile-time values by identity. Only the
    form of the call is compared here.

    Attributes:
        fast: the entry (`xetl.backend.Executable.fast`, or `fast_at` of a queue).
        given: the number of positional arguments.
        keywords: the keywords of the call; only options have their values.
        names: the names of the other parameters, if there are keywords.
        rest: their defaults; without keywords trailing ones may be left out.
        state: the settings at the time of the call.
        unchanged: tells whether captured globals are unchanged; None: there are none.
        stored: position and name of each parameter that the kernel writes.
        key: the key of the shapes of arrays (`shapes_key`); 0: any shapes.
        recorded: the function for calls that differ only in that torch records them;
            None: the function itself does these.
    """

    fast: Callable[..., Any]
    given: int
    keywords: Keywords
    names: tuple[str, ...]
    rest: tuple[Any, ...]
    state: object
    unchanged: Callable[[], bool] | None
    stored: tuple[tuple[int, str], ...] = ()
    key: int = 0
    recorded: Callable[..., Any] | None = None

    @property
    def done(self) -> object:
        """The result of a call that the entry has run."""
        return None if self.keywords.get("wait", True) else FINISHED

    def stored_of(self, args: Args, keywords: Keywords) -> Iterator[Any]:
        """Yield the arguments of such a call for the parameters that are written."""
        for position, name in self.stored:
            yield args[position] if position < len(args) else keywords.get(name)

    def has(self, given: Keywords) -> bool:
        """Whether the keywords of a call have the same names, and the same options."""
        known = self.keywords
        if given.keys() != known.keys():
            return False
        return all(given.get(o) is known.get(o) for o in OPTIONS)


class Shortcuts:
    """The latest calls of a kernel that succeeded, also in a form for native code."""

    def __init__(self) -> None:
        # One item, replaced as a whole: readers have no lock except Python's own.
        self._latest: list[_Latest] = [_NONE]

    @property
    def known(self) -> tuple[Shortcut, ...]:
        """All shortcuts, the latest first."""
        return self._latest[0][1]

    @property
    def address(self) -> int:
        """The address of the list whose item native code reads."""
        return id(self._latest)

    def put(self, new: Shortcut, most: int = _MOST_SHORTCUTS) -> None:
        """Put ``new`` in front, and remove an older one for the same calls."""
        _, known, records = self._latest[0]
        kept = [
            (old, record)
            for old, record in zip(known, records)
            if old.fast != new.fast
            or (old.given, old.state) != (new.given, new.state)
            or old.keywords.keys() != new.keywords.keys()
        ]
        self._latest[0] = _as_item([(new, _record_of(new)), *kept][:most])

    def forget(self, old: Shortcut) -> None:
        """Remove one of them."""
        _, known, records = self._latest[0]
        pairs = zip(known, records)
        self._latest[0] = _as_item([pair for pair in pairs if pair[0] is not old])

    def clear(self) -> None:
        """Remove all of them."""
        self._latest[0] = _NONE

    def run(self, grid: Grid, args: Args, keywords: Keywords) -> Any:
        """Run the call by one of the shortcuts; return `REFUSED` if none could."""
        return self._run(grid, args, keywords)[0]

    def run_on_plain(self, grid: Grid, args: Args, keywords: Keywords) -> Any:
        """Do the same as `run` with values converted for native entries.

        Return `REFUSED` if no value has to be converted, or if one cannot be.
        """
        seen = plain_values([*args, *keywords.values()]) if self.known else None
        if seen is None:
            return REFUSED
        named = dict(zip(keywords, seen[len(args) :]))
        result, by = self._run(grid, seen[: len(args)], named)
        if by is not None:
            note_written(by.stored_of(args, keywords))
        return result

    def _run(
        self, grid: Grid, args: Args, keywords: Keywords
    ) -> tuple[Any, Shortcut | None]:
        state, count = launch_state(), len(args)
        for shortcut in self._latest[0][1]:
            if (
                shortcut.given == count
                and shortcut.state == state
                and (not (keywords or shortcut.keywords) or shortcut.has(keywords))
                and (shortcut.unchanged is None or shortcut.unchanged())
            ):
                rest: Args = shortcut.rest
                if keywords:
                    pairs = zip(shortcut.names, rest)
                    rest = [keywords.get(name, default) for name, default in pairs]
                result = shortcut.fast(*grid, *args, *rest)
                if result != 1:
                    return shortcut.done if result == 0 else result, shortcut
        return REFUSED, None


class _Record(NamedTuple):
    """A shortcut in the form that native code reads.

    Attributes:
        words: see `xetl.runtime.native_calls`; empty if the entry is not native.
        names: the words of its keywords; ``words`` has their address.
    """

    words: bytes
    names: bytes


_Latest: TypeAlias = tuple[bytes, tuple[Shortcut, ...], tuple[_Record, ...]]
_NONE: _Latest = (bytes(8), (), ())
_WORD = (1 << 64) - 1


def answer_calls(
    called: layout.NativelyCalled,
    known: Shortcuts,
    slow: Callable[..., Any],
    grid: Grid = (0, 0, 0),
    *,
    records: bool = False,
) -> object:
    """Let native code answer the calls of an object that are like earlier ones.

    Args:
        slow: the function for all other calls.
        grid: the first arguments of the entries.
        records: whether `Shortcut.recorded` does the calls that torch records.

    Returns:
        An object that must live as long as ``called``; None if there is no native code
        (yet).
    """
    code = layout.native()
    if code is None:
        return None
    words = code.process, known.address, id(slow), *map(id, grid)
    return code, slow, grid, layout.answer(called, code.launch, (*words, int(records)))


def shapes_key(values: Args, kinds: Collection[type]) -> int:
    """Return a hash of the shapes of all arrays; native code computes the same."""
    key = 0
    for each in values:
        if type(each) in kinds:
            for number in (1 + len(each.shape), *each.shape):
                key = (key * layout.KEY_FACTOR + number) & _WORD
    return key - (_WORD + 1) if key > _WORD >> 1 else key


def entry_table(fast: object) -> int | None:
    """Return the address of a native entry's table; None for other functions."""
    if type(fast) is not BuiltinFunctionType or type(fast.__self__) is not bytes:
        return None
    return id(fast.__self__)


def _as_item(kept: Sequence[tuple[Shortcut, _Record]]) -> _Latest:
    known, records = tuple(call for call, _ in kept), tuple(each for _, each in kept)
    usable = [each.words for each in records if each.words]
    return struct.pack("<q", len(usable)) + b"".join(usable), known, records


def _record_of(call: Shortcut) -> _Record:
    table = entry_table(call.fast)
    if table is None:
        return _Record(b"", b"")
    names = list[int]()
    for name, value in call.keywords.items():
        place = -1 if name in OPTIONS else call.names.index(name)
        names += [id(name), place, id(value)]
    kept = struct.pack(f"<{len(names)}q", *names)
    record = [0] * layout.CALL_WORDS
    record[layout.C_ENTRY] = table
    record[layout.C_GIVEN] = call.given
    record[layout.C_STATE] = id(call.state)
    record[layout.C_UNCHANGED] = 0 if call.unchanged is None else id(call.unchanged)
    record[layout.C_DONE] = id(call.done)
    record[layout.C_REST] = id(call.rest)
    record[layout.C_RESTS] = len(call.rest)
    record[layout.C_NAMES] = len(call.keywords)
    record[layout.C_NAMES_AT] = id(kept)
    record[layout.C_KEY] = call.key
    record[layout.C_RECORDED] = 0 if call.recorded is None else id(call.recorded)
    return _Record(struct.pack(f"<{len(record)}q", *record), kept)
