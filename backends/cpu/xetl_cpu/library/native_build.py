"""Builds our shim with a libxsmm of the user: ``XETL_XSMM=/home/me/libxsmm``.

The result is kept beside the compiled kernels, one for each state of the library and of
the shim's sources.  The build takes a second, once, and needs CMake and a C compiler,
which users who built a libxsmm have.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from xetl.runtime.cache import disk_cache

_HERE = Path(__file__).parents[1]
_SOURCES = (_HERE / "_native" / "source", _HERE.parents[2])
"""Folders with CMakeLists.txt: of an installed package, and a checkout."""

_NATIVE = Path("backends") / "cpu" / "native"
_NAME = "libxetl_xsmm.so"
_SECONDS = 120
_SYSTEM = [Path("/usr/local"), Path("/usr")]


class NativeBuildError(Exception):
    """The shim cannot be built; the message says why, and what is needed."""


def shim_with(root: Path) -> Path:
    """Return the shim over the libxsmm in ``root``, a folder with its lib and include.

    Raises:
        NativeBuildError: there is no libxsmm, or the shim cannot be built.
    """
    found = [each for each in _SOURCES if (each / _NATIVE / "xsmm.h").exists()]
    if not found:
        raise NativeBuildError("the sources of xetl's shim were not installed")
    source = found[0]
    libraries = _libraries(root)
    if not libraries:
        raise NativeBuildError(
            f"{root} is no folder of a libxsmm: it has lib/libxsmm.so (or .a) and "
            "include/libxsmm.h or include/libxsmm/libxsmm.h"
        )
    state = [*libraries, *sorted((source / _NATIVE).iterdir())]
    folder = _folder() / f"xsmm-{_digest(root, state)}"
    if not (folder / _NAME).exists():
        _build(source, root, folder)
    return folder / _NAME


def system_root() -> Path | None:
    """Return the folder of the libxsmm of ``LIBXSMM_ROOT``, or of the system."""
    named = os.environ.get("LIBXSMM_ROOT")
    roots = [Path(named)] if named else _SYSTEM
    return next((root for root in roots if _libraries(root)), None)


def _libraries(root: Path) -> list[Path]:
    """Return the libraries and headers of the libxsmm in ``root``; [] without one."""
    headers = [*root.glob("include/libxsmm.h"), *root.glob("include/libxsmm/libxsmm.h")]
    found = [*root.glob("lib*/libxsmm.*"), *root.glob("lib/*-linux-gnu/libxsmm.*")]
    return sorted(found) + headers if found and headers else []


def _folder() -> Path:
    """Return the folder for the result; its code is run, so only we may write to it."""
    cache = disk_cache()
    if cache is None or cache.why_unusable() is not None:
        return Path(tempfile.mkdtemp(prefix="xetl-native-"))
    return cache.folder


def _digest(root: Path, files: list[Path]) -> str:
    digest = hashlib.sha256(os.fsencode(root))
    for file in files:
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _build(source: Path, root: Path, into: Path) -> None:
    """Configure, build and install, then rename: another process may do the same."""
    with tempfile.TemporaryDirectory(prefix="xetl-native-") as work:
        for step in _steps(source, root, Path(work)):
            _run(step)
        made = Path(work) / "made"
        if not (made / _NAME).exists():
            raise NativeBuildError(f"CMake did not find the libxsmm in {root}")
        into.parent.mkdir(parents=True, exist_ok=True)
        new = into.with_name(f"{into.name}.{os.getpid()}")
        shutil.copytree(made, new)
    try:
        new.rename(into)
    except OSError:  # somebody was faster
        shutil.rmtree(new)


def _steps(source: Path, root: Path, work: Path) -> Iterator[list[str]]:
    cmake = shutil.which("cmake")
    if cmake is None:
        raise NativeBuildError(
            "CMake was not found, which builds what reaches libxsmm "
            "(pip install cmake, or apt-get install cmake gcc)"
        )
    where = ["-S", str(source), "-B", str(work / "build")]
    yield [cmake, *where, "-DCMAKE_BUILD_TYPE=Release", f"-DLIBXSMM_ROOT={root}"]
    yield [cmake, "--build", str(work / "build")]
    yield [cmake, "--install", str(work / "build"), "--prefix", str(work / "made")]


def _run(step: list[str]) -> None:
    try:
        done = subprocess.run(step, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NativeBuildError(f"CMake failed: {error}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-300:]
        raise NativeBuildError(f"CMake failed: {said}")
