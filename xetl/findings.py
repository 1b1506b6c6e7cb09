"""Records that backends return: findings of `xetl doctor`, exports of `xetl compile`.

This module imports only the standard library, so all others may use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["ok", "note", "problem"]
"""``ok``: no problem. ``note``: an optional part is missing, or a fact worth knowing.
``problem``: something that is needed, or that the user asked for, does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about this machine.

    Attributes:
        topic: the subject in a word or two, such as ``threads``.
        text: the fact; one line, no full stop.
        state: see `State`.
        fix: a command or setting that solves the problem, or None.
    """

    topic: str
    text: str
    state: State = "ok"
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class TestDevice:
    """A device that `xetl doctor --gpu` tests.

    Attributes:
        name: the driver's filter string, such as ``level_zero:gpu:0``.
        text: a description; one line.
        target: the target that its kernels are compiled for.
        is_gpu: whether it is a GPU. If not, it emulates one.
        lacks: dtypes it has no arithmetic for.
        queue: the queue that kernels are launched on.
    """

    __test__ = False  # so that pytest does not take the class for a test

    name: str
    text: str
    target: str
    is_gpu: bool
    lacks: frozenset[str]
    queue: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Export:
    """A compiled kernel as files, made by `BackendBase.export`.

    Attributes:
        code: an object file, or a module of SPIR-V.
        suffix: the usual suffix of a file with ``code``, such as ``.o``.
        header: a C header that calls the code; empty if there is none.
        facts: properties and needs of the code; only values that JSON has.
        assumptions: what the code relies on, a sentence each.
        others: more code, by the suffix of its file, such as ``.any.spv``.
        stored: indices of the arguments that the code writes, not counting constants.
        variant: facts about this code for the ``_runtime.py`` of a wheel, with the name
            of its ``file``; empty if wheels cannot hold it.
        wheel_files: that file, ``_runtime.py`` and the files it needs.
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
    """Return a text as part of a name in C: ``ä`` is ``ue4``, symbols are ``_``."""
    written = "".join(c if c.isascii() else f"u{ord(c):x}" for c in text)
    return re.sub(r"\W", "_", written)
