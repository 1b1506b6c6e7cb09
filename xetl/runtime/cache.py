"""Compiled kernels on disk, shared by all processes of one user.

Each entry is a file. A file is written under another name and then renamed, so a reader
never sees a part of it. A checksum, which covers the entry's name, detects other damage
(a full disk, a crash, a file under a wrong name).
Code is run from these files, so files that another user could have written are ignored.
Nothing here may make a launch fail: without a usable cache, kernels are compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from xetl.backend import Artifact
from xetl.records import record
from xetl.settings import config

_MAGIC = b"XETLKRN2"
_CHECKSUM = 32
_SUFFIX = ".xetl"
_LOOKS = 32
"""The number of checks of the folder's size while as many bytes are stored as it may
hold. A check takes a second if there are 60,000 entries."""


@record()
class DiskCache:
    """A folder of compiled kernels, which may take ``limit`` bytes."""

    folder: Path
    limit: int

    def load(self, key: str) -> Artifact | None:
        """Return the entry called ``key``; None if there is no valid one."""
        path = self._path(key)
        try:
            if not _is_private(self.folder.stat()):
                return None
            with _opened(path, self.limit) as file:
                data = file.read()
        except OSError:
            return None
        artifact = _decode(key, data)
        with contextlib.suppress(OSError):
            if artifact is None:
                path.unlink()
            else:
                os.utime(path)  # `prune` removes the entries used least recently
        return artifact

    def store(self, key: str, artifact: Artifact) -> None:
        """Keep ``artifact`` as the entry ``key``; do nothing if that is impossible."""
        meta = json.dumps(dict(artifact.meta), sort_keys=True).encode()
        body = len(meta).to_bytes(4, "little") + meta + artifact.payload
        data = _MAGIC + _checksum(key, body) + body
        try:
            self._make_folder()
            write_whole({self._path(key): data})
        except OSError:
            return
        # Most processes store few kernels: a hash of the key decides whether to check.
        if crc32(key.encode()) * self.limit <= len(data) * _LOOKS << 32:
            self.prune()

    def entries(self) -> list[tuple[Path, os.stat_result]]:
        """Return all files of the cache, the least recently used first."""
        found: list[tuple[Path, os.stat_result]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith((_SUFFIX, ".tmp")):
                    with contextlib.suppress(OSError):  # another process removed it
                        found.append((Path(file), file.stat(follow_symlinks=False)))
        return sorted(found, key=lambda entry: entry[1].st_mtime)

    def peek(self, path: Path) -> Mapping[str, Any]:
        """Return the facts of an entry, {} if invalid; this does not count as a use."""
        try:
            with _opened(path, self.limit) as file:
                head = file.read(len(_MAGIC) + _CHECKSUM + 4)
                size = int.from_bytes(head[-4:], "little")
                return json.loads(file.read(size)) if head.startswith(_MAGIC) else {}
        except (OSError, ValueError):
            return {}

    def prune(self, limit: int | None = None, since: float = -inf) -> int:
        """Remove the least recently used entries until the rest fits.

        Entries not used since ``since`` (seconds of `time.time`) are always removed.

        Returns:
            The number of removed entries.
        """
        limit = self.limit if limit is None else limit
        entries = self.entries()
        total = sum(status.st_size for _, status in entries)
        removed = 0
        for path, status in entries:
            if total <= limit and status.st_mtime >= since:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= status.st_size
                removed += 1
        return removed

    def why_unusable(self) -> str | None:
        """Return why no kernel can be kept here, or None; create the folder."""
        import tempfile  # noqa: PLC0415 - for `xetl doctor` only

        try:
            self._make_folder()
            with tempfile.TemporaryFile(dir=self.folder):
                return None
        except OSError as error:
            return error.strerror or str(error)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(self.folder.stat()):
            raise PermissionError(f"{self.folder} can be written by others")


def write_whole(contents: Mapping[Path, bytes], mode: int = 0o600) -> None:
    """Write files atomically: a reader sees the old contents or the new ones.

    Each file is first written to a temporary file in its folder.

    Raises:
        OSError: a file cannot be written; no file changed. The error has its name.
    """
    import tempfile  # noqa: PLC0415 - 4 ms that a process which only reads need not take

    ready: dict[Path, str] = {}
    path = Path()
    try:
        for path, data in contents.items():
            descriptor, ready[path] = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(ready[path], mode)
        for path, temporary in ready.items():
            os.replace(temporary, path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        for temporary in ready.values():
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def disk_cache() -> DiskCache | None:
    """Return the cache of the current settings; None if they switch it off."""
    if not config.cache:
        return None
    return _cache_in(cache_folder(), config.cache_size)


def cache_folder() -> Path:
    """Return the folder of everything that is kept between processes."""
    if config.cache_dir:
        return config.cache_dir
    from platformdirs import user_cache_path  # noqa: PLC0415 - 3 ms, if unset

    return user_cache_path("xetl", appauthor=False)


def tuned_folder() -> Path:
    """Return the folder of tuned configs: `config.tuned_dir`, else in the cache."""
    return config.tuned_dir or cache_folder() / "tuned"


_cache_in = lru_cache(maxsize=8)(DiskCache)


def _is_private(status: os.stat_result) -> bool:
    """Whether only this user can have written the file or folder."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.getuid() and not status.st_mode & others


def _opened(path: Path, limit: int) -> BinaryIO:
    """Open an entry; refuse files of other users, and pipes, which might block.

    Raises:
        OSError: the file does not exist, or is refused.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not _is_private(status):
        os.close(descriptor)
        raise PermissionError(f"{path} is no file of ours alone")
    if status.st_size > limit:
        os.close(descriptor)
        raise OSError(f"{path} is larger than the whole cache may be")
    return os.fdopen(descriptor, "rb")


def _checksum(key: str, body: bytes) -> bytes:
    """Return the checksum of an entry and its name; a renamed entry is invalid."""
    return hashlib.sha256(key.encode() + b"\0" + body).digest()


def _decode(key: str, data: bytes) -> Artifact | None:
    start = len(_MAGIC) + _CHECKSUM
    body = data[start:]
    checksum = data[len(_MAGIC) : start]
    if not data.startswith(_MAGIC) or _checksum(key, body) != checksum:
        return None
    end = 4 + int.from_bytes(body[:4], "little")
    return Artifact(body[end:], json.loads(body[4:end]))
