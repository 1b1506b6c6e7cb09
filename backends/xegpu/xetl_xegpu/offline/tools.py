"""Where Intel's offline compiler and the validator of SPIR-V are, and how to run them.

Neither is needed to run kernels; they prove code for GPUs that are not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from xetl.errors import LaunchError
from xetl.settings import config

SETUP = "python -m xetl_xegpu.offline.setup"
"""The command that fetches both tools."""

_SECONDS = 120
"""More than any kernel takes: a compiler that hangs is an error, too."""


def default_folder() -> Path:
    """Where `setup` puts the tools: beside the cache of kernels."""
    folder = config.cache_dir or user_cache_path("xetl", appauthor=False)
    return folder / "ocloc"


def find_ocloc() -> Path | None:
    """The offline compiler: of the setting, of PATH, or set up by us; or None.

    Raises:
        LaunchError: the setting names no program.
    """
    if config.ocloc is not None:
        if not os.access(config.ocloc, os.X_OK) or config.ocloc.is_dir():
            raise LaunchError(
                f"XETL_OCLOC names no program: {config.ocloc}",
                code="X0840",
                help=f"unset it, or get one: `{SETUP}`",
            )
        return config.ocloc
    return _on_path("ocloc") or _set_up("ocloc")


def find_spirv_tool(name: str) -> Path | None:
    """``spirv-val`` or ``spirv-as``: beside the compiler, set up, of PATH, or None."""
    ocloc = find_ocloc()
    if ocloc is not None and os.access(ocloc.parent / name, os.X_OK):
        return ocloc.parent / name
    return _set_up(name) or _on_path(name)


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return None if found is None else Path(found)


def _set_up(name: str) -> Path | None:
    found = default_folder() / name
    return found if os.access(found, os.X_OK) else None


def need_ocloc() -> Path:
    """As `find_ocloc`, but an error where there is none."""
    found = find_ocloc()
    if found is None:
        raise LaunchError(
            "Intel's offline compiler `ocloc` is not installed",
            code="X0840",
            help=f"run `{SETUP}` (Debian, 35 MB, no root), or set XETL_OCLOC",
        )
    return found


def run(
    command: Sequence[str | Path], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder of its own; what it says is text.

    Raises:
        LaunchError: it cannot be started, or does not end.
    """
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(
            f"`{command[0]}` does not work: {error}",
            code="X0840",
            help=f"get another one: `{SETUP}`",
        ) from None
