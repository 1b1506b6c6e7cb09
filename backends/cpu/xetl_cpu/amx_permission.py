"""AMX and the system: may this process use tiles, and would somebody emulate them?

Nothing here runs an AMX instruction.
"""

from __future__ import annotations

import ctypes
import signal
from functools import cache

__all__ = ["is_emulated", "is_permitted"]

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
"""Linux: asm/unistd_64.h, asm/prctl.h, arch/x86/include/asm/fpu/types.h."""

_SIGACTION_BYTES = 256
"""More than the structure has anywhere; its first word is the handler."""


@cache
def is_permitted() -> bool:
    """Ask Linux, once a process, for the 8 KiB of state that tiles are.

    Without that the first tile instruction is a fault, on any processor.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    request = (_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
    return libc.syscall(*map(ctypes.c_long, request)) == 0


def is_emulated() -> bool:
    """Whether somebody handles SIGILL, which tiles raise where there are none."""
    libc = ctypes.CDLL(None)
    action = ctypes.create_string_buffer(_SIGACTION_BYTES)
    if libc.sigaction(int(signal.SIGILL), None, action):
        return False
    handler = int.from_bytes(action.raw[:8], "little")
    return handler not in (int(signal.SIG_DFL), int(signal.SIG_IGN))
