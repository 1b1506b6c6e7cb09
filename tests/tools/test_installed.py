"""What an installed package has, without the checkout beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = """
from xetl import xetile

@xetile.kernel
def k(X, Y):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 16)))
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (4, 16)))
"""
NOT_COPIED = (".git", ".venv*", "build", "*.egg-info", "__pycache__", ".*_cache")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """xetl alone, as `pip install .` leaves it; built from a copy of the checkout."""
    pytest.importorskip("setuptools", minversion="70.1")
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


@pytest.mark.slow
@pytest.mark.parametrize("has_library", [False, True])
def test_a_wheel_with_a_library_says_for_which_platform(
    tmp_path: Path, has_library: bool
) -> None:
    pytest.importorskip("setuptools", minversion="70.1")
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_COPIED, "tests"))
    # In place of CMake: what is built, or not.
    setup = (source / "setup.py").read_text()
    library = f"(into / 'lib.so').write_bytes(b'') if {has_library} else 0\n"
    marker = '    cmake = shutil.which("cmake")\n'
    assert marker in setup
    built = f"    {library}    return 'built'\n"
    (source / "setup.py").write_text(setup.replace(marker, built))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    command += ["--no-build-isolation", "-w", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    (wheel,) = tmp_path.glob("*.whl")
    tag = wheel.stem.split("-")[2:]
    assert tag[:2] == ["py3", "none"]
    assert (tag[2] != "any") is has_library
    assert tag[2].startswith("linux") or not has_library


@pytest.mark.slow
def test_what_pages_and_wheels_are_made_of_is_there(installed: Path) -> None:
    assert (installed / "xetl" / "tools" / "page" / "page.html").exists()
    file, out = installed / "k.py", installed / "out"
    file.write_text(KERNEL)
    out.mkdir()
    signature = "f32[M,N] f32[M,N]"
    page = out / "k.html"
    xetl(installed, "explain", f"{file}:k", signature, "--html", str(page))
    assert page.read_text().startswith("<!doctype html>")
    words = ("--target", "avx2", "--wheel", "-o", str(out))
    assert ".whl" in xetl(installed, "compile", f"{file}:k", signature, *words)
