"""A libxsmm 2, and our shim built with it: a real one, or the stand-in of libxsmm2/.

``LIBXSMM_ROOT`` of the environment says where a real one is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]


@cache
def stand_in() -> Path | str:
    """The folder of the stand-in, as it would be installed; or why there is none."""
    folder = Path(tempfile.mkdtemp(prefix="xetl-libxsmm2-"))
    return _built(HERE / "libxsmm2", folder / "installed") or folder / "installed"


@cache
def shim_with(root: Path) -> Path | str:
    """Our shim, built with the libxsmm in ``root``; or why it was not."""
    folder = Path(tempfile.mkdtemp(prefix="xetl-shim-"))
    problem = _built(PROJECT, folder, f"-DLIBXSMM_ROOT={root}")
    return problem or folder / "libxetl_xsmm.so"


def real() -> Path | None:
    """The libxsmm 2 that the user has, if he says so."""
    named = os.environ.get("LIBXSMM_ROOT")
    return None if named is None else Path(named)


def _built(source: Path, into: Path, *options: str) -> str | None:
    """Configure, build, install; what went wrong, if something did."""
    if shutil.which("cmake") is None:
        return "CMake was not found"
    build = Path(tempfile.mkdtemp(prefix="xetl-build-"))
    steps = (
        ["-S", str(source), "-B", str(build), *options],
        ["--build", str(build)],
        ["--install", str(build), "--prefix", str(into)],
    )
    for step in steps:
        done = subprocess.run(["cmake", *step], capture_output=True, text=True)
        if done.returncode:
            return f"cmake {step[0]} failed: {done.stderr.strip()[-300:]}"
    return None
