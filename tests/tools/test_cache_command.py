"""`xetl cache`: what is listed, and what is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from xetl.backend import Artifact
from xetl.runtime.cache import DiskCache
from xetl.settings import config

HERE = Path(__file__).parent
FILE = HERE / "kernels_for_commands.py"
DAY = 86400
KILOBYTE = 1024


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of three kernels, `new`, `old` and `older`, and a note of none."""
    monkeypatch.setattr(config, "assigned", {})
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    cache = DiskCache(tmp_path, 1 << 30)
    cache.store("last-x", Artifact(b"", {"facts": {}}))
    for days, name in enumerate(("new", "old", "older")):
        facts = {"kernel": name, "backend": "cpu", "target": "avx2"}
        cache.store(name, Artifact(bytes(8 * KILOBYTE), facts))
        used = time.time() - 10 * days * DAY
        os.utime(tmp_path / f"{name}.xetl", (used, used))
    return tmp_path


def kept(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.iterdir())


def test_a_process_of_its_own(shell: Any, tmp_path: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
    program += "from kernels_for_commands import gemm\n"
    program += "gemm.warmup('f32[M,K] f32[K,N] f32[M,N]', target='avx2')"
    (tmp_path / "warm.py").write_text(program)
    variables = {"XETL_CACHE_DIR": str(tmp_path / "cache"), "XETL_CACHE": "1"}
    shell("ir", str(tmp_path / "warm.py"), **variables)
    done = shell("cache", "ls", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    head, row, total = done.stdout.splitlines()
    assert head.split() == ["KERNEL", "BACKEND", "TARGET", "KB", "LAST", "USED"]
    assert row.split()[:3] == ["gemm", "cpu", "avx2"]
    assert total.startswith(f"{len(kept(tmp_path / 'cache'))} files, ")


def test_the_one_used_last_is_first(xetl: Any, folder: Path) -> None:
    lines = xetl("cache", "ls").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["new", "old", "older"]
    assert lines[1].split()[3:] == ["9", "now"]
    assert lines[2].endswith("10 days ago")
    assert lines[4].startswith("4 files, 0.0 MB of 1024.0 MB in ")


def test_long_lists_are_cut(xetl: Any, folder: Path) -> None:
    cache = DiskCache(folder, 1 << 30)
    for number in range(30):
        facts = {"kernel": f"k{number}", "backend": "cpu", "target": "host"}
        cache.store(f"k{number}", Artifact(b"", facts))
    lines = xetl("cache", "ls").stdout.splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2] == "... the 20 used last; for all: xetl cache ls --all"
    assert len(xetl("cache", "ls", "--all").stdout.splitlines()) == 1 + 33 + 1


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ([], ["last-x", "new", "old", "older"]),
        (["--to", "18K"], ["last-x", "new", "old"]),
        (["--unused-for", "15"], ["last-x", "new", "old"]),
        (["--unused-for", "5"], ["last-x", "new"]),
        (["--all"], []),
    ],
)
def test_pruning(xetl: Any, folder: Path, words: list[str], rest: list[str]) -> None:
    result = xetl("cache", "prune", *words)
    assert result.exit_code == 0
    assert kept(folder) == rest
    assert result.stdout.startswith(f"removed {4 - len(rest)} files, ")


def test_wrong_command_lines(xetl: Any, folder: Path) -> None:
    result = xetl("cache", "prune", "--to", "much")
    assert result.exit_code == 2
    assert "it must be a number of bytes, such as 500M" in result.stderr
    result = xetl("cache", "ls", XETL_CACHE="0")
    assert result.exit_code == 2
    assert "switched off by XETL_CACHE" in result.stderr


def test_what_is_no_entry_is_not_listed(xetl: Any, folder: Path) -> None:
    (folder / "broken.xetl").write_bytes(b"XETLKRN1 is not all")
    assert "broken" not in xetl("cache", "ls").stdout
