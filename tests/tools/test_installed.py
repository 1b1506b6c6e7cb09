"""What an installed package has, without the checkout beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_COPIED = (".git", ".venv*", "build", "*.egg-info", "__pycache__", ".*_cache")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """xetl alone, as `pip install .` leaves it; built from a copy of the checkout."""
    pytest.importorskip("setuptools", minversion="69")
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_COPIED))
    target = folder / "site-packages"
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--target", str(target))
    command = [sys.executable, "-m", "pip", "install", *options, str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    return target


def xetl(installed: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(installed / "bin" / "xetl"), *words],
        env={**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"},
        cwd=installed,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_command_and_its_pages(installed: Path) -> None:
    pages = sorted((ROOT / "docs" / "errors").glob("*.md"))
    listed = xetl(installed, "explain").splitlines()
    assert [line.split()[0] for line in listed] == [page.stem for page in pages]
    assert (
        xetl(installed, "explain", "X0201")
        == (ROOT / "docs" / "errors" / "X0201.md").read_text()
    )


@pytest.mark.slow
def test_sources_of_the_shim_are_there(installed: Path) -> None:
    source = installed / "xetl_cpu" / "_native" / "source"
    assert (source / "CMakeLists.txt").exists()
    assert (source / "backends" / "cpu" / "native" / "xsmm_2.c").exists()


@pytest.mark.slow
def test_the_doctor_sees_the_installation(installed: Path) -> None:
    assert f"in {installed / 'xetl'};" in xetl(installed, "doctor")
