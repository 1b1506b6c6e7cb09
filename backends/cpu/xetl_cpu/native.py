"""The optional native parts of the CPU backend.

``python -m xetl_cpu.native`` prints whether the installation built them.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "_native"

XSMM_SHIM = _FOLDER / "libxetl_xsmm.so"
"""The ``xsmm_*`` functions over libxsmm, if that was found."""


def status() -> str:
    """Return, in a sentence, whether the native parts were built at installation."""
    try:
        return (_FOLDER / "STATUS").read_text().strip()
    except OSError:
        return "not built: xetl runs from a checkout that was not installed"


@cache
def xsmm_shim() -> ctypes.CDLL | None:
    """Return the ``xsmm_*`` functions over libxsmm, or None if it was not found."""
    try:
        return ctypes.CDLL(str(XSMM_SHIM))
    except OSError:
        return None


def xsmm_description() -> str:
    """Return which libxsmm the shim was built with, and the target of its code."""
    shim = xsmm_shim()
    if shim is None:
        return "no libxsmm"
    shim.xetl_xsmm_version.restype = ctypes.c_int64
    shim.xetl_xsmm_target.restype = ctypes.c_char_p
    major, minor = divmod(shim.xetl_xsmm_version(), 1000)
    made_for = shim.xetl_xsmm_target().decode()
    return f"libxsmm {major}.{minor}, making code for `{made_for}`"


if __name__ == "__main__":
    sys.stdout.write(f"native parts of xetl: {status()}\n")
