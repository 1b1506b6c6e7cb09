"""A kernel as files that other programs can link or load, without Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


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
