"""What passes decided, in the user's words and on the user's lines: for `explain()`.

A pass calls `remark`; nothing happens unless somebody collects.
"""

from __future__ import annotations

from collections.abc import Generator
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
    """

    line: int
    topic: str
    text: str


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
    new = Remark(line_of(op.location), topic, text)
    if new not in found:
        found.append(new)


def line_of(location: Attribute) -> int:
    """The innermost line of a location; 0 for an unknown one."""
    while isinstance(location, CallSiteLoc):
        location = location.callee
    return location.line.data if isinstance(location, FileLineColLoc) else 0
