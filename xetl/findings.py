"""What `xetl doctor` prints: one finding a line, made by the core and by backends.

This module imports nothing but the standard library: every other one may use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "problem"]
"""``ok``: as it should be. ``note``: optional and not there, or worth knowing.
``problem``: something that was asked for, or is needed, does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine.

    Attributes:
        topic: what it is about, a word or two such as ``threads``.
        text: what was found; one line, no full stop.
        state: how it is.
        fix: the command or setting that changes it, if there is one.
    """

    topic: str
    text: str
    state: State = "ok"
    fix: str | None = None
