"""What `xetl doctor` prints, one finding a line, and the files of `xetl compile`.

This module imports nothing but the standard library: every other one may use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Export:
    """What `BackendBase.export` makes of a kernel.

    Attributes:
        code: an object file, a module of SPIR-V.
        suffix: of the file ``code`` is usually kept in, such as ``.o``.
        header: C that calls it; empty if there is none.
        facts: what the code is and needs; JSON only.
        assumptions: what it takes for granted, a sentence each.
        others: more code, by what takes the place of the suffix, such as ``.any.spv``.
        stored: indices of the arguments it writes, constants left out.
        variant: for a wheel: what its ``_runtime.py`` must know of this code, with the
            name of its ``file``; empty if there are no wheels of it.
        wheel_files: that file, ``_runtime.py`` and what this needs.
    """

    code: bytes
    suffix: str
    header: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    assumptions: Sequence[str] = ()
    others: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    stored: Sequence[int] = ()
    variant: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wheel_files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def letters_of_c(text: str) -> str:
    """A text as part of a name in C: ``ä`` is ``ue4``, anything else ``_``."""
    written = "".join(c if c.isascii() else f"u{ord(c):x}" for c in text)
    return re.sub(r"\W", "_", written)
