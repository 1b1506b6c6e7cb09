"""Which state of our own code compiles: part of the key of the disk cache.

In a checkout that is edited, the version says nothing. Names, sizes and times of the
files do, at 5 us a file; their contents would take ten times as long.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache

_INSTALLED = ("site-packages", "dist-packages")


@cache
def stamp(package: str) -> str:
    """A text that changes with the code of the imported ``package``.

    Taken once in a process, which goes on with the code it has.
    """
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    if file is None or not hasattr(module, "__path__"):
        return package  # no package: made by hand, as tests do
    folder = os.path.dirname(file)
    if os.path.basename(os.path.dirname(folder)) in _INSTALLED:
        # The version tells; the time tells two installations of one version apart.
        return f"{package} {os.stat(file).st_mtime_ns}"
    return f"{package} {stamp_of_folder(folder)}"


def stamp_of_folder(folder: str) -> str:
    """As `stamp`, of all Python files below ``folder``."""
    digest = hashlib.sha256()
    for path, size, time in sorted(_files(folder, "")):
        digest.update(f"{path} {size} {time}\n".encode())
    return digest.hexdigest()[:16]


def _files(folder: str, prefix: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.name.endswith(".py"):
                with suppress(FileNotFoundError):  # an editor's, gone by now
                    status = entry.stat()
                    found.append((name, status.st_size, status.st_mtime_ns))
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _files(entry.path, f"{name}/")
    return found
