"""Who serves the ``xsmm_*`` functions that kernels call when `config.xsmm` says so.

| ``xetl.config.xsmm``  | products are                                               |
|-----------------------|------------------------------------------------------------|
| ``inline``            | compiled into the kernel, by `xetl_cpu.microkernels`       |
| ``libxsmm``           | calls of libxsmm, through what `native/` was built to      |
| ``recording``         | calls that NumPy serves, each written down: `recording.py` |
| a path                | calls of the library there: of one with these functions,   |
|                       | or of a libxsmm (its folder, or its file)                  |

A library is tried out (`xetl_cpu.xsmm_trial`) before it is trusted: numbers of flags
differ between versions of libxsmm, and a wrong one is no error there but wrong numbers.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xetl_cpu import native
from xetl_cpu.xsmm.flags import DATA_TYPES, gemm_flags_in_calls

__all__ = [
    "FUNCTIONS",
    "INVOKE_TYPE",
    "Library",
    "UnusableLibraryError",
    "brgemm_numbers",
    "dispatch_type",
    "find_library",
]

LIBXSMM, RECORDING = "libxsmm", "recording"

_DISPATCH, _INVOKE = "xsmm_brgemm_dispatch", "xsmm_brgemm_invoke"
TILES = (
    "xsmm_intel_amx_tile_config_dispatch",
    "xsmm_intel_amx_tile_config_invoke",
)
FUNCTIONS = (_DISPATCH, _INVOKE, *TILES)
"""All that a kernel may call."""

_I64, _PTR = ctypes.c_int64, ctypes.c_void_p
_DISPATCH_NUMBERS = 10
dispatch_type = ctypes.CFUNCTYPE(_I64, *[_I64] * _DISPATCH_NUMBERS)
INVOKE_TYPE = ctypes.CFUNCTYPE(None, _I64, _I64, *[_PTR, _I64] * 3, _I64)


class UnusableLibraryError(Exception):
    """There is no library, or none that computes what it should; says why."""


@dataclass(frozen=True)
class Library:
    """Functions to call.

    Attributes:
        mode: what the user asked for.
        addresses: of the functions it has, by name.
        identity: differs between libraries whose kernels may differ.
        quietly: what calls of our own are made in, so that none is written down.
        is_sequential: whether kernels may call it from one thread only.
        path: of the file; None: there is none, the functions are ours.
    """

    mode: str
    addresses: Mapping[str, int]
    identity: str
    quietly: Callable[[], AbstractContextManager[None]] = nullcontext
    is_sequential: bool = False
    path: Path | None = None

    @property
    def serves_tiles(self) -> bool:
        """Whether it can set AMX up apart from its kernels."""
        return all(name in self.addresses for name in TILES)

    def has_kernel(self, numbers: Sequence[int]) -> bool:
        """Whether a dispatch with these numbers (see `brgemm_numbers`) finds one."""
        return self.dispatch(numbers) != 0

    def dispatch(self, numbers: Sequence[int]) -> int:
        """The address of a kernel, or 0."""
        with self.quietly():
            return dispatch_type(self.addresses[_DISPATCH])(*numbers)


def brgemm_numbers(
    data_type: str, sizes: Sequence[int], flags: Sequence[str]
) -> list[int]:
    """The arguments of ``xsmm_brgemm_dispatch``."""
    return [DATA_TYPES[data_type], *sizes, gemm_flags_in_calls(flags)]


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
        recording = importlib.import_module("xetl_cpu.recording")
        return recording.library()
    path = native.XSMM_SHIM if mode == LIBXSMM else _shim(Path(mode))
    try:
        loaded = ctypes.CDLL(str(path))
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        why = native.status() if mode == LIBXSMM else str(error)
        raise UnusableLibraryError(f"it cannot be loaded ({why})") from None
    addresses = {
        name: ctypes.cast(getattr(loaded, name), _PTR).value or 0
        for name in FUNCTIONS
        if hasattr(loaded, name)
    }
    for name in (_DISPATCH, _INVOKE):
        if name not in addresses:
            raise UnusableLibraryError(f"it has no function `{name}`")
    # libxsmm makes other kernels for other processors, and may be told which.
    made_for = os.environ.get("LIBXSMM_TARGET", "")
    return Library(mode, addresses, f"{path} {stamp} {made_for}".rstrip(), path=path)


def _shim(path: Path) -> Path:
    """``path``, or what reaches the libxsmm that it is."""
    root = path if path.is_dir() else _root_of_libxsmm(path)
    if root is None:
        return path
    build = importlib.import_module("xetl_cpu.native_build")
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
    is_libxsmm = hasattr(loaded, "libxsmm_init") and not hasattr(loaded, _DISPATCH)
    return path.parent.parent if is_libxsmm else None


def why_not_trusted(library: Library) -> str | None:
    """Why a library is not to be used, if it is not."""
    trial = importlib.import_module("xetl_cpu.xsmm_trial")
    return trial.why_not_trusted(library)
