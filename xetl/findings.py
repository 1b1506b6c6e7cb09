"""What `xetl doctor` prints: one finding a line, made by the core and by backends.

This module imports nothing but the standard library: every other one may use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

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


@dataclass(frozen=True, slots=True)
class TestDevice:
    """A device that `xetl doctor --gpu` tests.

    Attributes:
        name: as its driver filters it, such as ``level_zero:gpu:0``.
        text: what it is; one line.
        target: what is compiled for it.
        is_gpu: whether it is one, or emulates one.
        lacks: dtypes it has no arithmetic for.
        queue: where kernels are launched.
    """

    __test__ = False  # pytest would take it for a test

    name: str
    text: str
    target: str
    is_gpu: bool
    lacks: frozenset[str]
    queue: Any = field(repr=False)
