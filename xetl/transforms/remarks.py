"""Decisions of passes for `explain()`, in the user's terms and on the user's lines.

A pass calls `remark`; nothing happens unless somebody collects.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc
from xdsl.ir import Attribute, Operation

from xetl.errors import TileMapWarning
from xetl.records import record


@record(frozen=True)
class Remark:
    """One decision.

    Attributes:
        line: line of the user's file; 0 where it is not known.
        topic: what it is about, such as ``brgemm`` or ``packing``.
        text: what was done, or why not.
        file: where the line is; a helper may come from another file than the kernel.
        is_warning: whether the user is to be told even if he does not ask.
    """

    line: int
    topic: str
    text: str
    file: str = ""
    is_warning: bool = False


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


def remark(op: Operation, topic: str, text: str, *, is_warning: bool = False) -> None:
    """Say what was decided about an operation; each thing once.

    A warning is given to the user whenever he loads the code, also from a cache; where
    nobody collects it is given at once.
    """
    place = next(positions_of(op.location), None)
    line, file = (place.line.data, place.filename.data) if place else (0, "")
    new = Remark(line, topic, text, file, is_warning)
    found = _collected.get()
    if found is None:
        if is_warning:
            warn(text, file, line)
    elif new not in found:
        found.append(new)


def warn(text: str, file: str, line: int) -> None:
    """Give a warning about a line of the user."""
    warnings.warn_explicit(text, TileMapWarning, file or "<unknown>", max(line, 1))


def positions_of(location: Attribute) -> Iterator[FileLineColLoc]:
    """The positions of a location: the innermost, then the calls it came through."""
    while isinstance(location, CallSiteLoc):
        if isinstance(location.callee, FileLineColLoc):
            yield location.callee
        location = location.caller
    if isinstance(location, FileLineColLoc):
        yield location


def facts_of(remarks: list[Remark], file: str) -> dict[str, list[list[int | str]]]:
    """What an artifact keeps of the remarks: ``[line, topic, text]`` and warnings.

    The file is added where it is not ``file``, that of the kernel.
    """
    described: list[list[int | str]] = []
    for each in remarks:
        elsewhere = [each.file] if each.file and each.file != file else []
        described.append([each.line, each.topic, each.text, *elsewhere])
    warned: list[list[int | str]] = [
        [each.line, each.text, each.file] for each in remarks if each.is_warning
    ]
    return {"remarks": described, "warnings": warned}
