"""Our own code is in the key of the cache: a changed compiler makes new code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import xetl
from xetl.runtime.fingerprint import stamp, stamp_of_folder

PACKAGE = Path(xetl.__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inner" / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "b.py", "inner/c.py", "inner/__pycache__/c.py", "d.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a.py", True),
        ("inner/c.py", True),
        ("inner/__pycache__/c.py", False),
        ("d.txt", False),
    ],
)
def test_a_saved_file_counts(folder: Path, name: str, changes: bool) -> None:
    before = stamp_of_folder(str(folder))
    assert stamp_of_folder(str(folder)) == before
    status = (folder / name).stat()
    os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert (stamp_of_folder(str(folder)) != before) == changes


def test_names_and_sizes_count(folder: Path) -> None:
    stamps = [stamp_of_folder(str(folder))]
    (folder / "a.py").rename(folder / "z.py")
    stamps.append(stamp_of_folder(str(folder)))
    status = (folder / "z.py").stat()
    (folder / "z.py").write_text("longer")
    os.utime(folder / "z.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    stamps.append(stamp_of_folder(str(folder)))
    (folder / "z.py").unlink()
    stamps.append(stamp_of_folder(str(folder)))
    assert len(set(stamps)) == 4


def test_files_that_vanish_do_not_matter(folder: Path) -> None:
    before = stamp_of_folder(str(folder))
    (folder / ".#a.py").symlink_to(folder / "nowhere")  # as editors leave
    assert stamp_of_folder(str(folder)) == before


def test_a_package_without_files() -> None:
    assert stamp("nowhere") == "nowhere"


SCRIPT = """
import numpy as np
from xetl import xetile

@xetile.kernel
def k(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (4, 4)))
    xetile.store_tile(a * 2, xetile.init_tile(C, [0, 0], (4, 4)))

A = np.ones((4, 4), np.float32)
k[1](A, A)
print(k.why_recompiled())
"""


def test_an_edited_checkout_compiles_anew(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(PACKAGE, copy / "xetl")
    script = tmp_path / "user.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(copy), *sys.path])

    def run() -> str:
        done = subprocess.run(
            [sys.executable, str(script)],
            env={"PYTHONPATH": path, "XETL_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "had not been compiled before" in run()
    assert "has not been compiled in this process" in run()
    (copy / "xetl" / "transforms" / "cse.py").touch()
    assert "the code of xetl or of the backend changed" in run()


def test_a_file_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """Names of files are bytes; those that are not UTF-8 become lone surrogates."""
    try:
        folder = tmp_path / os.fsdecode(b"no utf-8: \xff")
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"the file system takes no such name: {error}")
    script = folder / "user.py"
    text = f"print(len(k.explain(A, A).html({str(tmp_path / 'k.html')!r})))"
    script.write_text(SCRIPT + text)
    env = {**os.environ, "XETL_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, os.fsencode(script)], env=env, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert b"had not been compiled before" in done.stdout
