"""Who serves the ``xsmm_*`` functions that kernels call when `config.xsmm` says so.

| ``xetl.config.xsmm``  | products are                                               |
|-----------------------|------------------------------------------------------------|
| ``inline``            | compiled into the kernel, by `xetl_cpu.microkernels`       |
| ``libxsmm``           | calls of libxsmm, through what `native/` was built to      |
| ``recording``         | calls that NumPy serves, each written down: `recording.py` |
| a path                | calls of the library there: of one with these functions,   |
|                       | or of a libxsmm (its folder, or its file)                  |

A library is tried out (`xetl_cpu.library.validate_library`) before it is trusted:
numbers of flags differ between versions of libxsmm, and a wrong one is no error there
but wrong numbers.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from xetl.dialects.xsmm import DISPATCH, FUNCTIONS, INVOKE
from xetl.imports import import_whole
from xetl_cpu import native
from xetl_cpu.library.functions import RECORDING, Library

__all__ = ["UnusableLibraryError", "find_library"]

LIBXSMM = "libxsmm"


class UnusableLibraryError(Exception):
    """There is no library, or none that computes what it should; says why."""


def find_library(mode: str) -> Library:
    """The library for a mode other than ``inline``, tried out.

    Raises:
        UnusableLibraryError: it is not there, or not to be trusted.
    """
    found = _find(mode)
    if isinstance(found, str):
        raise UnusableLibraryError(found)
    return found


@cache
def _find(mode: str) -> Library | str:
    """The library, or why there is none: neither changes while we run."""
    try:
        library = _open(mode)
    except UnusableLibraryError as reason:
        return str(reason)
    return why_not_trusted(library) or library


def _open(mode: str) -> Library:
    if mode == RECORDING:
        # Only then: it needs NumPy, which a launch need not.
        recording = import_whole("xetl_cpu.library.recording")
        return recording.library()
    path = _system_shim() if mode == LIBXSMM else _shim(Path(mode))
    try:
        loaded = ctypes.CDLL(str(path))
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        why = native.status() if mode == LIBXSMM else str(error)
        raise UnusableLibraryError(f"it cannot be loaded ({why})") from None
    addresses = {
        name: ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0
        for name in FUNCTIONS
        if hasattr(loaded, name)
    }
    for name in (DISPATCH, INVOKE):
        if name not in addresses:
            raise UnusableLibraryError(f"it has no function `{name}`")
    # libxsmm makes other kernels for other processors, and may be told which.
    made_for = os.environ.get("LIBXSMM_TARGET", "")
    return Library(mode, addresses, f"{path} {stamp} {made_for}".rstrip(), path=path)


def _system_shim() -> Path:
    """What reaches the system's libxsmm: installed with xetl, or else built now."""
    if native.XSMM_SHIM.exists():
        return native.XSMM_SHIM
    build = import_whole("xetl_cpu.library.native_build")
    root = build.system_root()
    return native.XSMM_SHIM if root is None else _built_with(root)


def _shim(path: Path) -> Path:
    """``path``, or what reaches the libxsmm that it is."""
    root = path if path.is_dir() else _root_of_libxsmm(path)
    return path if root is None else _built_with(root)


def _built_with(root: Path) -> Path:
    build = import_whole("xetl_cpu.library.native_build")
    try:
        return build.shim_with(root)
    except build.NativeBuildError as reason:
        raise UnusableLibraryError(str(reason)) from None


def _root_of_libxsmm(path: Path) -> Path | None:
    """The folder of a libxsmm whose library was given; None: it is none."""
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        return None
    is_libxsmm = hasattr(loaded, "libxsmm_init") and not hasattr(loaded, DISPATCH)
    return path.parent.parent if is_libxsmm else None


def why_not_trusted(library: Library) -> str | None:
    """Why a library is not to be used, if it is not."""
    trial = import_whole("xetl_cpu.library.validate_library")
    return trial.why_not_trusted(library)
