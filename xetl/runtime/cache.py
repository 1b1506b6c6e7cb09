"""Compiled kernels on disk, shared by all processes of one user.

One file an entry. A file is written under another name and then renamed, so a reader
sees all of it or nothing; a checksum, which covers the entry's name, guards against
the rest (a full disk, a crash, a file in another's place).
Code is run from these files, so those that somebody else could have written are
ignored. Nothing here may make a launch fail: a cache that cannot be used is none.
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
"""How often the size of the folder is looked at while as much is stored as it may
hold. To look takes a second where there are 60,000 entries."""


@record()
class DiskCache:
    """A folder of compiled kernels.

    Attributes:
        folder: where they are.
        limit: how many bytes they may take.
    """

    folder: Path
    limit: int

    def load(self, key: str) -> Artifact | None:
        """The entry called ``key``; None if there is none that can be trusted."""
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
                os.utime(path)  # it was used: it goes last
        return artifact

    def store(self, key: str, artifact: Artifact) -> None:
        """Keep ``artifact``; does nothing where that is not possible."""
        data = _encode(key, artifact)
        try:
            self._make_folder()
            write_whole(self._path(key), data)
        except OSError:
            return
        # Many processes store a kernel or two: its name says whether this one looks.
        if crc32(key.encode()) * self.limit <= len(data) * _LOOKS << 32:
            self.prune()

    def entries(self) -> list[tuple[Path, os.stat_result]]:
        """All files of the cache, the one used least recently first."""
        found: list[tuple[Path, os.stat_result]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith((_SUFFIX, ".tmp")):
                    with contextlib.suppress(OSError):  # another process removed it
                        found.append((Path(file), file.stat(follow_symlinks=False)))
        return sorted(found, key=lambda entry: entry[1].st_mtime)

    def peek(self, path: Path) -> Mapping[str, Any]:
        """The facts of an entry, which does not count as a use; empty if it is none."""
        try:
            with _opened(path, self.limit) as file:
                head = file.read(len(_MAGIC) + _CHECKSUM + 4)
                size = int.from_bytes(head[-4:], "little")
                return json.loads(file.read(size)) if head.startswith(_MAGIC) else {}
        except (OSError, ValueError):
            return {}

    def prune(self, limit: int | None = None, since: float = -inf) -> int:
        """Remove what was used least recently until the rest fits; count it.

        What was not used ``since`` then (seconds of `time.time`) goes in any case.
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
        """What keeps kernels from being kept here, or None; makes the folder."""
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


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file: who reads it sees the old one or the new one.

    Raises:
        OSError: it cannot be written.
    """
    import tempfile  # noqa: PLC0415 - 4 ms that a process which only reads need not take

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def disk_cache() -> DiskCache | None:
    """The cache the settings ask for; None if they switch it off."""
    if not config.cache:
        return None
    return _cache_in(cache_folder(), config.cache_size)


def cache_folder() -> Path:
    """Where all that is kept between processes is."""
    if config.cache_dir:
        return config.cache_dir
    from platformdirs import user_cache_path  # noqa: PLC0415 - 3 ms, if unset

    return user_cache_path("xetl", appauthor=False)


def tuned_folder() -> Path:
    """Where the best configs are: `config.tuned_dir`, else beside the kernels."""
    return config.tuned_dir or cache_folder() / "tuned"


@lru_cache(maxsize=8)
def _cache_in(folder: Path, limit: int) -> DiskCache:
    return DiskCache(folder, limit)


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but us can have written it."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.getuid() and not status.st_mode & others


def _opened(path: Path, limit: int) -> BinaryIO:
    """An entry to read, which is a file of ours and no pipe that would never answer.

    Raises:
        OSError: it is not there, or not such a file.
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
    """Of an entry under its name: under another it is none."""
    return hashlib.sha256(key.encode() + b"\0" + body).digest()


def _encode(key: str, artifact: Artifact) -> bytes:
    meta = json.dumps(dict(artifact.meta), sort_keys=True).encode()
    body = len(meta).to_bytes(4, "little") + meta + artifact.payload
    return _MAGIC + _checksum(key, body) + body


def _decode(key: str, data: bytes) -> Artifact | None:
    start = len(_MAGIC) + _CHECKSUM
    body = data[start:]
    checksum = data[len(_MAGIC) : start]
    if not data.startswith(_MAGIC) or _checksum(key, body) != checksum:
        return None
    end = 4 + int.from_bytes(body[:4], "little")
    return Artifact(body[end:], json.loads(body[4:end]))
