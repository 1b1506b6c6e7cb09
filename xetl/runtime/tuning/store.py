"""Best configs on disk: one JSON file for each kernel, to be checked in and shipped.

A file is replaced as a whole, so a reader sees the old or the new one, also if the
writer is killed. Writers take turns by a lock, which the system drops when a process
ends. The texts in a file are only compared with those of the declared configs: nothing
in it is run. What cannot be read or written is as if it were not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from xetl.runtime.cache import tuned_folder, write_whole

_FORMAT = 1
_LOCK = ".lock"
_FIXED = ("key", "arguments", "configs", "backend", "target", "machine")
"""Fields of an entry that say for which calls it holds."""

Question = Mapping[str, Any]
"""These fields, all JSON."""


class TunedFile:
    """The best configs of one kernel.

    Attributes:
        path: of the file; its name changes with the source of the kernel.
    """

    def __init__(self, kernel: str, source: str) -> None:
        """Name the file of the kernel called ``kernel``."""
        self._kernel = kernel
        self._fingerprint = hashlib.sha256(source.encode()).hexdigest()[:16]
        plain = re.sub(r"[^\w.-]", "_", kernel)[-80:]
        self._name = f"{plain}-{self._fingerprint}.json"

    @property
    def path(self) -> Path:
        """Where it is now: the folder is a setting."""
        return tuned_folder() / self._name

    def find(self, question: Question) -> Mapping[str, str] | None:
        """The texts of the best config's values; None if nothing is known."""
        for entry in self._entries():
            if all(entry.get(field) == question[field] for field in _FIXED):
                texts: object = entry.get("config")
                if isinstance(texts, dict):
                    return cast("dict[str, str]", texts)
        return None

    def add(self, question: Question, facts: Mapping[str, Any]) -> None:
        """Keep an answer instead of an older one to the same question."""
        folder = self.path.parent
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                others = [
                    entry
                    for entry in self._entries()
                    if any(entry.get(field) != question[field] for field in _FIXED)
                ]
                entries = [*others, {**question, **facts}]
                entries.sort(key=lambda each: json.dumps(each, sort_keys=True))
                self._write(entries)

    def _entries(self) -> list[dict[str, Any]]:
        try:
            found: Any = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        if not isinstance(found, dict):
            return []
        whole = cast("dict[str, Any]", found)
        entries = whole.get("entries")
        if whole.get("format") != _FORMAT or not isinstance(entries, list):
            return []
        listed = cast("list[Any]", entries)
        return [each for each in listed if isinstance(each, dict)]

    def _write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        whole = {
            "format": _FORMAT,
            "kernel": self._kernel,
            "fingerprint": self._fingerprint,
            "entries": entries,
        }
        text = json.dumps(whole, indent=1) + "\n"
        write_whole(self.path, text.encode(), mode=0o644)  # it is to be checked in


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Alone among all writers of a folder, where the file system can lock."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
