"""The disk cache: shared, private, and never the reason a launch fails."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl.backend import Artifact
from xetl.errors import CompileError
from xetl.runtime.cache import DiskCache, disk_cache
from xetl.runtime.kernel import kernel
from xetl.settings import config

ARTIFACT = Artifact(bytes(range(256)) * 40, {"stored": [2], "compile_ms": 1.5})
KEY = "0" * 64


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", 1 << 20)


def entry(cache: DiskCache) -> Path:
    (path,) = cache.folder.iterdir()
    return path


def test_what_was_stored_is_loaded(cache: DiskCache) -> None:
    assert cache.load(KEY) is None
    cache.store(KEY, ARTIFACT)
    assert cache.load(KEY) == ARTIFACT
    assert cache.load("1" * 64) is None


def test_nobody_else_may_look(cache: DiskCache) -> None:
    os.umask(os.umask(0o002))
    cache.store(KEY, ARTIFACT)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(cache).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_could_write_is_ignored(cache: DiskCache, mode: int) -> None:
    cache.store(KEY, ARTIFACT)
    entry(cache).chmod(mode)
    assert cache.load(KEY) is None
    cache.store(KEY, ARTIFACT)
    assert cache.load(KEY) == ARTIFACT


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_files_of_others_are_ignored(cache: DiskCache) -> None:
    cache.store(KEY, ARTIFACT)
    os.chown(entry(cache), 12345, -1)
    assert cache.load(KEY) is None


def test_an_entry_under_the_name_of_another_is_none(cache: DiskCache) -> None:
    cache.store(KEY, ARTIFACT)
    entry(cache).rename(cache._path("1" * 64))
    assert cache.load("1" * 64) is None


def test_a_folder_that_others_can_write_by_now_is_not_read(cache: DiskCache) -> None:
    cache.store(KEY, ARTIFACT)
    cache.folder.chmod(0o777)
    assert cache.load(KEY) is None
    cache.folder.chmod(0o700)
    assert cache.load(KEY) == ARTIFACT


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_of_others_is_not_read(cache: DiskCache) -> None:
    cache.store(KEY, ARTIFACT)
    os.chown(cache.folder, 12345, -1)
    assert cache.load(KEY) is None


def in_place(path: Path, kind: str, elsewhere: Path) -> None:
    """Put something that is no entry where one was."""
    data = path.read_bytes()
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        path.mkdir(0o700)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "link":
        elsewhere.write_bytes(data)
        elsewhere.chmod(0o600)
        path.symlink_to(elsewhere)
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.write_bytes({"empty": b"", "garbage": os.urandom(999)}[kind])
        path.chmod(0o600)


@pytest.mark.parametrize(
    "kind", ["fifo", "folder", "socket", "link", "loop", "empty", "garbage"]
)
def test_what_is_no_entry_is_a_miss(
    cache: DiskCache, kind: str, tmp_path: Path
) -> None:
    cache.store(KEY, ARTIFACT)
    path = entry(cache)
    in_place(path, kind, tmp_path / "elsewhere")
    done: list[object] = []

    def use() -> None:
        done.extend([cache.load(KEY), cache.peek(path), len(cache.entries())])
        cache.store(KEY, ARTIFACT)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it hangs"
    assert done[:2] == [None, {}]
    assert cache.load(KEY) == (None if kind == "folder" else ARTIFACT)


def test_what_is_larger_than_the_cache_may_be_is_not_read(cache: DiskCache) -> None:
    cache.store(KEY, Artifact(bytes(5000), {}))
    assert DiskCache(cache.folder, 4000).load(KEY) is None
    assert cache.load(KEY) is not None


def test_a_folder_others_can_write_is_not_used(cache: DiskCache) -> None:
    cache.folder.mkdir()
    cache.folder.chmod(0o777)
    cache.store(KEY, ARTIFACT)
    assert not list(cache.folder.iterdir())


@pytest.mark.parametrize("keep", [0, 4, 20, 60, 5000])
def test_torn_entries_are_ignored_and_replaced(cache: DiskCache, keep: int) -> None:
    cache.store(KEY, ARTIFACT)
    path = entry(cache)
    path.write_bytes(path.read_bytes()[:keep])
    assert cache.load(KEY) is None
    assert not path.exists()
    cache.store(KEY, ARTIFACT)
    assert cache.load(KEY) == ARTIFACT


@pytest.mark.parametrize("place", [0, 10, 50, 200, -1])
def test_one_wrong_byte_is_noticed(cache: DiskCache, place: int) -> None:
    cache.store(KEY, ARTIFACT)
    path = entry(cache)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert cache.load(KEY) is None


def test_least_recently_used_go_first(cache: DiskCache) -> None:
    keys = [f"{i:064}" for i in range(4)]
    for age, key in enumerate(keys):
        cache.store(key, ARTIFACT)
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    assert cache.load(keys[0]) == ARTIFACT
    size = cache._path(keys[0]).stat().st_size
    assert cache.prune(2 * size) == 2
    assert [cache.load(key) is not None for key in keys] == [True, False, False, True]


def test_the_limit_holds(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "small", 50_000)
    for i in range(100):
        cache.store(f"{i:064}", ARTIFACT)
    total = sum(status.st_size for _, status in cache.entries())
    assert total <= 50_000 + 16 * 11_000
    assert cache.load(f"{99:064}") == ARTIFACT


def digests(count: int) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(count)]


def test_few_kernels_do_not_have_the_folder_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60,000 entries take a second, which the first kernel of a process waited for."""
    looks: list[int] = []
    monkeypatch.setattr(DiskCache, "prune", lambda _: looks.append(1))
    for key in digests(50):
        DiskCache(tmp_path / "cache", 1 << 30).store(key, ARTIFACT)
    assert not looks


def test_processes_that_store_little_keep_the_limit_together(tmp_path: Path) -> None:
    for key in digests(600):  # of 10 KB each
        cache = DiskCache(tmp_path / "cache", 2 << 20)
        cache.store(key, ARTIFACT)
    total = sum(status.st_size for _, status in cache.entries())
    assert (2 << 20) * 3 // 4 < total < (2 << 20) * 9 // 8


def test_unusable_places_are_no_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = DiskCache(blocked / "cache", 1 << 20)
    cache.store(KEY, ARTIFACT)
    assert cache.load(KEY) is None
    assert cache.entries() == []


def test_a_full_disk_leaves_nothing(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.store(KEY, ARTIFACT)
    assert not list(cache.folder.iterdir())


def test_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XETL_CACHE_SIZE", "2M")
    monkeypatch.delenv("XETL_CACHE", raising=False)
    found = disk_cache()
    assert found is not None
    assert (found.folder, found.limit) == (tmp_path, 2 << 20)
    monkeypatch.setenv("XETL_CACHE", "0")
    assert disk_cache() is None
    config.cache = True
    assert disk_cache() is not None
    del config.cache
    monkeypatch.setenv("XETL_CACHE", "1")
    monkeypatch.delenv("XETL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    found = disk_cache()
    assert found is not None
    assert found.folder == tmp_path / "user" / "xetl"


# Kernels.


def kernels(count: int) -> list[Any]:
    def k(A, BM=2.0):
        pass

    return [kernel(k) for _ in range(count)]


def test_another_kernel_object_finds_the_code(fake: Any) -> None:
    fake.cacheable = True
    for k in kernels(2):
        k[1](np.zeros(3))
    assert (len(fake.compiled), len(fake.launches)) == (1, 2)


def test_switched_off(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.cacheable = True
    monkeypatch.setenv("XETL_CACHE", "0")
    for k in kernels(2):
        k[1](np.zeros(3))
    assert len(fake.compiled) == 2


def test_failed_compiles_leave_nothing(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.cacheable = True

    def fail(*_: object) -> Artifact:
        raise CompileError("the kernel is wrong")

    monkeypatch.setattr(type(fake), "compile_kernel", fail)
    (k,) = kernels(1)
    for _ in range(2):
        with pytest.raises(CompileError, match="the kernel is wrong"):
            k[1](np.zeros(3))
    assert not list(tmp_path.rglob("*.xetl"))


# Several at once.

WRITER = """
import os, sys
from pathlib import Path
from xetl.backend import Artifact
from xetl.runtime.cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), 1 << 30)
for i in range(int(sys.argv[2])):
    artifact = Artifact(bytes([i % 256]) * 200_000, {"stored": [], "i": i})
    cache.store(f"{i % 5:064}", artifact)
    found = cache.load(f"{i % 5:064}")
    assert found is not None
    assert found.payload == bytes([found.meta["i"] % 256]) * 200_000
print("done")
"""


def start(folder: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(count)],
        env={"PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    running = [start(folder, 200) for _ in range(2)]
    assert [each.communicate(timeout=60)[0] for each in running] == ["done\n"] * 2
    assert len(list(folder.iterdir())) == 5


def test_a_killed_process_leaves_whole_entries(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    cache = DiskCache(folder, 1 << 30)
    for pause in (0.0, 0.01, 0.02):
        running = start(folder, 1_000_000)
        while not (folder.exists() and list(folder.glob("*.xetl"))):
            time.sleep(0.01)
        time.sleep(pause)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        for path in folder.glob("*.xetl"):
            assert cache.load(path.stem) is not None
    assert cache.prune(0) >= 1
    assert not list(folder.iterdir())


def test_threads_at_once(cache: DiskCache) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(50):
                cache.store(f"{(i + seed) % 3:064}", ARTIFACT)
                found = cache.load(f"{i % 3:064}")
                assert found in (None, ARTIFACT)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
