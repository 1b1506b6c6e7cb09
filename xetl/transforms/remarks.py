"""What passes decided, in the user's words and on the user's lines: for `explain()`.

A pass calls `remark`; nothing happens unless somebody collects.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc
from xdsl.ir import Attribute, Operation


@dataclass(frozen=True)
class Remark:
    """One decision.

    Attributes:
        line: line of the user's file; 0 where it is not known.
        topic: what it is about, such as ``brgemm`` or ``packing``.
        text: what was done, or why not.
        file: where the line is; a helper may come from another file than the kernel.
    """

    line: int
    topic: str
    text: str
    file: str = ""


_collected: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


@contextmanager
def collect_remarks() -> Generator[list[Remark]]:
    """Collect the remarks of all passes that run inside."""
    found: list[Remark] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def remark(op: Operation, topic: str, text: str) -> None:
    """Say what was decided about an operation; each thing once."""
    found = _collected.get()
    if found is None:
        return
    place = next(positions_of(op.location), None)
    if place is None:
        new = Remark(0, topic, text)
    else:
        new = Remark(place.line.data, topic, text, place.filename.data)
    if new not in found:
        found.append(new)


def positions_of(location: Attribute) -> Iterator[FileLineColLoc]:
    """The positions of a location: the innermost, then the calls it came through."""
    while isinstance(location, CallSiteLoc):
        if isinstance(location.callee, FileLineColLoc):
            yield location.callee
        location = location.caller
    if isinstance(location, FileLineColLoc):
        yield location
