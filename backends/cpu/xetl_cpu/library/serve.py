"""Which library has the ``xsmm_*`` functions that kernels call, by `config.xsmm`.

| ``xetl.config.xsmm``  | products are                                               |
|-----------------------|------------------------------------------------------------|
| ``inline``            | compiled into the kernel, by `xetl_cpu.microkernels`       |
| ``libxsmm``           | calls of libxsmm, through what `native/` was built to      |
| ``recording``         | calls that NumPy serves and records: `recording.py`        |
| a path                | calls of the library there: one with these functions, or   |
|                       | a libxsmm (its folder, or its file)                        |

A library is tested (`xetl_cpu.library.validate_library`) before it is used: the numbers
of flags differ between versions of libxsmm, and a wrong flag raises no error there but
gives wrong results.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

from xetl.dialects.xsmm import (
    DATA_TYPES,
    DISPATCH,
    FUNCTIONS,
    INVOKE,
    TILES,
    gemm_flags_in_calls,
)
from xetl.imports import import_whole
from xetl.records import record
from xetl_cpu import native
from xetl_cpu.library.products import DISPATCH_TYPE, addresses_of

RECORDING = "recording"
"""Our own library, as `config.xsmm` names it."""


@record(frozen=True)
class Library:
    """Functions to call.

    Attributes:
        addresses: the addresses of its functions, by name.
        identity: differs between libraries whose kernels may differ.
        quietly: a context in which calls are not recorded, for calls of our own.
        is_sequential: whether kernels may call it from one thread only.
        path: the file; None: the functions are our own.
    """

    mode: str
    addresses: Mapping[str, int]
    identity: str
    quietly: Callable[[], AbstractContextManager[None]] = nullcontext
    is_sequential: bool = False
    path: Path | None = None

    @property
    def serves_tiles(self) -> bool:
        """Whether it can configure AMX separately from its kernels."""
        return all(name in self.addresses for name in TILES)

    def has_kernel(self, numbers: Sequence[int]) -> bool:
        """Whether a dispatch with these numbers (see `brgemm_numbers`) finds one."""
        return self.dispatch(numbers) != 0

    def dispatch(self, numbers: Sequence[int]) -> int:
        """Return the address of a kernel, or 0."""
        with self.quietly():
            return DISPATCH_TYPE(self.addresses[DISPATCH])(*numbers)


def brgemm_numbers(
    data_type: str, sizes: Sequence[int], flags: Sequence[str]
) -> list[int]:
    """Return the arguments of ``xsmm_brgemm_dispatch``."""
    return [DATA_TYPES[data_type], *sizes, gemm_flags_in_calls(flags)]


__all__ = ["UnusableLibraryError", "find_library"]

LIBXSMM = "libxsmm"


class UnusableLibraryError(Exception):
    """There is no library, or it computes wrong results; the message says which."""


def find_library(mode: str) -> Library:
    """Return the tested library for a mode other than ``inline``.

    Raises:
        UnusableLibraryError: it was not found, or cannot be trusted.
    """
    found = _find(mode)
    if isinstance(found, str):
        raise UnusableLibraryError(found)
    return found


@cache
def _find(mode: str) -> Library | str:
    """Return the library, or why there is none; a process decides this once."""
    try:
        library = _open(mode)
    except UnusableLibraryError as reason:
        return str(reason)
    return why_not_trusted(library) or library


def _open(mode: str) -> Library:
    if mode == RECORDING:
        # Imported late: it needs NumPy, which a launch need not have.
        return import_whole("xetl_cpu.library.recording").library()
    path = _system_shim() if mode == LIBXSMM else _shim(Path(mode))
    try:
        loaded = ctypes.CDLL(str(path))
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        why = native.status() if mode == LIBXSMM else str(error)
        raise UnusableLibraryError(f"it cannot be loaded ({why})") from None
    addresses = addresses_of(loaded, FUNCTIONS)
    for name in (DISPATCH, INVOKE):
        if name not in addresses:
            raise UnusableLibraryError(f"it has no function `{name}`")
    # libxsmm makes different kernels for each processor; this variable may name one.
    made_for = os.environ.get("LIBXSMM_TARGET", "")
    return Library(mode, addresses, f"{path} {stamp} {made_for}".rstrip(), path=path)


def _system_shim() -> Path:
    """Return the shim over the system's libxsmm: installed with xetl, or built now."""
    if native.XSMM_SHIM.exists():
        return native.XSMM_SHIM
    root = import_whole("xetl_cpu.library.native_build").system_root()
    return native.XSMM_SHIM if root is None else _built_with(root)


def _shim(path: Path) -> Path:
    """Return ``path``, or the shim over it if it is a libxsmm."""
    root = path if path.is_dir() else _root_of_libxsmm(path)
    return path if root is None else _built_with(root)


def _built_with(root: Path) -> Path:
    build = import_whole("xetl_cpu.library.native_build")
    try:
        return build.shim_with(root)
    except build.NativeBuildError as reason:
        raise UnusableLibraryError(str(reason)) from None


def _root_of_libxsmm(path: Path) -> Path | None:
    """Return the folder of a libxsmm, given its file; None if it is no libxsmm."""
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        return None
    is_libxsmm = hasattr(loaded, "libxsmm_init") and not hasattr(loaded, DISPATCH)
    return path.parent.parent if is_libxsmm else None


def why_not_trusted(library: Library) -> str | None:
    """Return why a library must not be used, or None."""
    return import_whole("xetl_cpu.library.validate_library").why_not_trusted(library)
