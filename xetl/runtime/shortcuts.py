"""Calls of a kernel or a function that succeeded: what calls like them try first."""

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
"""What a launch takes besides the parameters of the kernel."""

_MOST_SHORTCUTS = 8

REFUSED = object()
"""What `Shortcuts.run` gives if none of them has run."""


class Shortcut(NamedTuple):
    """A call that succeeded: one like it may try the native entry first.

    The entry itself checks every argument, and compile-time values by identity; what
    is compared here is the form of the call.

    Attributes:
        fast: the entry (`xetl.backend.Executable.fast`, or `fast_at` of a queue).
        given: how many arguments were given by position.
        keywords: the names given by keyword; of options, also the values.
        names: of the further parameters, if there are keywords.
        rest: their defaults; without keywords those at the end may be left out.
        state: the settings that held.
        unchanged: says whether captured globals are what they were; None: there are
            none.
        stored: position and name of each parameter that the kernel writes.
        key: of the shapes of arrays (`shapes_key`); 0: the entry takes other ones, too.
        recorded: does calls that differ only in that torch is to record them; None: the
            function itself does.
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
        """What a call gives that the entry has done."""
        return None if self.keywords.get("wait", True) else FINISHED

    def stored_of(self, args: Args, keywords: Keywords) -> Iterator[Any]:
        """What such a call gives for the parameters that the kernel writes."""
        for position, name in self.stored:
            yield args[position] if position < len(args) else keywords.get(name)

    def has(self, given: Keywords) -> bool:
        """Whether it is for calls with such keywords."""
        known = self.keywords
        if given.keys() != known.keys():
            return False
        return all(given.get(o) is known.get(o) for o in OPTIONS)


class Shortcuts:
    """The latest calls of a kernel that succeeded, also as native code reads them."""

    def __init__(self) -> None:
        # One item, which is replaced as a whole: readers hold Python's lock only.
        self._latest: list[_Latest] = [_NONE]

    @property
    def known(self) -> tuple[Shortcut, ...]:
        """All, the latest first."""
        return self._latest[0][1]

    @property
    def address(self) -> int:
        """Of the list whose item native code reads."""
        return id(self._latest)

    def put(self, new: Shortcut, most: int = _MOST_SHORTCUTS) -> None:
        """Put ``new`` in front, without an older one for the same calls."""
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
        """Forget one of them."""
        _, known, records = self._latest[0]
        pairs = zip(known, records)
        self._latest[0] = _as_item([pair for pair in pairs if pair[0] is not old])

    def clear(self) -> None:
        """Forget them all."""
        self._latest[0] = _NONE

    def run(self, grid: Grid, args: Args, keywords: Keywords) -> Any:
        """Run the kernel by one of them; `REFUSED`: nothing was done."""
        return self._run(grid, args, keywords)[0]

    def run_on_plain(self, grid: Grid, args: Args, keywords: Keywords) -> Any:
        """The same on values that native entries take, if these are others."""
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
    """A call as native code reads it.

    Attributes:
        words: see `xetl.runtime.native_calls`; none: the entry is not native.
        names: the words of its keywords, to which those words point.
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
        known: earlier calls.
        slow: what does the others.
        grid: what the entries take before the arguments.
        records: whether calls that torch is to record go where an earlier one says.

    Returns:
        What must live as long as the object; None: there is no native code, or not yet.
    """
    code = layout.native()
    if code is None:
        return None
    words = code.process, known.address, id(slow), *map(id, grid)
    return code, slow, grid, layout.answer(called, code.launch, (*words, int(records)))


def shapes_key(values: Args, kinds: Collection[type]) -> int:
    """A number that tells calls by the shapes of arrays; native code has it, too."""
    key = 0
    for each in values:
        if type(each) in kinds:
            for number in (1 + len(each.shape), *each.shape):
                key = (key * layout.KEY_FACTOR + number) & _WORD
    return key - (_WORD + 1) if key > _WORD >> 1 else key


def entry_table(fast: object) -> int | None:
    """The address of the table of a native entry; None: it is another function."""
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
